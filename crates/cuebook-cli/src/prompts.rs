//! Commands on many prompts: which ones, and the values that each of them takes.

use std::process::ExitCode;
use std::sync::Arc;

use cuebook::error::{printable, report};
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Prepared, Result, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::Target;
use serde_json::{Value as Json, json};

use crate::args::Inputs;
use crate::inputs::{NO_PROMPTS, Shared};

/// The prompts that a command line names.
pub enum Prompts {
    /// One, or the one that an agent.json names.
    One(Option<String>),
    /// Several, all below a folder, or the whole library.
    Many(Vec<Target>),
}

impl Prompts {
    /// Finds what is named. Without a name it is the whole library, unless an agent.json names a prompt.
    pub fn read(named: &[String], inputs: &Inputs, book: &Book) -> Result<Prompts> {
        match named {
            [] if inputs.agent.is_some() => return Ok(Prompts::One(None)),
            [one] => {
                return Ok(match book.targets(named) {
                    Ok(targets) if !matches!(targets.as_slice(), [found] if found.name == *one) => {
                        Prompts::Many(targets)
                    }
                    // What is wrong with it is the command's to say.
                    _ => Prompts::One(Some(one.clone())),
                });
            }
            _ => {}
        }
        let targets = book.targets(named)?;
        if targets.is_empty() {
            let diagnostic = Diagnostic::new(Code::PromptNotFound, "this project has no prompts");
            return Err(Error::new(ErrorKind::PromptNotFound, diagnostic.hint(NO_PROMPTS)));
        }
        Ok(Prompts::Many(targets))
    }
}

/// A prompt among others: ready to be used, or why it is not.
pub struct Member {
    /// Which one it is.
    pub target: Target,
    /// The prompt.
    pub prepared: Result<Arc<Prepared>>,
}

/// Prepares prompts, and makes sure that every value is for at least one of them.
pub fn members(targets: Vec<Target>, values: &Shared<'_>, book: &Book) -> Result<Vec<Member>> {
    let members: Vec<Member> = targets
        .into_iter()
        .map(|target| Member { prepared: book.prepare(&target.name, values.context()), target })
        .collect();
    let prepared: Vec<&Prepared> =
        members.iter().filter_map(|member| member.prepared.as_deref().ok()).collect();
    if !prepared.is_empty() {
        values.refuse_slips(&prepared, "none of the prompts")?;
    }
    Ok(members)
}

impl Member {
    /// The values of the command line that this prompt takes.
    pub fn values(&self, values: &Shared<'_>) -> Result<(Variables, Context)> {
        values.of(self.prepared.as_deref().map_err(Clone::clone)?)
    }

    /// The failure of a prompt as scripts see it.
    pub fn failure(&self, error: &Error) -> Json {
        json!({"prompt": self.target.id, "source": self.target.source, "error": error.to_json()["error"]})
    }
}

/// What a prompt failed with, for people: its name and the report.
pub fn failed(target: &Target, error: &Error) -> String {
    format!("{}\n{}", printable(&target.id), report(error.diagnostics(), true))
}

/// Success, unless something failed.
pub fn code(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
