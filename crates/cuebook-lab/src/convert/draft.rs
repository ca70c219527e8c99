//! A prompt between two notations: what it says, in terms that all of them share.
//!
//! Other features of a notation are reported where the draft is made (`source.rs`), or where the target cannot say
//! what the draft holds (one file per target).

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value as Json};

use crate::by_name::{ByName, Named};
use crate::chat::Role;
use crate::convert::BuiltIn;
use crate::prompt::{Need, Type};
use crate::source::Place;
use crate::template::parts::MissingValue;

/// A prompt between two notations.
#[derive(Debug)]
pub(super) struct Draft {
    /// The last part of its id.
    pub(super) id: String,
    pub(super) from: BuiltIn,
    /// The name for people, if it is another one than the id.
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) description: Option<String>,
    /// What else its author noted.
    pub(super) extra: Map<String, Json>,
    pub(super) inputs: ByName<Input>,
    pub(super) words: Vec<Chunk>,
    /// Who says it.
    pub(super) role: Role,
    /// What became of the lines of its own text that begin messages.
    pub(super) opening: RoleLines,
    /// The model, in the words of a `.prompty` file, and where it is named.
    pub(super) model: Option<(Map<String, Json>, Option<Place>)>,
    /// What a model may call, in the words of a `.prompty` file, and where it is declared.
    pub(super) tools: Vec<(Map<String, Json>, Option<Place>)>,
    /// What an answer holds, in the words of a `.prompty` file, and where it is declared.
    pub(super) outputs: Vec<(Map<String, Json>, Option<Place>)>,
    /// Characters that the text may have, if that is not the default.
    pub(super) max_output_size: Option<usize>,
    /// Inputs that are called otherwise now, by their names before.
    pub(super) renamed: BTreeMap<String, String>,
    /// The same by their names now.
    pub(super) named_before: HashMap<String, String>,
}

/// What became of lines that begin messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoleLines {
    /// The text has none.
    Missing,
    /// The one that it began with was taken away.
    Taken,
    /// There are several, or one within the text: they are text now, and that has been reported.
    Several,
}

/// What a prompt takes.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) name: String,
    pub(super) need: Need,
    pub(super) kind: Type,
    /// The name of its kind in front matter, where that says more.
    pub(super) kind_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) default: Option<Json>,
    pub(super) choices: Vec<Json>,
    pub(super) strict: bool,
    /// What else front matter says of it: `items`, `properties`, `example` and so on.
    pub(super) more: Map<String, Json>,
    pub(super) place: Option<Place>,
}

impl Named for Input {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Input {
    /// Whether there is always a value: the caller's, or the default.
    pub(super) fn is_certain(&self) -> bool {
        self.need == Need::Required || self.default.is_some()
    }

    /// Whether its values read the same wherever they are shown: texts and whole numbers do.
    pub(super) fn prints_alike(&self) -> bool {
        matches!(self.kind, Type::String | Type::Integer)
    }

    /// The input in the words of front matter, without its name.
    pub(super) fn to_front(&self) -> Map<String, Json> {
        let mut object = Map::new();
        let kind = match (&self.kind_name, self.kind) {
            (Some(name), _) => name.as_str(),
            (None, Type::List) => "array",
            (None, kind) => kind.as_str(),
        };
        object.insert("kind".into(), kind.into());
        if let Some(description) = &self.description {
            object.insert("description".into(), description.as_str().into());
        }
        if self.need == Need::Required {
            object.insert("required".into(), true.into());
        }
        if let Some(default) = &self.default {
            object.insert("default".into(), default.clone());
        }
        if !self.choices.is_empty() {
            object.insert("enumValues".into(), Json::Array(self.choices.clone()));
        }
        object.extend(self.more.clone());
        with_items(&mut object);
        object
    }
}

/// A list says in front matter what its items are, also if they are anything.
pub(super) fn with_items(property: &mut Map<String, Json>) {
    if property.get("kind").and_then(Json::as_str) == Some("array") && !property.contains_key("items") {
        property.insert("items".into(), anything());
    }
}

/// What says nothing about a value.
pub(super) fn anything() -> Json {
    serde_json::json!({"kind": "any"})
}

/// A stretch of the text.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The stretch as words and names; what keeps it from being that, and where, if it is more.
    pub(super) pieces: Result<Vec<Piece>, UnsupportedPart>,
    /// The stretch as it was written, where another notation may take it as it is.
    pub(super) written: Option<(Language, String)>,
    /// The stretch as Jinja2, if it was written in something else and is more than words and names.
    pub(super) jinja: Option<String>,
    pub(super) print: Print,
    /// The names that it mentions.
    pub(super) names: Vec<String>,
    /// Comments, which only what was written has.
    pub(super) comments: Vec<Place>,
}

impl Chunk {
    /// A stretch that is text.
    pub(super) fn text(text: impl Into<String>) -> Chunk {
        Chunk {
            pieces: Ok(vec![Piece::Text(text.into())]),
            written: None,
            jinja: None,
            print: Print::Python,
            names: Vec::new(),
            comments: Vec::new(),
        }
    }
}

impl Chunk {
    /// Of words and names, the names are those that show.
    pub(super) fn keep_names(&mut self) {
        if let Ok(pieces) = &self.pieces {
            let shown: HashSet<&String> = pieces.iter().filter_map(Piece::name).collect();
            self.names.retain(|name| shown.contains(name));
        }
    }
}

/// Languages that several notations have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Jinja,
    /// Mustache, and whether it escapes values.
    Mustache {
        escape: bool,
    },
}

/// How values that are neither text nor whole numbers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Print {
    /// `True`, `None`, `['a']`.
    Python,
    /// `true`, nothing, items one after the other.
    Portable,
    /// `true`, `null`, `["a"]`.
    Json,
    /// `true`, nothing, `["a"]`.
    Mustache,
}

impl Print {
    pub(super) fn example(self) -> &'static str {
        match self {
            Print::Python => "`True`, `None`, `['a', 'b']`",
            Print::Portable => "`true`, nothing for null, `ab` for a list",
            Print::Json => "`true`, `null`, `[\"a\",\"b\"]`",
            Print::Mustache => "`true`, nothing for null, `[\"a\",\"b\"]`",
        }
    }
}

/// Words, or a name whose value shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Value { name: String, absent: MissingValue },
}

impl Piece {
    /// The name whose value shows.
    pub(super) fn name(&self) -> Option<&String> {
        match self {
            Piece::Value { name, .. } => Some(name),
            Piece::Text(_) => None,
        }
    }
}

/// What a target would have to be able to say, and where it is written.
#[derive(Debug, Clone)]
pub(super) struct UnsupportedPart {
    pub(super) what: String,
    pub(super) place: Place,
}

impl Draft {
    /// The name that an input had before it was called otherwise.
    pub(super) fn name_before(&self, name: &str) -> String {
        self.named_before.get(name).map_or(name, String::as_str).to_owned()
    }

    pub(super) fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.get(name)
    }

    /// All of the text as words and names.
    pub(super) fn pieces(&self) -> Result<Vec<Piece>, UnsupportedPart> {
        let mut all: Vec<Piece> = Vec::new();
        for chunk in &self.words {
            for piece in chunk.pieces.clone()? {
                match (all.last_mut(), piece) {
                    (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                    (_, Piece::Text(text)) if text.is_empty() => {}
                    (_, piece) => all.push(piece),
                }
            }
        }
        Ok(all)
    }

    /// The name that people know it by.
    pub(super) fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.clone())
    }
}
