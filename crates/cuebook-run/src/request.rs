//! A request to execute an item, with the nine arguments that it may have.

use std::path::{Path, PathBuf};

use cuebook::actions::load::item_type;
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::ItemType;
use cuebook::json::type_of;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

/// What is to be executed, and how.
///
/// ```
/// use cuebook_run::ExecuteRequest;
///
/// let order = ExecuteRequest::tool("desk/order").parameter("number", 8);
/// let check = ExecuteRequest::directive("desk/reply").dry_run();
/// let reply = ExecuteRequest::directive("desk/reply").in_thread();
/// assert!(check.dry_run && reply.thread && order.parameters["number"] == 8);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ExecuteRequest {
    /// What the item is.
    pub item_type: ItemType,
    /// The item's id.
    pub item_id: String,
    /// The project; that of the engine if it is missing.
    pub project_path: Option<PathBuf>,
    /// What the item gets.
    pub parameters: Map<String, Json>,
    /// Everything but the execution itself.
    pub dry_run: bool,
    /// Runs a directive in a thread of its own.
    pub thread: bool,
    /// Does not wait for the thread.
    pub is_async: bool,
    /// The model of the thread.
    pub model: Option<String>,
    /// Other limits for the thread.
    pub limit_overrides: Map<String, Json>,
}

/// The arguments, by name.
const NAMES: [&str; 9] = [
    "item_type",
    "item_id",
    "project_path",
    "parameters",
    "dry_run",
    "thread",
    "async",
    "model",
    "limit_overrides",
];

/// The four that may also stand among the parameters of a directive.
const FLAGS: [&str; 4] = ["thread", "async", "model", "limit_overrides"];

impl ExecuteRequest {
    /// A request for an item, with nothing else.
    pub fn new(item_type: ItemType, item_id: impl Into<String>) -> ExecuteRequest {
        ExecuteRequest {
            item_type,
            item_id: item_id.into(),
            project_path: None,
            parameters: Map::new(),
            dry_run: false,
            thread: false,
            is_async: false,
            model: None,
            limit_overrides: Map::new(),
        }
    }

    /// Runs a tool.
    pub fn tool(item_id: impl Into<String>) -> ExecuteRequest {
        ExecuteRequest::new(ItemType::Tool, item_id)
    }

    /// Fills a directive, or runs it with [`in_thread`](ExecuteRequest::in_thread).
    pub fn directive(item_id: impl Into<String>) -> ExecuteRequest {
        ExecuteRequest::new(ItemType::Directive, item_id)
    }

    /// Reads a piece of knowledge.
    pub fn knowledge(item_id: impl Into<String>) -> ExecuteRequest {
        ExecuteRequest::new(ItemType::Knowledge, item_id)
    }

    /// The same request, which checks everything and runs nothing.
    pub fn dry_run(mut self) -> ExecuteRequest {
        self.dry_run = true;
        self
    }

    /// The same request, which runs the directive in a thread.
    pub fn in_thread(mut self) -> ExecuteRequest {
        self.thread = true;
        self
    }

    /// The same request for a project.
    pub fn project(mut self, path: &Path) -> ExecuteRequest {
        self.project_path = Some(path.to_owned());
        self
    }

    /// The same request with a parameter.
    pub fn parameter(mut self, name: &str, value: impl Into<Json>) -> ExecuteRequest {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// Reads the arguments of a call. `thread`, `async`, `model` and `limit_overrides` may also stand among the parameters
    /// of a directive; those at the top win, and they never reach the item.
    ///
    /// # Errors
    ///
    /// [`Code::BadParameters`] if an argument is missing, unknown or of the wrong type.
    pub fn from_json(arguments: &Json) -> Result<ExecuteRequest> {
        let Json::Object(arguments) = arguments else {
            return Err(refuse(format!("the arguments must be an object, not {}", type_of(arguments))));
        };
        if let Some(unknown) = arguments.keys().find(|name| !NAMES.contains(&name.as_str())) {
            let near = did_you_mean(&nearest(unknown, NAMES));
            let hint = near.unwrap_or_else(|| format!("the arguments are {}", NAMES.join(", ")));
            return Err(refuse_with(format!("unknown argument `{unknown}`"), hint));
        }
        let mut parameters = match arguments.get("parameters") {
            None | Some(Json::Null) => Map::new(),
            Some(Json::Object(parameters)) => parameters.clone(),
            Some(other) => return Err(wrong("parameters", "an object", other)),
        };
        let item_type = item_type(&required(arguments, "item_type")?)?;
        let mut flags = flags_among(item_type, &mut parameters);
        for flag in FLAGS {
            if let Some(value) = arguments.get(flag).filter(|value| !value.is_null()) {
                flags.insert(flag.to_owned(), value.clone());
            }
        }
        // As parameters they are a habit of older callers; a caller who writes them here waits for something that never comes.
        if boolean(arguments, "thread")? && item_type != ItemType::Directive {
            let message = format!("`thread` works on directives, but this is a {item_type}");
            return Err(refuse_with(message, "leave `thread` out".into()));
        }
        let mut request = ExecuteRequest {
            project_path: text(arguments, "project_path")?.map(PathBuf::from),
            parameters,
            dry_run: boolean(arguments, "dry_run")?,
            ..ExecuteRequest::new(item_type, required(arguments, "item_id")?)
        };
        request.set_flags(&flags)?;
        // Who turns a thread off does so on purpose, and what else is meant for it stays unused.
        if flags.get("thread") != Some(&Json::Bool(false)) {
            request.refuse_idle_flags()?;
        }
        Ok(request)
    }

    /// Takes `thread`, `async`, `model` and `limit_overrides` from the parameters of a directive. What the request says itself wins.
    ///
    /// # Errors
    ///
    /// [`Code::BadParameters`] if one is of the wrong type, or is for a thread and there is none.
    #[doc(hidden)]
    pub fn take_flags(&mut self) -> Result<()> {
        let flags = flags_among(self.item_type, &mut self.parameters);
        if flags.is_empty() {
            return Ok(());
        }
        let own = self.clone();
        self.set_flags(&flags)?;
        self.thread |= own.thread;
        self.is_async |= own.is_async;
        self.model = own.model.or(self.model.take());
        if !own.limit_overrides.is_empty() {
            self.limit_overrides = own.limit_overrides;
        }
        self.refuse_idle_flags()
    }

    fn set_flags(&mut self, flags: &Map<String, Json>) -> Result<()> {
        self.thread = boolean(flags, "thread")?;
        self.is_async = boolean(flags, "async")?;
        self.model = text(flags, "model")?;
        self.limit_overrides = match flags.get("limit_overrides") {
            None | Some(Json::Null) => Map::new(),
            Some(Json::Object(limits)) => limits.clone(),
            Some(other) => return Err(wrong("limit_overrides", "an object", other)),
        };
        Ok(())
    }

    /// Refuses what only a thread understands where none was asked for: the caller would wait for something that does not come.
    fn refuse_idle_flags(&self) -> Result<()> {
        let idle = [
            ("async", self.is_async),
            ("model", self.model.is_some()),
            ("limit_overrides", !self.limit_overrides.is_empty()),
        ];
        match idle.into_iter().find(|(_, is_set)| *is_set && !self.thread) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("`{name}` needs `thread`");
                Err(refuse_with(message, format!("add `thread: true`, or leave `{name}` out")))
            }
        }
    }
}

/// The flags among the parameters of a directive, which it never gets itself.
fn flags_among(item_type: ItemType, parameters: &mut Map<String, Json>) -> Map<String, Json> {
    let names = FLAGS.into_iter().filter(|_| item_type == ItemType::Directive);
    names.filter_map(|name| Some((name.to_owned(), parameters.shift_remove(name)?))).collect()
}

fn required(arguments: &Map<String, Json>, name: &str) -> Result<String> {
    text(arguments, name)?.ok_or_else(|| refuse(format!("the argument `{name}` is missing")))
}

fn text(arguments: &Map<String, Json>, name: &str) -> Result<Option<String>> {
    match arguments.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong(name, "a string", other)),
    }
}

fn boolean(arguments: &Map<String, Json>, name: &str) -> Result<bool> {
    match arguments.get(name) {
        None | Some(Json::Null) => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(other) => Err(wrong(name, "true or false", other)),
    }
}

fn wrong(name: &str, wanted: &str, found: &Json) -> Error {
    refuse(format!("`{name}` must be {wanted}, not {}", type_of(found)))
}

fn refuse(message: String) -> Error {
    refuse_with(
        message,
        "`item_type`, `item_id` and `project_path` are strings, `parameters` is an object".into(),
    )
}

fn refuse_with(message: String, hint: String) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadParameters, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_at_the_top_beat_flags_in_parameters() {
        let request = ExecuteRequest::from_json(&json!({
            "item_type": "directive", "item_id": "a/b", "project_path": "/p", "thread": false, "model": "top",
            "parameters": {"thread": true, "async": true, "model": "m", "limit_overrides": {"turns": 1}, "x": 1},
        }))
        .unwrap();
        assert!(!request.thread && request.is_async);
        assert_eq!(request.model.as_deref(), Some("top"));
        assert_eq!(Json::Object(request.limit_overrides), json!({"turns": 1}));
        assert_eq!(Json::Object(request.parameters), json!({"x": 1}));
    }

    #[test]
    fn flags_among_parameters_count_in_every_request() {
        let request = ExecuteRequest::directive("a").parameter("thread", true).parameter("x", 1);
        let mut request = request.parameter("model", "m").parameter("limit_overrides", json!({"turns": 1}));
        request.model = Some("own".into());
        request.take_flags().unwrap();
        assert!(request.thread);
        assert_eq!(request.model.as_deref(), Some("own"));
        assert_eq!(Json::Object(request.limit_overrides), json!({"turns": 1}));
        assert_eq!(Json::Object(request.parameters), json!({"x": 1}));
    }

    #[test]
    fn a_tool_keeps_parameters_that_are_named_like_flags() {
        let arguments = json!({"item_type": "tool", "item_id": "a", "parameters": {"model": "m"}});
        let request = ExecuteRequest::from_json(&arguments).unwrap();
        assert_eq!(Json::Object(request.parameters), json!({"model": "m"}));
        assert_eq!(request.model, None);
    }

    #[test]
    fn wrong_types_and_unknown_keys_are_reported() {
        for (arguments, wanted) in [
            (json!([]), "the arguments must be an object, not a list"),
            (json!({"item_type": "tool"}), "the argument `item_id` is missing"),
            (json!({"item_type": 3, "item_id": "a"}), "`item_type` must be a string, not an integer"),
            (
                json!({"item_type": "tool", "item_id": "a", "dry_run": "yes"}),
                "`dry_run` must be true or false, not a string",
            ),
            (
                json!({"item_type": "tool", "item_id": "a", "parameters": [1]}),
                "`parameters` must be an object, not a list",
            ),
            (json!({"item_type": "tool", "item_id": "a", "dryrun": true}), "unknown argument `dryrun`"),
            (
                json!({"item_type": "tool", "item_id": "a", "thread": true}),
                "`thread` works on directives, but this is a tool",
            ),
            (json!({"item_type": "directive", "item_id": "a", "async": true}), "`async` needs `thread`"),
            (json!({"item_type": "directive", "item_id": "a", "model": "m"}), "`model` needs `thread`"),
            (
                json!({"item_type": "directive", "item_id": "a", "parameters": {"limit_overrides": {"turns": 1}}}),
                "`limit_overrides` needs `thread`",
            ),
        ] {
            let error = ExecuteRequest::from_json(&arguments).unwrap_err();
            assert_eq!(error.diagnostic().message, wanted);
            assert_eq!(error.code(), Code::BadParameters);
        }
    }
}
