//! Calls that wait for files, processes or networks, by name.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cuebook::Result;
use cuebook::library::Candidate;
use serde_json::{Value as Json, json};

use crate::calls::Arguments;
use crate::functions;
use crate::project::Project;

impl Project {
    /// Makes a call. `cancelled` stops it, as far as it can be stopped.
    pub fn perform(&self, call: &str, given: &Arguments, cancelled: Arc<AtomicBool>) -> Result<Json> {
        match call {
            "validate" => self.validate(given),
            "list" => self.list(given),
            "show" => self.of(given.is_set("isPath")).get_definition(given.text("prompt")),
            "candidates" => {
                let candidates = self.prompts().list_candidates(given.text("prompt"))?;
                Ok(candidates.iter().map(Candidate::to_json).collect())
            }
            "resolve" => self.resolve(given),
            "check" => self.check(given),
            "stubs" => Ok(json!(cuebook_lab::stubs::typescript(self.prompts(), given.is_set("zod"))?)),
            "caseFiles" => self.case_files(given),
            "test" => self.test(given),
            "attack" => self.attack(given),
            "diff" => self.diff(given),
            "convert" => self.convert(given),
            "renderRows" => self.render_rows(given, &cancelled),
            "act" => self.act(given, cancelled),
            "generateKey" => self.generate_key(given),
            "verify" => self.verify(given),
            "threads" => self.threads(given),
            "events" => self.events(given),
            "cancelThread" => self.cancel_thread(given),
            "parseMessages" => functions::parse_messages(given.text("text")),
            other => Err(crate::context::usage(format!("there is no call `{other}`"), "update the package")),
        }
    }

    fn validate(&self, given: &Arguments) -> Result<Json> {
        let context = given.context()?;
        let problems = self.prompts().validate(given.text("prompt"), &given.variables(), &context)?;
        Ok(json!(problems))
    }

    fn list(&self, given: &Arguments) -> Result<Json> {
        let (kind, tag) = (given.optional("type"), given.optional("tag"));
        let list = self.prompts().list_prompts(kind.as_deref(), tag.as_deref())?;
        Ok(list.iter().map(cuebook::Listing::to_json).collect())
    }

    fn resolve(&self, given: &Arguments) -> Result<Json> {
        let made = self.prompts().set_resolution(given.text("prompt"), given.text("source"))?;
        Ok(json!({"source": made.source, "resolved_at": made.resolved_at, "candidates": made.candidates}))
    }
}
