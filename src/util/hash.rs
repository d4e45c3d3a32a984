// SPDX-License-Identifier: GPL-2.0-only
//! Hashes of texts: the same on every host and in every release. Not cryptographic.

/// FNV-1a with 64 bits (Fowler, Noll, Vo).
pub fn fnv1a(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    /// draft-eastlake-fnv, test vectors.
    #[test]
    fn numbers_are_those_of_the_definition() {
        for (text, number) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(super::fnv1a(text.bytes()), number);
        }
    }
}
