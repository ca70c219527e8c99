//! Mustache as an engine that prompts name by its key.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{MissingPartials, Names, Output, Program, Settings, Template};
use crate::error::Result;
use crate::template::engine::{Compiled, Engine, Job, Outline};
use crate::template::unit::Unit;
use crate::variables::Scope;

/// Mustache. `escape: false` among the options writes values as they are, where the specification escapes HTML.
#[derive(Debug)]
pub struct Mustache;

impl Engine for Mustache {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        let escape = match job.options.get("escape") {
            None => true,
            Some(Json::Bool(escape)) => *escape,
            Some(other) => return Err(job.bad_option("escape", other, "true or false")),
        };
        let settings = Settings {
            escape,
            fuel: job.settings.fuel,
            recursion: job.settings.recursion,
            include_depth: job.settings.include_depth,
            string_bytes: job.settings.string_bytes,
            strict: job.settings.strict,
            missing_partials: MissingPartials::Error,
        };
        Ok(Box::new(Template::compile(job.source, job.loader, &settings)?))
    }
}

impl Compiled for Template {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.render_in(scope, limit)
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.program()
    }
}

impl Outline for Program {
    fn units(&self) -> &[Unit] {
        Program::units(self)
    }

    fn names(&self) -> &[Names] {
        Program::names(self)
    }
}
