//! The public API of the crates that programs embed, as a list in `api.txt` of each crate.
//!
//! A change of the API is a change of the list, which a reviewer sees. `CUEBOOK_BLESS=1` writes the lists anew.

mod crates;
mod listing;

use std::path::Path;

use listing::Listing;

/// The crates whose API programs use.
const LISTED: [&str; 6] =
    ["cuebook", "cuebook-agent", "cuebook-hooks", "cuebook-lab", "cuebook-run", "cuebook-template"];

/// The types of other crates that may be in signatures, and why.
const FOREIGN: [(&str, &str); 3] = [
    ("indexmap::IndexMap", "keeps the order of a file's keys, which the standard library has no map for"),
    ("jiff::Timestamp", "a moment; the standard library has no calendar, and `cuebook::jiff` is the crate"),
    ("jiff::Zoned", "a moment in a time zone, as for `jiff::Timestamp`"),
];

#[test]
fn the_public_api_is_listed_and_has_examples() {
    let crates = crates::Crates::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let (mut changed, mut foreign) = (Vec::new(), std::collections::BTreeSet::new());
    for name in LISTED {
        let listed = Listing::of(&crates, name);
        assert!(listed.lines().count() > 5, "{name} has more items than that");
        let types = listed.lines().skip_while(|line| !line.starts_with("# types")).skip(1);
        foreign.extend(types.filter_map(|line| Some(line.split_once(": ")?.0.to_owned())));
        let file = crates.folder.join(name).join("api.txt");
        let known = std::fs::read_to_string(&file).unwrap_or_default();
        if known == listed {
            continue;
        }
        if std::env::var_os("CUEBOOK_BLESS").is_some() {
            std::fs::write(&file, listed).unwrap();
            continue;
        }
        let old: std::collections::BTreeSet<&str> = known.lines().collect();
        let new: std::collections::BTreeSet<&str> = listed.lines().collect();
        changed.extend(old.difference(&new).map(|line| format!("{name} - {line}")));
        changed.extend(new.difference(&old).map(|line| format!("{name} + {line}")));
    }
    let explained: std::collections::BTreeSet<String> =
        FOREIGN.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(foreign, explained, "each type of another crate in the API needs a reason in `FOREIGN`");
    let hint = "if that is meant: CUEBOOK_BLESS=1 cargo test -p cuebook-cli --test house public_api";
    assert!(changed.is_empty(), "the public API changed; {hint}\n{}", changed.join("\n"));
    assert_examples(&crates);
}

/// Where programs begin.
const ENTRY_POINTS: [&str; 24] = [
    "cuebook::Book",
    "cuebook::Context",
    "cuebook::Error",
    "cuebook::Freshness",
    "cuebook::Message",
    "cuebook::Prepared",
    "cuebook::RenderBuilder",
    "cuebook::Rendered",
    "cuebook::Variables",
    "cuebook::actions::load::LoadRequest",
    "cuebook::actions::search::SearchRequest",
    "cuebook::actions::sign::SignRequest",
    "cuebook::chat::reply::Sse",
    "cuebook::chat::wire::Wire",
    "cuebook::dialect::Dialect",
    "cuebook::hooks::Hooks",
    "cuebook::sections::SectionType",
    "cuebook::sections::Tree",
    "cuebook::template::engine::Engine",
    "cuebook_run::Engine",
    "cuebook_run::ExecuteRequest",
    "cuebook_run::RunRequest",
    "cuebook_run::Thread",
    "cuebook_template::Environment",
];

/// Every entry point has an example.
fn assert_examples(crates: &crates::Crates) {
    let missing = ENTRY_POINTS.iter().filter(|path| {
        let path: Vec<String> = path.split("::").map(str::to_owned).collect();
        let found = crates.resolve(&path[..1], &[&["crate".to_owned()], &path[1..]].concat());
        let Some(crates::Found::Items(_, items)) = found else { panic!("{path:?} does not exist") };
        !items.into_iter().any(has_example)
    });
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0], "its documentation needs an example");
}

/// The types whose methods programs call.
const MAIN_TYPES: [&str; 20] = [
    "cuebook::Book",
    "cuebook::Diagnostic",
    "cuebook::Error",
    "cuebook::Prepared",
    "cuebook::RenderBuilder",
    "cuebook::Rendered",
    "cuebook::Variables",
    "cuebook::chat::wire::Wire",
    "cuebook::hooks::Hooks",
    "cuebook::library::Library",
    "cuebook::sections::Tree",
    "cuebook::sections::TreeBuilder",
    "cuebook::template::engine::Engine",
    "cuebook_run::Engine",
    "cuebook_run::ExecuteRequest",
    "cuebook_run::ResumeBuilder",
    "cuebook_run::RunRequest",
    "cuebook_run::Thread",
    "cuebook_template::Environment",
    "cuebook_template::Template",
];

/// The examples that tests run: code in documentation, and the files in `examples`.
fn examples(crates: &Path) -> String {
    let (mut files, mut found) = (vec![crates.to_owned()], String::new());
    while let Some(path) = files.pop() {
        let inside = path.strip_prefix(crates).unwrap();
        let is_example = inside.components().nth(1).is_some_and(|part| part.as_os_str() == "examples");
        if path.is_dir() {
            let is_read =
                inside.components().nth(1).is_none_or(|part| part.as_os_str() == "src") || is_example;
            let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
            files.extend(entries.filter(|_| is_read));
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            if is_example {
                found.push_str(&text);
                continue;
            }
            let mut is_code = false;
            for line in text.lines().map(str::trim_start) {
                let docs = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start);
                is_code = match docs {
                    None => false,
                    Some(mark) if mark.starts_with("```") => !is_code,
                    Some(code) => {
                        found.extend(is_code.then_some([code, "\n"]).into_iter().flatten());
                        is_code
                    }
                };
            }
        }
    }
    found
}

/// A program finds each method of the types that it uses in an example. A method for other crates of ours is `#[doc(hidden)]`.
#[test]
fn every_method_of_the_main_types_is_in_an_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (crates, examples) = (crates::Crates::read(folder), examples(folder));
    let called = regex::Regex::new(r"(?:\.|::)(\w+)\s*(?:::<[^()]*>)?\(").unwrap();
    let called: std::collections::BTreeSet<&str> =
        called.captures_iter(&examples).map(|found| found.get(1).unwrap().as_str()).collect();
    let mut missing = Vec::new();
    for name in LISTED {
        for line in Listing::of(&crates, name).lines() {
            let Some(path) = line.strip_prefix("pub fn ").and_then(|rest| rest.split(['(', '<']).next())
            else {
                continue;
            };
            let Some((owner, method)) = path.rsplit_once("::") else { continue };
            if MAIN_TYPES.contains(&owner) && !called.contains(method) {
                missing.push(path.to_owned());
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "show them in an example, or hide them from the documentation");
}

/// Whether the documentation of an item has an example that runs.
fn has_example(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => {
            let text = quote::ToTokens::to_token_stream(&pair.value).to_string();
            text.trim_matches(['"', ' ']).starts_with("```")
        }
        _ => false,
    })
}

#[test]
fn a_listing_names_what_programs_can_reach() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "one/src/lib.rs",
        "mod inner; pub use inner::{Shown, made as make}; pub use two_half::Other; pub mod open;",
    );
    write(
        "one/src/inner.rs",
        "use jiff::Timestamp; #[derive(Debug)] #[non_exhaustive] pub struct Shown { pub at: Timestamp, pub now: Option<jiff::Zoned>, pub code: code::Made, hidden: u8 } \
         mod code { codes! { Made } } \
         pub struct Unreachable; pub fn made(n: u8) -> Shown { todo!() } \
         impl Shown { pub fn name(&self) -> &str { \"\" } fn secret(&self) {} } impl Clone for Shown { }",
    );
    write("one/src/open.rs", "pub enum Choice { A, B(u8) } #[cfg(test)] pub mod tests { pub fn no() {} }");
    write("two-half/src/lib.rs", "pub trait Other { fn go(&self); } pub struct NotExported;");
    let crates = crates::Crates::read(folder.path());
    assert_eq!(
        Listing::of(&crates, "one"),
        "impl Clone for one::Shown\n\
         pub enum one::open::Choice { A, B(u8) }\n\
         pub fn one::Shown::name(&self) -> &str\n\
         pub fn one::make(n: u8) -> Shown\n\
         pub struct one::Shown { pub at: Timestamp, pub now: Option<jiff::Zoned>, pub code: code::Made, .. } #[derive(Debug)] #[non_exhaustive]\n\
         pub trait one::Other { fn go(&self); }\n\
         # types of other crates\n\
         jiff::Timestamp: one::Shown\n\
         jiff::Zoned: one::Shown\n"
    );
}
