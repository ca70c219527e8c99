//! What a render of a tree gives a model beside the text, and what became of each section, with the reason.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::fit::{FitStep, Fitting};
use super::render::{DecidedBy, RenderedPrompt, SectionState, Setting};
use super::section::Skill;
use super::selector::Selector;
use super::tool::SectionTool;
use super::tree::{Node, Tree};
use crate::chat::output::OutputSpec;
use crate::overrides::Descriptor;
use crate::prompt::{Tool, ToolKind, Visibility};

/// What a render of a tree gives a model beside the text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Disclosed {
    /// The tools of the sections that are shown in full, and those that open the others.
    pub tools: Vec<Arc<SectionTool>>,
    /// The skills of the sections that are shown in full.
    pub skills: Vec<Skill>,
    /// What overrides say of the parameters of tools: tool, then parameter, then description.
    pub tool_param_descriptions: IndexMap<String, IndexMap<String, String>>,
    /// What the answer is to hold.
    pub structured_output: Option<OutputSpec>,
    /// The versions of the parts of the prompt.
    pub descriptor: Arc<Descriptor>,
    /// When the answer is due, if the caller said so.
    pub deadline: Option<Instant>,
    /// What became of each section, in the order of the tree.
    pub sections: Vec<SectionReport>,
    /// What was done to make it fit, if it had to.
    pub fitting: Option<Fitting>,
}

/// What became of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionReport {
    /// The keys from the root to it.
    pub path: Vec<String>,
    /// Its number, as in `1.2`.
    pub number: String,
    /// Its title.
    pub title: String,
    /// What became of it.
    pub state: SectionState,
    /// Who decided that.
    pub why: Why,
    /// Whether an override gives it other words.
    pub overridden: bool,
}

/// Why a section stands as it does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// A person decided it.
    By(DecidedBy),
    /// Something above it, by its path, is not shown in full.
    Below(String),
}

impl Why {
    /// The reason in a word or two.
    pub fn describe(&self) -> String {
        match self {
            Why::By(decider) => decider.as_str().to_owned(),
            Why::Below(path) => format!("below {path}"),
        }
    }
}

impl SectionReport {
    /// The report as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "path": self.path,
            "number": self.number,
            "title": self.title,
            "state": self.state.as_str(),
            "why": self.why.describe(),
            "overridden": self.overridden,
        })
    }
}

impl Disclosed {
    pub(crate) fn new(
        tree: &Tree,
        rendered: &RenderedPrompt,
        setting: &Setting<'_>,
        fitting: Option<Fitting>,
    ) -> Disclosed {
        let folded = fitting.as_ref().map_or(&[][..], |fitting| &fitting.steps);
        let sections = reports(tree, &rendered.states, setting, folded);
        Disclosed { sections, fitting, ..Disclosed::of(rendered) }
    }

    /// What a render gives a model, without what became of its sections.
    pub(super) fn of(rendered: &RenderedPrompt) -> Disclosed {
        Disclosed {
            tools: rendered.tools.clone(),
            skills: rendered.skills.clone(),
            tool_param_descriptions: rendered.tool_param_descriptions.clone(),
            structured_output: rendered.structured_output.clone(),
            descriptor: rendered.descriptor.clone(),
            deadline: rendered.deadline,
            sections: Vec::new(),
            fitting: None,
        }
    }

    fn descriptions(&self, tool: &SectionTool) -> IndexMap<String, String> {
        self.tool_param_descriptions.get(&tool.name).cloned().unwrap_or_default()
    }

    /// The tools as scripts see them.
    pub fn tools_json(&self) -> Json {
        self.tools.iter().map(|tool| tool.to_json(&self.descriptions(tool))).collect()
    }

    /// Everything of it that a render as JSON shows beside the text: tools, skills, output and sections.
    pub(crate) fn describe_in(&self, object: &mut Json) {
        let skills = self.skills.iter().map(|skill| json!({"name": skill.name, "source": skill.source}));
        object["tools"] = self.tools_json();
        object["skills"] = skills.collect();
        object["structured_output"] = self.structured_output.as_ref().map_or(Json::Null, |output| {
            json!({
                "container": output.container.as_str(),
                "allow_extra_keys": output.allow_extra_keys,
                "schema": output.schema(),
            })
        });
        object["descriptor"] = self.descriptor.to_json();
        // A clock that only counts has no date, but the time that is left is known.
        object["deadline"] = self.deadline.map_or(
            Json::Null,
            |deadline| json!({"seconds": deadline.saturating_duration_since(Instant::now()).as_secs_f64()}),
        );
        object["sections"] = self.sections.iter().map(SectionReport::to_json).collect();
        if let Some(fitting) = &self.fitting {
            object["fit"] = fitting.to_json();
        }
    }

    /// The tools as a request speaks of them.
    pub(crate) fn wire_tools(&self) -> Vec<Tool> {
        let one = |tool: &Arc<SectionTool>| Tool {
            name: tool.name.clone(),
            description: Some(tool.description.clone()),
            kind: ToolKind::Schema { parameters: tool.schema(&self.descriptions(tool)) },
            bindings: IndexMap::new(),
            extra: Map::new(),
            place: tool.place.clone(),
        };
        self.tools.iter().map(one).collect()
    }
}

fn reports(
    tree: &Tree,
    states: &[SectionState],
    setting: &Setting<'_>,
    folded: &[FitStep],
) -> Vec<SectionReport> {
    let folded: HashSet<&[String]> = folded.iter().map(|step| &step.path[..]).collect();
    let mut reports: Vec<SectionReport> = Vec::with_capacity(states.len());
    // The last section that hides or takes away everything below it.
    let mut closed: Option<&Node> = None;
    for (index, (node, state)) in tree.sections().iter().zip(states).enumerate() {
        let above =
            closed.filter(|above| node.path.len() > above.path.len() && node.path.starts_with(&above.path));
        let why = match above {
            Some(above) => Why::Below(above.dotted().to_owned()),
            None => {
                closed = (*state != SectionState::Shown(Visibility::Full)).then_some(node);
                Why::By(match folded.contains(&node.path[..]) {
                    true => DecidedBy::Budget,
                    false => decider(tree, index, *state, setting),
                })
            }
        };
        let by = setting.overrides.and_then(|overrides| overrides.sections.get(&node.path));
        reports.push(SectionReport {
            path: node.path.clone(),
            number: node.number.clone(),
            title: node.section.title.clone(),
            state: *state,
            why,
            overridden: by.is_some_and(|by| by.body.is_some() || by.summary.is_some()),
        });
    }
    reports
}

/// Who decided what became of a section that nothing above it hides.
fn decider(tree: &Tree, index: usize, state: SectionState, setting: &Setting<'_>) -> DecidedBy {
    let decided = tree.decided_by(index, setting);
    match (&tree.sections()[index].section.enabled, state) {
        (Selector::Always(false), SectionState::Disabled) => DecidedBy::Section,
        (Selector::Asked(_), SectionState::Disabled) => DecidedBy::Condition,
        // What is enabled and not there was taken out by an override.
        (_, SectionState::Disabled) => DecidedBy::Override,
        _ => decided.unwrap_or(DecidedBy::Section),
    }
}
