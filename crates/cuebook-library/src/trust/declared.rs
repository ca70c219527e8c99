//! Where an item says it belongs.
//!
//! A signature line of Rye's covers the content and nothing else, so the content must say which item it is. What it says
//! is what the reader of its dialect finds, so that no example and no comment of the file counts.

use serde_json::{Map, Value as Json};

use crate::files;
use crate::items::{ItemId, ItemType};
use crate::notation::{directive, knowledge, tool};

/// The place that an item declares.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Declared {
    /// Its whole id, or its last part.
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) category: Option<String>,
}

/// Whether a declared place is the place of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PlaceMatch {
    /// It names this item and no other.
    Here,
    /// It names another item; what it says, for a message.
    Elsewhere(String),
    /// It does not name one item.
    Open,
}

/// Reads the place that a file declares. A file that its reader refuses declares none.
pub(crate) fn declared(kind: ItemType, extension: &str, name: &str, bytes: &[u8]) -> Declared {
    let Ok(source) = files::source_from_bytes(bytes.to_vec(), name) else { return Declared::default() };
    let found = match kind {
        ItemType::Directive => directive::read(&source).ok().map(|read| {
            let plain = |written: Option<directive::Written>| written.map(|text| text.as_str().trim().into());
            Declared { id: None, name: plain(read.name), category: plain(read.category) }
        }),
        ItemType::Knowledge => knowledge::read(&source).ok().map(|read| {
            let [id, name, category] = ["id", "name", "category"].map(|name| text(&read.data, name));
            Declared { id, name, category }
        }),
        ItemType::Tool => tool::Notation::of_extension(extension).and_then(|notation| {
            let read = tool::read(&source, notation).ok()?;
            let data = tool::constants(&source, notation).ok()?;
            let id = if notation.is_data() { "tool_id" } else { "__tool_id__" };
            Some(Declared { id: text(&data, id), name: read.name, category: read.category })
        }),
    };
    found.unwrap_or_default()
}

fn text(data: &Map<String, Json>, name: &str) -> Option<String> {
    data.get(name).and_then(Json::as_str).map(str::to_owned)
}

impl Declared {
    /// Compares it with the place of an item.
    pub(crate) fn fit(&self, item: &ItemId) -> PlaceMatch {
        let id = self.id.as_deref();
        let is_whole = id == Some(item.as_str());
        let wrong_id = id.filter(|id| !is_whole && *id != item.name());
        let wrong_name = self.name.as_deref().filter(|name| *name != item.name() && *name != item.as_str());
        // A title is no name, so beside an id it says nothing about the place.
        let wrong_name = wrong_name.filter(|_| id.is_none());
        let wrong_category = self.category.as_deref().filter(|category| *category != item.category());
        let says = |what: &str, text: Option<&str>| text.map(|text| format!("its {what} is {text:?}"));
        let wrong: Vec<String> =
            [says("id", wrong_id), says("name", wrong_name), says("category", wrong_category)]
                .into_iter()
                .flatten()
                .collect();
        if !wrong.is_empty() {
            return PlaceMatch::Elsewhere(wrong.join(" and "));
        }
        let named = id.is_some() || self.name.is_some();
        match is_whole || (named && self.category.is_some()) {
            true => PlaceMatch::Here,
            false => PlaceMatch::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: ItemType, extension: &str, text: &str) -> [Option<String>; 3] {
        let declared = declared(kind, extension, &format!("x.{extension}"), text.as_bytes());
        [declared.id, declared.name, declared.category]
    }

    fn some(id: &str, name: &str, category: &str) -> [Option<String>; 3] {
        [id, name, category].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    #[test]
    fn every_type_and_format_can_declare_its_place() {
        let directive = "```xml\n<directive version='1' name = \"a&amp;b\">\n<metadata><category> x/y </category></metadata></directive>\n```\n";
        assert_eq!(shown(ItemType::Directive, "md", directive), some("", "a&b", "x/y"));
        let fenced = "# T\n```yaml\nid: demo/facts\nname: facts\ncategory: \"demo\" # here\n```\nname: no\n";
        assert_eq!(shown(ItemType::Knowledge, "md", fenced), some("demo/facts", "facts", "demo"));
        let front = "---\nname: facts\ncategory: demo\n---\nText\n";
        assert_eq!(shown(ItemType::Knowledge, "md", front), some("", "facts", "demo"));
        assert_eq!(shown(ItemType::Knowledge, "yaml", "category: a\nname: n\n"), some("", "n", "a"));
        let python =
            "\"\"\"__category__ = 'no'\"\"\"\n__category__: str = 'demo'\n__tool_id__ = \"demo/run\"\n";
        assert_eq!(shown(ItemType::Tool, "py", python), some("demo/run", "", "demo"));
        let script =
            "// const __tool_id__ = 'no';\nexport const __category__ = 'a';\nconst __tool_id__ = 'a/b';\n";
        for extension in ["ts", "js", "mjs", "cjs"] {
            assert_eq!(shown(ItemType::Tool, extension, script), some("a/b", "", "a"), "{extension}");
        }
        let shell = "# __category__ = \"a\"\n# __tool_id__ = \"a/b\"\necho\n";
        assert_eq!(shown(ItemType::Tool, "sh", shell), some("a/b", "", "a"));
        assert_eq!(shown(ItemType::Tool, "yaml", "tool_id: a\ncategory: b\nname: N\n"), some("a", "N", "b"));
        assert_eq!(shown(ItemType::Tool, "toml", "tool_id = 'a/b'\n"), some("a/b", "", ""));
        assert_eq!(shown(ItemType::Tool, "yaml", "x:\n  tool_id: no\n"), some("", "", ""));
    }

    #[test]
    fn an_example_or_a_comment_declares_nothing() {
        let text = "Like `<directive name=\"no\">`.\n\n````\n```xml\n<directive name=\"no\"/>\n```\n````\n```xml\n<!-- <directive name=\"no\"> -->\n\
                    <directive name=\"yes\" version=\"1.0.0\"><metadata><!-- <category>no</category> --><description>D</description>\
                    <category>a/b</category></metadata></directive>\n```\n";
        assert_eq!(shown(ItemType::Directive, "md", text), some("", "yes", "a/b"));
        assert_eq!(shown(ItemType::Knowledge, "md", "name: no\ncategory: x y\n# t"), some("", "no", "x y"));
    }

    #[test]
    fn a_place_fits_only_if_it_names_one_item() {
        let item = ItemId::new("a/b/run").unwrap();
        let fit = |id: &str, name: &str, category: &str| {
            let [id, name, category] = some(id, name, category);
            Declared { id, name, category }.fit(&item)
        };
        for (id, name, category) in
            [("a/b/run", "", ""), ("a/b/run", "Any", ""), ("run", "", "a/b"), ("", "run", "a/b")]
        {
            assert_eq!(fit(id, name, category), PlaceMatch::Here, "{id} {name} {category}");
        }
        for (id, name, category) in [("", "", ""), ("", "run", ""), ("run", "", ""), ("", "", "a/b")] {
            assert_eq!(fit(id, name, category), PlaceMatch::Open, "{id} {name} {category}");
        }
        for (id, name, category) in
            [("a/b/x", "", ""), ("", "x", "a/b"), ("", "run", "a"), ("a/b/run", "", "x")]
        {
            assert!(matches!(fit(id, name, category), PlaceMatch::Elsewhere(_)), "{id} {name} {category}");
        }
    }
}
