//! `resolution.json`: the recorded choices between candidates.
//!
//! The file belongs to the user and is reviewed in git, so it keeps its order and whatever else somebody noted in it.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files::{self, Lock};
use crate::source::Source;

/// One recorded choice.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

impl Resolutions {
    /// Reads the file.
    pub(crate) fn read(source: &Arc<Source>) -> Result<Resolutions> {
        let json: Json = serde_json::from_str(source.text()).map_err(|error| {
            let place = line_place(source, error.line(), error.column());
            let diagnostic = Diagnostic::new(Code::BadResolution, format!("not valid JSON: {error}"))
                .at(place)
                .hint("mend the file by hand, or take an earlier version of it from git");
            Error::new(ErrorKind::Config, diagnostic)
        })?;
        let Json::Object(object) = json else {
            let diagnostic =
                Diagnostic::new(Code::BadResolution, "a JSON object was expected").file(source.name());
            return Err(Error::new(ErrorKind::Config, diagnostic.hint("begin with { and end with }")));
        };
        let entries: IndexMap<String, Json> = object.into_iter().collect();
        for (id, entry) in &entries {
            if entry.get("source").and_then(Json::as_str).is_none() {
                let at = source.text().find(&format!("\"{id}\"")).unwrap_or_default();
                let diagnostic =
                    Diagnostic::new(Code::BadResolution, format!("the entry `{id}` has no `source`"))
                        .at(source.place(at..at + id.len() + 2))
                        .hint(format!("choose again: cuebook resolve {id} SOURCE"));
                return Err(Error::new(ErrorKind::Config, diagnostic));
            }
        }
        Ok(Resolutions { entries })
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

    /// The ids that have an entry.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
}

/// Changes the file under its lock: reads it as it is now, applies the change, writes it whole.
pub(crate) fn update(
    path: &Path,
    name: &str,
    limit: u64,
    change: impl FnOnce(&mut IndexMap<String, Json>) -> Result<()>,
) -> Result<()> {
    let lock = Lock::acquire(path, name)?;
    let mut entries = if path.exists() {
        Resolutions::read(&files::read_text(path, name, limit)?)?.entries
    } else {
        IndexMap::new()
    };
    change(&mut entries)?;
    let object: Map<String, Json> = entries.into_iter().collect();
    lock.write(name, &pretty(&Json::Object(object)))
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
pub(crate) fn timestamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn line_place(source: &Arc<Source>, line: usize, column: usize) -> crate::source::Place {
    let start = match line.checked_sub(2) {
        Some(newline) => source.text().match_indices('\n').nth(newline).map_or(0, |(at, _)| at + 1),
        None => 0,
    };
    let at = (start + column.saturating_sub(1)).min(source.text().len());
    source.place(at..at + 1)
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
    fn a_broken_file_is_refused_with_its_place_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolution.json");
        std::fs::write(&path, "{\n  \"a\": {\"source\": \"x\"\n").unwrap();
        let error = update(&path, "resolution.json", 1000, |_| Ok(())).unwrap_err();
        assert_eq!(error.code(), Code::BadResolution);
        assert!(error.diagnostic().place.is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"a\": {\"source\": \"x\"\n");
    }

    #[test]
    fn an_entry_without_a_source_is_refused_by_name() {
        let error = Resolutions::read(&source("{\"greeting\": {}}")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ConfigError: resolution.json:1:2: the entry `greeting` has no `source` [CB107]"
        );
    }
}
