//! One call of a tool, from its first answer over questions to its last.

use std::sync::Arc;

use cuebook_run::Action;
use serde_json::Value as Json;

use crate::items::{Arguments, Failed, Items, Question, Watch};
use crate::tools::Served;

/// How often one call may ask its user something.
pub(crate) const MAX_QUESTIONS: u32 = 10;

/// A call of a tool.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) items: Arc<dyn Items>,
    pub(crate) action: Action,
    pub(crate) arguments: Arc<Arguments>,
}

impl Call {
    /// Whether it runs a thread and waits for it.
    pub(crate) fn is_thread(&self) -> bool {
        let flag = |name: &str| {
            let inner = self.arguments.get("parameters").and_then(|parameters| parameters.get(name));
            self.arguments.get(name).or(inner) == Some(&Json::Bool(true))
        };
        let is_directive = self.arguments.get("item_type").is_some_and(|kind| kind == "directive");
        self.action == Action::Execute && is_directive && flag("thread") && !flag("async") && !flag("dry_run")
    }

    /// Makes it.
    pub(crate) fn make(&self, watch: &dyn Watch) -> Json {
        self.action.serve(&*self.items, &self.arguments, watch)
    }

    /// What its user could be asked after an answer.
    pub(crate) fn question(&self, answer: &Json) -> Option<Question> {
        if self.action == Action::Execute { self.items.question(answer) } else { None }
    }

    /// Goes on after its user has filled in a form.
    pub(crate) fn go_on(&self, answer: &Json, form: &Arguments, watch: &dyn Watch) -> Json {
        self.items.go_on(Failed { arguments: &self.arguments, answer }, form, watch)
    }
}
