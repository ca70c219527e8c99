//! The items of this machine: what the four tools do for the server of a project.
//!
//! A call names its project, and by default it is the server's. The engine keeps what is known of a project between calls.

use std::path::Path;
use std::time::Instant;

use cuebook::Code;
use cuebook::items::{Item, Spaces};
use cuebook::trust::Trust;
use cuebook_run::policy::allowance::Allowance;
use cuebook_run::{Action, Engine, Fence, Launcher, Settings};
use serde_json::{Value as Json, json};

use crate::items::{Arguments, Failed, Items, Question, Watch};

/// Executes, searches, loads and signs the items of projects on this machine, in the name of its user.
pub struct LocalItems {
    engine: Engine,
    trust: Trust,
}

impl LocalItems {
    /// The items that a project sees, and those of other projects of the same user. Tools run in the sandbox, so the `main` of the
    /// program begins with [`launch_if_asked`](cuebook_run::launch_if_asked).
    pub fn new(spaces: Spaces) -> LocalItems {
        let settings =
            Settings { fence: Fence::All, launcher: Some(Launcher::this_program()), ..Settings::default() };
        LocalItems::of_engine(Engine::new(spaces.clone()).with_settings(settings), &spaces)
    }

    /// The same with an engine that was set up otherwise.
    pub fn of_engine(engine: Engine, spaces: &Spaces) -> LocalItems {
        LocalItems { engine, trust: Trust::new(spaces) }
    }

    fn run(&self, action: Action, arguments: &Arguments, watch: &dyn Watch) -> Json {
        action.run(&self.engine, arguments, &Seconds { watch, began: Instant::now() })
    }
}

impl Items for LocalItems {
    fn execute(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Execute, arguments, watch)
    }

    fn search(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Search, arguments, watch)
    }

    fn load(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Load, arguments, watch)
    }

    fn sign(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Sign, arguments, watch)
    }

    fn question(&self, answer: &Json) -> Option<Question> {
        let error = &answer["metadata"]["error"];
        let reason = error["message"].as_str()?;
        if let Some((limit, most)) = reached(answer) {
            let message =
                format!("The thread {} stopped: {reason}. Continue?", answer["thread_id"].as_str()?);
            let title = format!("New limit of {limit}");
            let more = more(error, most);
            let kind = if more.is_u64() { "integer" } else { "number" };
            let number = json!({"type": kind, "title": title, "default": more});
            let form = json!({"type": "object", "properties": {"limit": number}, "required": ["limit"]});
            return Some(Question { message, form });
        }
        (error["code"] == Code::GrantNeeded.as_str()).then(|| {
            let message = format!(
                "{reason}. Run `cuebook allow` in the project, review what it shows, and continue here when you granted it."
            );
            Question { message, form: json!({"type": "object", "properties": {}}) }
        })
    }

    fn go_on(&self, call: Failed<'_>, form: &Arguments, watch: &dyn Watch) -> Json {
        let Some((limit, _)) = reached(call.answer) else {
            // A grant is given outside of the protocol. Whether it was is checked again.
            return self.execute(call.arguments, watch);
        };
        let text = |name: &str| call.answer[name].as_str().unwrap_or_default();
        let project = call.arguments.get("project_path").and_then(Json::as_str).map(Path::new);
        let limits = form.get("limit").map(|most| (limit.to_owned(), most.clone()));
        let watch = Seconds { watch, began: Instant::now() };
        let thread = (text("item_id"), text("thread_id"));
        self.engine.continue_thread(project, thread, limits.into_iter().collect(), &watch)
    }

    fn allowance(&self) -> Option<&Allowance> {
        self.engine.settings().allowance.as_ref()
    }

    fn verify(&self, item: &Item) -> cuebook::Result<()> {
        self.trust.verify(item).map(drop)
    }
}

/// The limit that stopped a thread, and how much it allowed.
fn reached(answer: &Json) -> Option<(&str, f64)> {
    let error = &answer["metadata"]["error"];
    let limit = error["limit_code"].as_str()?.strip_suffix("_exceeded")?;
    (answer["thread_status"] == "suspended").then_some((limit, error["current_max"].as_f64()?))
}

/// Twice the limit, or what the thread needs if that is more.
fn more(error: &Json, most: f64) -> Json {
    let number = |name: &str| error[name].as_f64().unwrap_or_default();
    let more = (most * 2.0).max(number("current_value") + number("needed"));
    if most.fract() == 0.0 && more >= 1.0 { json!(more.ceil() as u64) } else { json!(more) }
}

/// A run says that it goes on, and not how far it is: the progress is the seconds that have passed.
struct Seconds<'w> {
    watch: &'w dyn Watch,
    began: Instant,
}

impl cuebook_run::Watch for Seconds<'_> {
    fn cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }

    fn progress(&self, message: &str) {
        self.watch.progress(self.began.elapsed().as_secs_f64(), None, message);
    }
}
