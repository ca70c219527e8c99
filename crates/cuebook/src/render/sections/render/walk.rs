//! The way through a tree: what is shown of each section, and which tools come along.

use std::borrow::Cow;
use std::sync::Arc;

use indexmap::IndexMap;

use super::super::disclosure;
use super::super::params::BoundParams;
use super::super::section::{Body, Skill};
use super::super::selector::Selector;
use super::super::tool::SectionTool;
use super::super::tree::{Node, Text, Tree};
use super::HEADING;
use super::earlier::EarlierRender;
use super::filling::RenderParams;
use super::rendered::{RenderedPrompt, SectionStart, SectionState};
use super::setting::{Fold, Setting};
use crate::error::Result;
use crate::prompt::Visibility;
use crate::render::Rendered;
use crate::template::engine::Output;
use crate::template::merged_units::MergedUnits;
use crate::template::sink::Sink;

/// One render on its way.
pub(super) struct Run<'t, 's> {
    pub(super) tree: &'t Tree,
    pub(super) setting: &'t Setting<'s>,
    pub(super) given: RenderParams<'s>,
    pub(super) sink: Sink,
    /// Units and frames that this render took over from other engines.
    pub(super) merged_units: MergedUnits,
    tools: Vec<Arc<SectionTool>>,
    skills: Vec<Skill>,
    descriptions: IndexMap<String, IndexMap<String, String>>,
    states: Vec<SectionState>,
    /// Where what is shown begins.
    pub(super) starts: Vec<SectionStart>,
    /// The render that this one is a shorter version of.
    pub(super) earlier: Option<EarlierRender<'t>>,
    opens: bool,
    reads: bool,
    /// Whether this is what `read_section` answers.
    pub(super) is_reading: bool,
}

/// Renders a tree.
pub(super) fn render(tree: &Tree, setting: &Setting<'_>) -> Result<RenderedPrompt> {
    Run::new(tree, setting)?.all()
}

/// Renders a tree once more, after sections had to make room. What was decided stays as it was, and a section that is shown as
/// before is not written anew.
pub(in super::super) fn refold(
    tree: &Tree,
    setting: &Setting<'_>,
    whole: &RenderedPrompt,
    folds: &[Option<Fold>],
) -> Result<RenderedPrompt> {
    let mut run = Run::new(tree, setting)?;
    run.merged_units = MergedUnits::of(whole.rendered.units(), tree.frames.len());
    run.earlier = Some(EarlierRender::new(whole, folds));
    run.all()
}

/// What one section, shown in full, and everything below it come to.
pub(in super::super) fn read(tree: &Tree, index: usize, setting: &Setting<'_>) -> Result<String> {
    let node = &tree.nodes[index];
    let mut run = Run::new(tree, setting)?;
    run.is_reading = true;
    run.section(index, Visibility::Full)?;
    let mut at = index + 1;
    while at < node.end {
        at = run.one(at)?;
    }
    run.added_examples(index)?;
    Ok(run.sink.finish().0)
}

/// Renders one section and everything below it, as far as it is shown. What is above it has no part in that.
pub(crate) fn render_part(tree: &Tree, index: usize, setting: &Setting<'_>) -> Result<Output> {
    let mut run = Run::new(tree, setting)?;
    let mut at = index;
    while at < tree.nodes[index].end {
        at = run.one(at)?;
    }
    let (text, pieces) = run.sink.finish();
    Ok(Output { text, pieces, units: run.merged_units.finish(tree.units.clone(), tree.frames.clone()) })
}

/// Sections as they are if they show their summaries, each by itself.
pub(in super::super) struct Summaries<'t, 's>(Run<'t, 's>);

impl<'t, 's> Summaries<'t, 's> {
    pub(in super::super) fn new(tree: &'t Tree, setting: &'t Setting<'s>) -> Result<Summaries<'t, 's>> {
        let mut run = Run::new(tree, setting)?;
        run.sink = Sink::new(setting.limit, 0, 0);
        Ok(Summaries(run))
    }

    /// Whether one of them is the same whatever the section is filled with, and whatever else there is.
    pub(in super::super) fn is_constant(&self, index: usize) -> bool {
        let node = &self.0.tree.nodes[index];
        let by = self.0.tree.override_of(node, self.0.setting);
        by.is_none_or(|by| by.summary.is_none()) && node.summary.as_ref().is_some_and(Text::is_constant)
    }

    /// One of them, with the blank line that stands between it and the next section.
    pub(in super::super) fn one(&mut self, index: usize) -> Result<Cow<'_, str>> {
        let run = &mut self.0;
        run.sink.truncate(0);
        run.starts.clear();
        run.merged_units.clear(run.tree.units.len());
        run.section(index, Visibility::Summary)?;
        run.frame(index, HEADING, "\n\n")?;
        Ok(run.sink.text())
    }
}

impl<'t, 's> Run<'t, 's> {
    fn new(tree: &'t Tree, setting: &'t Setting<'s>) -> Result<Run<'t, 's>> {
        let (bytes, pieces) = tree.size;
        Ok(Run {
            tree,
            setting,
            given: RenderParams::new(tree, setting.bound)?,
            sink: Sink::new(setting.limit, bytes + bytes / 4, pieces),
            merged_units: MergedUnits::new(tree.units.len(), tree.frames.len()),
            tools: Vec::new(),
            skills: Vec::new(),
            descriptions: IndexMap::new(),
            states: Vec::new(),
            starts: Vec::new(),
            earlier: None,
            opens: false,
            reads: false,
            is_reading: false,
        })
    }

    fn all(mut self) -> Result<RenderedPrompt> {
        let sections = self.tree.nodes.len();
        self.states.reserve(sections);
        self.starts.reserve(sections);
        let mut at = 0;
        while at < sections {
            at = self.one(at)?;
        }
        Ok(self.finish())
    }

    /// Passes by everything up to a node.
    fn skip(&mut self, from: usize, to: usize, state: SectionState) -> usize {
        self.states.extend(std::iter::repeat_n(state, to - from));
        to
    }

    /// What becomes of a section, if those above it are shown in full.
    fn decide(&self, index: usize) -> Result<SectionState> {
        if let Some(earlier) = &self.earlier {
            return Ok(earlier.state(index));
        }
        let tree = self.tree;
        let node = &tree.nodes[index];
        let fold = self.setting.fold_of(index);
        if fold == Some(Fold::Gone) {
            return Ok(SectionState::Dropped);
        }
        if matches!(node.section.enabled, Selector::Always(false)) || tree.is_removed(node, self.setting) {
            return Ok(SectionState::Disabled);
        }
        let params = self.given.params(tree, node)?;
        if !self.setting.unconditional && !tree.is_enabled(node, params, self.setting)? {
            return Ok(SectionState::Disabled);
        }
        let visibility = match fold {
            _ if self.setting.unfolded => Visibility::Full,
            Some(_) => Visibility::Summary,
            None => tree.visibility(node, params, tree.override_of(node, self.setting), self.setting)?,
        };
        Ok(SectionState::Shown(visibility))
    }

    /// Shows one section, and returns the node that comes next.
    fn one(&mut self, index: usize) -> Result<usize> {
        let node = &self.tree.nodes[index];
        let state = self.decide(index)?;
        let SectionState::Shown(visibility) = state else {
            return Ok(self.skip(index, node.end, state));
        };
        self.states.push(state);
        self.section(index, visibility)?;
        if visibility == Visibility::Summary {
            self.opens |= node.brings_tools;
            self.reads |= !node.brings_tools;
            return Ok(self.skip(index + 1, node.end, SectionState::Hidden));
        }
        self.collect(node)?;
        let mut next = index + 1;
        if matches!(node.section.body, Body::TaskExamples) && self.setting.overrides.is_some() {
            while next < node.end {
                next = self.one(next)?;
            }
            self.added_examples(index)?;
        }
        Ok(next)
    }

    /// Takes the tools and skills of a section that is shown in full.
    fn collect(&mut self, node: &'t Node) -> Result<()> {
        let overrides = self.setting.overrides.map(|overrides| &overrides.tools);
        let Some(overrides) = overrides.filter(|overrides| !overrides.is_empty()) else {
            self.tools.extend(node.section.tools.iter().cloned());
            self.skills.extend(node.section.skills.iter().cloned());
            return Ok(());
        };
        for tool in &node.section.tools {
            match overrides.get(&tool.name).filter(|_| tool.accepts_overrides) {
                None => self.tools.push(tool.clone()),
                Some(by) => {
                    self.tools.push(tool.overridden(by)?);
                    if !by.param_descriptions.is_empty() {
                        self.descriptions.insert(tool.name.clone(), by.param_descriptions.clone());
                    }
                }
            }
        }
        self.skills.extend(node.section.skills.iter().cloned());
        Ok(())
    }

    fn finish(mut self) -> RenderedPrompt {
        if self.opens {
            self.tools.push(disclosure::open_sections_tool());
        }
        if self.reads {
            self.tools.push(disclosure::read_section_tool());
        }
        let (text, pieces) = self.sink.finish();
        let units = self.merged_units.finish(self.tree.units.clone(), self.tree.frames.clone());
        let output = Output { text, pieces, units };
        RenderedPrompt {
            rendered: Rendered::new(
                output,
                BoundParams::late_scope(self.setting.bound),
                self.tree.prompt.clone(),
            ),
            tools: self.tools,
            skills: self.skills,
            tool_param_descriptions: self.descriptions,
            structured_output: self.tree.output.clone(),
            deadline: self.setting.deadline,
            descriptor: self.tree.descriptor.clone(),
            states: self.states,
            starts: self.starts,
        }
    }
}
