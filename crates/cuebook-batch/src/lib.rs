//! Renders, runs and judges the rows of a data set.
//!
//! Each row of a file fills the variables of one prompt. [`Batch::check`] renders all rows and estimates what they cost, before anything
//! is sent. [`Batch::ask`] sends the questions that have no answer yet; each answer is durable in a [`journal`] before the next
//! step uses it. [`Batch::write`] renders the rows once more and writes them, in their order, with the answers of the journal.
//!
//! No step holds more than a few rows in memory, so a file can be larger than the memory. A process can be killed at any moment:
//! the next one finds every answer in the journal, and asks only what was on its way.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`rows`] | reads CSV, JSONL and Parquet, row by row |
//! | `columns` | which column fills which variable |
//! | `pipeline` | works on rows at the same time, and keeps their order |
//! | `prefix` | which questions begin alike |
//! | `key` | what a question is called: a hash of all that is asked |
//! | [`journal`] | the answers so far, on disk |
//! | `spend` | keeps to a limit of money |
//! | `chain` | the questions of one row, one after the other |
//! | `answer_source` | who answers them: the model, or the journal alone |
//! | `line` | a row of the output |
//! | [`output`] | writes the output whole |
//! | `batch` | the steps, and the batch interfaces of providers |
//! | [`report`] | what an output says in numbers |
//! | [`sources`] | which sentences of which files a row uses |
//! | [`diff`] | what is different between two outputs, and why |

mod answer_source;
mod batch;
mod chain;
mod columns;
pub mod diff;
pub mod journal;
mod key;
mod kinds;
mod line;
pub mod output;
mod pipeline;
mod plan;
mod prefix;
mod problem;
pub mod report;
mod row_prompt;
pub mod rows;
pub mod sources;
mod spend;

pub use batch::{Batch, BatchStep, Checked, Ended, Pending, Progress, Via, Waiting, Written};
pub use kinds::Kind;
pub use plan::{Form, JudgePlan, Plan};
pub use problem::Problem;
