//! What a section shows: its heading, its body or its summary, its examples, and the word about what is hidden.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::build;
use super::super::disclosure;
use super::super::errors::{failed, within};
use super::super::examples;
use super::super::overridden::{source_of, tool_examples};
use super::super::params::BoundParams;
use super::super::section::{Body, DEFAULT_ENGINE, title_of};
use super::super::tool::SectionTool;
use super::super::tree::{Node, Text};
use super::rendered::SectionStart;
use super::walk::Run;
use super::{EXAMPLES, FRAMES, HEADING, SUFFIX};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::overrides::{SectionOverride, ToolExample};
use crate::prompt::Visibility;
use crate::template::dollar::{self, Fault};
use crate::template::engine::{Job, Output};
use crate::template::python::is_space;
use crate::template::sink::Full;
use crate::variables::{Scope, Variables};

/// The blank line before and behind a heading, in bytes.
const BLANK: usize = 2;

impl<'t> Run<'t, '_> {
    /// Writes one section without those below it.
    pub(super) fn section(&mut self, index: usize, visibility: Visibility) -> Result<()> {
        let (tree, node) = (self.tree, &self.tree.nodes[index]);
        if let Some(earlier) = &self.earlier
            && let Some((text, pieces)) = earlier.section(index, visibility)
        {
            let skip = if self.sink.is_empty() && text.starts_with('\n') { BLANK } else { 0 };
            self.begins(index);
            return self.sink.copy(text, pieces, skip).map_err(|full| self.full(full, index));
        }
        let params = self.given.params(tree, node)?;
        let by = tree.override_of(node, self.setting);
        self.headed(index, &node.heading, |run| run.body(index, node, params, by, visibility))?;
        if visibility == Visibility::Summary {
            // WINK looks at the section's own tools where it reads, and at those below where it renders.
            let own = node.section.tools.is_empty();
            if self.is_reading && own && node.brings_tools {
                let keys = tree.keys_below(index);
                return self.frame(index, SUFFIX, &disclosure::suffix_of(&node.dotted, &keys, false));
            }
            return self.frame(index, SUFFIX, &node.suffix);
        }
        match self.examples_of(node)? {
            Examples::Own => match &node.examples {
                Some(examples) => self.frame(index, EXAMPLES, examples),
                None => Ok(()),
            },
            Examples::Changed(Some(examples)) => self.frame(index, EXAMPLES, &examples),
            Examples::Changed(None) => Ok(()),
        }
    }

    /// What is written now begins here.
    fn begins(&mut self, index: usize) {
        let start = if self.sink.is_empty() { 0 } else { self.sink.len() + BLANK };
        self.starts.push(SectionStart { index, start, piece: self.sink.pieces() });
    }

    /// Writes a heading and what stands under it. The blank line between them comes only with the latter.
    fn headed(
        &mut self,
        index: usize,
        heading: &str,
        under: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.begins(index);
        let from = if self.sink.is_empty() { BLANK } else { 0 };
        self.frame(index, HEADING, &heading[from..])?;
        let start = self.sink.len();
        under(self)?;
        if self.sink.len() == start {
            self.sink.trim_end_from(start - BLANK, |character| character == '\n');
        }
        Ok(())
    }

    pub(super) fn frame(&mut self, index: usize, what: u32, text: &str) -> Result<()> {
        let frame = (index * FRAMES.len()) as u32 + what;
        self.sink.frame(frame, text.as_bytes()).map_err(|full| self.full(full, index))
    }

    #[cold]
    fn full(&self, _: Full, index: usize) -> Error {
        let (node, limit) = (&self.tree.nodes[index], self.setting.limit);
        let message = format!("the rendered text is longer than {limit} characters");
        let hint = "shorten the values, summarize sections, or raise `max_output_size` under \"limits\" in defaults.json";
        let mut diagnostic = Diagnostic::new(Code::OutputTooLarge, message).hint(hint);
        diagnostic.place.clone_from(&node.section.place);
        within(Error::new(ErrorKind::Limit, diagnostic), node).with("limit", limit)
    }

    fn body(
        &mut self,
        index: usize,
        node: &'t Node,
        params: Option<&BoundParams>,
        by: Option<&SectionOverride>,
        visibility: Visibility,
    ) -> Result<()> {
        let (own, other) = match visibility {
            Visibility::Full => (Some(&node.body), by.and_then(|by| by.body.as_ref())),
            Visibility::Summary => (node.summary.as_ref(), by.and_then(|by| by.summary.as_ref())),
        };
        if let (Some(by), Some(other)) = (by, other) {
            return self.overridden(index, node, params, by, other);
        }
        match own {
            None | Some(Text::Empty) => Ok(()),
            Some(Text::Dollar(template, unit, asked)) => self.dollar(index, params, template, *unit, asked),
            Some(Text::Raw(source, unit)) => {
                let written = self.sink.literal(*unit, 0, source.text().as_bytes());
                written.map_err(|full| self.full(full, index))
            }
            Some(Text::Example(text)) => {
                if let Body::TaskExample(example) = &node.section.body
                    && let Some(by) = self.tree.example_override(node, self.setting)
                    && let Some(changed) = self.tree.changed_example(node, example, by)?
                {
                    return self.frame(index, EXAMPLES, &examples::of_task(&changed));
                }
                self.frame(index, EXAMPLES, text)
            }
            Some(Text::Other(compiled)) => {
                let rendered = compiled.render(&scope_of(params), self.setting.limit);
                self.append(index, rendered.map_err(|error| within(error, node))?)
            }
        }
    }

    /// Writes a text that stands in for the author's, with the section's own engine.
    fn overridden(
        &mut self,
        index: usize,
        node: &'t Node,
        params: Option<&BoundParams>,
        by: &SectionOverride,
        text: &str,
    ) -> Result<()> {
        let Body::Template { engine, .. } = &node.section.body else {
            let message = format!(
                "Section '{}' does not support override rendering. Override render_override() in your section subclass to enable this.",
                node.section.key
            );
            let error = failed(node, Code::RenderFailed, message);
            let hint = "override the task example instead: `task_example_overrides`";
            let diagnostic = error.diagnostic().clone().hint(hint);
            return Err(error.replaced(diagnostic));
        };
        let tree = self.tree;
        let source = source_of(node, by, text);
        if engine == DEFAULT_ENGINE {
            let params_type = node.section.params.as_ref();
            let template = dollar::Template::compile(source)
                .limited(tree.settings.string_bytes)
                .fenced(|name| params_type?.fence(name));
            let unit = self.merged_units.unit(template.unit(), &node.dotted);
            return self.dollar(index, params, &template, unit, &[]);
        }
        let options = serde_json::Map::new();
        let loader = tree.loader.clone();
        let job = Job { source, loader, settings: &tree.settings, options: &options, place: None };
        let compiled = tree.engines.get(engine, None).and_then(|engine| engine.compile(job));
        let rendered = compiled.and_then(|it| {
            build::refuse_unfenced(&node.section, &node.path, &*it)?;
            it.render(&scope_of(params), self.setting.limit)
        });
        self.append(index, rendered.map_err(|error| within(error, node))?)
    }

    fn dollar(
        &mut self,
        index: usize,
        params: Option<&BoundParams>,
        template: &dollar::Template,
        unit: u32,
        asked: &[usize],
    ) -> Result<()> {
        let given = &self.given;
        let value = &mut |number: usize, name: &str| match asked.get(number).and_then(|at| given.value(*at)) {
            Some(value) => Some(Cow::Borrowed(value)),
            None => params?.get(name).map(Cow::Owned),
        };
        match template.write(unit, &mut self.sink, self.setting.missing, value) {
            Ok(()) => Ok(()),
            Err(Fault::Full) => Err(self.full(Full, index)),
            Err(fault) => Err(self.fault(&self.tree.nodes[index], params, template, fault)),
        }
    }

    /// What is wrong with a text, in the sentence that programs look for, and with the rest beside it.
    #[cold]
    fn fault(
        &self,
        node: &Node,
        params: Option<&BoundParams>,
        template: &dollar::Template,
        fault: Fault,
    ) -> Error {
        let known = params.map(|params| params.names()).unwrap_or_default();
        let (message, placeholder) = match &fault {
            Fault::Missing { name, .. } => ("Missing placeholder during render.", Some(name.clone())),
            _ => ("Section rendering failed.", None),
        };
        let error = template.error(fault, known.iter().map(String::as_str), self.setting.limit);
        if error.kind() == ErrorKind::Limit {
            return within(error, node);
        }
        let mut diagnostic = error.diagnostic().clone();
        let why = std::mem::replace(&mut diagnostic.message, message.to_owned());
        diagnostic.label = Some(why.clone());
        let own = failed(node, diagnostic.code, message).replaced(diagnostic);
        own.with("placeholder", placeholder).with("cause", why)
    }

    /// Writes what another engine made of a text, without white space around it.
    fn append(&mut self, index: usize, output: Output) -> Result<()> {
        let text = output.text.trim_matches(is_space);
        if text.is_empty() {
            return Ok(());
        }
        let from = output.text.len() - output.text.trim_start_matches(is_space).len();
        let section = &self.tree.nodes[index].dotted;
        let written =
            self.merged_units.write(&mut self.sink, &output, from..from + text.len(), Some(section));
        written.map_err(|full| self.full(full, index))
    }

    /// The examples of a section's tools, if overrides make others of them. The description there stays the author's, as in WINK.
    fn examples_of(&self, node: &'t Node) -> Result<Examples> {
        let tools = &node.section.tools;
        let Some(overrides) = self.setting.overrides else { return Ok(Examples::Own) };
        let change = |tool: &SectionTool| {
            let by = overrides.tools.get(&tool.name).filter(|_| tool.accepts_overrides)?;
            (!by.examples.is_empty()).then_some(by)
        };
        if !tools.iter().any(|tool| change(tool).is_some()) {
            return Ok(Examples::Own);
        }
        let mut changed: Vec<(Arc<SectionTool>, Vec<ToolExample>)> = Vec::with_capacity(tools.len());
        for tool in tools {
            changed.push(match change(tool) {
                Some(by) => (tool.clone(), tool_examples(tool, by)?),
                None => (tool.clone(), tool.examples.clone()),
            });
        }
        let shown = changed.iter().map(|(tool, examples)| (&**tool, &examples[..]));
        Ok(Examples::Changed(examples::of_tools(shown)))
    }

    /// Writes the examples of tasks that overrides add to the section that lists them.
    pub(super) fn added_examples(&mut self, index: usize) -> Result<()> {
        let node = &self.tree.nodes[index];
        let Some(overrides) = self.setting.overrides else { return Ok(()) };
        if !matches!(node.section.body, Body::TaskExamples) {
            return Ok(());
        }
        let own = self.tree.nodes[index + 1..node.end].len();
        let mut added = 0;
        for by in overrides.task_examples_of(&node.path) {
            let Some(example) = self.tree.added_example(node, by)? else { continue };
            added += 1;
            let number = format!("{}.{}", node.number, own + added);
            let dotted = format!("{}.added-{added}", node.dotted);
            let title = title_of(&example.objective);
            let heading = build::heading(self.tree.headings, node.depth + 1, &number, &title, &dotted);
            self.headed(index, &heading, |run| run.frame(index, EXAMPLES, &examples::of_task(&example)))?;
        }
        Ok(())
    }
}

/// The examples of a section's tools.
enum Examples {
    /// Those of its author.
    Own,
    /// Those that overrides make of them.
    Changed(Option<String>),
}

fn scope_of(params: Option<&BoundParams>) -> Arc<Scope> {
    params.map_or_else(|| Scope::of_values(Variables::new()), BoundParams::scope)
}
