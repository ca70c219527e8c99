//! Counts tokens: how much of a model's window a text takes.
//!
//! A [`Tokenizer`] belongs to a model and knows whether its count is exact. OpenAI's vocabularies are public and are inside
//! the program; where a maker publishes none, the count is an estimate, and [`Tokenizer::why`] says so in a sentence. A
//! [`Counter`] remembers counts by content, for whoever counts the same pieces again and again.
//!
//! What is counted is text. What a provider puts around the messages of a chat is not in it. A text is inert here as
//! everywhere: `<|endoftext|>` in it counts as the characters that it is.
//!
//! Counting uses no network. The first count of a process unpacks a vocabulary; a process that counts nothing never does.
//! The work for a text of `n` bytes is at most `n log n` steps, whatever the text is.

mod boundary;
mod counter;
mod families;
mod merge;
mod pieces;
mod table;

use std::fmt;
use std::sync::OnceLock;

use regex::Regex;

pub use boundary::splits_between;
pub use counter::Counter;

use merge::Merger;
use pieces::Pieces;
use table::Table;

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

    /// The vocabulary in memory. The first call of a process unpacks it, in less than a tenth of a second.
    fn load(self) -> &'static Loaded {
        let (packed, pattern): (&[u8], &str) = match self {
            Vocabulary::O200k => (include_bytes!("tokens/data/o200k_base.zlib"), pieces::O200K),
            Vocabulary::Cl100k => (include_bytes!("tokens/data/cl100k_base.zlib"), pieces::CL100K),
        };
        let load = || Loaded { table: Table::unpack(packed), pattern: pieces::compile(pattern) };
        self.kept().get_or_init(load)
    }

    /// Whether this process has unpacked the vocabulary. Only a count does that, and a render never counts.
    pub fn is_loaded(self) -> bool {
        self.kept().get().is_some()
    }

    fn kept(self) -> &'static OnceLock<Loaded> {
        static O200K: OnceLock<Loaded> = OnceLock::new();
        static CL100K: OnceLock<Loaded> = OnceLock::new();
        match self {
            Vocabulary::O200k => &O200K,
            Vocabulary::Cl100k => &CL100K,
        }
    }
}

/// A vocabulary that is ready to count.
struct Loaded {
    table: Table,
    pattern: Regex,
}

impl Loaded {
    /// Visits the tokens of a text in order.
    fn tokens(&self, text: &str, mut visit: impl FnMut(u32)) {
        let mut merger = Merger::default();
        for piece in Pieces::of(&self.pattern, text) {
            merger.tokens(&self.table, piece.as_bytes(), &mut visit);
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

    /// A tokenizer that somebody asked for by its vocabulary: exact, since it counts what was asked for.
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
        self.why.is_none()
    }

    /// A sentence without its full stop that says why the count is an estimate; `None` if it is exact.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
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

#[cfg(test)]
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
