//! Counts tokens: how much of a model's window a text takes.
//!
//! A [`Tokenizer`] belongs to a model and knows whether its count is exact. OpenAI's vocabularies are public and are inside
//! the program; where a maker publishes none, the count is an estimate, and [`Tokenizer::why`] says so in a sentence. A
//! [`Counter`] remembers counts by content, for code that counts the same pieces again and again.
//!
//! What is counted is text. What a provider puts around the messages of a chat is not in it. A text is inert here as
//! everywhere: `<|endoftext|>` in it counts as the characters that it is.
//!
//! Counting uses no network. The first count of a process unpacks a vocabulary; a process that counts nothing never does.
//! The work for a text of `n` bytes is at most `n log n` steps, whatever the text is.

mod boundary;
mod counter;
mod families;
#[cfg(feature = "tokens")]
mod loaded;
#[cfg(feature = "tokens")]
mod merge;
#[cfg(feature = "tokens")]
mod pieces;
#[cfg(feature = "tokens")]
mod table;

use std::fmt;

pub use boundary::splits_between;
pub use counter::Counter;

/// A list of tokens, and how texts are cut into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Vocabulary {
    /// `o200k_base`: OpenAI's models since GPT-4o.
    O200k,
    /// `cl100k_base`: OpenAI's GPT-4, GPT-3.5 and its embeddings.
    Cl100k,
}

impl Vocabulary {
    /// All of them.
    pub const ALL: [Vocabulary; 2] = [Vocabulary::O200k, Vocabulary::Cl100k];

    /// What OpenAI calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Vocabulary::O200k => "o200k_base",
            Vocabulary::Cl100k => "cl100k_base",
        }
    }
}

impl fmt::Display for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// How many bytes of the text it stands for.
    pub bytes: usize,
}

/// Counts the tokens of a text as a model does, or as near to it as can be known.
///
/// ```
/// use cuebook::tokens::{Tokenizer, Vocabulary};
///
/// let tokenizer = Tokenizer::for_model("gpt-4o-mini");
/// assert_eq!(tokenizer.vocabulary(), Vocabulary::O200k);
/// assert!(tokenizer.is_exact());
///
/// let tokenizer = Tokenizer::for_model("claude-sonnet-4-5");
/// assert_eq!(
///     tokenizer.why(),
///     Some("Anthropic publishes no vocabulary for `claude-sonnet-4-5`, so tokens are estimated with o200k_base of OpenAI")
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    /// Why a count is an estimate; `None` if it is exact.
    why: Option<String>,
}

impl Tokenizer {
    /// The tokenizer of a model, by the id that requests call it. Models whose vocabulary cannot be had are estimated.
    pub fn for_model(model: &str) -> Tokenizer {
        match families::vocabulary(model) {
            Some(vocabulary) => Tokenizer::of(vocabulary),
            None if model.trim().is_empty() => Tokenizer::for_no_model(),
            None => Tokenizer::estimate(&families::missing(model)),
        }
    }

    /// The tokenizer where no model is named: an estimate.
    pub fn for_no_model() -> Tokenizer {
        Tokenizer::estimate("No model is named")
    }

    /// A tokenizer that was requested by its vocabulary: exact, since it counts what was asked for.
    pub const fn of(vocabulary: Vocabulary) -> Tokenizer {
        Tokenizer { vocabulary, why: None }
    }

    fn estimate(reason: &str) -> Tokenizer {
        let vocabulary = Vocabulary::O200k;
        let why = format!("{reason}, so tokens are estimated with {vocabulary} of OpenAI");
        Tokenizer { vocabulary, why: Some(why) }
    }

    /// What it counts with.
    pub const fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    /// Whether the model sees exactly as many tokens in a text as are counted, or `false` for an estimate.
    pub const fn is_exact(&self) -> bool {
        cfg!(feature = "tokens") && self.why.is_none()
    }

    /// A sentence without its full stop that says why the count is an estimate; `None` if it is exact.
    pub fn why(&self) -> Option<&str> {
        match cfg!(feature = "tokens") {
            true => self.why.as_deref(),
            false => Some(WITHOUT),
        }
    }

    /// Whether OpenAI publishes the vocabulary of the model.
    pub fn is_published(model: &str) -> bool {
        families::vocabulary(model).is_some()
    }

    /// How many tokens a text has.
    ///
    /// ```
    /// use cuebook::tokens::Tokenizer;
    ///
    /// let tokenizer = Tokenizer::for_model("gpt-4o");
    /// assert_eq!(tokenizer.count("Hello, world!"), 4);
    /// assert_eq!(tokenizer.count("<|endoftext|>"), 7);
    /// ```
    #[cfg(feature = "tokens")]
    pub fn count(&self, text: &str) -> usize {
        let mut count = 0;
        // An empty text is no reason to load a vocabulary.
        if !text.is_empty() {
            self.vocabulary.load().tokens(text, |_| count += 1);
        }
        count
    }

    /// The tokens of a text in order, each with the bytes that it stands for. Their lengths add up to that of the text.
    ///
    /// ```
    /// use cuebook::tokens::Tokenizer;
    ///
    /// let tokens = Tokenizer::for_model("gpt-4o").encode("Hello, world!");
    /// assert_eq!(tokens.iter().map(|token| token.bytes).collect::<Vec<_>>(), [5, 1, 6, 1]);
    /// ```
    #[cfg(feature = "tokens")]
    pub fn encode(&self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::new();
        if !text.is_empty() {
            let loaded = self.vocabulary.load();
            loaded.tokens(text, |id| tokens.push(Token { id, bytes: loaded.table.token(id).len() }));
        }
        tokens
    }

    /// How many tokens parts have when they are joined: exactly, which in general is not the sum of their counts.
    pub fn count_joined(&self, parts: &[&str], separator: &str) -> usize {
        let mut total = 0;
        boundary::chunks(parts, separator, |chunk| total += self.count(chunk));
        total
    }
}

/// Why counts are estimates in a program without vocabularies.
const WITHOUT: &str =
    "This program was built without the feature `tokens`, so four bytes are estimated as one token";

/// Bytes of a token, where no vocabulary says better.
#[cfg(not(feature = "tokens"))]
const BYTES: usize = 4;

#[cfg(not(feature = "tokens"))]
impl Vocabulary {
    /// Whether this process has unpacked the vocabulary: it has none.
    pub fn is_loaded(self) -> bool {
        false
    }
}

#[cfg(not(feature = "tokens"))]
impl Tokenizer {
    /// How many tokens a text has, as an estimate.
    pub fn count(&self, text: &str) -> usize {
        text.len().div_ceil(BYTES)
    }

    /// As many tokens as are estimated, each with the bytes that it stands for.
    pub fn encode(&self, text: &str) -> Vec<Token> {
        text.as_bytes().chunks(BYTES).map(|bytes| Token { id: 0, bytes: bytes.len() }).collect()
    }
}

#[cfg(test)]
#[cfg(feature = "tokens")]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_always_says_why() {
        for model in ["claude-opus-4-1", "gemini-2.5-pro", "llama-3.3-70b", "", "gpt-4.9"] {
            let tokenizer = Tokenizer::for_model(model);
            assert!(!tokenizer.is_exact(), "{model}");
            assert_eq!(tokenizer.vocabulary(), Vocabulary::O200k);
            assert!(tokenizer.why().is_some_and(|why| why.contains("estimated with o200k_base")), "{model}");
        }
        let nobody = Tokenizer::for_no_model();
        assert!(!nobody.is_exact());
        assert_eq!(
            nobody.why(),
            Some("No model is named, so tokens are estimated with o200k_base of OpenAI")
        );
    }

    #[test]
    fn a_vocabulary_asked_for_by_name_is_exact() {
        for vocabulary in Vocabulary::ALL {
            let tokenizer = Tokenizer::of(vocabulary);
            assert!(tokenizer.is_exact() && tokenizer.vocabulary() == vocabulary);
        }
    }

    #[test]
    fn the_tokens_of_a_text_cover_it_and_are_as_many_as_are_counted() {
        for vocabulary in Vocabulary::ALL {
            let tokenizer = Tokenizer::of(vocabulary);
            for text in ["", "a", "Grüße, 世界! 👩‍👩‍👧\r\n\t x", "<|endoftext|>", "e\u{301}\0\u{202e}"]
            {
                let tokens = tokenizer.encode(text);
                assert_eq!(tokens.len(), tokenizer.count(text), "{text:?}");
                assert_eq!(tokens.iter().map(|token| token.bytes).sum::<usize>(), text.len(), "{text:?}");
            }
        }
    }

    #[test]
    fn special_tokens_are_ordinary_text() {
        for vocabulary in Vocabulary::ALL {
            let tokenizer = Tokenizer::of(vocabulary);
            assert_eq!(tokenizer.count("<|endoftext|>"), 7);
            assert!(tokenizer.count("<|im_start|>system") > 2);
        }
    }

    #[test]
    fn an_empty_text_has_no_tokens() {
        assert_eq!(Tokenizer::for_no_model().count(""), 0);
        assert_eq!(Tokenizer::for_no_model().count_joined(&[], "\n\n"), 0);
        assert_eq!(Tokenizer::for_no_model().count_joined(&["", ""], ""), 0);
    }
}
