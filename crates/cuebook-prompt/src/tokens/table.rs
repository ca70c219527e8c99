//! The tokens of a vocabulary, by their bytes and by their number.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use foldhash::fast::FixedState;

/// A vocabulary in memory. It lives as long as the process, so tokens are slices of one leaked buffer.
pub(super) struct Table {
    tokens: Vec<&'static [u8]>,
    ids: HashMap<&'static [u8], u32, FixedState>,
}

impl Table {
    /// Reads a compressed vocabulary: how many tokens it has (four bytes, the lowest first), the length of each token (one
    /// byte), and the bytes of all tokens, in the order of their numbers.
    pub(super) fn unpack(packed: &[u8]) -> Table {
        let mut bytes = Vec::new();
        ZlibDecoder::new(packed).read_to_end(&mut bytes).expect(SOUND);
        let bytes: &'static [u8] = bytes.leak();
        let (count, bytes) = bytes.split_first_chunk().expect(SOUND);
        let (lengths, mut rest) = bytes.split_at(u32::from_le_bytes(*count) as usize);
        let mut tokens = Vec::with_capacity(lengths.len());
        let mut ids = HashMap::with_capacity_and_hasher(lengths.len(), FixedState::default());
        for (id, length) in (0..).zip(lengths) {
            let (token, after) = rest.split_at(usize::from(*length));
            tokens.push(token);
            ids.insert(token, id);
            rest = after;
        }
        Table { tokens, ids }
    }

    /// The number of a token.
    pub(super) fn id(&self, token: &[u8]) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// The bytes of a token whose number came from this table.
    pub(super) fn token(&self, id: u32) -> &'static [u8] {
        self.tokens[id as usize]
    }
}

/// Why reading cannot fail.
const SOUND: &str = "the vocabularies are part of the program, and a test reads them all";

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::sha256::{Sha256, hex};
    use base64::Engine as _;

    use super::super::Vocabulary;

    fn tokens(vocabulary: Vocabulary) -> &'static [&'static [u8]] {
        &vocabulary.load().table.tokens
    }

    /// OpenAI publishes a vocabulary as lines of a token in Base64 and its number, and names the hash of the file.
    #[test]
    fn vocabularies_are_the_files_that_openai_publishes() {
        for (vocabulary, expected) in [
            (Vocabulary::Cl100k, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
            (Vocabulary::O200k, "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
        ] {
            let mut published = String::new();
            for (id, token) in tokens(vocabulary).iter().enumerate() {
                let token = base64::engine::general_purpose::STANDARD.encode(token);
                writeln!(published, "{token} {id}").unwrap();
            }
            assert_eq!(hex(&Sha256::digest(&published)), expected, "{vocabulary}");
        }
    }

    #[test]
    fn every_byte_is_a_token() {
        for vocabulary in Vocabulary::ALL {
            assert!((0..=u8::MAX).all(|byte| vocabulary.load().table.id(&[byte]).is_some()), "{vocabulary}");
        }
    }

    /// OpenAI's package cuts white space at the end of a text differently for `cl100k_base` than it once did: line ends and
    /// the spaces after them are one piece. That gives other counts only if a token goes on after a line end.
    #[test]
    fn no_token_of_cl100k_goes_on_after_a_line_end() {
        for token in tokens(Vocabulary::Cl100k) {
            let last = token.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
            assert!(last.is_none_or(|last| last + 1 == token.len()), "{:?}", String::from_utf8_lossy(token));
        }
    }
}
