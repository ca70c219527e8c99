//! From front matter to a [`Definition`]. Everything that is wrong is found at once; what is merely strange is noted.

use std::ops::{Deref, DerefMut};

use serde_json::{Map, Number, Value as Json};

use super::reference::Fault;
use super::{DEFAULT_ENGINE, DEFAULT_PARSER, Definition, Format};
use crate::chat;
use crate::error::{Code, Diagnostic, ErrorKind, Result};
use crate::node::{Data, Key, Node, to_object};
use crate::reader::{Notation, ValueReader, unknown_key};
use crate::yaml::{self, Scalar};

const TOP_KEYS: [&str; 9] =
    ["name", "displayName", "description", "metadata", "model", "inputs", "outputs", "tools", "template"];

/// Reads front matter whose references have been followed. Trees of sections have theirs read by it, too.
#[doc(hidden)]
pub struct FrontMatterReader {
    values: ValueReader,
    /// The kind of the first fault, if it is a special one.
    first_kind: Option<&'static str>,
}

impl Deref for FrontMatterReader {
    type Target = ValueReader;

    fn deref(&self) -> &ValueReader {
        &self.values
    }
}

impl DerefMut for FrontMatterReader {
    fn deref_mut(&mut self) -> &mut ValueReader {
        &mut self.values
    }
}

impl FrontMatterReader {
    /// A reader that adds to what is known to be wrong.
    pub(super) fn new(faults: Vec<Fault>) -> FrontMatterReader {
        let mut reader = FrontMatterReader::with(Code::BadPrompty);
        faults.into_iter().for_each(|(diagnostic, kind)| reader.fault(diagnostic, kind));
        reader
    }

    /// A reader of a tree of sections.
    #[doc(hidden)]
    pub fn for_sections() -> FrontMatterReader {
        FrontMatterReader::with(Code::BadSection)
    }

    fn with(code: Code) -> FrontMatterReader {
        let values = ValueReader::new(code, ErrorKind::PromptRead, Notation::Yaml);
        FrontMatterReader { values, first_kind: None }
    }

    /// The notes, if nothing was wrong.
    #[doc(hidden)]
    pub fn finish(mut self) -> Result<Vec<Diagnostic>> {
        let kind = self.first_kind.unwrap_or("invalid_definition");
        self.values.finish().map_err(|error| error.with("kind", kind))
    }

    pub(super) fn definition(&mut self, root: &Node) -> Definition {
        let mut definition = Definition::default();
        let Data::Map(entries) = &root.data else { return definition };
        for (key, node) in entries {
            match key.name.as_str() {
                "name" => definition.name = self.text(node, "`name`"),
                "displayName" => definition.display_name = self.text(node, "`displayName`"),
                "description" => definition.description = self.text(node, "`description`"),
                "metadata" => definition.metadata = self.object(node, "`metadata`"),
                "model" => definition.model = self.model(node),
                "inputs" => definition.inputs = self.properties(node, "inputs"),
                "outputs" => definition.outputs = self.properties(node, "outputs"),
                "tools" => definition.tools = self.tools(node),
                "template" => definition.template = self.template(node),
                "kind" if node.text() == Some("prompt") => {}
                "kind" => {
                    self.strange(&node.place, "the kind of a .prompty file must be `prompt`", "remove `kind`")
                }
                _ => {
                    self.extra("the front matter", key, &TOP_KEYS);
                    definition.extra.insert(key.name.clone(), node.to_json());
                }
            }
        }
        definition
    }

    fn template(&mut self, node: &Node) -> Format {
        let mut format = Format { is_stated: true, ..Format::default() };
        let entries = match &node.data {
            Data::Map(entries) => entries,
            Data::Null => return Format::default(),
            _ => {
                let kind =
                    node.text().filter(|text| !text.contains(char::is_whitespace)).unwrap_or(DEFAULT_ENGINE);
                let message = format!("Invalid template format: `template` cannot be {}", node.describe());
                let diagnostic = Diagnostic::new(Code::BadPrompty, message)
                    .at(node.opening())
                    .label(format!("this is {}", node.describe()))
                    .hint(format!("write `template: {{format: {kind}, parser: {DEFAULT_PARSER}}}`"));
                self.fault(diagnostic, "invalid_template");
                return format;
            }
        };
        for (key, node) in entries {
            match key.name.as_str() {
                "format" => {
                    let (engine, strict, options) = self.half(node, "template.format", DEFAULT_ENGINE, true);
                    (format.engine, format.strict, format.options) = (engine, strict, options);
                    format.engine_place = Some(node.place.clone());
                }
                "parser" => {
                    let (parser, _, options) = self.half(node, "template.parser", DEFAULT_PARSER, false);
                    self.declared_roles(node, &options);
                    (format.parser, format.parser_options) = (parser, options);
                    format.parser_place = Some(node.place.clone());
                }
                _ => self.extra("`template`", key, &["format", "parser"]),
            }
        }
        format
    }

    /// Checks the names of roles that a file declares (`template.parser.options.roles`).
    fn declared_roles(&mut self, parser: &Node, options: &Map<String, Json>) {
        let Some(roles) = options.get(chat::ROLES) else { return };
        let place = parser.get("options").and_then(|options| options.get(chat::ROLES)).unwrap_or(parser);
        let hint =
            "map each name to system, user, assistant, developer or text, as in `roles: {human: user}`";
        let roles = match roles {
            Json::Object(roles) => roles,
            // The value of `{{ … }}:` chooses the role.
            Json::String(values) if values == "values" => return,
            _ => return self.wrong(&place.opening(), "`template.parser.options.roles` must be a map", hint),
        };
        for (name, role) in roles {
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let is_role =
                role.as_str().is_some_and(|role| chat::known_role(role).is_some() || role == chat::NO_ROLE);
            if !is_name || !is_role {
                let message = format!("`template.parser.options.roles.{name}` is not a name with a role");
                self.wrong(&place.opening(), message, hint);
            }
        }
    }

    /// The format or the parser: a name, or a map with `kind`.
    fn half(
        &mut self,
        node: &Node,
        what: &str,
        default: &str,
        can_be_strict: bool,
    ) -> (String, Option<bool>, Map<String, Json>) {
        let named = |name: Option<String>| match name {
            Some(name) if !matches!(name.trim(), "" | "*") => name,
            _ => default.to_owned(),
        };
        let Data::Map(entries) = &node.data else {
            let name = self.text(node, &format!("`{what}`"));
            return (named(name), None, Map::new());
        };
        let (mut kind, mut strict, mut options) = (None, None, Map::new());
        let known: &[&str] =
            if can_be_strict { &["kind", "strict", "options"] } else { &["kind", "options"] };
        for (key, node) in entries {
            match key.name.as_str() {
                "kind" => kind = self.text(node, &format!("`{what}.kind`")),
                "strict" if can_be_strict => strict = self.flag(node, &format!("`{what}.strict`")),
                "options" => options = self.object(node, &format!("`{what}.options`")),
                _ => self.extra(&format!("`{what}`"), key, known),
            }
        }
        (named(kind), strict, options)
    }

    /// Reports a fault of this kind.
    #[doc(hidden)]
    pub fn fault(&mut self, diagnostic: Diagnostic, kind: &'static str) {
        if self.problems() == 0 {
            self.first_kind = Some(kind);
        }
        self.problem(diagnostic);
    }

    /// Notes an unknown key.
    #[doc(hidden)]
    pub fn extra(&mut self, owner: &str, key: &Key, known: &[&str]) {
        self.note(unknown_key(Code::UnknownKey, owner, key, known));
    }

    /// A text; null is no value. What could not be found in the environment has been reported.
    #[doc(hidden)]
    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        if node.is_null() { None } else { self.values.text(node, what).map(str::to_owned) }
    }

    #[doc(hidden)]
    pub fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        match (&node.data, environment_scalar(node)) {
            (Data::Bool(value), _) => Some(*value),
            (_, Some(Scalar::Bool(value))) => Some(value),
            (Data::Null, _) => None,
            _ => {
                self.mismatch(node, what, "true or false", "write true or false, without quotes");
                None
            }
        }
    }

    #[doc(hidden)]
    pub fn number(&mut self, node: &Node, what: &str) -> Option<Number> {
        match (&node.data, environment_scalar(node)) {
            (Data::Number(number), _) => Some(number.clone()),
            (_, Some(Scalar::Number(number))) => Some(number),
            (Data::Null, _) => None,
            _ => {
                self.mismatch(node, what, "a number", "write a number, without quotes");
                None
            }
        }
    }

    /// The entries of a map; null has none.
    #[doc(hidden)]
    pub fn entries<'n>(&mut self, node: &'n Node, what: &str) -> &'n [(Key, Node)] {
        if node.is_null() { &[] } else { self.values.object(node, what).unwrap_or_default() }
    }

    /// A map as it was written.
    #[doc(hidden)]
    pub fn object(&mut self, node: &Node, what: &str) -> Map<String, Json> {
        to_object(self.entries(node, what))
    }

    /// The elements of a list; null has none.
    #[doc(hidden)]
    pub fn items<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        if node.is_null() { &[] } else { self.values.list(node, what).unwrap_or_default() }
    }
}

/// What a text of the environment means. There everything is text, so numbers and booleans come in that form.
fn environment_scalar(node: &Node) -> Option<Scalar> {
    node.text().filter(|_| node.from_environment).map(|text| yaml::resolve(text.trim()))
}
