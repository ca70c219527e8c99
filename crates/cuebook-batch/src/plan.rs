//! What a batch is to do.

use std::path::PathBuf;

use cuebook::{Context, Variables};
use cuebook_run::Money;

/// What a row renders to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Text.
    Text,
    /// Messages.
    Messages,
    /// The body of a request: in the format of this name, or in that of the prompt's own provider.
    Wire(Option<String>),
}

impl Form {
    /// The column that has it.
    pub(crate) fn column(&self) -> &'static str {
        match self {
            Form::Text => "text",
            Form::Messages => "messages",
            Form::Wire(_) => "wire",
        }
    }
}

/// A prompt that judges answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgePlan {
    /// The name that its columns begin with.
    pub name: String,
    /// The prompt.
    pub prompt: String,
    /// Its model, instead of the prompt's own.
    pub model: Option<String>,
}

/// What a batch is to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The prompt: an id or a path.
    pub prompt: String,
    /// The file with the rows.
    pub data: PathBuf,
    /// The file for the results; the writer of the caller if there is none.
    pub output: Option<PathBuf>,
    /// What the output has of the prompt.
    pub form: Option<Form>,
    /// Whether a model is asked.
    pub run: bool,
    /// The model, instead of the prompt's own.
    pub model: Option<String>,
    /// Columns and the variables that they fill.
    pub columns: Vec<(String, String)>,
    /// Values for all rows.
    pub variables: Variables,
    /// The circumstances of each render.
    pub context: Context,
    /// What stands before the names of the columns that are added.
    pub prefix: String,
    /// Whether the columns of the data are part of the output.
    pub keeps_inputs: bool,
    /// Whether the output says which sentences of which files each row uses. With `run` it always does.
    pub sources: bool,
    /// Whether rows whose questions begin alike are asked one after the other.
    pub by_prefix: bool,
    /// Whether rows are asked though others are invalid.
    pub keep_going: bool,
    /// The most money that the run may cost, in all its processes.
    pub limit: Option<Money>,
    /// How many questions are on their way at once.
    pub concurrency: usize,
    /// How many threads render.
    pub threads: usize,
    /// The judges, in the order of their columns.
    pub judges: Vec<JudgePlan>,
}
