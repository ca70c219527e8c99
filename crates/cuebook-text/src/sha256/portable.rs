//! SHA-256 as FIPS 180-4 defines it, in plain Rust.

/// The fractional parts of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// The fractional parts of the square roots of the first 8 primes.
const FIRST: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

const BLOCK: usize = 64;

#[derive(Clone)]
pub(super) struct Portable {
    state: [u32; 8],
    /// Bytes that fill no block yet.
    rest: [u8; BLOCK],
    /// Bytes so far.
    length: u64,
}

impl Default for Portable {
    fn default() -> Portable {
        Portable { state: FIRST, rest: [0; BLOCK], length: 0 }
    }
}

impl Portable {
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        let filled = self.filled();
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if filled > 0 {
            let wanted = (BLOCK - filled).min(bytes.len());
            let (now, later) = bytes.split_at(wanted);
            self.rest[filled..filled + wanted].copy_from_slice(now);
            if filled + wanted < BLOCK {
                return;
            }
            let block = self.rest;
            self.block(&block);
            bytes = later;
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        blocks.iter().for_each(|block| self.block(block));
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    pub(super) fn finalize(mut self) -> [u8; 32] {
        let bits = self.length.wrapping_mul(8);
        // One bit, and zeros up to the eight bytes of the length.
        let zeros = (BLOCK + 55 - self.filled()) % BLOCK;
        self.update(&[0x80]);
        self.update(&[0; BLOCK][..zeros]);
        self.update(&bits.to_be_bytes());
        let mut hash = [0; 32];
        for (bytes, word) in hash.as_chunks_mut::<4>().0.iter_mut().zip(self.state) {
            *bytes = word.to_be_bytes();
        }
        hash
    }

    fn filled(&self) -> usize {
        (self.length % BLOCK as u64) as usize
    }

    fn block(&mut self, block: &[u8; BLOCK]) {
        let mut words = [0_u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..64 {
            let (early, late) = (words[at - 15], words[at - 2]);
            let small = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
            let large = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
            words[at] = words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]).wrapping_add(large);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for (round, word) in ROUNDS.iter().zip(words) {
            let large = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let first = h.wrapping_add(large).wrapping_add(choice).wrapping_add(*round).wrapping_add(word);
            let small = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = (a & b) ^ (a & c) ^ (b & c);
            let second = small.wrapping_add(majority);
            (h, g, f, e) = (g, f, e, d.wrapping_add(first));
            (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        }
        for (state, word) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *state = state.wrapping_add(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::Digest as _;

    use super::super::hex;
    use super::*;

    fn of(parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = Portable::default();
        parts.iter().for_each(|part| hasher.update(part));
        hasher.finalize()
    }

    #[test]
    fn the_examples_of_the_standard_have_their_hashes() {
        let two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (text, hash) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (two_blocks, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"),
        ] {
            assert_eq!(hex(&of(&[text.as_bytes()])), hash);
        }
    }

    #[test]
    fn hashes_of_lengths_around_a_block_match_another_program() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..bytes.len() {
            let expected: [u8; 32] = sha2::Sha256::digest(&bytes[..length]).into();
            assert_eq!(of(&[&bytes[..length]]), expected, "{length}");
        }
    }

    proptest! {
        #[test]
        fn bytes_in_parts_have_the_hash_of_the_whole(
            bytes in proptest::collection::vec(any::<u8>(), 0..500),
            cuts in proptest::collection::vec(0_usize..500, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let parts: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            let expected: [u8; 32] = sha2::Sha256::digest(&bytes).into();
            prop_assert_eq!(of(&parts), expected);
        }
    }
}
