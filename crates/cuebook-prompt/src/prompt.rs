//! What a prompt is, whatever dialect it was written in.
//!
//! These types are what the read stage gives and the later stages take. They hold data and answer simple questions; they
//! read no files and run nothing.

mod dialect;
mod format;
mod model;
mod property;
mod shape;
mod tool;
mod visibility;
mod wording;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

pub use dialect::{
    BUILT_IN, Claim, DIRECTIVE, DOTPROMPT, PROMPTY, PROMPTY_END, SECTIONS, SECTIONS_END, SKILL, TEMPLATE,
    Traits,
};
pub use format::Format;
pub use model::{Model, ModelOptions};
pub use property::{Kind, Property, Rich, UnionStyle};
pub use shape::{Described, Extras, Field, Record, Shape};
pub(crate) use tool::MAX_INTERFACES;
pub use tool::{Tool, ToolKind, Tools};
pub use visibility::Visibility;
pub use wording::{Returns, Wording};

pub use crate::by_name::{ByName, Named};
use crate::redact;
use crate::source::{Place, Source};

/// A definition: everything about a prompt except the values of one render.
#[derive(Debug)]
pub struct Prompt {
    /// Its id, which is the name of its folder.
    pub id: String,
    /// The notation that it was written in.
    pub dialect: &'static Traits,
    /// The place that offers it, as in `user_data/shared/prompts/greeting`.
    pub source: String,
    /// Its description of itself.
    pub metadata: Metadata,
    /// Its variables, with those of its parents.
    pub variables: ByName<Variable>,
    /// What its hooks may do.
    pub permissions: Permissions,
    /// How far it may go.
    pub limits: Limits,
    /// Its template.
    pub template: Arc<Source>,
    /// Its `prompt.py`.
    pub code: Option<Arc<Source>>,
    /// Functions in its `prompt.py` that run before or after the template.
    pub hooks: Vec<Hook>,
    /// How its text is written and taken apart.
    pub format: Format,
    /// The model that it was written for.
    pub model: Option<Model>,
    /// What a model may call.
    pub tools: Tools,
    /// What a model's answer is to hold; nothing, if it may be any text.
    pub outputs: Vec<Property>,
}

impl Named for Variable {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Prompt {
    /// What a tree of sections that a program built is, where a prompt is asked for.
    #[doc(hidden)]
    pub fn of_sections(ns: &str, key: &str, template: Arc<Source>) -> Prompt {
        Prompt {
            id: key.to_owned(),
            dialect: &SECTIONS,
            source: format!("{ns}:{key}"),
            metadata: Metadata {
                name: key.to_owned(),
                version: String::new(),
                kind: "sections".to_owned(),
                extends: None,
                template: None,
                description: None,
                extra: Map::new(),
            },
            variables: ByName::default(),
            permissions: Permissions::default(),
            limits: Limits::default(),
            template,
            code: None,
            hooks: Vec::new(),
            format: Format::plain(),
            model: None,
            tools: Tools::default(),
            outputs: Vec::new(),
        }
    }

    /// The values that must not show in a trace: defaults that came from the environment.
    pub fn secrets(&self) -> impl Iterator<Item = &Json> {
        self.variables
            .iter()
            .filter(|variable| variable.is_secret)
            .filter_map(|variable| variable.default.as_ref())
    }

    /// A declared variable by name.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name)
    }

    /// The definition as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "id": self.id,
            "name": self.metadata.name,
            "version": self.metadata.version,
            "type": self.metadata.kind,
            "dialect": self.dialect.name,
            "source": self.source,
            "extends": self.metadata.extends,
            "template": self.metadata.template,
            "template_file": self.template.name(),
            "description": self.metadata.description,
            "metadata": without_secrets(Json::Object(self.metadata.extra.clone())),
            "variables": {
                "required": self.declared(Need::Required),
                "optional": self.declared(Need::Optional),
                "custom": self.declared(Need::Custom),
            },
            "permissions": self.permissions.to_json(),
            "limits": self.limits.to_json(),
            "hooks": self.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(),
            "format": {"engine": self.format.engine, "parser": self.format.parser},
            "model": self.model.as_ref().map(|model| without_secrets(model.to_json())),
            "tools": self.tools.iter().map(|tool| without_secrets(tool.to_json())).collect::<Vec<_>>(),
            "outputs": self.outputs.iter().map(|output| without_secrets(output.to_json())).collect::<Vec<_>>(),
        })
    }

    fn declared(&self, need: Need) -> Vec<Json> {
        self.variables.iter().filter(|variable| variable.need == need).map(Variable::to_json).collect()
    }
}

/// A key that an author wrote into a file is not shown with the prompt. References to one are no secrets.
fn without_secrets(mut object: Json) -> Json {
    hide_secrets(&mut object);
    object
}

fn hide_secrets(value: &mut Json) {
    for (name, value) in value.as_object_mut().into_iter().flatten() {
        let is_secret = matches!(redact::kind_of_name(name), redact::Name::Secret);
        match value {
            Json::Object(_) if !is_secret => hide_secrets(value),
            Json::Array(items) if !is_secret => items.iter_mut().for_each(hide_secrets),
            // A reference is not a secret; its default may be.
            Json::String(text) if text.starts_with("${") && text.matches(':').count() < 2 => {}
            _ => redact::field(name, value),
        }
    }
}

/// What a prompt says of itself.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// The name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its type, as in `system` or `planning`.
    pub kind: String,
    /// The id of the prompt whose variables it inherits.
    pub extends: Option<String>,
    /// The template's file name; `None` if the template is in `prompt.py`.
    pub template: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whatever else the author noted: `author`, `tags` and the like.
    pub extra: Map<String, Json>,
}

impl Metadata {
    /// Its tags.
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.extra.get("tags").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    }
}

/// How much a variable is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// The caller must give it.
    Required,
    /// Has a default, or comes from the system.
    Optional,
    /// A point at which users of the prompt adapt it.
    Custom,
}

impl Need {
    /// Its name, which is the key in `VARIABLES`.
    pub fn as_str(self) -> &'static str {
        match self {
            Need::Required => "required",
            Need::Optional => "optional",
            Need::Custom => "custom",
        }
    }
}

/// A declared input.
#[derive(Debug, Clone)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// How much it is needed.
    pub need: Need,
    /// What its values look like.
    pub kind: Type,
    /// What it is for.
    pub description: Option<String>,
    /// Its value if no other layer has one.
    pub default: Option<Json>,
    /// Whether the default came from the environment, so that it is used and not shown.
    pub is_secret: bool,
    /// The values that its author has in mind; empty if any will do. They are offered and not enforced.
    pub choices: Vec<Json>,
    /// Whether values of another type are taken as well.
    pub lenient: bool,
    /// Whether it is an input of a directive. These come from attributes and from models: nothing at all is a value of every type,
    /// text takes all that has no parts, and defaults are text.
    pub of_directive: bool,
    /// What is rich about its values, if anything: the text gets a nonce in their stead.
    pub rich: Option<Rich>,
    /// The roles that a conversation may have besides `user`, `assistant` and `tool`.
    pub roles: Vec<String>,
    /// Whether a value that looks like a role marker is refused.
    pub strict: bool,
    /// Whether the system supplies it.
    pub from_system: bool,
    /// Where it is declared.
    pub place: Option<Place>,
    /// The parent that declares it, if it is inherited.
    pub inherited_from: Option<String>,
}

impl Variable {
    /// A variable of any type, of which nothing else is said.
    pub fn new(name: impl Into<String>, need: Need) -> Variable {
        Variable {
            name: name.into(),
            need,
            kind: Type::Any,
            description: None,
            default: None,
            is_secret: false,
            choices: Vec::new(),
            lenient: false,
            of_directive: false,
            rich: None,
            roles: Vec::new(),
            strict: false,
            from_system: false,
            place: None,
            inherited_from: None,
        }
    }

    /// Whether one of the two is `custom` and the other `optional`, which may share a name.
    #[doc(hidden)]
    pub fn is_layered_with(&self, other: &Variable) -> bool {
        matches!((self.need, other.need), (Need::Custom, Need::Optional) | (Need::Optional, Need::Custom))
    }

    /// The one variable that a `custom` and an `optional` declaration make: what the optional one says, and else what the
    /// custom one says.
    #[doc(hidden)]
    pub fn layered(self, other: Variable) -> Variable {
        let (optional, custom) = if self.need == Need::Optional { (self, other) } else { (other, self) };
        let (need, default) = match optional.default {
            Some(default) => (Need::Optional, Some(default)),
            None => (Need::Custom, custom.default),
        };
        Variable {
            need,
            default,
            kind: if optional.kind == Type::Any { custom.kind } else { optional.kind },
            description: optional.description.or(custom.description),
            from_system: optional.from_system || custom.from_system,
            ..optional
        }
    }

    /// What its values look like, in a word.
    pub fn type_name(&self) -> &'static str {
        match (self.rich, self.kind) {
            (Some(rich), _) => rich.as_str(),
            // Who takes any value says what is meant in the words of a `.prompty` file.
            (None, Type::List) if self.lenient => "array",
            (None, Type::Number) if self.lenient => "float",
            (None, kind) => kind.as_str(),
        }
    }

    /// A value of it as it may be shown: what the environment gave, and what its name says is a secret, is not.
    pub fn shown(&self, value: &Json) -> Json {
        let mut value = value.clone();
        let is_default = self.default.as_ref() == Some(&value);
        redact::field(if self.is_secret && is_default { "secret" } else { &self.name }, &mut value);
        value
    }

    /// The declaration as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name));
        object.insert("type".into(), json!(self.type_name()));
        if self.strict {
            object.insert("strict".into(), json!(true));
        }
        if let Some(description) = &self.description {
            object.insert("description".into(), json!(description));
        }
        if let Some(default) = &self.default {
            object.insert("default".into(), self.shown(default));
        }
        if !self.choices.is_empty() {
            object.insert("enumValues".into(), json!(self.choices));
        }
        if self.from_system {
            object.insert("source".into(), json!("system"));
        }
        if let Some(parent) = &self.inherited_from {
            object.insert("inherited_from".into(), json!(parent));
        }
        Json::Object(object)
    }
}

/// What the values of a variable look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Type {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list.
    List,
    /// Names and values.
    Object,
    /// Whatever.
    #[default]
    Any,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 7] =
        [Type::String, Type::Integer, Type::Number, Type::Boolean, Type::List, Type::Object, Type::Any];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::List => "list",
            Type::Object => "object",
            Type::Any => "any",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether a JSON value has this type.
    pub fn admits(self, value: &Json) -> bool {
        match self {
            Type::String => value.is_string(),
            Type::Integer => value.is_i64() || value.is_u64() || is_long(value.as_str()),
            Type::Number => value.is_number() || is_long(value.as_str()),
            Type::Boolean => value.is_boolean(),
            Type::List => value.is_array(),
            Type::Object => value.is_object(),
            Type::Any => true,
        }
    }

    /// Whether a text stands for a value of this type, as the default of a directive does: XML knows nothing but text. An empty one
    /// is no value at all.
    pub fn admits_text(self, text: &str) -> bool {
        match self {
            _ if text.is_empty() => true,
            Type::String | Type::Any => true,
            Type::Boolean => text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"),
            _ => serde_json::from_str(text).is_ok_and(|value| self.admits(&value)),
        }
    }
}

/// Whether a text holds the digits of an integer that JSON readers would round.
fn is_long(text: Option<&str>) -> bool {
    text.is_some_and(crate::json::is_long_integer)
}

/// What the hooks of a prompt may do. Nothing is granted unless declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Read files of the workspace.
    pub read_file: bool,
    /// Make HTTP requests.
    pub http_request: bool,
    /// Call a language model.
    pub llm_call: bool,
    /// Read the session's state.
    pub session_state: bool,
}

impl Permissions {
    /// Everything is granted.
    pub const ALL: Permissions =
        Permissions { read_file: true, http_request: true, llm_call: true, session_state: true };

    /// The names, in the order of the declaration.
    pub const NAMES: [&str; 4] = ["read_file", "http_request", "llm_call", "session_state"];

    /// Grants or refuses one by name; `false` if there is no such permission.
    pub fn set(&mut self, name: &str, granted: bool) -> bool {
        let field = match name {
            "read_file" => &mut self.read_file,
            "http_request" => &mut self.http_request,
            "llm_call" => &mut self.llm_call,
            "session_state" => &mut self.session_state,
            _ => return false,
        };
        *field = granted;
        true
    }

    /// Those that are granted.
    pub fn granted(&self) -> Vec<&'static str> {
        let flags = [self.read_file, self.http_request, self.llm_call, self.session_state];
        Self::NAMES.into_iter().zip(flags).filter_map(|(name, granted)| granted.then_some(name)).collect()
    }

    /// The permissions as scripts see them.
    pub fn to_json(&self) -> Json {
        json!({
            "read_file": self.read_file,
            "http_request": self.http_request,
            "llm_call": self.llm_call,
            "session_state": self.session_state,
        })
    }
}

/// How far a prompt may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long its hooks may take.
    pub max_execution_time: Duration,
    /// Characters that the rendered text may have, and what hooks return.
    pub max_output_size: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_execution_time: Duration::from_secs(5), max_output_size: 50_000 }
    }
}

impl Limits {
    /// Characters that a text may have unless the prompt or `defaults.json` sets a limit. The template of a pack has a lower one.
    pub const GENEROUS_SIZE: usize = 1_000_000;

    /// No hook takes longer than a day.
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// The limits as scripts see them.
    pub fn to_json(&self) -> Json {
        let time = self.max_execution_time;
        // A whole number of seconds is written as one, as in the files that people write.
        let seconds =
            if time.subsec_nanos() == 0 { json!(time.as_secs()) } else { json!(time.as_secs_f64()) };
        json!({"max_execution_time": seconds, "max_output_size": self.max_output_size})
    }
}

/// A function in `prompt.py` that takes part in a render.
#[derive(Debug, Clone)]
pub struct Hook {
    /// `pre_render` or `post_render`.
    pub name: String,
    /// Where it is defined.
    pub place: Place,
}
