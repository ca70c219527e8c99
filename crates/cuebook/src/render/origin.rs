//! Where a piece of rendered text came from.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::source::{Place, Source};
use crate::variables::{Layer, Supplier};

/// Where a piece of rendered text came from. Only a literal may carry structure.
#[derive(Debug, Clone)]
pub enum Origin {
    /// An author wrote it.
    Literal {
        /// The text that it stands in.
        source: Arc<Source>,
        /// Where in the source's text.
        range: Range<usize>,
        /// Whether a filter such as `upper` changed what stands there.
        changed: bool,
    },
    /// A value, or text that a template computed from values and literals.
    Value {
        /// The variables that can show there; empty if it was computed from none.
        shown: Vec<Shown>,
        /// The tag that emitted it.
        emitted: Place,
    },
    /// A rich input: a conversation, an image, a file, a sound.
    Rich {
        /// The input's name.
        input: String,
        /// What it is, as in `image`.
        kind: String,
    },
    /// A hook wrote or changed it.
    Hook {
        /// The prompt whose hook it is.
        prompt: String,
        /// The function.
        function: String,
    },
    /// The engine wrote it.
    Frame {
        /// What for.
        name: String,
    },
}

/// A variable that can show in an emitted value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shown {
    /// Its path, as in `tools[].name`.
    pub path: String,
    /// The layer that supplied it; `None` if none did.
    pub layer: Option<Layer>,
    /// The hook or provider that supplied it.
    pub by: Option<Supplier>,
}

impl Shown {
    /// The variable as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut variable = json!({"path": self.path, "layer": self.layer.map(Layer::as_str)});
        if let Some(by) = &self.by {
            variable["by"] = json!(by);
        }
        variable
    }
}

impl Origin {
    /// The word for it: `literal`, `value`, `rich`, `hook` or `frame`.
    pub fn kind(&self) -> &'static str {
        match self {
            Origin::Literal { .. } => "literal",
            Origin::Value { .. } => "value",
            Origin::Rich { .. } => "rich",
            Origin::Hook { .. } => "hook",
            Origin::Frame { .. } => "frame",
        }
    }

    /// Whether an author wrote it.
    pub fn is_literal(&self) -> bool {
        matches!(self, Origin::Literal { .. })
    }

    /// The place in an author's file that it leads back to.
    pub fn place(&self) -> Option<Place> {
        match self {
            Origin::Literal { source, range, .. } => Some(source.place(range.clone())),
            Origin::Value { emitted, .. } => Some(emitted.clone()),
            Origin::Rich { .. } | Origin::Hook { .. } | Origin::Frame { .. } => None,
        }
    }

    /// The origin as scripts see it. Offsets are bytes of the file.
    pub fn to_json(&self) -> Json {
        match self {
            Origin::Literal { source, range, changed } => {
                let (line, column) = source.line_column(range.start);
                let file = source.file_range(range.clone());
                let mut literal = json!({
                    "kind": "literal", "file": source.name(), "start": file.start, "end": file.end,
                    "line": line, "column": column,
                });
                if *changed {
                    literal["changed"] = true.into();
                }
                literal
            }
            Origin::Value { shown, emitted } => {
                let file = emitted.source().file_range(emitted.range());
                let variables: Vec<Json> = shown.iter().map(Shown::to_json).collect();
                json!({
                    "kind": "value", "variables": variables, "expression": emitted.text(), "file": emitted.file(),
                    "start": file.start, "end": file.end, "line": emitted.line(), "column": emitted.column(),
                })
            }
            Origin::Rich { input, kind } => json!({"kind": "rich", "input": input, "input_kind": kind}),
            Origin::Hook { prompt, function } => {
                json!({"kind": "hook", "prompt": prompt, "function": function})
            }
            Origin::Frame { name } => json!({"kind": "frame", "name": name}),
        }
    }
}
