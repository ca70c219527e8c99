//! One render of a tree.
//!
//! [`walk`] goes through the tree and decides what is shown, [`texts`] writes it, [`filling`] says what a section is filled with, and
//! [`earlier`] what a shorter render takes over from a longer one.
//! Everything is asked at most once, and nothing is asked of what is not shown.

mod earlier;
mod filling;
mod rendered;
mod setting;
mod texts;
mod walk;

use std::sync::{Arc, OnceLock};

pub use filling::DecidedBy;
pub use rendered::{RenderedPrompt, SectionState};
pub use setting::{Binding, Fold, Setting};
pub(crate) use walk::render_part;
pub(super) use walk::{Summaries, read, refold};

use super::tree::{Node, Tree};
use crate::chat::output::OutputSpec;
use crate::error::Result;
use crate::prompt::{Model, Prompt};
use crate::source::Source;
pub use crate::template::dollar::Missing;
use crate::template::unit::Frame;

/// What the engine writes around a section, by name. A frame is numbered by its node and then by this order.
const FRAMES: [&str; 3] = ["heading", "suffix", "examples"];
const HEADING: u32 = 0;
const SUFFIX: u32 = 1;
const EXAMPLES: u32 = 2;

/// All frames of a tree.
pub(super) fn frames(nodes: &[Node]) -> Arc<[Frame]> {
    let of = |node: &Node| FRAMES.map(|name| Frame { name, section: Some(node.dotted.clone()) });
    nodes.iter().flat_map(of).collect()
}

/// The prompt that a tree stands for where a prompt is asked for.
pub(super) fn prompt_of(
    ns: &str,
    key: &str,
    model: Option<Model>,
    output: Option<&OutputSpec>,
) -> Arc<Prompt> {
    static EMPTY: OnceLock<Arc<Source>> = OnceLock::new();
    let source = EMPTY.get_or_init(|| Source::new("sections", "")).clone();
    let outputs = output.map(OutputSpec::properties).unwrap_or_default();
    Arc::new(Prompt { model, outputs, ..Prompt::of_sections(ns, key, source) })
}

impl Tree {
    /// Renders it.
    pub fn render(&self, setting: &Setting<'_>) -> Result<RenderedPrompt> {
        walk::render(self, setting)
    }
}
