//! What a render comes to.

use std::sync::Arc;
use std::time::Instant;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::super::disclosed::Disclosed;
use super::super::section::Skill;
use super::super::tool::SectionTool;
use crate::chat::output::OutputSpec;
use crate::overrides::Descriptor;
use crate::prompt::Visibility;
use crate::render::{Rendered, Span};

/// What became of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SectionState {
    /// It is shown so much.
    Shown(Visibility),
    /// It is not enabled, or something above it is not, or an override took it out.
    Disabled,
    /// Something above it is summarized.
    Hidden,
    /// It had to make room.
    Dropped,
}

impl SectionState {
    /// Its name: `full`, `summary`, `disabled`, `hidden` or `dropped`.
    pub fn as_str(self) -> &'static str {
        match self {
            SectionState::Shown(visibility) => visibility.as_str(),
            SectionState::Disabled => "disabled",
            SectionState::Hidden => "hidden",
            SectionState::Dropped => "dropped",
        }
    }
}

/// A rendered tree: attributed text, and everything else that a model is to be given.
pub struct RenderedPrompt {
    pub(super) rendered: Rendered,
    /// The tools of the sections that are shown in full, and those that open the others.
    pub tools: Vec<Arc<SectionTool>>,
    /// The skills of the sections that are shown in full.
    pub skills: Vec<Skill>,
    /// What overrides say of the parameters of tools: tool, then parameter, then description.
    pub tool_param_descriptions: IndexMap<String, IndexMap<String, String>>,
    /// What the answer is to hold.
    pub structured_output: Option<OutputSpec>,
    /// When the caller wants the answer.
    pub deadline: Option<Instant>,
    /// The versions of the parts of the prompt.
    pub descriptor: Arc<Descriptor>,
    /// What became of each section, in the order of the tree.
    pub states: Vec<SectionState>,
    /// Where what is shown begins, in the order of the text.
    pub(in super::super) starts: Vec<SectionStart>,
}

/// Where a section begins, or an example that overrides add to it.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct SectionStart {
    /// The section.
    pub(in super::super) index: usize,
    /// The offset of its heading in the text, behind the blank line.
    pub(in super::super) start: usize,
    /// The number of its first piece, which is that of the heading.
    pub(super) piece: usize,
}

impl RenderedPrompt {
    /// The text.
    pub fn text(&self) -> &str {
        self.rendered.text()
    }

    /// The text in runs of one origin each.
    pub fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.rendered.spans()
    }

    /// The attributed text.
    pub fn rendered(&self) -> &Rendered {
        &self.rendered
    }

    /// The attributed text with the tools and the output of the tree, ready to be sent.
    pub fn into_rendered(self) -> Rendered {
        let tools = Disclosed::of(&self).wire_tools();
        self.rendered.with_tools(tools.into(), self.structured_output)
    }

    /// The attributed text alone.
    pub(crate) fn into_text_alone(self) -> Rendered {
        self.rendered
    }

    /// The text, cut where sections begin, and the index of each section.
    pub(in super::super) fn cut(&self) -> impl Iterator<Item = (usize, &str)> {
        let ends = self.starts.iter().skip(1).map(|next| next.start).chain([self.text().len()]);
        self.starts.iter().zip(ends).map(|(first, end)| (first.index, &self.text()[first.start..end]))
    }

    /// The last of these.
    pub(in super::super) fn last(&self) -> Option<(usize, &str)> {
        self.starts.last().map(|last| (last.index, &self.text()[last.start..]))
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Arc<SectionTool>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The JSON Schema of what a tool takes, with descriptions, and with what overrides say of them.
    pub fn schema_of(&self, tool: &SectionTool) -> Json {
        match self.tool_param_descriptions.get(&tool.name) {
            Some(descriptions) => tool.schema(descriptions),
            None => tool.schema(&IndexMap::new()),
        }
    }

    /// The tools as scripts see them.
    pub fn tools_json(&self) -> Json {
        let none = IndexMap::new();
        let described = |tool: &Arc<SectionTool>| {
            tool.to_json(self.tool_param_descriptions.get(&tool.name).unwrap_or(&none))
        };
        self.tools.iter().map(described).collect()
    }
}

impl std::fmt::Debug for RenderedPrompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenderedPrompt").field("text", &self.text()).finish_non_exhaustive()
    }
}
