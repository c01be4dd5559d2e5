//! How two sides begin: their handshakes, in clear or obfuscated.

use std::io;

use metainfo::InfoHash;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    config::Encryption,
    wire::{
        handshake::{HANDSHAKE_BYTES, Handshake, PROTOCOL},
        obfuscation::{
            self, CHECK_BYTES, KEY_BYTES, KeyPair, Keys, MARK_BYTES, MAX_PADDING_BYTES, OFFER_BYTES, Secret, Ways,
        },
    },
};

/// What the other side said, and the keys of everything that follows if that is obfuscated.
pub(super) type Introduced = (Handshake, Option<Box<Keys>>);

impl Encryption {
    fn ways(self) -> Ways {
        Ways {
            plain: self != Self::Forced,
            rc4: self != Self::Disabled,
        }
    }
}

/// Introduces us to a peer that we connected to, in clear.
pub(super) async fn plainly(stream: &mut TcpStream, ours: &Handshake) -> io::Result<Introduced> {
    stream.write_all(&ours.encode()).await?;
    let mut bytes = [0; HANDSHAKE_BYTES];
    stream.read_exact(&mut bytes).await?;
    decode(&bytes, ours.info_hash).map(|theirs| (theirs, None))
}

/// Introduces us to a peer that we connected to, obfuscated.
pub(super) async fn secretly(
    stream: &mut TcpStream,
    ours: &Handshake,
    encryption: Encryption,
) -> io::Result<Introduced> {
    let ways = encryption.ways();
    let pair = KeyPair::new(random()?);
    stream.write_all(&[&pair.public[..], &padding()?].concat()).await?;
    let mut theirs = [0; KEY_BYTES];
    stream.read_exact(&mut theirs).await?;
    let secret = pair.agree(&theirs).ok_or_else(invalid)?;
    let mut keys = Keys::new(&secret, ours.info_hash);
    let mut sealed = obfuscation::offer(ways, padding()?.len());
    let handshake = ours.encode();
    sealed.extend(u16::try_from(handshake.len()).expect("68 fit").to_be_bytes());
    sealed.extend(handshake);
    keys.connecting.apply(&mut sealed);
    let marks = [
        obfuscation::first_mark(&secret),
        obfuscation::torrent_mark(&secret, ours.info_hash),
    ];
    stream.write_all(&[&marks.concat()[..], &sealed].concat()).await?;
    // Encrypted zeros show where their padding ends.
    let mut check = [0; CHECK_BYTES];
    keys.accepting.apply(&mut check);
    find(stream, &check).await?;
    let mut answer = [0; OFFER_BYTES];
    read(stream, &mut answer[CHECK_BYTES..], Some(&mut keys.accepting)).await?;
    let (chosen, padding) = obfuscation::read_offer(&answer).ok_or_else(invalid)?;
    read(stream, &mut vec![0; padding], Some(&mut keys.accepting)).await?;
    if chosen.plain == chosen.rc4 || ways.choose(chosen) != Some(chosen) {
        return Err(invalid());
    }
    let mut bytes = [0; HANDSHAKE_BYTES];
    read(stream, &mut bytes, chosen.rc4.then_some(&mut keys.accepting)).await?;
    decode(&bytes, ours.info_hash).map(|theirs| (theirs, chosen.rc4.then(|| Box::new(keys))))
}

/// Hears a peer that connected to us. `torrents` are those that it may want.
pub(super) async fn hear(
    stream: &mut TcpStream,
    encryption: Encryption,
    torrents: impl Fn() -> Vec<InfoHash>,
) -> io::Result<Introduced> {
    let mut bytes = [0; HANDSHAKE_BYTES];
    let (first, rest) = bytes.split_at_mut(PROTOCOL.len());
    stream.read_exact(first).await?;
    let is_plain = first == PROTOCOL;
    match encryption {
        Encryption::Forced if is_plain => Err(invalid()),
        Encryption::Disabled if !is_plain => Err(invalid()),
        _ if is_plain => {
            stream.read_exact(rest).await?;
            let theirs = Handshake::decode(&bytes).map_err(io::Error::other)?;
            Ok((theirs, None))
        }
        _ => hear_secretly(stream, first, encryption.ways(), torrents).await,
    }
}

async fn hear_secretly(
    stream: &mut TcpStream,
    first: &[u8],
    ways: Ways,
    torrents: impl Fn() -> Vec<InfoHash>,
) -> io::Result<Introduced> {
    let mut theirs = [0; KEY_BYTES];
    let (begun, rest) = theirs.split_at_mut(first.len());
    begun.copy_from_slice(first);
    stream.read_exact(rest).await?;
    let pair = KeyPair::new(random()?);
    let secret = pair.agree(&theirs).ok_or_else(invalid)?;
    stream.write_all(&[&pair.public[..], &padding()?].concat()).await?;
    find(stream, &obfuscation::first_mark(&secret)).await?;
    let mut mark = [0; MARK_BYTES];
    stream.read_exact(&mut mark).await?;
    let wanted = wanted(&secret, &mark, torrents()).ok_or_else(invalid)?;
    let mut keys = Keys::new(&secret, wanted);
    let mut asked = [0; OFFER_BYTES];
    read(stream, &mut asked, Some(&mut keys.connecting)).await?;
    let (offered, skipped) = obfuscation::read_offer(&asked).ok_or_else(invalid)?;
    read(stream, &mut vec![0; skipped], Some(&mut keys.connecting)).await?;
    let mut length = [0; 2];
    read(stream, &mut length, Some(&mut keys.connecting)).await?;
    // The beginning of what it says may come along: no more than its handshake does with any client.
    let mut bytes = [0; HANDSHAKE_BYTES];
    let begun = usize::from(u16::from_be_bytes(length));
    let early = bytes.get_mut(..begun).ok_or_else(invalid)?;
    read(stream, early, Some(&mut keys.connecting)).await?;
    let chosen = ways.choose(offered).ok_or_else(invalid)?;
    let mut answer = obfuscation::offer(chosen, padding()?.len());
    keys.accepting.apply(&mut answer);
    stream.write_all(&answer).await?;
    read(stream, &mut bytes[begun..], chosen.rc4.then_some(&mut keys.connecting)).await?;
    decode(&bytes, wanted).map(|theirs| (theirs, chosen.rc4.then(|| Box::new(keys))))
}

/// The torrent that is named by this mark.
fn wanted(secret: &Secret, mark: &[u8; MARK_BYTES], torrents: Vec<InfoHash>) -> Option<InfoHash> {
    let mut torrents = torrents.into_iter();
    torrents.find(|torrent| obfuscation::torrent_mark(secret, *torrent) == *mark)
}

async fn read(stream: &mut TcpStream, bytes: &mut [u8], cipher: Option<&mut obfuscation::Rc4>) -> io::Result<()> {
    stream.read_exact(bytes).await?;
    if let Some(cipher) = cipher {
        cipher.apply(bytes);
    }
    Ok(())
}

/// Reads until after these bytes, which follow padding.
async fn find(stream: &mut TcpStream, mark: &[u8]) -> io::Result<()> {
    let mut read = vec![0; mark.len()];
    stream.read_exact(&mut read).await?;
    while !read.ends_with(mark) {
        if read.len() == mark.len() + MAX_PADDING_BYTES {
            return Err(invalid());
        }
        read.push(stream.read_u8().await?);
    }
    Ok(())
}

fn decode(bytes: &[u8; HANDSHAKE_BYTES], torrent: InfoHash) -> io::Result<Handshake> {
    let theirs = Handshake::decode(bytes).map_err(io::Error::other)?;
    if theirs.info_hash == torrent {
        Ok(theirs)
    } else {
        Err(invalid())
    }
}

fn random<const COUNT: usize>() -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Random bytes of a random number, so that no length is typical.
fn padding() -> io::Result<Vec<u8>> {
    let length = usize::from(u16::from_be_bytes(random()?)) % (MAX_PADDING_BYTES + 1);
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
