//! What a model gets of a tool's result: what it needs, as JSON, and not more than it can take.
//!
//! [`clean`] takes away what is for people and programs (chains, paths, signatures). [`guard`] looks at the size: a large result is
//! kept by the caller under its hash, and the model gets an outline of it. Nothing is kept or looked up here.

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

/// What a model has no use for.
const DROPPED: [&str; 6] = ["chain", "chain_details", "metadata", "path", "source", "resolved_env_keys"];

/// The beginnings of signature lines, in the comments of all kinds of items.
const SIGNATURES: [&str; 3] = ["# rye:signed:", "<!-- rye:signed:", "// rye:signed:"];

/// A result without what a model has no use for. The envelope of a primary tool is opened.
///
/// ```
/// use cuebook_run::policy::tool_result::clean;
/// use serde_json::json;
///
/// let result = json!({"status": "success", "data": {"n": 1}, "chain": [], "metadata": {}});
/// assert_eq!(clean(&result), json!({"status": "success", "data": {"n": 1}}));
/// ```
pub fn clean(result: &Json) -> Json {
    let Json::Object(outer) = result else { return result.clone() };
    let is_envelope =
        outer.get("item_id").and_then(Json::as_str).is_some_and(|id| id.starts_with("rye/primary/"));
    let inner = outer.get("data").and_then(Json::as_object).filter(|_| is_envelope);
    let kept = inner.unwrap_or(outer).iter().filter(|(name, _)| !DROPPED.contains(&name.as_str()));
    kept.map(|(name, value)| match value {
        Json::String(text) if name == "content" => (name.clone(), Json::String(unsigned(text))),
        other => (name.clone(), other.clone()),
    })
    .collect()
}

/// A text without signature lines. One that has none stays as it is, to the last space.
fn unsigned(text: &str) -> String {
    let is_signature = |line: &&str| SIGNATURES.iter().any(|start| line.trim().starts_with(start));
    if !text.split('\n').any(|line| is_signature(&line)) {
        return text.to_owned();
    }
    let kept: Vec<&str> = text.split('\n').filter(|line| !is_signature(line)).collect();
    kept.join("\n").trim().to_owned()
}

/// A result as the text that a model reads: text as it is, everything else as JSON.
pub fn text_of(result: &Json) -> String {
    match result {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How many characters of a result a model gets, when so much of its context is full (from 0 to 1).
pub fn room(full: f64) -> usize {
    if full > 0.75 { 1200 } else { 2400 }
}

/// A result that has been looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Guarded {
    /// It is small enough.
    Small(String),
    /// It is too large.
    Large(Large),
}

/// A result that is too large for a conversation. The caller keeps it under its hash.
#[derive(Debug, Clone, PartialEq)]
pub struct Large {
    /// What it is known by: `sha256:` and 64 digits.
    pub hash: String,
    /// What the model gets: an outline, the hash, and how long the whole is.
    pub text: String,
}

impl Large {
    /// What the model gets if it was given the same before.
    pub fn repeated(&self, call: &str) -> String {
        json!({
            "note": format!("the same result as call {call}"),
            "_artifact_ref": self.hash,
        })
        .to_string()
    }
}

/// Looks at the size of a text for a model, in characters.
pub fn guard(text: &str, limit: usize) -> Guarded {
    // Bytes are never fewer than characters, and known at once.
    if text.len() <= limit || text.chars().nth(limit).is_none() {
        return Guarded::Small(text.to_owned());
    }
    let hash = cuebook::sha256::hex(&Sha256::digest(text.as_bytes()));
    let hash = format!("sha256:{hash}");
    let characters = text.chars().count();
    let finish = |mut outline: Map<String, Json>| {
        outline.insert("_artifact_ref".into(), json!(hash));
        outline.insert("_artifact_characters".into(), json!(characters));
        Json::Object(outline).to_string()
    };
    let parsed: Option<Json> = serde_json::from_str(text).ok();
    let parsed = parsed.filter(|value| value.is_object() || value.is_array());
    for measure in &MEASURES {
        let outline = match &parsed {
            Some(value) => match outlined(value, measure, 0) {
                Json::Object(outline) => outline,
                other => Map::from_iter([("content".to_owned(), other)]),
            },
            None => break,
        };
        let text = finish(outline);
        if text.chars().count() <= limit {
            return Guarded::Large(Large { hash, text });
        }
    }
    let content = Map::from_iter([("content".to_owned(), json!(cut(text, limit / 2)))]);
    Guarded::Large(Large { text: finish(content), hash })
}

/// How much of a value an outline keeps.
struct Measure {
    text: usize,
    items: usize,
    names: usize,
    depth: usize,
}

/// From generous to tight; the first that fits is taken.
const MEASURES: [Measure; 4] = [
    Measure { text: 500, items: 3, names: 40, depth: 4 },
    Measure { text: 200, items: 3, names: 20, depth: 3 },
    Measure { text: 80, items: 2, names: 12, depth: 2 },
    Measure { text: 30, items: 1, names: 8, depth: 1 },
];

fn outlined(value: &Json, measure: &Measure, depth: usize) -> Json {
    match value {
        Json::String(text) => json!(cut(text, measure.text)),
        Json::Array(items) if items.is_empty() => json!([]),
        Json::Array(items) => {
            let mut outline = Map::from_iter([("_count".to_owned(), json!(items.len()))]);
            if depth < measure.depth {
                let first = items.iter().take(measure.items).map(|item| outlined(item, measure, depth + 1));
                outline.insert("_first".into(), first.collect());
            }
            Json::Object(outline)
        }
        Json::Object(map) if depth >= measure.depth && !map.is_empty() => json!({"_names": map.len()}),
        Json::Object(map) => {
            let mut outline: Map<String, Json> = map
                .iter()
                .take(measure.names)
                .map(|(name, value)| (cut(name, 80), outlined(value, measure, depth + 1)))
                .collect();
            if map.len() > measure.names {
                outline.insert("_more_names".into(), json!(map.len() - measure.names));
            }
            Json::Object(outline)
        }
        other => other.clone(),
    }
}

/// The beginning of a text, and how long all of it is.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_envelope_of_a_primary_tool_is_opened() {
        let result = json!({
            "status": "success", "item_id": "rye/primary/rye_load", "path": "p",
            "data": {"content": "# T", "source": "project", "metadata": {"a": 1}, "n": 0},
        });
        assert_eq!(clean(&result), json!({"content": "# T", "n": 0}));
        let other = json!({"item_id": "a/b", "data": {"path": "kept inside"}, "chain": [1]});
        assert_eq!(clean(&other), json!({"item_id": "a/b", "data": {"path": "kept inside"}}));
        let broken = json!({"item_id": "rye/primary/x", "data": "text"});
        assert_eq!(clean(&broken), broken);
        for scalar in [json!("text"), json!(3), json!(null), json!([{"path": 1}])] {
            assert_eq!(clean(&scalar), scalar);
        }
    }

    #[test]
    fn signature_lines_go_and_nothing_else_does() {
        let content = |text: &str| clean(&json!({"content": text}))["content"].as_str().unwrap().to_owned();
        assert_eq!(content("<!-- rye:signed:abc -->\n# T\n  # rye:signed:zz\nbody\n"), "# T\nbody");
        assert_eq!(content("// rye:signed:1\nlet x;"), "let x;");
        assert_eq!(content("    indented\n\n"), "    indented\n\n");
        assert_eq!(content("a rye:signed: word"), "a rye:signed: word");
    }

    #[test]
    fn a_small_result_stays_as_it_is() {
        assert_eq!(guard("é".repeat(10).as_str(), 10), Guarded::Small("é".repeat(10)));
        assert!(matches!(guard("é".repeat(11).as_str(), 10), Guarded::Large(_)));
        assert_eq!((room(0.5), room(0.76)), (2400, 1200));
    }

    #[test]
    fn a_large_result_becomes_an_outline_of_itself() {
        let items: Vec<Json> = (0..100).map(|n| json!({"id": n, "text": "x".repeat(300)})).collect();
        let text = json!({"status": "success", "items": items, "ok": true, "none": null}).to_string();
        let Guarded::Large(large) = guard(&text, 2400) else { panic!() };
        let reported: Json = serde_json::from_str(&large.text).unwrap();
        assert_eq!(
            (&reported["status"], &reported["ok"], &reported["none"]),
            (&json!("success"), &json!(true), &Json::Null)
        );
        assert_eq!(reported["items"]["_count"], 100);
        assert_eq!(reported["items"]["_first"][2]["id"], 2);
        assert_eq!(reported["_artifact_ref"], json!(large.hash));
        assert_eq!(reported["_artifact_characters"], json!(text.len()));
        let Guarded::Large(again) = guard(&text, 1200) else { panic!() };
        assert_eq!(again.hash, large.hash);
        let repeated: Json = serde_json::from_str(&again.repeated("c1")).unwrap();
        assert_eq!(repeated["_artifact_ref"], json!(large.hash));
    }

    #[test]
    fn a_large_text_is_cut_between_characters() {
        let Guarded::Large(large) = guard(&"é\"\n".repeat(2000), 2400) else { panic!() };
        let reported: Json = serde_json::from_str(&large.text).unwrap();
        assert!(reported["content"].as_str().unwrap().ends_with("… (6000 characters)"));
    }

    proptest! {
        #[test]
        fn the_outline_of_a_large_result_is_json_and_bounded(
            text in "[\\[\\]{}\",:a0é\\\\\\n ]{0,400}", wide in 0..200usize, limit in 300..600usize,
        ) {
            let names: Map<String, Json> = (0..wide).map(|n| (format!("{text}{n}"), json!([text, [text]]))).collect();
            for text in [text.clone(), Json::Object(names).to_string(), text.repeat(20)] {
                if let Guarded::Large(large) = guard(&text, limit) {
                    prop_assert!(serde_json::from_str::<Json>(&large.text).is_ok());
                    // Escapes can double a text that is cut by its own length.
                    prop_assert!(large.text.chars().count() <= limit + 300);
                }
            }
        }
    }
}
