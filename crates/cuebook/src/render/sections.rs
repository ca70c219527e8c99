//! Sections: a prompt as a tree, of which a model sees as much as it needs.
//!
//! A [`Tree`] is made once and checked when it is made: [`TreeBuilder::build`] numbers its sections, compiles their texts and refuses
//! what could only fail later. [`Tree::render`] walks it: disabled sections are passed by with everything below, a summarized
//! one shows its summary and how to see more, and the tools of what is shown in full are collected on the way. What was
//! summarized can be opened or read by the model ([`disclosure`]).
//!
//! ```
//! use cuebook::prompt::Visibility;
//! use cuebook::sections::{BoundParams, Section, SectionTool, Setting, Tree, VisibilityOverrides};
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Task {
//!     goal: String,
//!     brief: bool,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Search {
//!     /// What to look for.
//!     query: String,
//! }
//!
//! let search = SectionTool::new("search", "Search the index.")?.takes::<Search>()?;
//! let history = Section::of::<Task>("history", "History", "All that was said about $goal.")?
//!     .map(|section| section.summary("Much was said.").tool(search))
//!     .visible_if(|task: &Task| if task.brief { Visibility::Summary } else { Visibility::Full });
//! let tree = Tree::builder("docs", "helper")
//!     .section(Section::of::<Task>("task", "Task", "Find out about $goal.")?)
//!     .section(history)
//!     .build()?;
//!
//! let bound = [BoundParams::of(Task { goal: "prices".into(), brief: true })?];
//! let rendered = tree.render(&Setting::new(&bound))?;
//! assert!(rendered.text().starts_with("# Task\n\nFind out about prices.\n\n# History\n\nMuch was said."));
//! assert_eq!(rendered.tools[0].name, "open_sections");
//!
//! // The model wants to see more: the section is opened for the next render, and its tool comes along.
//! let mut session = VisibilityOverrides::new();
//! session.set(&["history".to_owned()], Visibility::Full);
//! let rendered = tree.render(&Setting::new(&bound).session(&session))?;
//! assert!(rendered.text().ends_with("# History\n\nAll that was said about prices."));
//! assert_eq!(rendered.tools[0].name, "search");
//! # Ok::<(), cuebook::Error>(())
//! ```
//!
//! The texts and error messages that a model or a program sees are those of WINK, so that prompts can move from there.

mod build;
mod custom;
mod disclosed;
pub mod disclosure;
mod errors;
mod examples;
mod fields;
mod fit;
mod key;
mod outline;
mod overridden;
mod params;
mod render;
mod section;
mod selector;
mod session;
#[cfg(test)]
mod tests;
mod tool;
mod tree;

pub use crate::variables::VisibilityOverrides;
pub use build::MAX_LEVELS;
pub(crate) use custom::Custom;
pub use custom::SectionType;
pub use disclosed::{Disclosed, SectionReport, Why};
pub use fit::{FitStep, Fitting};
pub use key::{MAX_KEY, check_key};
pub use params::{BoundParams, Params, ParamsType};
pub(crate) use render::render_part;
pub use render::{Binding, DecidedBy, Fold, Missing, RenderedPrompt, SectionState, Setting};
pub(crate) use section::title_of as title_of_task;
pub use section::{Body, Section, Skill, Typed};
pub use selector::{ConditionContext, IntoSelector, Selector};
pub use session::Session;
pub use tool::{Handler, SectionTool, ToolResult};
pub use tree::{Headings, Node, Tree, TreeBuilder};
