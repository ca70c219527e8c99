//! The book as such: its summary, its links, how it shows files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// A page of the book.
pub struct Page {
    /// Its path below `docs/src`, with slashes.
    pub path: String,
    /// Where it lies.
    pub file: PathBuf,
    /// What it says.
    pub text: String,
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder with the pages.
pub fn source() -> PathBuf {
    root().join("docs/src")
}

/// A file of our code without its tests, by crate and path, as in `cuebook/json.rs`.
pub fn code(path: &str) -> String {
    let (name, below) = path.split_once('/').expect("a crate and a path");
    let file = root().join("crates").join(name).join("src").join(below);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()
}

/// Every file of the code that is built into the program, without its tests.
pub fn all_code() -> Vec<(String, String)> {
    let crates = [
        "cuebook",
        "cuebook-agent",
        "cuebook-batch",
        "cuebook-cli",
        "cuebook-hooks",
        "cuebook-library",
        "cuebook-prompt",
        "cuebook-run",
        "cuebook-serve",
        "cuebook-share",
        "cuebook-store",
        "cuebook-trace",
    ];
    let mut found = Vec::new();
    for name in crates {
        let top = root().join("crates").join(name).join("src");
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let file = path.file_name().unwrap().to_string_lossy().into_owned();
                if path.is_dir() && file != "tests" {
                    folders.push(path);
                } else if file.ends_with(".rs") && !["tests.rs", "differential.rs"].contains(&file.as_str()) {
                    let below = path.strip_prefix(&top).unwrap().to_string_lossy().replace('\\', "/");
                    let path = format!("{name}/{below}");
                    let text = code(&path);
                    found.push((path, text));
                }
            }
        }
    }
    found
}

fn summary() -> String {
    std::fs::read_to_string(source().join("SUMMARY.md")).expect("a summary")
}

/// The pages that the summary lists, in its order.
pub fn pages() -> Vec<Page> {
    let page = |path: String| {
        let file = source().join(&path);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
        Page { path, file, text }
    };
    links(&summary()).into_iter().map(|(target, _)| page(target)).collect()
}

/// Where links of Markdown lead, and the lines they stand on. Code has no links.
fn links(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut fence: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let ticks: String = line.chars().take_while(|letter| *letter == '`').collect();
        match &fence {
            Some(open) => {
                if line.trim_end() == open {
                    fence = None;
                }
                continue;
            }
            None if ticks.len() >= 3 => {
                fence = Some(ticks);
                continue;
            }
            None => {}
        }
        // Every second piece is code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        for piece in prose.split("](").skip(1) {
            if let Some((target, _)) = piece.split_once(')') {
                found.push((target.to_owned(), number + 1));
            }
        }
    }
    found
}

/// The blocks of code of a page: the words behind the fence, and the lines.
pub fn blocks(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(String, String, String)> = None;
    for line in text.lines() {
        let ticks: String = line.chars().take_while(|letter| *letter == '`').collect();
        match &mut open {
            Some((fence, info, body)) => {
                if line.trim_end() == fence {
                    found.push((std::mem::take(info), std::mem::take(body)));
                    open = None;
                } else {
                    body.push_str(line);
                    body.push('\n');
                }
            }
            None if ticks.len() >= 3 => {
                let info = line[ticks.len()..].trim().to_owned();
                open = Some((ticks, info, String::new()));
            }
            None => {}
        }
    }
    found
}

/// What a page's headings can be linked to as, in the manner of mdbook.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for title in headings(text) {
        let mut anchor = String::new();
        for letter in title.trim().to_lowercase().chars() {
            match letter {
                _ if letter.is_alphanumeric() || matches!(letter, '_' | '-') => anchor.push(letter),
                _ if letter.is_whitespace() => anchor.push('-'),
                _ => {}
            }
        }
        let count = seen.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor.clone() } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

fn headings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fence: Option<String> = None;
    for line in text.lines() {
        let ticks: String = line.chars().take_while(|letter| *letter == '`').collect();
        match &fence {
            Some(open) if line.trim_end() == open => fence = None,
            Some(_) => {}
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => {
                let title = line.trim_start_matches('#');
                let level = line.len() - title.len();
                if (1..=6).contains(&level) && title.starts_with(' ') {
                    found.push(title.trim().to_owned());
                }
            }
        }
    }
    found
}

/// A page with the files that it includes.
pub fn whole(page: &Page) -> String {
    let mut text = String::new();
    for line in page.text.lines() {
        match included(line) {
            Some(target) => {
                // A number behind the path is the line that it begins with.
                let (target, first) = match target.split_once(".md:") {
                    Some((stem, lines)) => {
                        (format!("{stem}.md"), lines.trim_end_matches(':').parse().expect("a line"))
                    }
                    None => (target.to_owned(), 1),
                };
                let file = page.file.parent().unwrap().join(&target);
                let read = std::fs::read_to_string(&file)
                    .unwrap_or_else(|error| panic!("{} includes {target}: {error}", page.path));
                for line in read.lines().skip(first - 1) {
                    text += line;
                    text.push('\n');
                }
            }
            None => text += line,
        }
        text.push('\n');
    }
    text
}

/// The file that a line includes.
fn included(line: &str) -> Option<&str> {
    line.trim().strip_prefix("{{#include ")?.strip_suffix("}}").map(str::trim)
}

pub fn the_summary_lists_every_page() {
    let mut listed: Vec<String> = pages().into_iter().map(|page| page.path).collect();
    let mut found = Vec::new();
    let mut folders = vec![source()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let path = path.strip_prefix(source()).unwrap().to_string_lossy().replace('\\', "/");
                if path.starts_with("images/") || path.ends_with(".schema.json") {
                    continue;
                }
                assert!(path.ends_with(".md"), "{path} is no page");
                found.extend((path != "SUMMARY.md").then_some(path));
            }
        }
    }
    let times = listed.len();
    listed.sort();
    listed.dedup();
    assert_eq!(times, listed.len(), "a page is listed twice");
    found.sort();
    assert_eq!(listed, found, "the summary (left) and the files");
}

pub fn every_link_leads_somewhere() {
    let pages = pages();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&whole(page)))).collect();
    let mut wrong = Vec::new();
    for page in &pages {
        for (target, line) in links(&whole(page)) {
            if target.starts_with("https://") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if file.is_empty() { page.path.clone() } else { joined(&page.path, file) };
            let is_there = match anchors.get(file.as_str()) {
                Some(known) => anchor.is_empty() || known.contains(anchor),
                None => !file.ends_with(".md") && root().join("docs/src").join(&file).is_file(),
            };
            if !is_there {
                wrong.push(format!("{}:{line}: {target}", page.path));
            }
        }
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for (target, line) in links(&readme) {
        let file = target.split('#').next().unwrap();
        if !target.starts_with("https://") && !root().join(file).exists() {
            wrong.push(format!("README.md:{line}: {target}"));
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

/// Where a relative link on a page leads.
fn joined(page: &str, target: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    let folder = Path::new(page).parent().unwrap();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}

/// In the built book no one sees which file a block is, unless the paragraph before it says so.
pub fn a_file_is_named_before_it_is_shown() {
    let mut wrong = Vec::new();
    for page in pages() {
        let mut paragraph = String::new();
        let mut fence: Option<String> = None;
        let mut fresh = true;
        for line in page.text.lines() {
            let ticks: String = line.chars().take_while(|letter| *letter == '`').collect();
            match &fence {
                Some(open) => {
                    if line.trim_end() == open {
                        fence = None;
                        fresh = true;
                    }
                }
                None if ticks.len() >= 3 => {
                    let words: Vec<&str> = line[ticks.len()..].split_whitespace().collect();
                    if let Some(at) = words.iter().position(|word| *word == "file")
                        && let Some(path) = words.get(at + 1)
                        && !paragraph.contains(&format!("`{path}`"))
                    {
                        wrong.push(format!("{}: {path}", page.path));
                    }
                    fence = Some(ticks);
                }
                None if line.trim().is_empty() => fresh = true,
                None => {
                    if std::mem::take(&mut fresh) {
                        paragraph.clear();
                    }
                    paragraph += line;
                    paragraph.push('\n');
                }
            }
        }
    }
    assert!(wrong.is_empty(), "files that the text before them does not name:\n{}", wrong.join("\n"));
}
