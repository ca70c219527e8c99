//! What an item says about where it belongs.
//!
//! What a directive says is what the reader of directives finds, so that no other text of the file (an example, a comment)
//! is taken for it. The rest reads no more of a file than it must, because it is done for every item that is verified; it
//! need not agree with the readers of [`crate::dialect`] on files that are wrong: the file is as its author signed it, so
//! nobody but them chooses what stands here.

use std::borrow::Cow;

use crate::dialect::{directive, fence};
use crate::items::ItemType;
use crate::source::Source;

/// The name and the category that an item gives itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Declared<'t> {
    pub(crate) name: Option<Cow<'t, str>>,
    pub(crate) category: Option<Cow<'t, str>>,
}

/// Reads what a file says of itself.
pub(crate) fn declared<'t>(kind: ItemType, extension: &str, text: &'t str) -> Declared<'t> {
    match (kind, extension) {
        (ItemType::Directive, _) => of_directive(text),
        (ItemType::Knowledge, "md") => yaml(fence::inside(text, "yaml").unwrap_or_default(), "name"),
        (ItemType::Knowledge, _) => yaml(text, "name"),
        (ItemType::Tool, "yaml" | "yml") => yaml(text, "tool_id"),
        (ItemType::Tool, _) => code(text),
    }
}

fn of_directive(text: &str) -> Declared<'_> {
    match directive::read(&Source::new("", text)) {
        Ok(read) => {
            let owned = |written: Option<directive::Written>| {
                written.map(|written| Cow::Owned(written.as_str().trim().to_owned()))
            };
            Declared { name: owned(read.name), category: owned(read.category) }
        }
        // One that cannot be read cannot be used; that it was moved is worth saying all the same.
        Err(_) => unreadable(text),
    }
}

fn unreadable(text: &str) -> Declared<'_> {
    let Some(start) = text.find("<directive") else { return Declared::default() };
    let rest = &text[start + "<directive".len()..];
    let category = rest.find("<category>").and_then(|at| {
        let value = &rest[at + "<category>".len()..];
        value.find("</category>").map(|end| unescaped(value[..end].trim()))
    });
    Declared { name: attribute(rest, "name").map(unescaped), category }
}

/// The value of an attribute of the tag that the text is the inside of.
fn attribute<'t>(mut rest: &'t str, wanted: &str) -> Option<&'t str> {
    loop {
        rest = rest.trim_start();
        let equals = rest.find(['=', '>'])?;
        if rest.as_bytes().get(equals) != Some(&b'=') {
            return None;
        }
        let name = rest[..equals].trim_end();
        let value = rest[equals + 1..].trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let value = &value[1..];
        let end = value.find(quote)?;
        if name == wanted {
            return Some(&value[..end]);
        }
        rest = &value[end + 1..];
    }
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Cow::Owned(pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)))
}

/// Keys at the margin of a YAML text.
fn yaml<'t>(text: &'t str, name: &str) -> Declared<'t> {
    let mut found = Declared::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let slot = match key {
            "category" => &mut found.category,
            key if key == name => &mut found.name,
            _ => continue,
        };
        if slot.is_none() {
            *slot = yaml_value(value.trim()).map(Cow::Borrowed);
        }
    }
    found
}

fn yaml_value(value: &str) -> Option<&str> {
    match value.chars().next() {
        None | Some('#' | '|' | '>' | '[' | '{' | '&' | '*' | '!') => None,
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next(),
        Some(_) => Some(value.split(" #").next().unwrap_or(value).trim_end()),
    }
}

/// Constants like `__category__ = "…"`, in whatever language.
fn code(text: &str) -> Declared<'_> {
    let constant = |name: &str| {
        text.lines().find_map(|line| {
            let line = line.trim_start_matches("export ").trim_start_matches("const ");
            let line = line.trim_start_matches("# ").strip_prefix(name)?.trim_start();
            // A type may stand between the name and the value.
            let value = match line.strip_prefix(':') {
                Some(typed) => typed.split_once('=')?.1,
                None => line.strip_prefix('=')?,
            };
            let value = value.trim_start();
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
            value[1..].split_once(quote).map(|(value, _)| Cow::Borrowed(value))
        })
    };
    Declared { name: constant("__tool_id__"), category: constant("__category__") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ItemType, extension: &str, text: &str) -> (Option<String>, Option<String>) {
        let declared = declared(kind, extension, text);
        (declared.name.map(Cow::into_owned), declared.category.map(Cow::into_owned))
    }

    fn some(name: &str, category: &str) -> (Option<String>, Option<String>) {
        (Some(name.to_owned()), Some(category.to_owned()))
    }

    #[test]
    fn every_type_says_where_it_belongs() {
        let directive =
            "```xml\n<directive version='1' name = \"a&amp;b\">\n<metadata><category> x/y </category>";
        assert_eq!(shown(ItemType::Directive, "md", directive), some("a&b", "x/y"));
        let other = "<directive filename=\"x\">name=\"y\"";
        assert_eq!(shown(ItemType::Directive, "md", other), (None, None));
        let fenced = "# T\n```yaml\nname: facts\ncategory: \"demo\" # here\n```\nname: no\n";
        assert_eq!(shown(ItemType::Knowledge, "md", fenced), some("facts", "demo"));
        assert_eq!(
            shown(ItemType::Knowledge, "yaml", "category: a/b # c\nx:\n  name: no\nname: n"),
            some("n", "a/b")
        );
        assert_eq!(shown(ItemType::Knowledge, "md", "name: no\n"), (None, None));
        let python = "\"\"\"Doc\"\"\"\n__category__: str = 'demo'\n__tool_id__ = \"demo/run\"\n";
        assert_eq!(shown(ItemType::Tool, "py", python), some("demo/run", "demo"));
        assert_eq!(shown(ItemType::Tool, "ts", "export const __category__ = `a`;"), (None, Some("a".into())));
        assert_eq!(shown(ItemType::Tool, "sh", "# __category__ = \"a\""), (None, Some("a".into())));
        assert_eq!(shown(ItemType::Tool, "yaml", "tool_id: a\ncategory: b\nname: Any"), some("a", "b"));
    }

    #[test]
    fn an_example_or_a_comment_is_not_what_a_directive_says() {
        let text = "Like `<directive name=\"no\">`.\n\n````\n```xml\n<directive name=\"no\"/>\n```\n````\n```xml\n<!-- <directive name=\"no\"> -->\n\
                    <directive name=\"yes\" version=\"1.0.0\"><metadata><!-- <category>no</category> --><description>D</description>\
                    <category>a/b</category></metadata></directive>\n```\n";
        assert_eq!(shown(ItemType::Directive, "md", text), some("yes", "a/b"));
    }

    #[test]
    fn nothing_that_is_cut_off_makes_it_panic() {
        let whole = "```xml\n<directive name=\"ä\" x='\u{1f600}'><category>é</category>\n```yaml\nname: \"ü\n```\n__category__ = 'ß";
        for (end, _) in whole.char_indices() {
            for kind in ItemType::ALL {
                for extension in ["md", "yaml", "py"] {
                    let _ = declared(kind, extension, &whole[..end]);
                    let _ = declared(kind, extension, &whole[end..]);
                }
            }
        }
    }
}
