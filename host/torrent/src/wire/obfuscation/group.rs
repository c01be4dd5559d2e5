//! Diffie-Hellman over the 768-bit prime of the protocol, which is close to that of RFC 2409. Montgomery multiplication; not in constant time,
//! since a key serves one connection and protects no secret.

/// Bytes of a public key and of the secret.
pub(crate) const KEY_BYTES: usize = 96;

const LIMBS: usize = 12;

type Number = [u64; LIMBS];

/// The least significant limb first.
const PRIME: Number = [
    0x0000_0000_0009_0563,
    0xf44c_42e9_a63a_3621,
    0xe485_b576_625e_7ec6,
    0x4fe1_356d_6d51_c245,
    0x302b_0a6d_f25f_1437,
    0xef95_19b3_cd3a_431b,
    0x514a_0879_8e34_04dd,
    0x020b_bea6_3b13_9b22,
    0x2902_4e08_8a67_cc74,
    0xc4c6_628b_80dc_1cd1,
    0xc90f_daa2_2168_c234,
    0xffff_ffff_ffff_ffff,
];

/// -1 / PRIME modulo 2^64.
const INVERSE: u64 = 0x6d5d_6e69_9507_5bb5;

/// Bytes of a private key; 160 bits are what the protocol asks for.
const PRIVATE_BYTES: usize = 20;

/// A public key.
pub(crate) type PublicKey = [u8; KEY_BYTES];

/// What both sides know.
pub(crate) struct Secret([u8; KEY_BYTES]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    pub(crate) fn as_bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// One side's keys.
pub(crate) struct KeyPair {
    private: [u8; PRIVATE_BYTES],
    pub(crate) public: PublicKey,
}

impl std::fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyPair")
    }
}

impl KeyPair {
    /// A pair of these random bytes.
    pub(crate) fn new(private: [u8; PRIVATE_BYTES]) -> Self {
        let mut base = [0; LIMBS];
        base[0] = 2;
        Self {
            private,
            public: bytes_of(&power(&base, &private)),
        }
    }

    /// What this side and the owner of `theirs` know. `None` for keys that make it no secret.
    pub(crate) fn agree(&self, theirs: &PublicKey) -> Option<Secret> {
        let theirs = number_of(theirs);
        let mut one = [0; LIMBS];
        one[0] = 1;
        let mut most = PRIME;
        most[0] -= 1;
        let is_proper = theirs != [0; LIMBS] && theirs != one && is_less(&theirs, &most);
        is_proper.then(|| Secret(bytes_of(&power(&theirs, &self.private))))
    }
}

fn number_of(bytes: &[u8; KEY_BYTES]) -> Number {
    let limb = |index: usize| {
        let end = KEY_BYTES - index * 8;
        bytes[end - 8..end]
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    std::array::from_fn(limb)
}

fn bytes_of(number: &Number) -> [u8; KEY_BYTES] {
    std::array::from_fn(|index| number[LIMBS - 1 - index / 8].to_be_bytes()[index % 8])
}

fn is_less(one: &Number, other: &Number) -> bool {
    one.iter().rev().lt(other.iter().rev())
}

/// `number - PRIME`, which may have wrapped around once.
fn reduced(number: &Number) -> Number {
    let mut borrow = false;
    std::array::from_fn(|index| {
        let (less, first) = number[index].overflowing_sub(PRIME[index]);
        let (less, second) = less.overflowing_sub(u64::from(borrow));
        borrow = first || second;
        less
    })
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half of a product")]
fn split(wide: u128) -> (u64, u64) {
    (wide as u64, (wide >> 64) as u64)
}

/// `one * other / 2^768` modulo the prime.
fn multiply(one: &Number, other: &Number) -> Number {
    let mut sum = [0_u64; LIMBS + 2];
    for digit in other {
        let mut carry = 0;
        for index in 0..LIMBS {
            let wide = u128::from(one[index]) * u128::from(*digit) + u128::from(sum[index]) + u128::from(carry);
            (sum[index], carry) = split(wide);
        }
        let (low, high) = split(u128::from(sum[LIMBS]) + u128::from(carry));
        (sum[LIMBS], sum[LIMBS + 1]) = (low, high);
        let factor = sum[0].wrapping_mul(INVERSE);
        let (_, mut carry) = split(u128::from(factor) * u128::from(PRIME[0]) + u128::from(sum[0]));
        for index in 1..LIMBS {
            let wide = u128::from(factor) * u128::from(PRIME[index]) + u128::from(sum[index]) + u128::from(carry);
            (sum[index - 1], carry) = split(wide);
        }
        let (low, high) = split(u128::from(sum[LIMBS]) + u128::from(carry));
        sum[LIMBS - 1] = low;
        sum[LIMBS] = sum[LIMBS + 1] + high;
    }
    let number: Number = std::array::from_fn(|index| sum[index]);
    if sum[LIMBS] != 0 || !is_less(&number, &PRIME) {
        reduced(&number)
    } else {
        number
    }
}

/// `2 * number` modulo the prime.
fn doubled(number: &Number) -> Number {
    let carried = number[LIMBS - 1] >> 63 != 0;
    let twice = std::array::from_fn(|index| {
        let below = if index == 0 { 0 } else { number[index - 1] >> 63 };
        number[index] << 1 | below
    });
    if carried || !is_less(&twice, &PRIME) {
        reduced(&twice)
    } else {
        twice
    }
}

/// `base` to the power of `exponent` modulo the prime.
fn power(base: &Number, exponent: &[u8]) -> Number {
    // Montgomery's form of a number is itself times 2^768.
    let in_form = |number: &Number| (0..LIMBS * 64).fold(*number, |number, _| doubled(&number));
    let mut one = [0; LIMBS];
    one[0] = 1;
    let base = in_form(base);
    let mut result = in_form(&one);
    for byte in exponent {
        for bit in (0..8).rev() {
            result = multiply(&result, &result);
            if byte >> bit & 1 != 0 {
                result = multiply(&result, &base);
            }
        }
    }
    multiply(&result, &one)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same by doubling and adding.
    fn slow_product(one: &Number, other: &Number) -> Number {
        let mut sum = [0; LIMBS];
        for index in (0..LIMBS * 64).rev() {
            sum = doubled(&sum);
            if other[index / 64] >> (index % 64) & 1 != 0 {
                let mut carry = false;
                let added = std::array::from_fn(|index| {
                    let (more, first) = sum[index].overflowing_add(one[index]);
                    let (more, second) = more.overflowing_add(u64::from(carry));
                    carry = first || second;
                    more
                });
                sum = if carry || !is_less(&added, &PRIME) {
                    reduced(&added)
                } else {
                    added
                };
            }
        }
        sum
    }

    fn number() -> impl Strategy<Value = Number> {
        let limb = prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)];
        prop::collection::vec(limb, LIMBS).prop_map(|limbs| {
            let number: Number = limbs.try_into().unwrap();
            if is_less(&number, &PRIME) {
                number
            } else {
                reduced(&number)
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn products_are_those_of_the_slow_way(one in number(), other in number()) {
            let in_form = |number: &Number| (0..LIMBS * 64).fold(*number, |number, _| doubled(&number));
            prop_assert_eq!(multiply(&in_form(&one), &other), slow_product(&one, &other));
        }

        #[test]
        fn both_sides_agree(one: [u8; 20], other: [u8; 20]) {
            let (one, other) = (KeyPair::new(one), KeyPair::new(other));
            if let (Some(here), Some(there)) = (one.agree(&other.public), other.agree(&one.public)) {
                prop_assert_eq!(here.as_bytes(), there.as_bytes());
            }
        }

        #[test]
        fn bytes_and_numbers_are_the_same(number in number()) {
            prop_assert_eq!(number_of(&bytes_of(&number)), number);
        }
    }

    #[test]
    fn small_powers_are_known_and_improper_keys_are_refused() {
        let mut seven = [0; LIMBS];
        seven[0] = 7;
        assert_eq!(power(&seven, &[0, 5])[0], 16_807);
        let pair = KeyPair::new([3; 20]);
        let mut one = [0; KEY_BYTES];
        assert!(pair.agree(&one).is_none(), "zero");
        one[KEY_BYTES - 1] = 1;
        assert!(pair.agree(&one).is_none(), "one");
        assert!(pair.agree(&[0xff; KEY_BYTES]).is_none(), "beyond the prime");
    }
}
