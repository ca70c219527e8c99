//! What a list of items shows of each: taken from its text by a light hand, so that a hundred thousand files are read in no
//! time and a file that is wrong still appears. Code that uses an item reads it with [`crate::dialect`].

use serde_json::{Map, Value as Json};

use crate::items::ItemType;

/// Characters of an item's text that are shown with it.
const PREVIEW: usize = 200;

/// What an item says of itself, as far as a search is concerned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outline {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) category: Option<String>,
    pub(crate) preview: String,
    /// What else it says: version, author, and the like.
    pub(crate) metadata: Map<String, Json>,
}

impl Outline {
    /// Reads an item whose file has this name.
    pub(crate) fn of(kind: ItemType, extension: &str, stem: &str, text: &str) -> Outline {
        let text = text.trim_start_matches('\u{feff}');
        let pairs = match (kind, extension) {
            (ItemType::Directive, _) => directive(text),
            (ItemType::Knowledge, "md") => {
                let front = front_matter(text).map(|(inside, _)| inside);
                keys(front.or_else(|| fence(text)).unwrap_or_default())
            }
            (ItemType::Knowledge, _) | (ItemType::Tool, "yaml" | "yml" | "toml" | "json") => keys(text),
            (ItemType::Tool, _) => constants(text),
        };
        // What front matter says is shown by itself.
        let front = front_matter(text).filter(|_| (kind, extension) == (ItemType::Knowledge, "md"));
        let mut outline =
            Outline { preview: preview(front.map_or(text, |(_, after)| after)), ..Outline::default() };
        for (key, value) in pairs {
            let slot = match key.as_str() {
                "name" if kind != ItemType::Tool => &mut outline.name,
                "title" => &mut outline.title,
                "description" => &mut outline.description,
                "category" => outline.category.get_or_insert_default(),
                _ => {
                    outline.metadata.entry(key).or_insert(Json::String(value));
                    continue;
                }
            };
            if slot.is_empty() {
                *slot = value;
            }
        }
        if outline.name.is_empty() {
            outline.name = stem.to_owned();
        }
        if outline.title.is_empty() {
            outline.title.clone_from(&outline.name);
        }
        outline
    }
}

/// The beginning of the text, without its signature.
fn preview(text: &str) -> String {
    unsigned(text).trim().chars().take(PREVIEW).collect()
}

/// A text without its signature.
fn unsigned(text: &str) -> &str {
    let is_signature = |line: &str| {
        let line = line.trim_start_matches(['<', '!', '-', '#', '/', ' ']);
        line.starts_with("rye:signed:") || line.starts_with("rye:validated:") || line.starts_with("kiwi-mcp:")
    };
    let mut rest = text;
    for _ in 0..2 {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        if is_signature(line)
            || (line.starts_with("#!") && after.split('\n').next().is_some_and(is_signature))
        {
            rest = after;
        }
    }
    rest
}

type Pairs = Vec<(String, String)>;

fn directive(text: &str) -> Pairs {
    let mut pairs = Pairs::new();
    let Some(start) = text.find("<directive") else { return pairs };
    let rest = &text[start + "<directive".len()..];
    let tag = rest.split('>').next().unwrap_or_default();
    for name in ["name", "version", "extends"] {
        if let Some(value) = attribute(tag, name) {
            pairs.push((name.to_owned(), unescaped(value)));
        }
    }
    let rest = rest.split("</directive>").next().unwrap_or(rest);
    for name in ["description", "category", "author"] {
        let value = rest.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
        if let Some((value, _)) = value {
            pairs.push((name.to_owned(), unescaped(value.trim())));
        }
    }
    pairs
}

fn attribute<'t>(tag: &'t str, wanted: &str) -> Option<&'t str> {
    let mut rest = tag;
    loop {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = value[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(value);
        }
        rest = after;
    }
}

fn unescaped(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The front matter between lines `---` that a text begins with, and what comes behind it.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let text = unsigned(text).trim_start_matches(['\r', '\n']);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// The inside of the first fence with YAML.
fn fence(text: &str) -> Option<&str> {
    let start = text.find("```yaml\n").filter(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n')? + 8;
    let end = text[start..].find("\n```").map_or(text.len(), |end| start + end);
    text.get(start..end)
}

/// Keys at the margin with a value on their line, or in the indented lines below.
fn keys(text: &str) -> Pairs {
    const WANTED: [&str; 10] = [
        "name",
        "title",
        "description",
        "category",
        "version",
        "author",
        "entry_type",
        "tool_type",
        "executor_id",
        "tool_id",
    ];
    let mut pairs = Pairs::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start_matches([' ', '"']);
        // The keys of JSON are indented, and those of a text that is not.
        if line.starts_with(' ') && !line.trim_start().starts_with('"') {
            continue;
        }
        let Some((key, value)) = trimmed.split_once([':', '=']) else { continue };
        let key = key.trim_end_matches([' ', '"']);
        if !WANTED.contains(&key) || pairs.iter().any(|(known, _)| known == key) {
            continue;
        }
        let value = value.trim();
        if value.starts_with(['|', '>']) {
            let mut whole = String::new();
            while let Some(more) = lines.next_if(|line| line.starts_with(' ') || line.is_empty()) {
                if !whole.is_empty() {
                    whole.push(' ');
                }
                whole.push_str(more.trim());
            }
            pairs.push((key.to_owned(), whole.trim().to_owned()));
        } else if let Some(value) = plain(value) {
            pairs.push((key.to_owned(), value.to_owned()));
        }
    }
    pairs
}

fn plain(value: &str) -> Option<&str> {
    match value.chars().next() {
        None | Some('#' | '[' | '{' | '&' | '*' | '!') => None,
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next(),
        Some(_) => Some(value.split(" #").next().unwrap_or(value).trim_end()),
    }
}

/// Constants like `__version__ = "…"`, in whatever language.
fn constants(text: &str) -> Pairs {
    const NAMES: [(&str, &str); 6] = [
        ("__version__", "version"),
        ("__tool_type__", "tool_type"),
        ("__executor_id__", "executor_id"),
        ("__category__", "category"),
        ("__tool_description__", "description"),
        ("__author__", "author"),
    ];
    let mut pairs = Pairs::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_start_matches("export ").trim_start_matches("const ").trim_start_matches("# ");
        if !line.starts_with("__") {
            continue;
        }
        // A type may stand between the name and the value.
        let Some((before, value)) = line.split_once('=') else { continue };
        let name = before.split(':').next().unwrap_or(before).trim_end();
        let Some((_, key)) = NAMES.iter().find(|(known, _)| *known == name) else { continue };
        let mut found = String::new();
        let mut part = value.trim();
        let several = part.starts_with('(');
        loop {
            let inner = part.trim_start_matches('(');
            if let Some(quote @ ('"' | '\'' | '`')) = inner.chars().next() {
                found.push_str(inner[1..].split(quote).next().unwrap_or_default());
            }
            if !several || part.trim_end().ends_with(')') {
                break;
            }
            match lines.next() {
                Some(next) => part = next.trim(),
                None => break,
            }
        }
        if !found.is_empty() {
            pairs.push(((*key).to_owned(), found));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_of_each_type() {
        let text = "<!-- rye:signed:x -->\n# T\n\n```xml\n<directive version='1' name=\"greet\">\n<metadata>\n<description>Say &lt;hi&gt;</description>\n<category>demo</category></metadata></directive>\n```\n";
        let outline = Outline::of(ItemType::Directive, "md", "x", text);
        assert_eq!((outline.name.as_str(), outline.title.as_str()), ("greet", "greet"));
        assert_eq!(outline.description, "Say <hi>");
        assert_eq!(outline.category.as_deref(), Some("demo"));
        assert!(outline.preview.starts_with("# T\n\n```xml"), "{}", outline.preview);
        let text = "```yaml\nname: facts\ntitle: \"All: facts\"\ndescription: >\n  Two\n  lines\nversion: 1.0.0 # v\n```\nbody";
        let outline = Outline::of(ItemType::Knowledge, "md", "x", text);
        assert_eq!((outline.title.as_str(), outline.description.as_str()), ("All: facts", "Two lines"));
        assert_eq!(outline.metadata["version"], "1.0.0");
        for before in ["", "<!-- rye:signed:x -->\n", "\u{feff}", "\n"] {
            let text = format!(
                "{before}---\r\ntitle: Facts\nversion: 1.0.0\n---\nbody\n\n```yaml\ntitle: No\n```\n"
            );
            let outline = Outline::of(ItemType::Knowledge, "md", "x", &text);
            assert_eq!((outline.name.as_str(), outline.title.as_str()), ("x", "Facts"));
            assert_eq!(outline.metadata["version"], "1.0.0");
            assert_eq!(outline.preview, "body\n\n```yaml\ntitle: No\n```");
        }
        let text = "---\n\nA rule, and text.";
        let outline = Outline::of(ItemType::Knowledge, "md", "x", text);
        assert_eq!((outline.title.as_str(), outline.preview.as_str()), ("x", text));
        let text = "#!/usr/bin/env python3\n# rye:signed:x\n\"\"\"Doc.\"\"\"\n__version__: str = \"2.0.0\"\n__tool_description__ = (\n    \"One \"\n    'two'\n)\n";
        let outline = Outline::of(ItemType::Tool, "py", "run", text);
        assert_eq!((outline.name.as_str(), outline.description.as_str()), ("run", "One two"));
        assert_eq!(outline.metadata["version"], "2.0.0");
        let outline =
            Outline::of(ItemType::Tool, "ts", "run", "export const __tool_description__ = `x: y=z`;\n");
        assert_eq!(outline.description, "x: y=z");
        let outline = Outline::of(
            ItemType::Tool,
            "json",
            "run",
            "{\n  \"description\": \"d\",\n  \"category\": \"c\"\n}",
        );
        assert_eq!((outline.description.as_str(), outline.category.as_deref()), ("d", Some("c")));
        assert_eq!(Outline::of(ItemType::Knowledge, "md", "plain", "").title, "plain");
    }
}
