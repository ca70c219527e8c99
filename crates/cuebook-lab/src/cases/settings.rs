//! The settings of a case: how it is rendered, and limits of what comes out.

use serde_json::{Map, Value as Json};

use super::read::{refuse, wrong};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::node::{Data, Key, Node};
use crate::source::Place;
use crate::variables::{Agent, Context, FixedClock, Layer};

pub(crate) const NAMES: [&str; 11] =
    ["as", "context", "error", "expand", "forbid", "hooks", "max_tokens", "model", "now", "strict", "unset"];
pub(crate) const FACTS: [&str; 8] = [
    "agent_id",
    "agent_name",
    "language",
    "model",
    "session",
    "session_id",
    "session_state",
    "workspace_path",
];
const FORMS: [&str; 3] = ["text", "messages", "wire"];
const ORIGINS: [&str; 3] = ["variable", "layer", "file"];

/// How a case is rendered, and limits of what comes out.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) form: Form,
    pub(super) model: Option<String>,
    pub(super) max_tokens: Option<(usize, Place)>,
    pub(super) forbid: Vec<(Forbidden, Place)>,
    pub(super) expand: Vec<(String, Place)>,
    pub(super) error: Option<(Code, Place)>,
    pub(super) hooks: Option<bool>,
    pub(super) strict: bool,
    pub(super) now: Option<FixedClock>,
    /// Inputs of the file that the case does not have.
    pub(super) unset: Vec<(String, Place)>,
    facts: Map<String, Json>,
}

/// The form that the expected block is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Form {
    #[default]
    Text,
    Messages,
    Wire(Option<String>),
}

/// Where no byte of the text may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Forbidden {
    Variable(String),
    Layer(Layer),
    File(String),
}

impl Settings {
    /// Adds what a block says.
    pub(super) fn read(&mut self, node: &Node) -> Result<()> {
        let Data::Map(entries) = &node.data else {
            return match node.is_null() {
                true => Ok(()),
                false => Err(refuse(
                    "`settings` must be a map of names and values",
                    node,
                    "write `max_tokens: 200`",
                )),
            };
        };
        let mut problems = Vec::new();
        for (key, value) in entries {
            if let Err(error) = self.set(key, value) {
                problems.extend(error.into_diagnostics());
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::all(ErrorKind::Config, problems)) }
    }

    fn set(&mut self, key: &Key, value: &Node) -> Result<()> {
        match key.name.as_str() {
            "as" => self.form = form(value)?,
            "model" => {
                self.model = Some(text(value, "`model` must be the id of a model", "write `model: gpt-4o`")?)
            }
            "max_tokens" => {
                let number = match &value.data {
                    Data::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
                    _ => None,
                };
                let number = number.ok_or_else(|| {
                    refuse("`max_tokens` must be a whole number", value, "write `max_tokens: 200`")
                })?;
                self.max_tokens = Some((number, value.place.clone()));
            }
            "forbid" => {
                self.forbid = list(value)
                    .iter()
                    .map(|node| Ok((forbidden(node)?, node.place.clone())))
                    .collect::<Result<_>>()?;
            }
            "expand" => {
                let section = |node: &&Node| {
                    let path =
                        text(node, "a section must be a path with dots", "write `expand: [task.detail]`")?;
                    Ok((path, node.place.clone()))
                };
                self.expand = list(value).iter().map(section).collect::<Result<_>>()?;
            }
            "error" => {
                let wanted = text(value, "`error` must be an error code", "write `error: CB401`")?;
                let code = Code::find(&wanted).ok_or_else(|| {
                    let codes = Code::ALL.iter().flat_map(|code| [code.as_str(), code.name()]);
                    let near = did_you_mean(&nearest(&wanted, codes));
                    let hint =
                        near.map_or_else(|| Hint::run("list the codes", "cuebook help codes"), Hint::from);
                    error(wrong(format!("unknown error code `{wanted}`"), value.place.clone(), hint))
                })?;
                self.error = Some((code, value.place.clone()));
            }
            "unset" => {
                let name = |node: &&Node| {
                    let name = text(node, "`unset` is a list of inputs", "write `unset: [name]`")?;
                    Ok((name, node.place.clone()))
                };
                self.unset = list(value).iter().map(name).collect::<Result<_>>()?;
            }
            "hooks" => self.hooks = Some(boolean(value, "hooks")?),
            "strict" => self.strict = boolean(value, "strict")?,
            "now" => {
                let time =
                    text(value, "`now` must be a time", "write `now: 2026-02-20T15:30:00+00:00[UTC]`")?;
                let clock = FixedClock::at(&time).map_err(|bad| {
                    let hint = bad.diagnostic().hint.as_deref().unwrap_or_default().to_owned();
                    error(wrong(bad.diagnostic().message.clone(), value.place.clone(), hint))
                })?;
                self.now = Some(clock);
            }
            "context" => {
                let Data::Map(entries) = &value.data else {
                    return Err(refuse(
                        "`context` must be a map of names and values",
                        value,
                        "write `context: {language: ja}`",
                    ));
                };
                for (key, value) in entries {
                    self.fact(key, value)?;
                }
            }
            other => {
                let near = did_you_mean(&nearest(other, NAMES));
                let hint = near.unwrap_or_else(|| format!("known settings: {}", NAMES.join(", ")));
                return Err(error(wrong(format!("unknown setting `{other}`"), key.place.clone(), hint)));
            }
        }
        Ok(())
    }

    fn fact(&mut self, key: &Key, value: &Node) -> Result<()> {
        let name = key.name.as_str();
        if !FACTS.contains(&name) {
            let near = did_you_mean(&nearest(name, FACTS));
            let hint = near.unwrap_or_else(|| format!("known: {}", FACTS.join(", ")));
            let message = format!("unknown key `{name}` in `context`");
            return Err(error(wrong(message, key.place.clone(), hint)));
        }
        let is_map = matches!(value.data, Data::Map(_));
        if is_map != matches!(name, "session" | "session_state") || !is_map && value.text().is_none() {
            let what = if is_map { "a string" } else { "of the right type" };
            return Err(refuse(
                format!("`{name}` must be {what}"),
                value,
                "`session` and `session_state` are maps, all others are strings",
            ));
        }
        self.facts.insert(name.to_owned(), value.to_json());
        Ok(())
    }

    /// The circumstances of the render.
    pub(super) fn context(&self) -> Context {
        let text = |name: &str| self.facts.get(name).and_then(Json::as_str).map(str::to_owned);
        let object = |name: &str| self.facts.get(name).and_then(Json::as_object).cloned().unwrap_or_default();
        Context {
            agent: Agent { id: text("agent_id"), name: text("agent_name"), ..Agent::default() },
            model: self.model.clone().or_else(|| text("model")),
            session_id: text("session_id"),
            workspace_path: text("workspace_path"),
            session: object("session"),
            session_state: object("session_state"),
            language: text("language"),
            strict: self.strict,
            without_hooks: self.hooks == Some(false),
            ..Context::default()
        }
    }

    /// Whether they say anything about what comes out.
    pub(super) fn expects_something(&self) -> bool {
        self.max_tokens.is_some() || !self.forbid.is_empty() || self.error.is_some()
    }
}

fn error(diagnostic: Diagnostic) -> Error {
    Error::new(ErrorKind::Config, diagnostic)
}

fn text(node: &Node, message: &str, hint: &str) -> Result<String> {
    node.text().map(str::to_owned).ok_or_else(|| refuse(message, node, hint))
}

fn boolean(node: &Node, name: &str) -> Result<bool> {
    match node.data {
        Data::Bool(value) => Ok(value),
        _ => Err(refuse(format!("`{name}` must be true or false"), node, format!("write `{name}: true`"))),
    }
}

/// The items of a list, or the one thing that stands in the place of a list.
fn list(node: &Node) -> Vec<&Node> {
    match &node.data {
        Data::List(items) => items.iter().collect(),
        Data::Null => Vec::new(),
        _ => vec![node],
    }
}

fn form(node: &Node) -> Result<Form> {
    let wanted = text(node, "`as` must be an output format", "write text, messages, wire or wire:NAME")?;
    match (wanted.as_str(), wanted.strip_prefix("wire:")) {
        ("text", _) => Ok(Form::Text),
        ("messages", _) => Ok(Form::Messages),
        ("wire", _) => Ok(Form::Wire(None)),
        (_, Some(name)) if !name.is_empty() => Ok(Form::Wire(Some(name.to_owned()))),
        (other, _) => {
            let near = did_you_mean(&nearest(other, FORMS));
            let hint = near.unwrap_or_else(|| "write text, messages, wire or wire:NAME".to_owned());
            Err(error(wrong(format!("unknown output format `{other}`"), node.place.clone(), hint)))
        }
    }
}

fn forbidden(node: &Node) -> Result<Forbidden> {
    let form = "write `variable NAME`, `layer NAME` or `file PATH`";
    let wanted = text(node, "a forbidden origin must be a string", form)?;
    let (kind, name) = wanted.split_once(' ').unwrap_or((wanted.as_str(), ""));
    let name = name.trim();
    match kind {
        _ if name.is_empty() => {
            Err(error(wrong(format!("`{wanted}` does not name an origin"), node.place.clone(), form)))
        }
        "variable" => Ok(Forbidden::Variable(name.to_owned())),
        "file" => Ok(Forbidden::File(name.to_owned())),
        "layer" => {
            Layer::ALL.into_iter().find(|layer| layer.as_str() == name).map(Forbidden::Layer).ok_or_else(
                || {
                    let names = Layer::ALL.map(Layer::as_str);
                    let near = did_you_mean(&nearest(name, names));
                    let hint = near.unwrap_or_else(|| format!("known layers: {}", names.join(", ")));
                    error(wrong(format!("unknown layer `{name}`"), node.place.clone(), hint))
                },
            )
        }
        other => {
            let hint = did_you_mean(&nearest(other, ORIGINS)).unwrap_or_else(|| form.to_owned());
            Err(error(wrong(format!("unknown kind of origin `{other}`"), node.place.clone(), hint)))
        }
    }
}
