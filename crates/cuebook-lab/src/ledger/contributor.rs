//! Who put a token into a prompt.

use serde_json::{Value as Json, json};

use cuebook::explain::shown_label;

use crate::render::{Origin, Shown};

/// Who put a piece of a prompt there, without the exact place: a file, a variable, a hook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Contributor {
    /// An author, in this file.
    File(String),
    /// Variables: one, or several that show in one tag.
    Variables(Vec<Shown>),
    /// A template, in this file, which computed it from no variable.
    Computed(String),
    /// A rich input: a conversation, or a picture and the like. `None` where it cannot be said which.
    Rich {
        /// The input.
        input: Option<String>,
        /// What it is, as in `thread`.
        kind: String,
    },
    /// A hook.
    Hook {
        /// The prompt whose hook it is.
        prompt: String,
        /// The function.
        function: String,
    },
    /// The engine, for headings, hints and the like.
    Frame(String),
}

impl Contributor {
    /// Whom an origin leads to.
    pub fn of(origin: &Origin) -> Contributor {
        match origin {
            Origin::Literal { source, .. } => Contributor::File(source.name().to_owned()),
            Origin::Value { shown, emitted } if shown.is_empty() => {
                Contributor::Computed(emitted.file().to_owned())
            }
            Origin::Value { shown, .. } => Contributor::Variables(roots(shown)),
            Origin::Rich { input, kind } => {
                Contributor::Rich { input: Some(input.clone()), kind: kind.clone() }
            }
            Origin::Hook { prompt, function } => {
                Contributor::Hook { prompt: prompt.clone(), function: function.clone() }
            }
            Origin::Frame { name } => Contributor::Frame(name.clone()),
        }
    }

    /// The word for it: `literal`, `value`, `rich`, `hook` or `frame`, as for origins.
    pub fn kind(&self) -> &'static str {
        match self {
            Contributor::File(_) => "literal",
            Contributor::Variables(_) | Contributor::Computed(_) => "value",
            Contributor::Rich { .. } => "rich",
            Contributor::Hook { .. } => "hook",
            Contributor::Frame(_) => "frame",
        }
    }

    /// Its name for people: the file, or the variable and its layer.
    pub fn label(&self) -> String {
        match self {
            Contributor::File(file) => file.clone(),
            Contributor::Variables(shown) => shown.iter().map(shown_label).collect::<Vec<_>>().join(", "),
            Contributor::Computed(file) => format!("computed in {file}"),
            Contributor::Rich { input: Some(input), kind } => format!("{input} ({kind})"),
            Contributor::Rich { input: None, kind } => format!("an input ({kind})"),
            Contributor::Hook { prompt, function } => format!("{function} of {prompt}"),
            Contributor::Frame(name) => format!("the engine ({name})"),
        }
    }

    /// The contributor as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = json!({"kind": self.kind(), "label": self.label()});
        match self {
            Contributor::File(file) | Contributor::Computed(file) => object["file"] = json!(file),
            Contributor::Variables(shown) => {
                object["variables"] = shown.iter().map(Shown::to_json).collect();
            }
            Contributor::Rich { input, kind } => {
                (object["input"], object["input_kind"]) = (json!(input), json!(kind));
            }
            Contributor::Hook { prompt, function } => {
                (object["prompt"], object["function"]) = (json!(prompt), json!(function));
            }
            Contributor::Frame(name) => object["name"] = json!(name),
        }
        object
    }
}

/// The variables themselves, each once, without the ways into them.
fn roots(shown: &[Shown]) -> Vec<Shown> {
    let mut roots: Vec<Shown> = Vec::new();
    for shown in shown {
        let root = match shown.path.strip_prefix("env:") {
            Some(_) => shown.path.as_str(),
            None => shown.path.split(['.', '[']).next().unwrap_or_default(),
        };
        if roots.iter().all(|known| known.path != root || known.by != shown.by) {
            roots.push(Shown { path: root.to_owned(), ..shown.clone() });
        }
    }
    roots
}
