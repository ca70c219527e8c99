//! What a tool says of itself: its version, who runs it, how, and with which environment.
//!
//! A tool is a file in any of several languages, and each has its own way to say the same things: module constants in
//! Python and JavaScript (`__version__ = "1.0.0"`), comments at the top of a shell script, keys in YAML, JSON and TOML
//! (`version: 1.0.0`). All of them are read here without running anything. What has to be known and is computed instead of
//! written out is an error with its place; everything else in a file is the tool's own business.

mod javascript;
mod literal;
pub mod nested;
mod shell;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::python::Module;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json;
use crate::node::Data;
use crate::source::{Place, Source};
use crate::yaml;

/// What a tool says of itself.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    /// Its version.
    pub version: Option<String>,
    /// What it calls itself: `python`, `runtime`, `primitive`, …
    pub tool_type: Option<String>,
    /// The id of the tool that runs it; none for a primitive.
    pub executor_id: Option<String>,
    /// The folder that it says it lies in.
    pub category: Option<String>,
    /// Its own name, where it gives one.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The JSON schema of its parameters.
    pub config_schema: Option<Json>,
    /// What it wants in its environment.
    pub env_config: Map<String, Json>,
    /// How it is to be run.
    pub config: Map<String, Json>,
    /// Which folder its relative things hang on.
    pub anchor: Map<String, Json>,
    /// Which files beside it must be signed as well.
    pub verify_deps: Map<String, Json>,
    /// The files beside it that are a part of it: their paths from its folder, each with `sha256:` and the hash of its content.
    pub files: Map<String, Json>,
    /// The names that it takes from the element before it in a chain, if it says so.
    pub inputs: Option<Vec<String>>,
    /// The names that it gives to the element behind it in a chain, if it says so.
    pub outputs: Option<Vec<String>>,
    /// The versions that it accepts of the elements before it, by their ids.
    pub child_constraints: Map<String, Json>,
}

impl Tool {
    /// The network hosts that it declares: `hosts` in its `config`, and the host that its `url` names. A tool that a model
    /// calls reaches no others.
    pub fn hosts(&self) -> Vec<String> {
        let listed = self.config.get("hosts").and_then(Json::as_array).into_iter().flatten();
        let mut hosts: Vec<String> = listed.filter_map(Json::as_str).map(str::to_owned).collect();
        hosts.extend(self.config.get("url").and_then(Json::as_str).and_then(host_of_url));
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    /// The program that it starts, if that is a path which is written out.
    pub fn program(&self) -> Option<&str> {
        let named = self.config.get("program").or_else(|| self.config.get("command"));
        named.and_then(Json::as_str).filter(|path| path.contains('/') && !path.contains(['{', '$']))
    }
}

/// The host that a URL names, if it is written out: a part in braces is for a caller to say.
fn host_of_url(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    (!host.is_empty() && !host.contains(['{', '}', '$'])).then(|| host.to_owned())
}

/// A notation that tools are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `.py`
    Python,
    /// `.js`, `.ts`, `.mjs`, `.cjs`
    JavaScript,
    /// `.sh`
    Shell,
    /// `.yaml`, `.yml`
    Yaml,
    /// `.json`
    Json,
    /// `.toml`
    Toml,
}

impl Notation {
    /// The notation of files with this extension.
    pub fn of_extension(extension: &str) -> Option<Notation> {
        match extension {
            "py" => Some(Notation::Python),
            "js" | "ts" | "mjs" | "cjs" => Some(Notation::JavaScript),
            "sh" => Some(Notation::Shell),
            "yaml" | "yml" => Some(Notation::Yaml),
            "json" => Some(Notation::Json),
            "toml" => Some(Notation::Toml),
            _ => None,
        }
    }

    /// Whether a tool in this notation is nothing but data, with no code of its own to run.
    pub fn is_data(self) -> bool {
        matches!(self, Notation::Yaml | Notation::Json | Notation::Toml)
    }
}

/// A value with its place.
#[derive(Debug, Clone)]
struct Constant {
    value: Json,
    place: Place,
}

type Constants = IndexMap<String, Constant>;

/// Reads what a tool says of itself.
///
/// # Errors
///
/// [`Code::BadTool`] if the file is not what its notation asks for, or something in it has the wrong shape.
pub fn read(source: &Arc<Source>, notation: Notation) -> Result<Tool> {
    ToolReader { constants: constants_of(source, notation, true)?, notation }.tool()
}

/// Everything that a tool's file writes out at its top level: the constants of code, the keys of data. With Python there is
/// the text that the module begins with as `__docstring__`.
pub fn constants(source: &Arc<Source>, notation: Notation) -> Result<Map<String, Json>> {
    let mut found: Map<String, Json> = constants_of(source, notation, false)?
        .into_iter()
        .map(|(name, constant)| (name, constant.value))
        .collect();
    if notation == Notation::Python
        && let Some(docstring) = Module::parse(source).map_err(renamed)?.docstring()
    {
        found.insert("__docstring__".to_owned(), docstring.into());
    }
    Ok(found)
}

/// The names that mean something, in code and in data.
const NAMES: [(&str, &str); 14] = [
    ("__version__", "version"),
    ("__tool_type__", "tool_type"),
    ("__executor_id__", "executor_id"),
    ("__category__", "category"),
    ("__name__", "name"),
    ("__tool_description__", "description"),
    ("CONFIG_SCHEMA", "config_schema"),
    ("ENV_CONFIG", "env_config"),
    ("CONFIG", "config"),
    ("ANCHOR", "anchor"),
    ("VERIFY_DEPS", "verify_deps"),
    ("__files__", "files"),
    ("__inputs__", "inputs"),
    ("__outputs__", "outputs"),
];

fn known_in_code(name: &str) -> bool {
    NAMES.iter().any(|(code, _)| *code == name) || name == "__child_constraints__"
}

/// The values of a file. With `asked`, a known value that is not a literal is an error; otherwise it is left out.
fn constants_of(source: &Arc<Source>, notation: Notation, asked: bool) -> Result<Constants> {
    match notation {
        Notation::Python => python(source, asked),
        Notation::JavaScript => javascript::constants(source, asked),
        Notation::Shell => shell::constants(source),
        Notation::Yaml => {
            let range = 0..source.text().len();
            let document = yaml::Document::parse(source, range, Code::BadTool, ErrorKind::PromptRead)?;
            map_of(document.into_root())
        }
        Notation::Json => {
            // JSON has no comments, so a signature above it is no part of it.
            let text = source.text();
            let skipped = match text.starts_with('#') || text.starts_with("//") {
                true => text.find('\n').map_or(text.len(), |newline| newline + 1),
                false => 0,
            };
            let inner = Source::inside(source, skipped..text.len());
            let document = json::Document::parse(&inner, Code::BadTool, ErrorKind::PromptRead)?;
            map_of(document.to_node())
        }
        Notation::Toml => toml_constants(source),
    }
}

fn map_of(node: crate::node::Node) -> Result<Constants> {
    match node.data {
        Data::Map(entries) => Ok(entries
            .into_iter()
            .map(|(key, node)| {
                // `version: 1.0` is a number to a reader and a version to its author.
                let value = match (&node.data, key.name.as_str()) {
                    (Data::Number(_), "version") => Json::from(node.place.text()),
                    _ => node.to_json(),
                };
                (key.name, Constant { value, place: node.place })
            })
            .collect()),
        Data::Null if node.place.text().trim().is_empty() => Ok(Constants::new()),
        _ => {
            let diagnostic = Diagnostic::new(Code::BadTool, "a tool must be a map")
                .at(node.opening())
                .label(format!("this is {}", node.describe()))
                .hint("begin with `version: \"1.0.0\"`");
            Err(Error::new(ErrorKind::PromptRead, diagnostic))
        }
    }
}

fn python(source: &Arc<Source>, asked: bool) -> Result<Constants> {
    let module = Module::parse(source).map_err(renamed)?;
    let mut found = Constants::new();
    for (name, literal) in module.constants() {
        let place = source.place(literal.range.clone());
        found.insert(name.to_owned(), Constant { value: literal.to_json(), place });
    }
    if !asked {
        return Ok(found);
    }
    // What means something may also be annotated, and must be known.
    for name in module.names().filter(|name| known_in_code(name)) {
        if let Some(literal) = module.literal(name).map_err(renamed)? {
            let place = source.place(literal.range.clone());
            found.insert(name.to_owned(), Constant { value: literal.to_json(), place });
        }
    }
    Ok(found)
}

/// The same finding under the code of tools.
fn renamed(error: Error) -> Error {
    let mut diagnostic = error.diagnostic().clone();
    diagnostic.code = Code::BadTool;
    error.replaced(diagnostic)
}

fn toml_constants(source: &Arc<Source>) -> Result<Constants> {
    let read: Result<IndexMap<String, toml::Spanned<toml::Value>>, _> = toml::from_str(source.text());
    let values = read.map_err(|error| {
        let place = source.place(error.span().unwrap_or(0..0));
        let diagnostic = Diagnostic::new(Code::BadTool, format!("not valid TOML: {}", error.message()));
        Error::new(ErrorKind::PromptRead, diagnostic.at(place))
    })?;
    let constants = values.into_iter().map(|(name, value)| {
        let place = source.place(value.span());
        (name, Constant { value: toml_to_json(value.into_inner()), place })
    });
    Ok(constants.collect())
}

fn toml_to_json(value: toml::Value) -> Json {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(value) => value.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(toml_to_json).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, toml_to_json(value))).collect()
        }
    }
}

/// Takes the fields out of the constants.
struct ToolReader {
    constants: Constants,
    notation: Notation,
}

impl ToolReader {
    fn tool(mut self) -> Result<Tool> {
        let executor_id = self.text("executor_id")?;
        if let Some(id) = &executor_id
            && let Err(error) = crate::items::ItemId::new(id)
        {
            let place = self.constant("executor_id").map(|constant| constant.place.clone());
            let message = format!("{} has an invalid executor {id:?}", self.name_of("executor_id"));
            let mut diagnostic = Diagnostic::new(Code::BadTool, message);
            diagnostic.place = place;
            diagnostic.hint = error.diagnostic().hint.clone();
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        Ok(Tool {
            version: self.text("version")?,
            tool_type: self.text("tool_type")?,
            executor_id,
            category: self.text("category")?,
            // Python has its own `__name__`, which code does not assign.
            name: self.text("name")?,
            description: self.text("description")?,
            config_schema: match self.map("config_schema")? {
                schema if schema.is_empty() => None,
                schema => Some(Json::Object(schema)),
            },
            env_config: self.map("env_config")?,
            config: self.map("config")?,
            anchor: self.map("anchor")?,
            verify_deps: self.map("verify_deps")?,
            files: self.map("files")?,
            inputs: self.names("inputs")?,
            outputs: self.names("outputs")?,
            child_constraints: self.map("child_constraints")?,
        })
    }

    /// How a field is called in this notation.
    fn name_of(&self, field: &str) -> String {
        if self.notation.is_data() {
            return format!("`{field}`");
        }
        let code = NAMES.iter().find(|(_, data)| *data == field).map(|(code, _)| *code);
        code.map_or_else(|| format!("`__{field}__`"), |code| format!("`{code}`"))
    }

    fn constant(&self, field: &str) -> Option<&Constant> {
        let name = self.name_of(field);
        let found = self.constants.get(name.trim_matches('`'));
        // Null says the same as nothing: `executor_id: null` is how a primitive says that it has none.
        found.filter(|constant| !constant.value.is_null())
    }

    fn refuse(&self, field: &str, constant: &Constant, wanted: &str, hint: &str) -> Error {
        let message = format!("{} must be {wanted}", self.name_of(field));
        let diagnostic = Diagnostic::new(Code::BadTool, message)
            .at(constant.place.clone())
            .label(format!("this is {}", json::kind_of(&constant.value)))
            .hint(hint);
        Error::new(ErrorKind::PromptRead, diagnostic)
    }

    fn text(&self, field: &str) -> Result<Option<String>> {
        match self.constant(field) {
            None => Ok(None),
            Some(Constant { value: Json::String(text), .. }) => Ok(Some(text.clone())),
            Some(constant) => Err(self.refuse(field, constant, "text", "put it in quotes")),
        }
    }

    fn map(&mut self, field: &str) -> Result<Map<String, Json>> {
        match self.constant(field) {
            None => Ok(Map::new()),
            Some(Constant { value: Json::Object(map), .. }) => Ok(map.clone()),
            Some(constant) => Err(self.refuse(field, constant, "a map", "write keys and values")),
        }
    }

    /// A list of names: texts, or maps with a `name`.
    fn names(&self, field: &str) -> Result<Option<Vec<String>>> {
        let Some(constant) = self.constant(field) else { return Ok(None) };
        let name = |item: &Json| match item {
            Json::String(name) => Some(name.clone()),
            Json::Object(item) => item.get("name")?.as_str().map(str::to_owned),
            _ => None,
        };
        let names: Option<Vec<String>> = match &constant.value {
            Json::Array(items) => items.iter().map(name).collect(),
            Json::Object(map) => Some(map.keys().cloned().collect()),
            _ => None,
        };
        let hint = "write names, or maps with a `name`";
        names.map(Some).ok_or_else(|| self.refuse(field, constant, "a list of names", hint))
    }
}
