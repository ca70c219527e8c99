//! A comparison as scripts see it.

use serde_json::{Value as Json, json};

use super::{Detail, Diff, Entry, NotRun, VersionReport};
use crate::changes::Line;

impl Diff {
    /// The comparison as scripts see it.
    pub fn to_json(&self) -> Json {
        let (new, gone) = self.lines();
        json!({
            "same": self.is_same(),
            "summary": self.summary(),
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "changes": self.entries.iter().map(Entry::to_json).collect::<Vec<_>>(),
            "text": {
                "basis": self.basis.as_str(),
                "added": new,
                "removed": gone,
                "lines": self.text.iter().map(Line::to_json).collect::<Vec<_>>(),
            },
        })
    }
}

impl VersionReport {
    fn to_json(&self) -> Json {
        let mut object = json!({
            "label": self.label,
            "id": self.id,
            "source": self.source,
            "pack_id": self.pack,
            "dialect": self.dialect.name,
            "roles": self.roles,
            "tokens": self.ledger.as_ref().map(|ledger| ledger.to_json()),
            "assumed": self
                .assumed
                .iter()
                .map(|assumed| json!({"name": assumed.name, "value": assumed.value}))
                .collect::<Vec<_>>(),
            "absent": self.absent,
            "not_run": self.not_run.iter().map(NotRun::to_json).collect::<Vec<_>>(),
        });
        if let Some(failure) = &self.failure {
            object["failure"] = failure.to_json()["error"].take();
        }
        object
    }
}

impl NotRun {
    fn to_json(&self) -> Json {
        json!({"name": self.name, "place": self.place, "why": self.why})
    }
}

impl Entry {
    fn to_json(&self) -> Json {
        json!({
            "aspect": self.aspect.as_str(),
            "name": self.name,
            "change": self.kind.as_str(),
            "details": self.details.iter().map(Detail::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Detail {
    fn to_json(&self) -> Json {
        let mut object = json!({"path": self.path, "before": self.before, "after": self.after});
        if self.is_secret {
            object["secret"] = json!(true);
        }
        object
    }
}
