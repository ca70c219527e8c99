//! The definitions in `prompt.py`, checked key by key. Everything that is wrong is reported at once.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::python::{Literal, LiteralValue, Module};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::prompt::{Limits, Need, Permissions, Type, Variable};
use crate::source::{Place, Source};
use crate::variables::{SYSTEM_NAMES, WORKSPACE_NAMES};

const METADATA_KEYS: [&str; 8] =
    ["prompt_id", "name", "version", "type", "extends", "template", "description", "metadata"];
const VARIABLE_KEYS: [&str; 5] = ["name", "type", "description", "default", "source"];
const LIMIT_KEYS: [&str; 2] = ["max_execution_time", "max_output_size"];

/// A template that is written in `prompt.py`.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub struct Inline {
    #[doc(hidden)]
    pub text: String,
    #[doc(hidden)]
    pub range: Range<usize>,
}

/// What `prompt.py` declares. What it leaves out is `None`.
#[derive(Debug, Clone, Default)]
#[doc(hidden)]
pub struct Definition {
    #[doc(hidden)]
    pub prompt_id: Option<String>,
    #[doc(hidden)]
    pub prompt_id_place: Option<Place>,
    #[doc(hidden)]
    pub name: Option<String>,
    #[doc(hidden)]
    pub version: Option<String>,
    #[doc(hidden)]
    pub kind: Option<String>,
    #[doc(hidden)]
    pub extends: Option<(String, Place)>,
    /// Outer `None`: not said. Inner `None`: said to be in TEMPLATE.
    #[doc(hidden)]
    pub template: Option<Option<(String, Place)>>,
    #[doc(hidden)]
    pub template_place: Option<Place>,
    #[doc(hidden)]
    pub description: Option<String>,
    #[doc(hidden)]
    pub extra: Map<String, Json>,
    #[doc(hidden)]
    pub variables: Vec<Variable>,
    #[doc(hidden)]
    pub permissions: Permissions,
    #[doc(hidden)]
    pub max_execution_time: Option<Duration>,
    #[doc(hidden)]
    pub max_output_size: Option<usize>,
    #[doc(hidden)]
    pub inline: Option<Inline>,
}

/// What the hooks in a `prompt.py` may do.
pub(crate) fn permissions(source: &Arc<Source>) -> Result<Permissions> {
    Ok(DefinitionReader::new(&Module::parse(source)?).definition()?.permissions)
}

/// Reads a module's definitions and collects what is wrong with them.
#[doc(hidden)]
pub struct DefinitionReader<'m> {
    module: &'m Module,
    wrong: Vec<Diagnostic>,
    /// What does not keep the prompt from working.
    #[doc(hidden)]
    pub notes: Vec<Diagnostic>,
}

impl<'m> DefinitionReader<'m> {
    #[doc(hidden)]
    pub fn new(module: &'m Module) -> DefinitionReader<'m> {
        DefinitionReader { module, wrong: Vec::new(), notes: Vec::new() }
    }

    #[doc(hidden)]
    pub fn definition(&mut self) -> Result<Definition> {
        let mut definition = Definition::default();
        if let Some(literal) = self.module.literal("METADATA")? {
            self.metadata(literal, &mut definition);
        }
        if let Some(literal) = self.module.literal("VARIABLES")? {
            self.variables(literal, &mut definition);
        }
        if let Some(literal) = self.module.literal("PERMISSIONS")? {
            self.permissions(literal, &mut definition);
        }
        if let Some(literal) = self.module.literal("LIMITS")? {
            self.limits(literal, &mut definition);
        }
        if let Some(literal) = self.module.literal("TEMPLATE")? {
            match &literal.value {
                LiteralValue::Str(text) => {
                    definition.inline = Some(Inline { text: text.clone(), range: literal.range.clone() });
                }
                LiteralValue::None => {}
                _ => self.mismatch("TEMPLATE", "a string", literal),
            }
        }
        if self.wrong.is_empty() {
            return Ok(definition);
        }
        Err(Error::all(ErrorKind::PromptRead, std::mem::take(&mut self.wrong)))
    }

    fn place(&self, range: Range<usize>) -> Place {
        self.module.source().place(range)
    }

    fn problem(&mut self, message: String, range: Range<usize>, hint: Option<String>) {
        let place = self.place(range);
        self.wrong.push(Diagnostic::new(Code::BadDefinition, message).at(place).hint_opt(hint));
    }

    fn mismatch(&mut self, what: &str, wanted: &str, literal: &Literal) {
        let message = format!("{what} must be {wanted}, but is {}", python_type(literal));
        let hint = match (wanted, &literal.value) {
            ("a string", LiteralValue::Int(_) | LiteralValue::Float(_) | LiteralValue::Bool(_)) => {
                let text = &self.module.source().text()[literal.range.clone()];
                Some(format!("put it in quotes: \"{text}\""))
            }
            ("a dict", _) => Some("write {\"key\": value, …}".to_owned()),
            ("a list", _) => Some("write […], even around one element".to_owned()),
            ("True or False", LiteralValue::Str(_)) => Some("write it without quotes".to_owned()),
            ("a positive number", _) => Some("write a number above zero".to_owned()),
            _ => None,
        };
        self.problem(message, literal.range.clone(), hint);
    }

    fn unknown_key(&mut self, owner: &str, key: &str, range: Range<usize>, known: &[&str]) {
        let similar = nearest(key, known.iter().copied());
        let hint = did_you_mean(&similar).unwrap_or_else(|| format!("known: {}", known.join(", ")));
        let place = self.place(range);
        let message = format!("unknown key `{key}` in {owner}");
        self.notes.push(Diagnostic::new(Code::UnknownKey, message).at(place).hint(hint));
    }

    fn metadata(&mut self, literal: &Literal, definition: &mut Definition) {
        let LiteralValue::Dict(entries) = &literal.value else {
            return self.mismatch("METADATA", "a dict", literal);
        };
        for entry in entries {
            let value = &entry.value;
            let place = self.place(value.range.clone());
            match (entry.key.as_str(), &value.value) {
                ("extends", LiteralValue::None) => {}
                ("template", LiteralValue::None) => {
                    definition.template = Some(None);
                    definition.template_place = Some(place);
                }
                (
                    "name" | "description" | "version" | "type" | "prompt_id" | "metadata",
                    LiteralValue::None,
                ) => {}
                ("template", LiteralValue::Str(file)) => {
                    let plain = !file.is_empty()
                        && !file.contains('\\')
                        && !file.starts_with('/')
                        && file.split('/').all(|part| !part.is_empty() && part != ".." && part != ".");
                    if !plain {
                        let hint = "name a file next to prompt.py, as in \"template.md\"".to_owned();
                        let message = "the template must be in the prompt's folder".to_owned();
                        self.problem(message, value.range.clone(), Some(hint));
                    }
                    definition.template = Some(Some((file.clone(), place)));
                }
                ("prompt_id", LiteralValue::Str(text)) => {
                    definition.prompt_id = Some(text.clone());
                    definition.prompt_id_place = Some(place);
                }
                ("name", LiteralValue::Str(text)) => definition.name = Some(text.clone()),
                ("version", LiteralValue::Str(text)) => definition.version = Some(text.clone()),
                ("type", LiteralValue::Str(text)) => definition.kind = Some(text.clone()),
                ("extends", LiteralValue::Str(text)) => definition.extends = Some((text.clone(), place)),
                ("description", LiteralValue::Str(text)) => definition.description = Some(text.clone()),
                ("metadata", LiteralValue::Dict(_)) => {
                    if let Json::Object(extra) = value.to_json() {
                        definition.extra = extra;
                    }
                }
                ("metadata", _) => self.mismatch("METADATA[\"metadata\"]", "a dict", value),
                (key, _) if METADATA_KEYS.contains(&key) => {
                    self.mismatch(&format!("METADATA[\"{key}\"]"), "a string", value);
                }
                (key, _) => self.unknown_key("METADATA", key, entry.key_range.clone(), &METADATA_KEYS),
            }
        }
    }

    fn variables(&mut self, literal: &Literal, definition: &mut Definition) {
        let LiteralValue::Dict(groups) = &literal.value else {
            return self.mismatch("VARIABLES", "a dict", literal);
        };
        let needs = [Need::Required, Need::Optional, Need::Custom];
        for group in groups {
            let Some(need) = needs.into_iter().find(|need| need.as_str() == group.key) else {
                self.unknown_key("VARIABLES", &group.key, group.key_range.clone(), &needs.map(Need::as_str));
                continue;
            };
            let (LiteralValue::List(items) | LiteralValue::Tuple(items)) = &group.value.value else {
                self.mismatch(&format!("VARIABLES[\"{}\"]", group.key), "a list", &group.value);
                continue;
            };
            for item in items {
                if let Some(variable) = self.variable(need, item) {
                    let index = definition.variables.iter().position(|known| known.name == variable.name);
                    // These two are layers of one variable, and the default of the optional one is the higher of them.
                    if let Some(index) = index
                        && definition.variables[index].is_layered_with(&variable)
                    {
                        let known = definition.variables.remove(index);
                        definition.variables.insert(index, known.layered(variable));
                        continue;
                    }
                    let twin = index.map(|index| &definition.variables[index]);
                    if let (Some(twin), Some(place)) = (twin, &variable.place) {
                        let mut diagnostic = Diagnostic::new(
                            Code::BadDefinition,
                            format!("duplicate variable `{}`", variable.name),
                        )
                        .at(place.clone())
                        .hint("remove one of them");
                        if let Some(first) = &twin.place {
                            diagnostic = diagnostic.related(first.clone(), "first declared here");
                        }
                        self.wrong.push(diagnostic);
                        continue;
                    }
                    definition.variables.push(variable);
                }
            }
        }
    }

    fn variable(&mut self, need: Need, literal: &Literal) -> Option<Variable> {
        let LiteralValue::Dict(entries) = &literal.value else {
            self.mismatch("a variable", "a dict such as {\"name\": \"x\", \"type\": \"string\"}", literal);
            return None;
        };
        let mut variable = Variable::new("", need);
        let mut default = None;
        for entry in entries {
            let value = &entry.value;
            match (entry.key.as_str(), &value.value) {
                ("name", LiteralValue::Str(name)) => {
                    variable.name = name.clone();
                    variable.place = Some(self.place(value.range.clone()));
                }
                ("type", LiteralValue::Str(name)) => match Type::from_name(name) {
                    Some(kind) => variable.kind = kind,
                    None => {
                        let names = Type::ALL.map(Type::as_str);
                        let hint = did_you_mean(&nearest(name, names))
                            .unwrap_or_else(|| format!("known types: {}", names.join(", ")));
                        self.problem(format!("unknown type `{name}`"), value.range.clone(), Some(hint));
                    }
                },
                ("description", LiteralValue::Str(text)) => variable.description = Some(text.clone()),
                ("description", LiteralValue::None) => {}
                ("default", LiteralValue::None) => {
                    // `None` as a default is a value only where any value is; elsewhere it means no default.
                    default = Some((Json::Null, value.range.clone()));
                }
                ("default", _) => default = Some((value.to_json(), value.range.clone())),
                ("source", LiteralValue::Str(source)) if source == "system" => variable.from_system = true,
                ("source", LiteralValue::None) => {}
                ("source", _) => {
                    let hint = "write \"source\": \"system\", the only source".to_owned();
                    self.problem("unknown source".into(), value.range.clone(), Some(hint));
                }
                ("name" | "type" | "description", _) => {
                    self.mismatch(&format!("`{}` of a variable", entry.key), "a string", value);
                }
                (key, _) => self.unknown_key("a variable", key, entry.key_range.clone(), &VARIABLE_KEYS),
            }
        }
        let name = variable.name.clone();
        let mut letters = name.chars();
        let identifier = letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_alphanumeric() || letter == '_');
        if !identifier {
            let message = if name.is_empty() {
                "the variable has no name".to_owned()
            } else {
                format!("invalid variable name `{name}`")
            };
            let range = variable.place.as_ref().map_or(literal.range.clone(), Place::range);
            let hint = "use letters, digits and underscores, as in \"agent_name\"".to_owned();
            self.problem(message, range, Some(hint));
            return None;
        }
        if let Some((value, range)) = default {
            if need == Need::Required {
                let hint = "declare it under \"optional\", or remove the default".to_owned();
                self.problem(format!("`{name}` is required, so it cannot have a default"), range, Some(hint));
            } else if value.is_null() && variable.kind != Type::Any {
                // No value: the same as no default.
            } else {
                if !variable.kind.admits(&value) {
                    let wanted = variable.kind.as_str();
                    let message = format!("the default of `{name}` is {value}, but its type is {wanted}");
                    let place = self.place(range);
                    let hint = "change the default or the type";
                    self.notes.push(Diagnostic::new(Code::BadDefault, message).at(place).hint(hint));
                }
                variable.default = Some(value);
            }
        }
        let known = || SYSTEM_NAMES.iter().chain(WORKSPACE_NAMES).copied();
        if variable.from_system && !known().any(|known| known == name) {
            let hint = did_you_mean(&nearest(&name, known()))
                .unwrap_or_else(|| format!("the system sets {}", known().collect::<Vec<_>>().join(", ")));
            let range = variable.place.as_ref().map_or(literal.range.clone(), Place::range);
            self.problem(format!("unknown system variable `{name}`"), range, Some(hint));
        }
        Some(variable)
    }

    fn permissions(&mut self, literal: &Literal, definition: &mut Definition) {
        let LiteralValue::Dict(entries) = &literal.value else {
            return self.mismatch("PERMISSIONS", "a dict", literal);
        };
        for entry in entries {
            match &entry.value.value {
                LiteralValue::Bool(granted) => {
                    if !definition.permissions.set(&entry.key, *granted) {
                        let similar = nearest(&entry.key, Permissions::NAMES);
                        let hint = did_you_mean(&similar).unwrap_or_else(|| {
                            format!("known permissions: {}", Permissions::NAMES.join(", "))
                        });
                        let message = format!("unknown permission `{}`", entry.key);
                        self.problem(message, entry.key_range.clone(), Some(hint));
                    }
                }
                _ => self.mismatch(&format!("PERMISSIONS[\"{}\"]", entry.key), "True or False", &entry.value),
            }
        }
    }

    fn limits(&mut self, literal: &Literal, definition: &mut Definition) {
        let LiteralValue::Dict(entries) = &literal.value else {
            return self.mismatch("LIMITS", "a dict", literal);
        };
        for entry in entries {
            let number = match &entry.value.value {
                LiteralValue::Int(number) => Some(*number as f64),
                LiteralValue::Float(number) => Some(*number),
                _ => None,
            };
            match (entry.key.as_str(), number) {
                ("max_execution_time", Some(seconds))
                    if seconds > 0.0 && seconds <= Limits::LONGEST.as_secs_f64() =>
                {
                    definition.max_execution_time = Duration::try_from_secs_f64(seconds).ok();
                }
                ("max_execution_time", Some(seconds)) if seconds > 0.0 => {
                    let what = format!("a number of seconds up to {}", Limits::LONGEST.as_secs());
                    self.mismatch("LIMITS[\"max_execution_time\"]", &what, &entry.value);
                }
                ("max_output_size", Some(size)) if size >= 1.0 && size.fract() == 0.0 => {
                    definition.max_output_size = Some(size as usize);
                }
                (key, _) if LIMIT_KEYS.contains(&key) => {
                    self.mismatch(&format!("LIMITS[\"{key}\"]"), "a positive number", &entry.value);
                }
                (key, _) => self.unknown_key("LIMITS", key, entry.key_range.clone(), &LIMIT_KEYS),
            }
        }
    }
}

fn python_type(literal: &Literal) -> String {
    match &literal.value {
        LiteralValue::None => "None".into(),
        LiteralValue::Bool(value) => if *value { "True" } else { "False" }.into(),
        LiteralValue::Int(number) => number.to_string(),
        LiteralValue::Float(number) => number.to_string(),
        _ => format!("a {}", literal.type_name()),
    }
}
