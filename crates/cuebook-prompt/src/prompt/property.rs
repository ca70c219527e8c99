//! What a value looks like: a declared output, a parameter of a tool, or an input in the words of its file.

use serde_json::{Map, Value as Json, json};

use crate::source::Place;

/// A described value. [`Property::to_json`] gives it back in the words of a `.prompty` file.
#[derive(Debug, Clone)]
pub struct Property {
    /// Its name; empty for the items of a list and the branches of a union.
    pub name: String,
    /// What kind of value it is.
    pub kind: Kind,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it has to be given.
    pub required: bool,
    /// Whether it may be `null`.
    pub nullable: bool,
    /// Its value if none is given.
    pub default: Option<Json>,
    /// Whether the default came from the environment, so that it is used and not shown.
    pub is_secret: bool,
    /// A value that shows what is meant; never used in a render.
    pub example: Option<Json>,
    /// The only values that it may have; empty if it may have any.
    pub enum_values: Vec<Json>,
    /// Whether a value that looks like a role marker is refused; `None` if the format decides.
    pub strict: Option<bool>,
    /// The roles that a conversation may have besides `user`, `assistant` and `tool`.
    pub roles: Vec<String>,
    /// Keys that mean nothing to Cuebook, as they were written.
    pub extra: Map<String, Json>,
    /// Where it is declared.
    pub place: Option<Place>,
}

/// What kind of value a property has.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// A number, by its name in Prompty 2.
    Float,
    /// A number, by its name in Prompty 1 and in JSON Schema.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array {
        /// What its items look like.
        items: Box<Property>,
    },
    /// Names and values.
    Object {
        /// The names that it has; none if that is not said.
        properties: Vec<Property>,
    },
    /// One of several.
    Union {
        /// `oneOf` or `anyOf`, as it was written.
        style: UnionStyle,
        /// The branches.
        of: Vec<Property>,
    },
    /// Something that has no place in a text.
    Rich(Rich),
    /// A kind that only the author knows.
    Custom(String),
}

/// How a union was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnionStyle {
    /// Exactly one branch fits.
    OneOf,
    /// At least one branch fits.
    AnyOf,
}

impl UnionStyle {
    /// The key, in files and in JSON Schema.
    pub fn as_str(self) -> &'static str {
        match self {
            UnionStyle::OneOf => "oneOf",
            UnionStyle::AnyOf => "anyOf",
        }
    }
}

/// A kind of input that has no place in a text, so that the text gets a nonce in its stead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rich {
    /// A conversation: messages.
    Thread,
    /// A picture.
    Image,
    /// A document.
    File,
    /// A sound.
    Audio,
}

impl Rich {
    /// Every rich kind.
    pub const ALL: [Rich; 4] = [Rich::Thread, Rich::Image, Rich::File, Rich::Audio];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Rich::Thread => "thread",
            Rich::Image => "image",
            Rich::File => "file",
            Rich::Audio => "audio",
        }
    }
}

impl Kind {
    /// The kinds that have a name of their own, in the order in which people should read of them.
    pub const NAMES: [&str; 12] = [
        "string", "integer", "float", "number", "boolean", "array", "object", "union", "thread", "image",
        "file", "audio",
    ];

    /// Its name.
    pub fn as_str(&self) -> &str {
        match self {
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Float => "float",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Array { .. } => "array",
            Kind::Object { .. } => "object",
            Kind::Union { .. } => "union",
            Kind::Rich(rich) => rich.as_str(),
            Kind::Custom(name) => name,
        }
    }
}

impl Property {
    /// A property of which nothing but name and kind is known.
    pub fn new(name: impl Into<String>, kind: Kind) -> Property {
        Property {
            name: name.into(),
            kind,
            description: None,
            required: false,
            nullable: false,
            default: None,
            is_secret: false,
            example: None,
            enum_values: Vec::new(),
            strict: None,
            roles: Vec::new(),
            extra: Map::new(),
            place: None,
        }
    }

    /// What is rich about it, if anything.
    pub fn rich(&self) -> Option<Rich> {
        match self.kind {
            Kind::Rich(rich) => Some(rich),
            _ => None,
        }
    }

    /// The property in the words of a `.prompty` file. What has its default value is left out.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        if !self.name.is_empty() {
            object.insert("name".into(), json!(self.name));
        }
        object.insert("kind".into(), json!(self.kind.as_str()));
        if let Some(description) = &self.description {
            object.insert("description".into(), json!(description));
        }
        for (key, set) in [("required", self.required), ("nullable", self.nullable)] {
            if set {
                object.insert(key.into(), json!(true));
            }
        }
        if let Some(strict) = self.strict {
            object.insert("strict".into(), json!(strict));
        }
        for (key, value) in [("default", &self.default), ("example", &self.example)] {
            if let Some(value) = value {
                object.insert(key.into(), value.clone());
            }
        }
        if !self.enum_values.is_empty() {
            object.insert("enumValues".into(), json!(self.enum_values));
        }
        if !self.roles.is_empty() {
            object.insert("roles".into(), json!(self.roles));
        }
        let all = |properties: &[Property]| properties.iter().map(Property::to_json).collect::<Json>();
        match &self.kind {
            Kind::Array { items } => {
                object.insert("items".into(), items.to_json());
            }
            Kind::Object { properties } if !properties.is_empty() => {
                object.insert("properties".into(), all(properties));
            }
            Kind::Union { style, of } => {
                object.insert(style.as_str().into(), all(of));
            }
            _ => {}
        }
        object.extend(self.extra.clone());
        Json::Object(object)
    }
}
