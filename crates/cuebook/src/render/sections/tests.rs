//! What sections promise, stage by stage.

mod conditions;
mod disclosure;
mod fitting;
mod overriding;
mod rendering;
mod sessions;
mod tools;
mod trees;

use schemars::JsonSchema;
use serde::Serialize;

use super::*;
use crate::error::Error;
use crate::prompt::Visibility;

/// What most sections here are filled with.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct Task {
    goal: String,
    brief: bool,
}

fn task(goal: &str, brief: bool) -> Vec<BoundParams> {
    vec![BoundParams::of(Task { goal: goal.to_owned(), brief }).unwrap()]
}

/// A tree of sections, with plain headings.
fn tree(sections: impl IntoIterator<Item = Section>) -> Tree {
    builder(sections).build().unwrap()
}

fn builder(sections: impl IntoIterator<Item = Section>) -> TreeBuilder {
    sections.into_iter().fold(Tree::builder("tests", "sections"), TreeBuilder::section)
}

/// A section whose body is its key, with sections below it.
fn plain(key: &str, children: impl IntoIterator<Item = Section>) -> Section {
    children.into_iter().fold(Section::new(key, key, key), Section::child)
}

/// The same, summarized.
fn summarized(key: &str, children: impl IntoIterator<Item = Section>) -> Section {
    plain(key, children).summary(format!("short {key}")).visible(Visibility::Summary)
}

fn path(dotted: &str) -> Vec<String> {
    dotted.split('.').map(str::to_owned).collect()
}

fn states(rendered: &RenderedPrompt) -> Vec<&'static str> {
    rendered.states.iter().map(|state| state.as_str()).collect()
}

fn names(rendered: &RenderedPrompt) -> Vec<&str> {
    rendered.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn message(error: &Error) -> &str {
    &error.diagnostic().message
}

fn refused(sections: impl IntoIterator<Item = Section>) -> Error {
    builder(sections).build().unwrap_err()
}
