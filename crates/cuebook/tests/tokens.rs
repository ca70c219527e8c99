//! Counts of tokens, held against two other tokenizers: the crate `tiktoken`, which has the vocabularies inside, on any number
//! of texts, and OpenAI's own Python package, where it can be installed, on some hundreds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/python.rs"]
mod python;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use cuebook::tokens::{Counter, Tokenizer, Vocabulary, splits_between};
use proptest::prelude::*;

/// What texts are made of here: everything that the patterns of the vocabularies tell apart, and what is near to it.
const FRAGMENTS: &[&str] = &[
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{2029}",
    "\u{3000}",
    "\u{200b}",
    "\u{feff}",
    "\0",
    "a",
    "A",
    "the",
    "The",
    "THE",
    "aB",
    "ǅ",
    "ʰ",
    "ª",
    "é",
    "e\u{301}",
    "\u{301}",
    "\u{20e3}",
    "word",
    "Überraschung",
    "日本",
    "語の",
    "한국",
    "ไทย",
    "עברית",
    "हिन्दी",
    "1",
    "12",
    "123",
    "1234",
    "٣",
    "Ⅷ",
    "½",
    "'s",
    "'S",
    "'ſ",
    "'LL",
    "'re",
    "'",
    "’s",
    "/",
    "//",
    "#",
    "##",
    "# ",
    "- ",
    "*",
    "!",
    "?!",
    ".",
    "...",
    ";",
    "{",
    "}",
    "{\"",
    "</",
    "<|endoftext|>",
    "<|im_start|>",
    "```",
    "|---|",
    "=====",
    "👩‍👩‍👧",
    "🏳️‍🌈",
    "\u{1f1e9}",
    "\u{fffd}",
    "\u{10ffff}",
    "\u{e000}",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "ab_cd-ef",
    "https://example.org/a?b=c",
];

/// The crate `tiktoken` cuts without a pattern, and does not know that `(?i:'s)` stands for `'ſ` as well. OpenAI's own package
/// does, and so do we: texts with it are held against that one alone.
const CUT_DIFFERENTLY: &str = "'ſ";

fn texts() -> impl Strategy<Value = String> {
    let common: Vec<&str> =
        FRAGMENTS.iter().copied().filter(|fragment| *fragment != CUT_DIFFERENTLY).collect();
    let fragment = prop_oneof![
        8 => proptest::sample::select(common).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[ \\n\\r\\t/a-c#.]{0,12}",
    ];
    proptest::collection::vec(fragment, 0..24).prop_map(|fragments| fragments.concat())
}

fn other(vocabulary: Vocabulary) -> &'static tiktoken::CoreBpe {
    tiktoken::get_encoding(vocabulary.as_str()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn counts_are_those_of_another_tokenizer(text in texts()) {
        prop_assume!(!text.contains(CUT_DIFFERENTLY));
        for vocabulary in Vocabulary::ALL {
            prop_assert_eq!(Tokenizer::of(vocabulary).count(&text), other(vocabulary).count(&text), "{}", vocabulary);
        }
    }

    #[test]
    fn counts_add_up_where_a_text_splits(before in texts(), end in "[\\n\\r]{1,3}", first in any::<char>(), after in texts(),
        near in proptest::sample::select(&['#', 'a', '1', '\'', '-', '\u{301}', '.', '日', '\0', '\u{200b}'][..]), is_near: bool)
    {
        let before = before + &end;
        let after = format!("{}{after}", if is_near { near } else { first });
        prop_assume!(splits_between(&before, &after));
        prop_assume!(!before.contains(CUT_DIFFERENTLY) && !after.contains(CUT_DIFFERENTLY));
        for vocabulary in Vocabulary::ALL {
            let (ours, theirs) = (Tokenizer::of(vocabulary), other(vocabulary));
            let whole = format!("{before}{after}");
            prop_assert_eq!(ours.count(&before) + ours.count(&after), ours.count(&whole));
            prop_assert_eq!(theirs.count(&before) + theirs.count(&after), theirs.count(&whole));
        }
    }

    #[test]
    fn joined_parts_count_as_the_joined_text(
        parts in proptest::collection::vec(texts(), 0..6),
        separator in proptest::sample::select(&["", "\n", "\n\n", " ", "\r\n", "\n---\n", "/"][..]),
    ) {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        prop_assume!(!parts.join(separator).contains(CUT_DIFFERENTLY));
        let counter = Counter::with_limits(8, 4_000);
        for vocabulary in Vocabulary::ALL {
            let tokenizer = Tokenizer::of(vocabulary);
            let expected = other(vocabulary).count(&parts.join(separator));
            prop_assert_eq!(tokenizer.count_joined(&parts, separator), expected);
            for _ in 0..2 {
                prop_assert_eq!(counter.count_joined(&tokenizer, &parts, separator), expected);
            }
        }
    }
}

/// Texts of a size that make a careless tokenizer stand still.
fn hostile(size: usize) -> Vec<(&'static str, String)> {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let bytes: Vec<u8> = (0..size / 2).map(|_| random()).collect();
    let letters: String = (0..size).map(|_| char::from(b'a' + random() % 26)).collect();
    vec![
        ("one letter", "a".repeat(size)),
        ("two letters", "ab".repeat(size / 2)),
        ("random letters", letters),
        ("capitals", "A".repeat(size)),
        ("spaces", " ".repeat(size)),
        ("spaces before a word", " ".repeat(size) + "a"),
        ("line ends", "\n".repeat(size)),
        ("spaces and line ends", " \n".repeat(size / 2)),
        ("digits", "7".repeat(size)),
        ("dashes", "-".repeat(size)),
        ("marks", "\u{301}".repeat(size / 2)),
        ("ideographs", "語".repeat(size / 3)),
        ("random bytes", String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

#[test]
fn long_and_monotonous_texts_are_counted_and_counted_right() {
    for (name, text) in hostile(200_000) {
        for vocabulary in Vocabulary::ALL {
            let expected = other(vocabulary).count(&text);
            assert_eq!(Tokenizer::of(vocabulary).count(&text), expected, "{name} in {vocabulary}");
        }
    }
}

/// The vocabulary in the form that OpenAI publishes it in.
fn published(vocabulary: Vocabulary) -> String {
    let tokenizer = other(vocabulary);
    let mut lines = String::new();
    for rank in 0..tokenizer.vocab_size() as u32 {
        let token = base64::engine::general_purpose::STANDARD.encode(tokenizer.decode(&[rank]));
        writeln!(lines, "{token} {rank}").unwrap();
    }
    lines
}

#[test]
fn counts_are_those_of_openais_own_tokenizer() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tokens");
    let environment = python::environment("tokens-python", &tests.join("requirements.txt"));
    let Some(python) = python::or_skip(&environment, "OpenAI's tokenizer") else { return };

    let mut texts: Vec<String> = FRAGMENTS.iter().map(|fragment| (*fragment).to_owned()).collect();
    for first in FRAGMENTS {
        for second in FRAGMENTS {
            texts.push(format!("{first}{second}"));
            texts.push(format!("x{first}{second}{first} y"));
            texts.push(format!("{first}{CUT_DIFFERENTLY}{second}the"));
        }
    }
    texts.extend(hostile(20_000).into_iter().map(|(_, text)| text));
    texts.push(include_str!("tokens.rs").to_owned());

    let folder = tempfile::tempdir().unwrap();
    let mut questions = BTreeMap::new();
    for vocabulary in Vocabulary::ALL {
        std::fs::write(folder.path().join(format!("{vocabulary}.tiktoken")), published(vocabulary)).unwrap();
        questions.insert(vocabulary.as_str(), &texts);
    }
    let mut script = Command::new(python);
    script.arg(tests.join("count.py")).arg(folder.path());
    let answer = python::ask(&mut script, &serde_json::to_string(&questions).unwrap());
    let answers: BTreeMap<String, Vec<usize>> = serde_json::from_str(&answer).unwrap();
    for vocabulary in Vocabulary::ALL {
        let expected = &answers[vocabulary.as_str()];
        assert_eq!(expected.len(), texts.len());
        for (text, expected) in texts.iter().zip(expected) {
            assert_eq!(Tokenizer::of(vocabulary).count(text), *expected, "{text:?} in {vocabulary}");
        }
    }
}
