//! The stream cipher. Broken as encryption; it only makes bytes look random.

/// What is dropped of the key stream: its beginning tells of the key.
const DROPPED_BYTES: usize = 1024;

/// One direction.
#[derive(Clone)]
pub(crate) struct Rc4 {
    state: [u8; 256],
    first: u8,
    second: u8,
}

impl std::fmt::Debug for Rc4 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rc4")
    }
}

impl Rc4 {
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut state: [u8; 256] = std::array::from_fn(|index| u8::try_from(index).unwrap_or(0));
        let mut other = 0_u8;
        for index in 0..256 {
            other = other.wrapping_add(state[index]).wrapping_add(key[index % key.len()]);
            state.swap(index, usize::from(other));
        }
        let mut cipher = Self {
            state,
            first: 0,
            second: 0,
        };
        cipher.apply(&mut [0; DROPPED_BYTES]);
        cipher
    }

    /// Encrypts or decrypts the next bytes of the stream.
    pub(crate) fn apply(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.first = self.first.wrapping_add(1);
            let one = self.state[usize::from(self.first)];
            self.second = self.second.wrapping_add(one);
            let other = self.state[usize::from(self.second)];
            self.state[usize::from(self.first)] = other;
            self.state[usize::from(self.second)] = one;
            *byte ^= self.state[usize::from(one.wrapping_add(other))];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 6229 begin at the offsets 0, 16, 240, …: 1024 is one of them.
    #[test]
    fn the_key_stream_is_that_of_the_standard() {
        let mut stream = [0; 16];
        Rc4::new(&[1, 2, 3, 4, 5]).apply(&mut stream);
        let expected = [
            0x30, 0xab, 0xbc, 0xc7, 0xc2, 0x0b, 0x01, 0x60, 0x9f, 0x23, 0xee, 0x2d, 0x5f, 0x6b, 0xb7, 0xdf,
        ];
        assert_eq!(stream, expected);
    }
}
