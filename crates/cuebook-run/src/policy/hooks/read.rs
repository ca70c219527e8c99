//! Reads hooks from directives and from files, and says what is wrong with them, where, and what to write instead.

use std::sync::Arc;

use cuebook::dialect::directive;
use cuebook::error::{did_you_mean, nearest};
use cuebook::json::type_of;
use cuebook::settings::Setting;
use cuebook::source::{Place, Source};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

use super::{Action, CONTEXT_EVENTS, CONTROL_EVENTS, Hook, Layer, Position};
use crate::policy::capability::ACTIONS;
use crate::policy::condition::{self, Fault};
use crate::policy::control::{self, Control};
use crate::policy::interpolate;

/// The types of items that an action can be about.
const TYPES: [&str; 3] = ["directive", "tool", "knowledge"];

/// Reads the hooks of a directive.
///
/// # Errors
///
/// `CB726` if one of them cannot be used.
pub fn of_directive(directive: &str, hooks: &[Map<String, Json>]) -> Result<Vec<Hook>> {
    let reader = HooksReader { settings: None, whose: format!("of directive {directive}") };
    let read = |(index, hook): (usize, &Map<String, Json>)| reader.hook(index, hook, Layer::Directive);
    hooks.iter().enumerate().map(read).collect()
}

/// Reads a file of hooks, such as `.ai/config/agent/hooks.yaml`.
///
/// # Errors
///
/// `CB726` with the place, if something in it cannot be used.
pub fn of_file(source: &Arc<Source>, layer: Layer) -> Result<Vec<Hook>> {
    let settings = Setting::parse(source, Code::BadHook, ErrorKind::Config)?;
    let root = settings.json();
    let reader = HooksReader { settings: Some(settings), whose: format!("in {}", source.name()) };
    let hooks = match &root {
        Json::Null => return Ok(Vec::new()),
        Json::Object(root) => {
            reader.know(
                &[],
                root,
                &["hooks", "description", "schema_version", "category", "tool_type", "version"],
            )?;
            root.get("hooks").unwrap_or(&Json::Null)
        }
        other => {
            return Err(reader.wrong(
                &[],
                format!("the file must hold a map, not {}", type_of(other)),
                Some("put the list under `hooks:`"),
            ));
        }
    };
    let hooks = match hooks {
        Json::Null => return Ok(Vec::new()),
        Json::Array(hooks) => hooks,
        other => {
            return Err(reader.wrong(
                &["hooks"],
                format!("`hooks` must be a list, not {}", type_of(other)),
                None,
            ));
        }
    };
    let read = |(index, hook): (usize, &Json)| match hook {
        Json::Object(hook) => reader.hook(index, hook, layer),
        other => Err(reader.wrong(
            &["hooks", &index.to_string()],
            format!("a hook must be a map, not {}", type_of(other)),
            None,
        )),
    };
    hooks.iter().enumerate().map(read).collect()
}

/// Reads hooks, and knows where they stand.
struct HooksReader {
    settings: Option<Setting>,
    whose: String,
}

impl HooksReader {
    fn hook(&self, index: usize, hook: &Map<String, Json>, layer: Layer) -> Result<Hook> {
        let index = index.to_string();
        let path = ["hooks", index.as_str()];
        let inside = |name| ["hooks", index.as_str(), name];
        const NAMES: [&str; 9] =
            ["id", "event", "layer", "position", "wrap", "condition", "action", "actions", "description"];
        self.know(&path, hook, &NAMES)?;
        let event = match hook.get("event") {
            Some(Json::String(event)) if is_event(event) => event.clone(),
            Some(other) => {
                let events: Vec<&str> = CONTROL_EVENTS.into_iter().chain(CONTEXT_EVENTS).collect();
                let near =
                    other.as_str().and_then(|event| did_you_mean(&nearest(event, events.iter().copied())));
                let hint = near.unwrap_or_else(|| format!("events are {}", events.join(", ")));
                return Err(self.wrong(
                    &inside("event"),
                    format!("unknown thread event {other}"),
                    Some(&hint),
                ));
            }
            None => return Err(self.wrong(&path, "a hook has no `event`".to_owned(), None)),
        };
        let id = match hook.get("id") {
            Some(Json::String(id)) if !id.trim().is_empty() => id.clone(),
            None => format!("{event}_{index}"),
            Some(_) => {
                return Err(self.wrong(
                    &inside("id"),
                    "the `id` of a hook must be a string".to_owned(),
                    None,
                ));
            }
        };
        let position = match hook.get("position").map(|position| position.as_str()) {
            None | Some(Some("before")) => Position::Before,
            Some(Some("after")) => Position::After,
            Some(_) => {
                let hint = Some("write before or after");
                return Err(self.wrong(&inside("position"), "unknown position".to_owned(), hint));
            }
        };
        let wrap = match hook.get("wrap") {
            None => true,
            Some(Json::Bool(wrap)) => *wrap,
            // XML has nothing but texts.
            Some(Json::String(text)) if text == "true" || text == "false" => text == "true",
            Some(_) => {
                return Err(self.wrong(&inside("wrap"), "`wrap` must be true or false".to_owned(), None));
            }
        };
        let condition = hook.get("condition").cloned().unwrap_or(Json::Null);
        let mut at: Vec<String> = inside("condition").iter().map(|step| (*step).to_owned()).collect();
        if let Some(Fault { path, message, hint }) = condition::fault(&condition, &mut at) {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            return Err(self.wrong(&path, message, hint.as_deref()));
        }
        let actions = self.actions(&index, hook, &event)?;
        let layer = self.layer(&inside("layer"), hook.get("layer"), layer)?;
        Ok(Hook { id, event, layer, position, wrap, condition, actions, whose: self.whose.clone() })
    }

    /// A hook may step back behind its writer's layer, and never before it.
    fn layer(&self, path: &[&str], written: Option<&Json>, own: Layer) -> Result<Layer> {
        let Some(written) = written else { return Ok(own) };
        let number = written.as_u64().or_else(|| written.as_str()?.parse().ok());
        let layer = number.and_then(|number| Layer::ALL.get(usize::try_from(number).ok()?));
        layer.map(|layer| own.max(*layer)).ok_or_else(|| {
            self.wrong(path, format!("unknown layer {written}"), Some("layers are numbers from 0 to 4"))
        })
    }

    fn actions(&self, index: &str, hook: &Map<String, Json>, event: &str) -> Result<Vec<Action>> {
        let path = ["hooks", index];
        match (hook.get("action"), hook.get("actions")) {
            (Some(_), Some(_)) => {
                let hint = Some("put them all into the list `actions`");
                Err(self.wrong(&path, "a hook has both `action` and `actions`".to_owned(), hint))
            }
            (Some(action), None) => Ok(vec![self.action(&["hooks", index, "action"], action, event)?]),
            (None, Some(Json::Array(actions))) if !actions.is_empty() => {
                let read = |(at, action): (usize, &Json)| {
                    self.action(&["hooks", index, "actions", &at.to_string()], action, event)
                };
                actions.iter().enumerate().map(read).collect()
            }
            (None, Some(_)) => Err(self.wrong(
                &["hooks", index, "actions"],
                "`actions` must be a non-empty list".to_owned(),
                None,
            )),
            (None, None) => {
                let hint = "write <action><execute item_type=\"tool\" item_id=\"…\"/></action>, or `action: {primary: execute, …}` in YAML";
                Err(self.wrong(&path, "a hook has no `action`".to_owned(), Some(hint)))
            }
        }
    }

    fn action(&self, path: &[&str], action: &Json, event: &str) -> Result<Action> {
        let inside = |name| {
            let mut path = path.to_vec();
            path.push(name);
            path
        };
        let Json::Object(action) = action else {
            return Err(self.wrong(path, format!("an action must be a map, not {}", type_of(action)), None));
        };
        self.know(path, action, &["primary", "item_type", "item_id", "params"])?;
        let text = |name: &str| action.get(name).and_then(Json::as_str).unwrap_or_default();
        let one_of = |name: &'static str, known: &[&str]| {
            let given = action.get(name).map_or("nothing".to_owned(), Json::to_string);
            let near = did_you_mean(&nearest(text(name), known.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("use one of {}", known.join(", ")));
            self.wrong(&inside(name), format!("invalid `{name}` of an action: {given}"), Some(&hint))
        };
        let primary = text("primary");
        if !ACTIONS.contains(&primary) {
            return Err(one_of("primary", &ACTIONS));
        }
        let item_type = match (action.get("item_type"), primary) {
            (None, "execute") => "tool",
            (None, "search") => "",
            _ if TYPES.contains(&text("item_type")) => text("item_type"),
            _ => return Err(one_of("item_type", &TYPES)),
        };
        let item_id = text("item_id");
        if item_id.trim().is_empty() && primary != "search" {
            return Err(self.wrong(&inside("item_id"), "an action has no `item_id`".to_owned(), None));
        }
        let params = match action.get("params") {
            None | Some(Json::Null) => Map::new(),
            Some(Json::Object(params)) => params.clone(),
            Some(other) => {
                return Err(self.wrong(
                    &inside("params"),
                    format!("`params` must be a map, not {}", type_of(other)),
                    None,
                ));
            }
        };
        // What values of the thread decide is known only then.
        let decides = params.get("action").and_then(Json::as_str).unwrap_or_default();
        if item_id == control::ITEM
            && !interpolate::has_placeholders(decides)
            && let Some(fault) = Control::fault(&params)
        {
            let near = did_you_mean(&nearest(decides, Control::NAMES));
            let hint = near.unwrap_or_else(|| format!("use one of {}", Control::NAMES.join(", ")));
            let mut path = inside("params");
            path.extend(params.contains_key("action").then_some("action"));
            return Err(self.wrong(&path, fault, Some(&hint)));
        }
        if item_id == control::ITEM && !directive::hook_may_decide(event, decides) {
            let path = [inside("params").as_slice(), &["action"]].concat();
            return Err(self.wrong(
                &path,
                format!("the decision {decides:?} has no effect at `{event}`"),
                Some(&directive::decisions_at(event)),
            ));
        }
        if item_id == control::ITEM
            && let Some(name) = params.keys().find(|name| !Control::PARAMS.contains(&name.as_str()))
        {
            let near = did_you_mean(&nearest(name, Control::PARAMS));
            let hint = near.unwrap_or_else(|| format!("it takes {}", Control::PARAMS.join(", ")));
            let mut path = inside("params");
            path.push(name);
            let place = self.settings.as_ref().map(|settings| settings.name_place_of(&path));
            let message = format!("`{}` takes no `{name}`", control::ITEM);
            return Err(self.error(&path, message, Some(&hint), place));
        }
        Ok(Action {
            primary: primary.to_owned(),
            item_type: item_type.to_owned(),
            item_id: item_id.to_owned(),
            params,
            // Only files have settings: what stands in them is the user's own.
            bound: self.settings.is_none() || interpolate::has_placeholders(item_id),
        })
    }

    fn know(&self, path: &[&str], map: &Map<String, Json>, names: &[&str]) -> Result<()> {
        let Some(name) = map.keys().find(|name| !names.contains(&name.as_str())) else { return Ok(()) };
        let mut path = path.to_vec();
        path.push(name);
        let near = did_you_mean(&nearest(name, names.iter().copied()));
        let hint = near.unwrap_or_else(|| format!("there are {}", names.join(", ")));
        let place = self.settings.as_ref().map(|settings| settings.name_place_of(&path));
        Err(self.error(&path, format!("unknown key `{name}` in a hook"), Some(&hint), place))
    }

    fn wrong(&self, path: &[&str], message: String, hint: Option<&str>) -> Error {
        let place = self.settings.as_ref().map(|settings| settings.place_of(path));
        self.error(path, message, hint, place)
    }

    fn error(&self, path: &[&str], message: String, hint: Option<&str>, place: Option<Place>) -> Error {
        // Without a place the number of the hook has to do.
        let message = match (&place, path) {
            (None, ["hooks", index, ..]) => {
                let number = index.parse::<usize>().map_or(1, |index| index + 1);
                format!("{message} (hook {number} {})", self.whose)
            }
            _ => message,
        };
        let mut diagnostic = Diagnostic::new(Code::BadHook, message).hint_opt(hint.map(str::to_owned));
        if let Some(place) = place {
            diagnostic = diagnostic.at(place);
        }
        Error::new(ErrorKind::Config, diagnostic)
    }
}

fn is_event(name: &str) -> bool {
    CONTROL_EVENTS.contains(&name) || CONTEXT_EVENTS.contains(&name)
}
