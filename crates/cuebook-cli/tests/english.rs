//! Plain English in everything a user reads: messages, help, pages, topics and the book.
//!
//! [`BANNED`] lists the words and phrases that we do not use, each with the plain alternative.

#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A phrase that we do not use, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("tell", "say, report, or the subject first: \"`check` reports …\""),
    ("tells", "says, reports, or the subject first: \"`check` reports …\""),
    ("telling", "saying, reporting"),
    ("told", "the active verb: \"Cuebook reports …\", \"the model gets …\""),
    ("slip", "typo, mistake"),
    ("slips", "typos, mistakes"),
    ("whoever", "name the person: the caller, the user, the author"),
    ("nobody", "name the thing that is missing: \"`sender` has no value\""),
    ("somebody", "name the person or program, or use \"another\": \"another process runs the thread\""),
    ("stand", "be, belong, or leave it out"),
    ("stands", "is, belongs, or leave it out"),
    ("of its own", "own, separate: \"its own file\""),
    ("of his own", "own, separate"),
    ("of our own", "own, separate"),
    ("of their own", "own, separate: \"their own file\", \"a separate line\""),
    ("of your own", "your own"),
    ("of one's own", "own, separate"),
    ("what holds", "name the thing"),
    ("as it must be", "valid, correct: say what is invalid"),
    ("is none", "not a, no: \"`x` is not a directory\""),
    ("are none", "not, no"),
    ("by itself", "alone, automatically"),
    ("means nothing", "unknown: \"unknown key `x`\""),
    ("came of it", "the result"),
    ("comes of it", "the result"),
    ("was meant", "did you mean `x`?"),
    ("only you know", "unknown"),
    ("for good", "permanent"),
    ("a tree of sections", "a section tree"),
    ("trees of sections", "section trees"),
    ("that is no", "that is not a"),
    ("that are no", "that are not"),
    ("which is no", "which is not a"),
    ("is not there", "is missing, does not exist"),
    ("are not there", "are missing, do not exist"),
    ("what is there", "the existing …"),
    ("what is wrong", "the error, the problem"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("going on", "continuing"),
    ("by runtime", "depends on the runtime"),
    ("in silence", "silently"),
    ("a way out", "a fix"),
    ("the way out", "the fix"),
    ("vouches", "signs"),
    ("carries trust", "is protected"),
    ("carry trust", "are protected"),
    ("is meant", "means, is for"),
    ("as it is written", "unchanged"),
    ("let go", "ended, released"),
    ("for ever", "permanently"),
    ("turns up", "appears"),
    ("turn up", "appear"),
    ("lies", "is"),
    ("lie", "be"),
    ("is wanted", "is requested, the user wants"),
    ("would do", "works"),
    ("anybody", "anyone, the user"),
    ("everybody", "all users, people who …"),
    ("no one", "name the thing that is missing"),
    ("in vain", "without effect"),
    ("nowhere", "in no …"),
    ("whence", "from where"),
    ("thereby", "so"),
    ("read so", "read as …"),
    ("takes the place", "replaces"),
    ("take the place", "replace"),
    ("in the words of", "in the terms of, as"),
    ("with what to", "and says what to"),
    ("holds for", "applies to"),
    ("hold for", "apply to"),
    ("asked again", "retried"),
    ("tried again", "retried"),
    ("inside of", "inside"),
    ("outside of", "outside"),
    ("there twice", "given twice, duplicate"),
    ("counts for nothing", "has no effect"),
    ("count for nothing", "have no effect"),
    ("at rest", "stopped"),
    ("to its end", "completely"),
    ("the other half", "the other part"),
    ("behind `", "after `x`"),
    ("hurry", "speed up, move forward"),
    ("need not", "does not have to"),
    ("among equals", "of those with the same …"),
];

/// Texts with a banned phrase that must stay: others' programs expect them, or they are data.
const ALLOWED: &[&str] = &[
    // Prompts that the benchmarks render: a change would make their figures incomparable.
    "On day {page} of chapter {chapter}",
    "Work in small steps and say what you found after each of them.",
    "waits for a port that nobody opens",
    // The test `none` of templates.
    "{{ none is none }}",
];

/// A piece of text, and the line that it begins in.
struct Piece {
    line: usize,
    text: String,
}

#[test]
fn user_facing_text_is_plain_english() {
    let mut found = String::new();
    let mut texts = 0;
    for (path, pieces) in sources() {
        let shown = path.strip_prefix(ROOT).unwrap().display().to_string().replace('\\', "/");
        texts += pieces.len();
        for (line, phrase, plain) in pieces.iter().flat_map(banned_in) {
            writeln!(found, "{shown}:{line}: \"{phrase}\"; write instead: {plain}").unwrap();
        }
    }
    assert!(texts > 10_000, "only {texts} texts were read");
    assert!(found.is_empty(), "{} phrases are not plain English:\n{found}", found.lines().count());
}

#[test]
fn a_banned_phrase_is_found_with_its_line() {
    let rust = "/// Nobody reads this.\nfn f() {\n    g(\"a \\\n     b\n  is None of your\", r#\"Told\"#);\n}\n\
                #[cfg(test)]\nmod tests { const A: &str = \"told\"; }\n";
    let lines = |pieces: &[Piece]| {
        pieces.iter().flat_map(banned_in).map(|(at, word, _)| (at, word)).collect::<Vec<_>>()
    };
    assert_eq!(lines(&literals(rust, false)), [(5, "is none"), (5, "told")]);
    assert_eq!(lines(&literals("f(\"{reported} stands\")", false)), [(1, "stands")]);
    assert_eq!(lines(&literals(rust, true)), [(1, "nobody"), (5, "is none"), (5, "told")]);
    assert_eq!(lines(&literals("f(\"the name behind `@`, or behind\")", false)), [(1, "behind `")]);
    let markdown =
        "It stands\nby\nitself. This is. None.\n```console\ntold\n```\nA `slip`, whoever\nBehind `@`\n";
    assert_eq!(lines(&prose(markdown)), [(1, "stands"), (2, "by itself"), (7, "whoever"), (8, "behind `")]);
}

/// Every text that a user can read, by the file that it is in.
fn sources() -> Vec<(PathBuf, Vec<Piece>)> {
    let root = Path::new(ROOT);
    let mut all = Vec::new();
    for name in [
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "crates/cuebook-py/README.md",
        "crates/cuebook-node/README.md",
        "crates/cuebook-wasm/README.md",
    ] {
        all.push((root.join(name), prose(&read(&root.join(name)))));
    }
    for folder in ["docs/src", "crates/cuebook-cli/topics", "crates/cuebook-text/src/error/pages"] {
        for path in files(&root.join(folder), "md") {
            let pieces = prose(&read(&path));
            all.push((path, pieces));
        }
    }
    for krate in std::fs::read_dir(root.join("crates")).unwrap() {
        let source = krate.unwrap().path().join("src");
        for start in ["lib.rs", "main.rs"].map(|name| source.join(name)) {
            if start.exists() {
                modules(&start, &source, &mut all);
            }
        }
    }
    all
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Reads a source file and the modules that it declares outside of tests. Comments in `args` become the help.
fn modules(path: &Path, folder: &Path, all: &mut Vec<(PathBuf, Vec<Piece>)>) {
    let text = read(path);
    let is_help = path.components().any(|part| part.as_os_str() == "args") || path.ends_with("args.rs");
    all.push((path.to_owned(), literals(&text, is_help)));
    for name in declared_modules(&text) {
        let inner = folder.join(&name);
        for file in [inner.with_extension("rs"), inner.join("mod.rs")] {
            if file.exists() {
                modules(&file, &inner, all);
            }
        }
    }
}

/// The names in `mod name;`, without those that only tests have.
fn declared_modules(text: &str) -> Vec<String> {
    let tokens: Vec<TokenTree> = outside_tests(TokenStream::from_str(text).unwrap());
    tokens
        .windows(3)
        .filter(|three| three[0].to_string() == "mod" && three[2].to_string() == ";")
        .map(|three| three[1].to_string())
        .collect()
}

/// The tokens of a file or block without the items under `#[cfg(test)]`.
fn outside_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut skipping = false;
    for token in tokens {
        let is_test = matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket
            && group.stream().to_string().replace(' ', "") == "cfg(test)");
        if is_test {
            skipping = true;
        } else if !skipping {
            kept.push(token);
        } else {
            skipping = !ends_item(&token);
        }
    }
    kept
}

fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(sign) => sign.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    }
}

/// The string literals of a source file, with its documentation comments if they are help.
fn literals(text: &str, is_help: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    collect(TokenStream::from_str(text).unwrap(), is_help, &mut pieces);
    pieces
}

fn collect(tokens: TokenStream, is_help: bool, pieces: &mut Vec<Piece>) {
    for token in outside_tests(tokens) {
        match token {
            TokenTree::Group(group) if is_hidden(&group, is_help) => {}
            TokenTree::Group(group) => collect(group.stream(), is_help, pieces),
            TokenTree::Literal(literal) => {
                let written = literal.to_string();
                if written.contains('"') && !ALLOWED.iter().any(|text| written.contains(text)) {
                    let text =
                        without_placeholders(&written).replace("\\n", " \u{a0}").replace("\\\n", " \n");
                    pieces.push(Piece { line: literal.span().start().line, text });
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The text without the names in `{name}`, which the program replaces.
fn without_placeholders(text: &str) -> String {
    let is_name =
        |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || "_:?#.<>".contains(letter));
    text.split('{').enumerate().fold(String::new(), |kept, (index, part)| match part.split_once('}') {
        Some((name, rest)) if index > 0 && is_name(name) => kept + "{}" + rest,
        _ if index > 0 => kept + "{" + part,
        _ => kept + part,
    })
}

/// Whether this is the inside of an attribute that no user reads. A documentation comment is `#[doc = "…"]`.
fn is_hidden(group: &Group, is_help: bool) -> bool {
    let first = group.stream().into_iter().next().map(|first| first.to_string());
    group.delimiter() == Delimiter::Bracket
        && match first.as_deref() {
            Some("doc") => !is_help,
            Some("allow" | "expect") => true,
            _ => false,
        }
}

/// The text of a Markdown file without code, on the same lines.
fn prose(text: &str) -> Vec<Piece> {
    let mut shown = String::new();
    let mut fence: Option<String> = None;
    for line in text.split_inclusive('\n') {
        let marks: String = line.trim_start().chars().take_while(|mark| matches!(mark, '`' | '~')).collect();
        match &fence {
            None if marks.len() < 3 => {
                shown.push_str(line);
                continue;
            }
            None => fence = Some(marks),
            Some(open) if marks.starts_with(open.as_str()) => fence = None,
            Some(_) => {}
        }
        shown.push('\n');
    }
    vec![Piece { line: 1, text: without_code(&shown) }]
}

/// The text with everything between backquotes replaced by a word that is never banned.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    for paragraph in text.split_inclusive("\n\n") {
        for (index, part) in paragraph.split('`').enumerate() {
            if index % 2 == 0 {
                kept.push_str(part);
            } else {
                kept.push_str("`x`");
                kept.extend(part.chars().filter(|letter| *letter == '\n'));
            }
        }
    }
    kept
}

/// The banned phrases in a text: their line, and what to write instead.
fn banned_in(piece: &Piece) -> Vec<(usize, &'static str, &'static str)> {
    let words = words(piece);
    let mut found = Vec::new();
    for at in 0..words.len() {
        for (phrase, plain) in BANNED {
            let mut rest = words[at..].iter().map(|(_, word)| word.as_str());
            if phrase.split(' ').all(|word| rest.next() == Some(word)) {
                found.push((words[at].0, *phrase, *plain));
            }
        }
    }
    found
}

/// The words of a text in small letters, each with its line. No phrase goes beyond a punctuation mark.
fn words(piece: &Piece) -> Vec<(usize, String)> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '\'' | '_' | '`' | '¶');
    let mut words = Vec::new();
    for (index, line) in piece.text.split('\n').enumerate() {
        let line = line.replace(['.', ',', ';', ':', '?', '!'], " ¶ ");
        for word in line.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()) {
            // Code has no words, but a phrase may end with it.
            let word = if word.starts_with('`') { "`" } else { word };
            words.push((piece.line + index, word.to_lowercase()));
        }
    }
    words
}
