//! The floor plan: modules of a crate do not depend on each other in a circle, and those of the engine follow the order of the stages.
//!
//! A module is a file or folder directly below `src`. It depends on another one if its code outside of tests names it after
//! `crate::`, directly or by an item that `lib.rs` exports from it.

#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

mod public_api;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proc_macro2::{TokenStream, TokenTree};
use regex::Regex;

/// Who depends on whom.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of the crates that are the engine: each depends only on those before it.
const ORDER: &[(&str, &[&str])] = &[
    ("cuebook-prompt", &["prompt", "variables", "template", "chat", "tokens"]),
    ("cuebook-library", &["items", "notation", "trust", "overrides", "library"]),
    ("cuebook", &["hooks", "render", "dialect", "actions", "prepared", "explain", "book"]),
];

/// The crates, each behind those that it depends on.
const CRATES: &[&str] = &[
    "cuebook-columns",
    "cuebook-text",
    "cuebook-template",
    "cuebook-prompt",
    "cuebook-library",
    "cuebook",
    "cuebook-lab",
    "cuebook-share",
    "cuebook-hooks",
    "cuebook-trace",
    "cuebook-store",
    "cuebook-run",
    "cuebook-agent",
    "cuebook-bindings",
    "cuebook-batch",
    "cuebook-lsp",
    "cuebook-serve",
    "cuebook-mock",
    "cuebook-cli",
    "cuebook-py",
    "cuebook-node",
    "cuebook-wasm",
    "cuebook-bench",
];

/// The most lines of code that a crate has, without comments and tests.
const MAX_LINES: usize = 25_000;

fn crates() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut list: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    list.retain(|path| path.join("src").is_dir());
    list.sort();
    list
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path, found),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
}

/// Whether a file has tests only.
fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name == "tests.rs" || name.ends_with("_tests.rs") || path.iter().any(|part| part == "tests")
}

/// The code of a file without comments and without the tests at its end.
fn code(text: &str) -> String {
    static TESTS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^\s*#\[cfg\(test\)\]\n\s*(pub\s*)?mod \w+ \{").unwrap());
    static COMMENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^\s*//.*$|\s//\s.*$").unwrap());
    let end = TESTS.find(text).map_or(text.len(), |tests| tests.start());
    COMMENT.replace_all(&text[..end], "").into_owned()
}

/// The names that follow `crate::`, also those in braces.
fn names_of_crate(code: &str) -> Vec<String> {
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bcrate::(\w+)").unwrap());
    static GROUP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?s)\bcrate::\{([^;]*?)\};").unwrap());
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?:^|[,{\s])(\w+)").unwrap());
    let mut names: Vec<String> = NAME.captures_iter(code).map(|found| found[1].to_owned()).collect();
    for group in GROUP.captures_iter(code) {
        names.extend(WORD.captures_iter(&group[1]).map(|found| found[1].to_owned()));
    }
    names
}

/// The items that `lib.rs` exports, with their modules.
fn exported(src: &Path) -> BTreeMap<String, String> {
    static EXPORT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"pub(?:\(crate\))? use (\w+)::(\{[^}]*\}|[\w:]+)").unwrap());
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\w+\b").unwrap());
    let text = std::fs::read_to_string(src.join("lib.rs")).unwrap_or_default();
    let mut items = BTreeMap::new();
    for export in EXPORT.captures_iter(&code(&text)) {
        for item in WORD.find_iter(&export[2]) {
            items.entry(item.as_str().to_owned()).or_insert_with(|| export[1].to_owned());
        }
    }
    items
}

fn graph_of(src: &Path) -> Graph {
    let mut files = Vec::new();
    files_below(src, &mut files);
    files.retain(|file| !is_test(file.strip_prefix(src).unwrap()));
    let module = |file: &Path| {
        let first = file.strip_prefix(src).unwrap().iter().next().unwrap().to_string_lossy().into_owned();
        first.strip_suffix(".rs").map(str::to_owned).unwrap_or(first)
    };
    let modules: BTreeSet<String> =
        files.iter().map(|file| module(file)).filter(|name| name != "lib" && name != "main").collect();
    let exported = exported(src);
    static SUPER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\buse super::(\w+)").unwrap());
    let mut graph: Graph = modules.iter().map(|module| (module.clone(), BTreeSet::new())).collect();
    for file in &files {
        let from = module(file);
        let Some(edges) = graph.get_mut(&from) else { continue };
        let text = code(&std::fs::read_to_string(file).unwrap());
        let mut names = names_of_crate(&text);
        if file.parent() == Some(src) {
            names.extend(SUPER.captures_iter(&text).map(|found| found[1].to_owned()));
        }
        for name in names {
            let to = if modules.contains(&name) { Some(&name) } else { exported.get(&name) };
            edges.extend(to.filter(|to| modules.contains(*to) && **to != from).cloned());
        }
    }
    graph
}

/// The modules that can be reached from one.
fn reachable(graph: &Graph, from: &str) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = open.pop() {
        for next in &graph[&module] {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

/// The modules that depend on themselves by way of others.
fn in_circles(graph: &Graph) -> Vec<String> {
    graph.keys().filter(|module| reachable(graph, module).contains(*module)).cloned().collect()
}

#[test]
fn modules_have_no_circles() {
    let mut wrong = String::new();
    for folder in crates() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let found = in_circles(&graph_of(&folder.join("src")));
        if !found.is_empty() {
            wrong += &format!("{name}: modules that depend on themselves by way of others: {found:?}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_engine_follows_the_order_of_its_stages() {
    let mut found = BTreeSet::new();
    for (name, order) in ORDER {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        let graph = graph_of(&folder.join("src"));
        let listed: BTreeSet<String> = order.iter().map(|module| (*module).to_owned()).collect();
        assert_eq!(
            graph.keys().cloned().collect::<BTreeSet<_>>(),
            listed,
            "ORDER lists every module of {name}"
        );
        let rank = |module: &str| order.iter().position(|known| *known == module);
        for (from, edges) in &graph {
            let wrong = edges.iter().filter(|to| rank(to) > rank(from));
            found.extend(wrong.map(|to| format!("{name}: {from} depends on {to}")));
        }
    }
    assert_eq!(found, BTreeSet::new(), "dependencies against the order");
}

/// The crates of the workspace that a manifest lists as dependencies of the code, without those of tests.
fn dependencies(folder: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let list = manifest.get("dependencies").and_then(toml::Value::as_table);
    let names = list.into_iter().flat_map(toml::Table::keys);
    names.filter(|name| CRATES.contains(&name.as_str())).cloned().collect()
}

#[test]
fn crates_depend_downwards() {
    let rank = |name: &str| CRATES.iter().position(|known| *known == name);
    let mut wrong = Vec::new();
    for folder in crates() {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        assert!(rank(&name).is_some(), "CRATES lists every crate: {name}");
        let upward = dependencies(&folder).into_iter().filter(|other| rank(other) >= rank(&name));
        wrong.extend(upward.map(|other| format!("{name} depends on {other}")));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(crates().len(), CRATES.len());
}

#[test]
fn no_crate_is_too_large() {
    for folder in crates() {
        let (src, mut files) = (folder.join("src"), Vec::new());
        files_below(&src, &mut files);
        files.retain(|file| !is_test(file.strip_prefix(&src).unwrap()));
        let lines = |file: &PathBuf| {
            let code = code(&std::fs::read_to_string(file).unwrap());
            code.lines().filter(|line| !line.trim().is_empty()).count()
        };
        let count: usize = files.iter().map(lines).sum();
        assert!(count > 0 && count <= MAX_LINES, "{} has {count} lines of code", folder.display());
    }
}

/// The crates that render from texts, and the places in them that use files, threads, processes or the network, with the reason.
const SYSTEM: (&[&str], &[(&str, &str)]) = (
    &["cuebook-template", "cuebook-prompt"],
    &[("cuebook-prompt/src/variables/workspace.rs", "a prompt about code may show the files of its project")],
);

#[test]
fn the_render_path_uses_no_files_and_no_threads() {
    static USE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\bstd::(?:(?:fs|thread|process|net)\b|\{[^}]*\b(?:fs|thread|process|net)\b)").unwrap()
    });
    let (crates, listed) = SYSTEM;
    let mut found = BTreeSet::new();
    for name in crates {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        let mut files = Vec::new();
        files_below(&folder.join("src"), &mut files);
        for file in files {
            let inside = file.strip_prefix(&folder).unwrap();
            let is_differential = inside.ends_with("jinja/differential.rs");
            if !is_test(inside)
                && !is_differential
                && USE.is_match(&code(&std::fs::read_to_string(&file).unwrap()))
            {
                found.insert(format!("{name}/{}", inside.display()));
            }
        }
    }
    let listed: BTreeSet<String> = listed.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(found, listed, "SYSTEM lists every place with its reason");
}

#[test]
fn fresh_lists_every_crate_with_property_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = std::fs::read_to_string(root.join(".ci/fresh")).unwrap();
    let mut words = script.split_whitespace();
    let mut listed = BTreeSet::new();
    while let Some(word) = words.next() {
        listed.extend((word == "-p").then(|| words.next()).flatten().map(str::to_owned));
    }
    let has_properties = |folder: &PathBuf| {
        let manifest: toml::Table =
            std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        ["dependencies", "dev-dependencies"]
            .iter()
            .any(|list| manifest.get(*list).is_some_and(|list| list.get("proptest").is_some()))
    };
    let expected: BTreeSet<String> = crates()
        .iter()
        .filter(|folder| has_properties(folder))
        .map(|folder| folder.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert!(expected.len() > 5, "{expected:?}");
    assert_eq!(listed, expected, ".ci/fresh lists every crate with property tests");
}

#[test]
fn a_circle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod one;\nmod two;\nmod three;\npub use three::Item;\n");
    write("one.rs", "use crate::{two::A, B};\n");
    write("two.rs", "use crate::Item;\n// use crate::one;\n");
    write("three.rs", "#[cfg(test)]\nmod tests {\n    use crate::one;\n}\n");
    let graph = graph_of(folder.path());
    assert_eq!(graph["one"], BTreeSet::from(["two".to_owned()]));
    assert_eq!(graph["two"], BTreeSet::from(["three".to_owned()]));
    assert!(in_circles(&graph).is_empty());
    write("three.rs", "fn f() { crate::one::f() }\n");
    assert_eq!(in_circles(&graph_of(folder.path())), ["one", "three", "two"]);
}

/// Files outside of the dialects' folders and `convert` that name a built-in dialect, how often, and why.
const NAMED: &[(&str, usize, &str)] = &[
    (
        "cuebook-library/src/library.rs",
        1,
        "a folder with a template is found by its files, and not by a name",
    ),
    ("cuebook-library/src/library/directives.rs", 1, "directives are found in spaces"),
    (
        "cuebook-library/src/library/path.rs",
        1,
        "a file that no dialect claims is a template if its path is given",
    ),
    ("cuebook-lab/src/service/quick_fixes.rs", 1, "a Prompty 1 file is rewritten as a `.prompty` file"),
    ("cuebook-lab/src/service/layout.rs", 2, "an editor colours `.prompt` files and skills in other ways"),
    ("cuebook-lab/src/check/written.rs", 1, "tags are text in a skill"),
    ("cuebook-serve/src/skills.rs", 1, "clients list skills"),
    ("cuebook/src/prepared/render_warnings.rs", 1, "a `.prompty` file has one language"),
    ("cuebook-prompt/src/prompt.rs", 1, "a tree that a program built is one of sections"),
];

#[test]
fn few_places_name_a_built_in_dialect() {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?:&|== |!= )(?:TEMPLATE|PROMPTY|SECTIONS|DIRECTIVE|DOTPROMPT|SKILL)\b|BuiltIn::[A-Z][a-z]",
        )
        .unwrap()
    });
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for folder in crates() {
        let (src, mut files) = (folder.join("src"), Vec::new());
        files_below(&src, &mut files);
        for file in files {
            let inside = file.strip_prefix(&src).unwrap();
            let is_home = |part: &std::ffi::OsStr| {
                ["dialect", "dialect.rs", "convert", "convert.rs"].iter().any(|home| part == *home)
            };
            if is_test(inside) || inside.iter().any(is_home) {
                continue;
            }
            let count = NAME.find_iter(&code(&std::fs::read_to_string(&file).unwrap())).count();
            if count > 0 {
                let name = file.strip_prefix(folder.parent().unwrap()).unwrap();
                found.insert(name.to_string_lossy().into_owned(), count);
            }
        }
    }
    let listed: BTreeMap<String, usize> =
        NAMED.iter().map(|(file, count, _)| ((*file).to_owned(), *count)).collect();
    assert_eq!(found, listed, "NAMED lists every place with its reason");
    assert!(listed.values().sum::<usize>() <= 10);
}

/// The code of every crate, file by file, with its name.
fn sources() -> Vec<(String, String)> {
    let mut list = Vec::new();
    for folder in crates() {
        let mut files = Vec::new();
        files_below(&folder.join("src"), &mut files);
        for file in files {
            let name = file.strip_prefix(folder.parent().unwrap()).unwrap().to_string_lossy().into_owned();
            list.push((name, std::fs::read_to_string(&file).unwrap()));
        }
    }
    list
}

#[test]
fn hex_digits_have_one_helper() {
    let own = Regex::new(r#""\{\w*:02x\}""#).unwrap();
    let wrong: Vec<_> =
        sources().into_iter().filter(|(_, text)| own.is_match(text)).map(|(name, _)| name).collect();
    assert_eq!(wrong, Vec::<String>::new(), "use cuebook_text::sha256::hex");
}

/// Crates whose hints only people on a command line read.
const COMMAND_LINE: [&str; 4] = ["cuebook-cli", "cuebook-batch", "cuebook-bench", "cuebook-mock"];

/// Texts that name the command line and are no hints.
const NO_HINTS: &[&str] = &[
    "ritten by `cuebook ",
    " · cuebook explain</title>",
    "A file written by `cuebook convert` no longer fits its source",
    "the terminal of `cuebook studio` says why",
    "Run `cuebook allow` in the project",
    "add `model: NAME` to its file, or pass --model NAME",
    "llm_call: no language model is connected",
    "and --record does not overwrite files",
    "check that `git --version` works",
    "from --provider",
    "in your trust store: cuebook trust add",
    "skip it with --no-hooks",
    "this editor cannot move files",
    "fork {id} --turn {}",
    "--store or CUEBOOK_STORE",
    "{{ '--a--'.strip('-') }}",
];

/// The texts of a piece of code, without those that `Hint` is made of.
fn texts(tokens: TokenStream, found: &mut Vec<String>) {
    // The path before a group, or `#` before an attribute.
    let mut path = String::new();
    for token in tokens {
        match token {
            TokenTree::Ident(name) => path.push_str(&name.to_string()),
            TokenTree::Punct(mark) if matches!(mark.as_char(), ':' | '#') => path.push(mark.as_char()),
            TokenTree::Punct(mark) if mark.as_char() == '!' && path == "#" => {}
            TokenTree::Punct(_) => path.clear(),
            TokenTree::Group(group) => {
                if !path.starts_with('#')
                    && !path.contains("Hint::")
                    && !["for_programs", "pass"].iter().any(|end| path.ends_with(end))
                {
                    texts(group.stream(), found);
                }
                path.clear();
            }
            TokenTree::Literal(literal) => {
                found.extend(syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|it| it.value()));
                path.clear();
            }
        }
    }
}

/// A program gets the advice of a hint, so a hint that names a command or an option is made by a function of `Hint`. A text that is
/// nothing but a command or an option is an argument of such a function.
#[test]
fn hints_keep_commands_and_options_as_fields() {
    let command = Regex::new(r"[^\w/]cuebook [a-z]|(?:^|\s)--[a-z][a-z-]* |\s--[a-z]").unwrap();
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let is_code = !is_test(Path::new(&name)) && !name.ends_with("jinja/differential.rs");
        if !is_code || COMMAND_LINE.iter().any(|crate_name| name.starts_with(crate_name)) {
            continue;
        }
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let mut found = Vec::new();
        texts(text[..end].parse().unwrap(), &mut found);
        let is_whole = |text: &str| text.starts_with("cuebook ") || text.starts_with("--");
        let is_hint = |text: &String| {
            command.is_match(text) && !is_whole(text) && !NO_HINTS.iter().any(|known| text.contains(known))
        };
        wrong.extend(found.into_iter().filter(is_hint).map(|text| format!("{name}: {text}")));
    }
    assert_eq!(wrong, Vec::<String>::new(), "use a function of `Hint`");
}

#[test]
fn test_names_are_short_and_state_a_property() {
    let test = Regex::new(r"#\[(?:tokio::)?test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*(?:async )?fn (\w+)").unwrap();
    let mut wrong = Vec::new();
    for folder in crates() {
        let mut files = Vec::new();
        files_below(&folder.join("src"), &mut files);
        if folder.join("tests").is_dir() {
            files_below(&folder.join("tests"), &mut files);
        }
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let names = test.captures_iter(&text).map(|found| found[1].to_owned());
            wrong.extend(names.filter(|name| name.len() > 60 || name.starts_with("what_")));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_limit_of_a_file_has_one_place() {
    let own = Regex::new(r"const \w+: u64 = 4 << 20;").unwrap();
    let found: Vec<_> =
        sources().into_iter().filter(|(_, text)| own.is_match(text)).map(|(name, _)| name).collect();
    assert_eq!(
        found,
        ["cuebook-hooks/src/http.rs", "cuebook-text/src/limits.rs"],
        "use cuebook_text::limits::FILE_BYTES; the other limit is one of bodies of HTTP"
    );
}

#[test]
fn files_have_at_most_700_lines() {
    let lines = |text: &str| text.lines().count();
    let long: Vec<_> =
        sources().into_iter().filter(|(_, text)| lines(text) > 700).map(|(name, _)| name).collect();
    assert_eq!(long, Vec::<String>::new(), "split them by concept");
}
