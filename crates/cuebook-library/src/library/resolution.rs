//! `resolution.json`: the recorded choices between candidates.
//!
//! The file belongs to the user and is reviewed in git, so it keeps its order and other entries in it.

use crate::error::Hint;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use crate::error::{Code, ErrorKind, Result, shell_word};
use crate::files;
use crate::json::Step::{Index, Key};
use crate::json::{Document, Problems, quoted};
use crate::source::{Place, Source};

/// One recorded choice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// The chosen candidate's source.
    pub source: String,
    /// When it was chosen.
    pub resolved_at: Option<String>,
    /// The candidates that it was chosen among; `None` if that was not recorded.
    pub candidates: Option<Vec<String>>,
    /// The pack whose proposal to replace the prompt was accepted.
    pub replaced_by: Option<String>,
}

/// All recorded choices, by id.
#[derive(Debug, Clone, Default)]
pub struct Resolutions {
    entries: IndexMap<String, Json>,
    /// The file, to point into.
    document: Option<Arc<Document>>,
}

impl Resolutions {
    /// Reads the file.
    pub(crate) fn read(source: &Arc<Source>) -> Result<Resolutions> {
        let document = Document::parse(source, Code::BadResolution, ErrorKind::Config)?;
        let mut problems = Problems::new(&document);
        for (id, entry) in document.object()? {
            let hint = Hint::run(
                "fix the entry, or remove it and choose again",
                format!("cuebook resolve {} SOURCE", shell_word(id)),
            );
            let Json::Object(fields) = entry else {
                let what = format!("the choice for {}", quoted(id));
                problems.wrong_type(&[Key(id)], entry, &what, "an object with a `source`", &hint);
                continue;
            };
            let text = |problems: &mut Problems<'_>, name: &str| match fields.get(name) {
                None | Some(Json::Null | Json::String(_)) => {}
                Some(other) => {
                    problems.wrong_type(&[Key(id), Key(name)], other, &quoted(name), "a string", &hint);
                }
            };
            if fields.get("source").is_none_or(Json::is_null) {
                let message = format!("the choice for {} has no `source`", quoted(id));
                problems.wrong_key(&[Key(id)], message, &hint);
            }
            text(&mut problems, "source");
            text(&mut problems, "resolved_at");
            text(&mut problems, "replaced_by");
            match fields.get("candidates") {
                None | Some(Json::Null) => {}
                Some(Json::Array(list)) => {
                    for (index, candidate) in list.iter().enumerate().filter(|(_, item)| !item.is_string()) {
                        let path = [Key(id), Key("candidates"), Index(index)];
                        problems.wrong_type(&path, candidate, "a candidate", "a string", &hint);
                    }
                }
                Some(other) => {
                    let path = [Key(id), Key("candidates")];
                    problems.wrong_type(&path, other, "`candidates`", "an array of strings", &hint);
                }
            }
        }
        let entries = document.object()?.iter().map(|(id, entry)| (id.clone(), entry.clone())).collect();
        problems.or(())?;
        Ok(Resolutions { entries, document: Some(Arc::new(document)) })
    }

    /// The recorded choice for an id.
    pub fn get(&self, id: &str) -> Option<Resolution> {
        let entry = self.entries.get(id)?;
        let text = |name: &str| entry.get(name).and_then(Json::as_str).map(str::to_owned);
        Some(Resolution {
            source: text("source")?,
            resolved_at: text("resolved_at"),
            candidates: entry
                .get("candidates")
                .and_then(Json::as_array)
                .map(|list| list.iter().filter_map(Json::as_str).map(str::to_owned).collect()),
            replaced_by: text("replaced_by"),
        })
    }

    /// Where the entry of an id stands in the file.
    pub fn place(&self, id: &str) -> Option<Place> {
        self.entries.get(id)?;
        Some(self.document.as_ref()?.key_place(&[Key(id)]))
    }

    /// The ids that have an entry.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

/// Changes the file under its lock: reads it as it is now, applies the change, writes it whole.
pub(crate) fn update(
    project: &Path,
    path: &Path,
    name: &str,
    limit: u64,
    change: impl FnOnce(&mut IndexMap<String, Json>) -> Result<()>,
) -> Result<()> {
    files::stays_inside(project, path, name)?;
    files::update(path, name, limit, |text| {
        let mut entries = match text {
            Some(text) => Resolutions::read(&text)?.entries,
            None => IndexMap::new(),
        };
        change(&mut entries)?;
        let object: Map<String, Json> = entries.into_iter().collect();
        Ok((Some(pretty(&Json::Object(object))), ()))
    })
}

/// JSON for a file that people read: indented, with a newline at its end.
pub(crate) fn pretty(json: &Json) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(json).unwrap_or_default();
    text.push(b'\n');
    text
}

/// A new entry, with what it had beside the known fields.
pub(crate) fn entry(old: Option<&Json>, resolution: &Resolution) -> Json {
    let mut object = old.and_then(Json::as_object).cloned().unwrap_or_default();
    object.insert("source".into(), json!(resolution.source));
    object.insert("resolved_at".into(), json!(resolution.resolved_at));
    object.insert("candidates".into(), json!(resolution.candidates));
    match &resolution.replaced_by {
        Some(pack) => {
            object.insert("replaced_by".into(), json!(pack));
        }
        None => {
            object.shift_remove("replaced_by");
        }
    }
    Json::Object(object)
}

/// Now, as the file records it.
#[doc(hidden)]
pub fn timestamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Arc<Source> {
        Source::new("resolution.json", text)
    }

    #[test]
    fn an_entry_keeps_what_others_noted_in_it() {
        let old = json!({"source": "a", "note": "asked Kim"});
        let resolution = Resolution {
            source: "b".into(),
            resolved_at: Some("2026-02-14T10:00:00Z".into()),
            candidates: Some(vec!["a".into(), "b".into()]),
            replaced_by: None,
        };
        let new = entry(Some(&old), &resolution);
        assert_eq!(
            new.to_string(),
            r#"{"source":"b","note":"asked Kim","resolved_at":"2026-02-14T10:00:00Z","candidates":["a","b"]}"#
        );
    }

    #[test]
    fn an_invalid_file_is_refused_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolution.json");
        std::fs::write(&path, "{\n  \"a\": {\"source\": \"x\"\n").unwrap();
        let error = update(folder.path(), &path, "resolution.json", 1000, |_| Ok(())).unwrap_err();
        assert_eq!(error.code(), Code::BadResolution);
        assert!(error.diagnostic().place.is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"a\": {\"source\": \"x\"\n");
    }

    #[test]
    fn an_entry_without_a_source_is_refused_by_name() {
        let error = Resolutions::read(&source("{\"greeting\": {}}")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ConfigError: resolution.json:1:2: the choice for `greeting` has no `source` [CB107]"
        );
    }

    #[test]
    fn everything_that_is_wrong_is_underlined() {
        let text =
            "{\"a\": 1,\n \"b\": {\"source\": 2},\n \"c\": {\"source\": \"x\", \"candidates\": [\"x\", {}]}}";
        let error = Resolutions::read(&source(text)).unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error resolution.json:1:7: the choice for `a` must be an object with a `source` [CB107]
  at 1 -- this is a number
  help: fix the entry, or remove it and choose again: cuebook resolve a SOURCE
error resolution.json:2:18: `source` must be a string [CB107]
  at 2 -- this is a number
  help: fix the entry, or remove it and choose again: cuebook resolve b SOURCE
error resolution.json:3:43: a candidate must be a string [CB107]
  at { -- this is an object
  help: fix the entry, or remove it and choose again: cuebook resolve c SOURCE
"
        );
    }
}
