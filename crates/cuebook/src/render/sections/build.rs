//! From sections to a tree: everything that one render after the other would do alike is done here, once.
//!
//! Sections are checked in the order of the tree, each before those below it, and the first problem ends it. Nothing here knows
//! values.

mod check;
pub(super) mod describe;

pub(super) use check::{fit, fitted_task_example, refuse_unfenced, task_example as check_task_example};

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::{IndexMap, IndexSet};

use super::disclosure;
use super::errors::invalid;
use super::examples;
use super::key::check_key;
use super::render;
use super::section::{Body, DEFAULT_ENGINE, Section};
use super::tool::SectionTool;
use super::tree::{Filling, Headings, Node, Text, Tree, TreeBuilder};
use crate::error::{Diagnostic, Error, Result};
use crate::source::{OffsetMap, Source};
use crate::template::dollar;
use crate::template::engine::Job;
use crate::template::python::is_space;
use crate::template::unit::Unit;

/// How many levels of sections there may be.
pub const MAX_LEVELS: usize = 64;

pub(super) fn build(mut builder: TreeBuilder) -> Result<Tree> {
    check_key("Prompt namespace key", &builder.ns)?;
    check_key("Prompt key key", &builder.key)?;
    let sections = std::mem::take(&mut builder.sections);
    let mut making = TreeBuild {
        builder: &builder,
        nodes: Vec::new(),
        by_path: HashMap::new(),
        by_name: HashMap::new(),
        types: IndexMap::default(),
        asked: IndexSet::new(),
        tools: IndexMap::new(),
        skills: HashSet::new(),
        units: Vec::new(),
        notes: Vec::new(),
    };
    making.all(sections, None, &[], "")?;
    making.finish_task_examples()?;
    let TreeBuild { nodes, by_path, by_name, mut types, tools, asked, units, notes, .. } = making;
    for filling in types.values_mut().filter(|filling| filling.default.is_none()) {
        filling.default = filling.of.default_value();
    }
    let size = nodes.iter().fold((0, 0), |(bytes, pieces), node| {
        let body = node.body.size();
        let more = node.examples.as_ref().map_or(0, String::len);
        (bytes + node.heading.len() + body.0 + more, pieces + 2 + body.1)
    });
    let mut by_priority: Vec<usize> = (0..nodes.len()).collect();
    by_priority.sort_by_key(|index| {
        let node = &nodes[*index];
        (node.section.priority, Reverse(node.depth), Reverse(*index))
    });
    Ok(Tree {
        descriptor: Arc::new(describe::describe(&builder.ns, &builder.key, &nodes)),
        frames: render::frames(&nodes),
        prompt: render::prompt_of(&builder.ns, &builder.key, builder.model, builder.output.as_ref()),
        name: builder.name.unwrap_or_else(|| builder.key.clone()),
        headings: builder.headings,
        output: builder.output,
        by_path,
        by_name,
        types,
        tools,
        asked: asked.into_iter().collect(),
        units: Arc::new(units),
        engines: builder.engines,
        loader: builder.loader,
        settings: builder.settings,
        nodes,
        ns: builder.ns,
        key: builder.key,
        notes,
        by_priority,
        size,
    })
}

struct TreeBuild<'t> {
    builder: &'t TreeBuilder,
    nodes: Vec<Node>,
    by_path: HashMap<Vec<String>, usize>,
    by_name: HashMap<Arc<str>, Vec<usize>>,
    types: IndexMap<String, Filling, RandomState>,
    asked: IndexSet<(usize, String)>,
    tools: IndexMap<String, Arc<SectionTool>>,
    skills: HashSet<String>,
    units: Vec<Unit>,
    notes: Vec<Diagnostic>,
}

impl TreeBuild<'_> {
    /// Sections that stand side by side. Says whether one of them brings tools.
    fn all(
        &mut self,
        sections: Vec<Section>,
        parent: Option<usize>,
        above: &[String],
        number: &str,
    ) -> Result<bool> {
        let mut brings_tools = false;
        for (index, section) in sections.into_iter().enumerate() {
            let number = match number {
                "" => (index + 1).to_string(),
                above => format!("{above}.{}", index + 1),
            };
            brings_tools |= self.one(section, parent, above, number)?;
        }
        Ok(brings_tools)
    }

    fn one(
        &mut self,
        mut section: Section,
        parent: Option<usize>,
        above: &[String],
        number: String,
    ) -> Result<bool> {
        check_key("Section key", &section.key).map_err(|error| placed(error, &section))?;
        let path: Vec<String> = above.iter().cloned().chain([section.key.clone()]).collect();
        if self.by_path.contains_key(&path) {
            let message = format!("two sibling sections have the key `{}`", section.key);
            return Err(super::errors::hinted(
                invalid(&section, &path, message),
                Some("rename one of the keys".into()),
            ));
        }
        let depth = above.len();
        if depth >= MAX_LEVELS {
            let message = format!("sections are nested more than {MAX_LEVELS} levels deep");
            return Err(invalid(&section, &path, message));
        }
        let children = std::mem::take(&mut section.children);
        let dotted: Arc<str> = path.join(".").into();
        let filled_with = self.check_params(&section, &path)?;
        let (body, summary) = self.texts(&section, &path, &dotted, filled_with)?;
        self.check_names(&section, &path, &body, summary.as_ref())?;
        self.check_tools(&mut section, &path)?;
        self.check_skills(&section, &path)?;
        check::examples_of_tasks(&section, &path, &children)?;
        let heading = self.heading(&section, depth, &number, &dotted);
        let of_tools = examples::of_tools(section.tools.iter().map(|tool| (&**tool, &tool.examples[..])));
        let index = self.nodes.len();
        let own_tools = !section.tools.is_empty() || !section.skills.is_empty();
        let keys: Vec<String> = children.iter().map(|child| child.key.clone()).collect();
        self.by_path.insert(path.clone(), index);
        self.by_name.entry(dotted.clone()).or_default().push(index);
        self.nodes.push(Node {
            section,
            shared_path: path.as_slice().into(),
            path: path.clone(),
            depth,
            number: number.clone(),
            dotted,
            end: 0,
            parent,
            brings_tools: own_tools,
            filled_with,
            heading,
            suffix: String::new(),
            summary_tokens: Default::default(),
            body,
            summary,
            examples: of_tools,
        });
        let brings_tools = self.all(children, Some(index), &path, &number)? || own_tools;
        let end = self.nodes.len();
        let node = &mut self.nodes[index];
        (node.end, node.brings_tools) = (end, brings_tools);
        node.suffix = disclosure::suffix_of(&node.dotted, &keys, brings_tools);
        Ok(brings_tools)
    }

    fn heading(&self, section: &Section, depth: usize, number: &str, dotted: &str) -> String {
        heading(self.builder.headings, depth, number, &section.title, dotted)
    }

    fn texts(
        &mut self,
        section: &Section,
        path: &[String],
        label: &Arc<str>,
        filled_with: Option<usize>,
    ) -> Result<(Text, Option<Text>)> {
        let Body::Template { text, engine } = &section.body else {
            // The summaries of examples of tasks are shown as they are: nothing fills them.
            let summary = section.summary.as_ref().map(|text| self.raw(text, label));
            return Ok((Text::Empty, summary));
        };
        let of_section = |error: Error| error.with("section_path", path);
        let body = self.compile(text, engine, label, filled_with).map_err(of_section)?;
        let summary = section.summary.as_ref();
        let of_summary = match self.builder.engines.get(engine, None) {
            Ok(known) if !known.writes_summaries() => DEFAULT_ENGINE,
            _ => engine,
        };
        let summary = summary.map(|text| self.compile(text, of_summary, label, filled_with)).transpose();
        Ok((body, summary.map_err(of_section)?))
    }

    fn raw(&mut self, text: &Arc<Source>, label: &Arc<str>) -> Text {
        let number = self.units.len() as u32;
        let unit = Unit::new(text.clone(), OffsetMap::default(), Vec::new(), Vec::new());
        self.units.push(unit.labelled(label.clone()));
        Text::Raw(text.clone(), number)
    }

    fn compile(
        &mut self,
        text: &Arc<Source>,
        engine: &str,
        label: &Arc<str>,
        filled_with: Option<usize>,
    ) -> Result<Text> {
        if engine == DEFAULT_ENGINE {
            let number = self.units.len() as u32;
            let params = filled_with.map(|index| &self.types[index].of);
            let template = dollar::Template::compile(text.clone())
                .limited(self.builder.settings.string_bytes)
                .fenced(|name| params?.fence(name));
            self.units.push(template.unit().labelled(label.clone()));
            let names = filled_with
                .into_iter()
                .flat_map(|index| template.placeholders().iter().map(move |name| (index, name.clone())));
            let asked = names.map(|name| self.asked.insert_full(name).0).collect();
            return Ok(Text::Dollar(Box::new(template), number, asked));
        }
        let options = serde_json::Map::new();
        let job = Job {
            source: text.clone(),
            loader: self.builder.loader.clone(),
            settings: &self.builder.settings,
            options: &options,
            place: None,
        };
        self.builder.engines.get(engine, None)?.compile(job).map(Text::Other)
    }
}

/// A heading with a blank line before and behind it.
pub(super) fn heading(style: Headings, depth: usize, number: &str, title: &str, dotted: &str) -> String {
    let title = title.trim_matches(is_space);
    match style {
        Headings::Plain => format!("\n\n{} {title}\n\n", "#".repeat(depth + 1)),
        Headings::Numbered => format!("\n\n{} {number}. {title} ({dotted})\n\n", "#".repeat(depth + 2)),
    }
}

/// An error about a section that says where the section is declared.
fn placed(error: Error, section: &Section) -> Error {
    match &section.place {
        Some(place) => {
            let diagnostic = error.diagnostic().clone().at(place.clone());
            error.replaced(diagnostic)
        }
        None => error,
    }
}
