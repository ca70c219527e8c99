//! What authors of prompts use on top of the engine.
//!
//! [`check`] finds problems, [`cases`] runs tests that are written beside prompts, [`attack`] drives inputs with forgeries,
//! [`diff`] compares two versions, [`convert`] writes a prompt in another dialect, [`explain`] and [`ledger`] say where text and
//! tokens come from, [`service`] answers editors, [`stubs`] writes types for Python, [`targets`] finds the prompts that a command names, and [`watch`] notices changes. [`BookExt`] has all of
//! them as methods of a [`Book`]. The engine depends on nothing here.

pub mod attack;
pub mod cases;
pub mod changes;
pub mod check;
pub mod convert;
pub mod diff;
pub mod explain;
pub mod ledger;
pub mod schema;
pub mod service;
pub mod stubs;
pub mod targets;
pub mod watch;

use cuebook::{Book, Context, Result, Variables};
pub use targets::Target;

// The stages of the engine, under the names that they have there.
pub(crate) use cuebook::{
    actions, book, chat, dialect, error, files, items, library, overrides, prepared, prompt, redact, render,
    sections, source, template, tokens, variables,
};
#[cfg(test)]
pub(crate) use cuebook_text::json;
pub(crate) use cuebook_text::{by_name, node, yaml};

/// What authors do with the prompts of a book.
pub trait BookExt {
    /// See [`targets::targets`].
    fn targets(&self, named: &[String]) -> Result<Vec<Target>>;
    /// See [`check::check`].
    fn check(&self, targets: &[String], progress: impl FnMut(&str)) -> Result<check::Report>;
    /// See [`explain::explain`].
    fn explain(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
    ) -> Result<explain::Explanation>;
    /// See [`cases::case_files`].
    fn case_files(&self, targets: &[String]) -> Result<Vec<cases::CaseFile>>;
    /// See [`cases::run_cases`].
    fn run_cases(
        &self,
        file: &cases::CaseFile,
        done: impl FnMut(&cases::Outcome),
    ) -> Result<Vec<cases::Outcome>>;
    /// See [`attack::attack`].
    fn attack(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
        progress: impl FnMut(usize, usize),
    ) -> Result<attack::Attack>;
    /// See [`convert::convert`].
    fn convert(&self, prompt_id: &str, target: &convert::Target) -> Result<convert::Conversion>;
}

impl BookExt for Book {
    fn targets(&self, named: &[String]) -> Result<Vec<Target>> {
        targets::targets(self, named)
    }

    fn check(&self, targets: &[String], progress: impl FnMut(&str)) -> Result<check::Report> {
        check::check(self, targets, progress)
    }

    fn explain(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
    ) -> Result<explain::Explanation> {
        explain::explain(self, prompt_id, variables, context)
    }

    fn case_files(&self, targets: &[String]) -> Result<Vec<cases::CaseFile>> {
        cases::case_files(self, targets)
    }

    fn run_cases(
        &self,
        file: &cases::CaseFile,
        done: impl FnMut(&cases::Outcome),
    ) -> Result<Vec<cases::Outcome>> {
        cases::run_cases(self, file, done)
    }

    fn attack(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
        progress: impl FnMut(usize, usize),
    ) -> Result<attack::Attack> {
        attack::attack(self, prompt_id, variables, context, progress)
    }

    fn convert(&self, prompt_id: &str, target: &convert::Target) -> Result<convert::Conversion> {
        convert::convert(self, prompt_id, target)
    }
}
