//! Where a rendered prompt came from: the place that was chosen and why, the layer of every variable, the origin of every
//! byte.

mod source_of;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::prepared::Prepared;
use crate::prompt::Rich;
use crate::render::{Origin, Rendered, Shown, Span};
use crate::variables::Layer;
pub use source_of::{Answer, Piece, Position};

/// Everything about one render.
#[derive(Debug)]
pub struct Explanation {
    prepared: Arc<Prepared>,
    rendered: Rendered,
}

/// A variable of a render.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedVariable {
    /// Its name.
    pub name: String,
    /// The layer that supplied its value; `None` if it has none.
    pub layer: Option<Layer>,
    /// Its value.
    pub value: Json,
    /// How it is declared: `required`, `optional`, `custom`, or not at all.
    pub declared: Option<&'static str>,
    /// Whether a template reads it.
    pub used: bool,
}

impl Explanation {
    /// The explanation of a render of a compiled prompt.
    pub fn new(prepared: Arc<Prepared>, rendered: Rendered) -> Explanation {
        Explanation { prepared, rendered }
    }

    /// The prompt.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// The text with its origins.
    pub fn rendered(&self) -> &Rendered {
        &self.rendered
    }

    /// The text of a span as people see it. A rich input is named, because the mark that stands for it in the text says nothing.
    pub fn seen(&self, span: &Span) -> Cow<'_, str> {
        let text = &self.rendered.text()[span.range.clone()];
        let Origin::Rich { input, kind } = &span.origin else { return text.into() };
        let mut inputs = self.rendered.scope().rich_inputs();
        let Some(rich) = inputs.find(|rich| rich.name == *input && rich.nonce == text) else {
            return text.into();
        };
        let what = match rich.value.as_ref().map(|value| value.as_array().map(Vec::len)) {
            None => "no value".to_owned(),
            Some(Some(1)) if rich.kind == Rich::Thread => "thread of 1 message".to_owned(),
            Some(Some(count)) if rich.kind == Rich::Thread => format!("thread of {count} messages"),
            Some(_) => kind.clone(),
        };
        format!("[{input}: {what}]").into()
    }

    /// What is known of the signature on the prompt's own file: whether a trusted key has signed it. `None` for prompts
    /// that are not signed, because they do nothing by themselves.
    pub fn signature(&self) -> Option<String> {
        self.prepared.signature()
    }

    /// Every variable that is declared, given or read, by name.
    pub fn variables(&self) -> Vec<ExplainedVariable> {
        let prompt = self.prepared.prompt();
        let scope = self.rendered.scope();
        let used: BTreeSet<String> = self.prepared.reads().into_iter().map(|(read, _)| read.root).collect();
        let mut names = used.clone();
        names.extend(prompt.variables.iter().map(|variable| variable.name.clone()));
        names.extend(scope.names());
        names
            .into_iter()
            .map(|name| {
                let (layer, value) = match scope.get(&name) {
                    // The caller may see the caller's own values; values of the environment are shown to no one.
                    Some((layer @ Layer::Optional, value)) => {
                        let declared = prompt.variable(&name);
                        (Some(layer), declared.map_or(value.clone(), |variable| variable.shown(&value)))
                    }
                    Some((layer, value)) => (Some(layer), value),
                    None => (None, Json::Null),
                };
                ExplainedVariable {
                    layer,
                    value,
                    declared: prompt.variable(&name).map(|variable| variable.need.as_str()),
                    used: used.contains(&name),
                    name,
                }
            })
            .collect()
    }

    /// The explanation as scripts see it.
    pub fn to_json(&self) -> Json {
        let found = self.prepared.found();
        let variables: Vec<Json> = self
            .variables()
            .into_iter()
            .map(|variable| {
                json!({
                    "name": variable.name,
                    "layer": variable.layer.map(Layer::as_str),
                    "value": variable.value,
                    "declared": variable.declared,
                    "used": variable.used,
                })
            })
            .collect();
        let files: Vec<String> = {
            let program = self.prepared.outline();
            program.units().iter().map(|unit| unit.source().name().to_owned()).collect()
        };
        let mut object = self.rendered.to_json();
        object["prompt"] = json!({
            "id": found.id,
            "source": found.candidate.source,
            "pack_id": found.candidate.pack_id,
            "reason": found.reason.describe(),
            "dialect": self.prepared.prompt().dialect.name,
            "parents": self.prepared.parents(),
            "files": files,
        });
        object["variables"] = json!(variables);
        object
    }
}

/// An origin in a few words: a file and line, a variable and its layer, a hook, or a frame of the engine.
pub fn label(origin: &Origin) -> String {
    match origin {
        Origin::Value { shown, emitted } if shown.is_empty() => {
            format!("computed at {}:{}", emitted.file(), emitted.line())
        }
        Origin::Value { shown, .. } => shown.iter().map(shown_label).collect::<Vec<_>>().join(", "),
        Origin::Rich { input, kind } => format!("{input} ({kind})"),
        Origin::Hook { prompt, function } => format!("{function} of {prompt}"),
        Origin::Frame { name } => format!("the engine ({name})"),
        Origin::Literal { changed, .. } => origin.place().map_or_else(String::new, |place| {
            let filter = if *changed { ", changed by a filter" } else { "" };
            format!("{}:{}{filter}", place.file(), place.line())
        }),
    }
}

/// A variable and the layer that it has its value from, for people.
#[doc(hidden)]
pub fn shown_label(shown: &Shown) -> String {
    match (&shown.by, shown.layer) {
        (Some(by), _) => format!("{} ({by})", shown.path),
        (None, Some(layer)) => format!("{} ({layer})", shown.path),
        (None, None) if shown.path.starts_with("env:") => format!("{} (environment)", shown.path),
        (None, None) => format!("{} (absent)", shown.path),
    }
}
