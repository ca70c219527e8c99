//! The variables that the system supplies, under the name `system`.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use jiff::Zoned;
use serde_json::Value as Json;

use super::{Clock, Context, workspace};

/// Every name below `system`.
pub const SYSTEM_NAMES: &[&str] = &[
    "datetime",
    "date",
    "time",
    "timezone",
    "os",
    "os_info",
    "agent_id",
    "agent_name",
    "model",
    "session_id",
    "workspace_path",
    "language",
];

/// What a variable with `source: system` may be called besides: the workspace is looked at for them.
pub const WORKSPACE_NAMES: &[&str] = &["file_tree", "tech_stack"];

/// The language of a render whose caller names none.
#[doc(hidden)]
pub const DEFAULT_LANGUAGE: &str = "en";

/// What the system knows during one render. The clock is read once, on first use.
#[derive(Debug)]
pub(super) struct System {
    context: Arc<Context>,
    clock: Arc<dyn Clock>,
    /// The workspace of a render whose caller names none.
    project: Option<Arc<Path>>,
    /// The time, and how it is written.
    now: OnceLock<(Zoned, String)>,
}

impl System {
    pub(super) fn new(context: Arc<Context>, clock: Arc<dyn Clock>, project: Option<Arc<Path>>) -> System {
        System { context, clock, project, now: OnceLock::new() }
    }

    /// The workspace: the caller's, or the project's folder.
    fn workspace(&self) -> Option<&Path> {
        self.context.workspace_path.as_deref().map(Path::new).or(self.project.as_deref())
    }

    /// All that a user has said, or the machine knows.
    pub(super) fn to_json(&self) -> Json {
        SYSTEM_NAMES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), Json::String(self.text(name)?))))
            .collect()
    }

    /// A system variable; `None` if the caller did not say.
    pub(super) fn get(&self, name: &str) -> Option<Json> {
        self.text(name).map(Json::from)
    }

    fn text(&self, name: &str) -> Option<String> {
        let context = &self.context;
        let now = || {
            self.now.get_or_init(|| {
                let now = self.clock.now();
                let written = now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
                (now, written)
            })
        };
        // The date, and behind a `T` the time with its offset.
        let halves = || now().1.split_once('T').unwrap_or_default();
        let text = match name {
            "datetime" => now().1.clone(),
            "date" => halves().0.to_owned(),
            "time" => halves().1.chars().take("00:00:00".len()).collect(),
            "timezone" => {
                let (now, _) = now();
                match now.time_zone().iana_name() {
                    Some(name) => name.to_owned(),
                    None => now.strftime("%:z").to_string(),
                }
            }
            "os" => std::env::consts::OS.to_owned(),
            "os_info" => format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            "agent_id" => context.agent.id.clone()?,
            "agent_name" => context.agent.name.clone()?,
            "model" => context.model.clone().or_else(|| context.agent.model.clone())?,
            "session_id" => context.session_id.clone()?,
            "workspace_path" => self.workspace()?.to_str()?.to_owned(),
            "file_tree" => workspace::file_tree(self.workspace()?),
            "tech_stack" => workspace::tech_stack(self.workspace()?),
            "language" => language(context).to_owned(),
            _ => return None,
        };
        Some(text)
    }
}

/// The language of a render.
pub(super) fn language(context: &Context) -> &str {
    context.language.as_deref().or(context.agent.language.as_deref()).unwrap_or(DEFAULT_LANGUAGE)
}
