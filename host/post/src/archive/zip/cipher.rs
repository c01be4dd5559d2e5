//! Encrypted entries: PKWARE's old cipher, and AES as `WinZip` has it (counter mode, authenticated).

use std::{
    io::{self, Read},
    num::NonZeroU32,
};

use aes::{
    Aes128, Aes192, Aes256, Block,
    cipher::{BlockCipherEncrypt as _, KeyInit as _},
};
use ring::{hmac, pbkdf2};

use super::{
    Packed,
    directory::{Aes, Listed},
};
use crate::refusal::Reason;

/// Rounds of PBKDF2, which the format states.
const ROUNDS: NonZeroU32 = NonZeroU32::new(1000).expect("it is not zero");

/// Bytes by which a password is checked, and those that authenticate the content.
const CHECK_BYTES: usize = 2;
const TAG_BYTES: usize = 10;

/// Bytes before the content that PKWARE's cipher begins with.
const OLD_HEAD_BYTES: usize = 12;

/// The packed bytes of an entry, decrypted if they have to be.
pub(super) enum Plain<'a> {
    Open(Packed<'a>),
    Old(Packed<'a>, OldKeys),
    Aes(Box<AesReader<'a>>),
}

impl<'a> Plain<'a> {
    /// An entry that is not encrypted.
    pub(super) fn open(packed: Packed<'a>) -> Self {
        Self::Open(packed)
    }

    /// An entry with a password; a wrong one is found here, or, with PKWARE's cipher one time in 256, by its checksum.
    pub(super) fn decrypt(mut packed: Packed<'a>, entry: &Listed, password: &[u8]) -> Result<Self, Reason> {
        if let Some(aes) = entry.aes {
            return Ok(Self::Aes(Box::new(AesReader::new(packed, aes, password)?)));
        }
        let mut keys = OldKeys::new(password);
        let mut head = [0; OLD_HEAD_BYTES];
        packed.read_exact(&mut head).map_err(|error| Reason::read(&error))?;
        keys.decrypt(&mut head);
        if head[OLD_HEAD_BYTES - 1] != entry.password_check() {
            return Err(Reason::WrongPassword);
        }
        Ok(Self::Old(packed, keys))
    }
}

impl Read for Plain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Open(packed) => packed.read(buffer),
            Self::Old(packed, keys) => {
                let read = packed.read(buffer)?;
                keys.decrypt(&mut buffer[..read]);
                Ok(read)
            }
            Self::Aes(reader) => reader.read(buffer),
        }
    }
}

/// The state of PKWARE's cipher (APPNOTE 6.1).
pub(super) struct OldKeys([u32; 3]);

impl OldKeys {
    fn new(password: &[u8]) -> Self {
        let mut keys = Self([0x1234_5678, 0x2345_6789, 0x3456_7890]);
        for byte in password {
            keys.update(*byte);
        }
        keys
    }

    fn update(&mut self, byte: u8) {
        let [zero, one, two] = &mut self.0;
        *zero = crc(*zero, byte);
        *one = one.wrapping_add(*zero & 0xff).wrapping_mul(134_775_813).wrapping_add(1);
        *two = crc(*two, one.to_be_bytes()[0]);
    }

    fn decrypt(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            let key = (self.0[2] | 2) & 0xffff;
            *byte ^= (key.wrapping_mul(key ^ 1) >> 8).to_le_bytes()[0];
            self.update(*byte);
        }
    }
}

/// One step of CRC-32, which the cipher uses to mix.
fn crc(crc: u32, byte: u8) -> u32 {
    const TABLE: [u32; 256] = table();
    (crc >> 8) ^ TABLE[usize::from((crc.to_le_bytes()[0]) ^ byte)]
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < table.len() {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                (value >> 1) ^ 0xedb8_8320
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

enum Cipher {
    Aes128(Aes128),
    Aes192(Aes192),
    Aes256(Aes256),
}

impl Cipher {
    fn new(key: &[u8]) -> Option<Self> {
        match key.len() {
            16 => Aes128::new_from_slice(key).ok().map(Self::Aes128),
            24 => Aes192::new_from_slice(key).ok().map(Self::Aes192),
            _ => Aes256::new_from_slice(key).ok().map(Self::Aes256),
        }
    }

    fn encrypt(&self, block: &mut Block) {
        match self {
            Self::Aes128(cipher) => cipher.encrypt_block(block),
            Self::Aes192(cipher) => cipher.encrypt_block(block),
            Self::Aes256(cipher) => cipher.encrypt_block(block),
        }
    }
}

/// AES in counter mode, with a tag behind the content that is checked when all of it was read.
pub(super) struct AesReader<'a> {
    packed: Packed<'a>,
    cipher: Cipher,
    counter: u128,
    /// What is left of the current block of the key stream.
    stream: Block,
    used: usize,
    content_left: u64,
    tag: Option<hmac::Context>,
}

impl<'a> AesReader<'a> {
    fn new(mut packed: Packed<'a>, aes: Aes, password: &[u8]) -> Result<Self, Reason> {
        let mut salt = vec![0; aes.key_bytes / 2];
        let mut check = [0; CHECK_BYTES];
        let read = packed
            .read_exact(&mut salt)
            .and_then(|()| packed.read_exact(&mut check));
        read.map_err(|error| Reason::read(&error))?;
        let mut derived = vec![0; aes.key_bytes * 2 + CHECK_BYTES];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA1, ROUNDS, &salt, password, &mut derived);
        let (key, rest) = derived.split_at(aes.key_bytes);
        let (tag_key, expected) = rest.split_at(aes.key_bytes);
        if expected != check {
            return Err(Reason::WrongPassword);
        }
        let tag_key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, tag_key);
        let content_left = packed.left.checked_sub(TAG_BYTES as u64);
        Ok(Self {
            cipher: Cipher::new(key).ok_or_else(|| Reason::damaged("its key length"))?,
            counter: 0,
            stream: Block::default(),
            used: size_of::<Block>(),
            content_left: content_left.ok_or_else(|| Reason::damaged("it ends too early"))?,
            tag: Some(hmac::Context::with_key(&tag_key)),
            packed,
        })
    }

    fn decrypt(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.used == self.stream.len() {
                self.counter += 1;
                self.stream = self.counter.to_le_bytes().into();
                self.cipher.encrypt(&mut self.stream);
                self.used = 0;
            }
            *byte ^= self.stream[self.used];
            self.used += 1;
        }
    }

    fn check_tag(&mut self) -> io::Result<()> {
        let Some(context) = self.tag.take() else {
            return Ok(());
        };
        let mut stored = [0; TAG_BYTES];
        self.packed.read_exact(&mut stored)?;
        if context.sign().as_ref()[..TAG_BYTES] != stored {
            return Err(io::Error::other(Reason::Checksum.of_archive()));
        }
        Ok(())
    }
}

impl Read for AesReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.content_left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        if length == 0 {
            if !buffer.is_empty() {
                self.check_tag()?;
            }
            return Ok(0);
        }
        let read = self.packed.read(&mut buffer[..length])?;
        self.content_left -= read as u64;
        if let Some(tag) = &mut self.tag {
            tag.update(&buffer[..read]);
        }
        self.decrypt(&mut buffer[..read]);
        Ok(read)
    }
}
