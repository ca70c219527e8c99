//! What overrides make of a tree, held against it: examples that its tools do not take are refused as those of the author are, and
//! what could only fail in a render is found without one.

use std::sync::Arc;

use super::build::{check_task_example, fit, fitted_task_example};
use super::section::{Body, DEFAULT_ENGINE};
use super::tool::SectionTool;
use super::tree::{Node, Tree};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::overrides::example::{apply_tool_examples, change_task_example, new_task_example};
use crate::overrides::{
    Resolved, SectionOverride, TaskExample, TaskExampleChange, TaskExampleOverride, ToolExample, ToolOverride,
};
use crate::source::{Place, Source};
use crate::template::dollar::{self, Fault, Missing};
use crate::template::engine::Job;
use crate::template::sink::Sink;
use crate::variables::{SESSION, SYSTEM};

/// A text of an override as a source that says in which file it stands.
pub(super) fn source_of(node: &Node, by: &SectionOverride, text: &str) -> Arc<Source> {
    let name = match &by.place {
        Some(place) => format!("{} (override of {})", place.file(), node.dotted),
        None => format!("override of {}", node.dotted),
    };
    Source::verbatim(name, text)
}

/// An error about an override, with the place of its entry.
fn placed(error: Error, place: &Option<Place>) -> Error {
    match place {
        Some(place) => {
            let diagnostic = error.diagnostic().clone().at(place.clone());
            error.replaced(diagnostic)
        }
        None => error,
    }
}

/// The examples of a tool as its override makes them, if the tool takes them.
pub(super) fn tool_examples(tool: &SectionTool, by: &ToolOverride) -> Result<Vec<ToolExample>> {
    let mut examples = apply_tool_examples(&tool.examples, &by.examples)?;
    for example in examples.iter_mut().filter(|example| !tool.examples.contains(example)) {
        (example.input, example.output) = fit(tool, &example.input, &example.output).map_err(|why| {
            let message = format!("an example in the override does not fit the tool `{}`", tool.name);
            let diagnostic = Diagnostic::new(Code::BadOverride, message).hint(why);
            placed(Error::new(ErrorKind::Overrides, diagnostic), &by.place)
        })?;
    }
    Ok(examples)
}

impl Tree {
    /// An example of a task that an override changes: `None` if it changes nothing or takes it out.
    pub(super) fn changed_example(
        &self,
        node: &Node,
        example: &TaskExample,
        by: &TaskExampleOverride,
    ) -> Result<Option<TaskExample>> {
        let changed = change_task_example(example, by, self.output.is_some())?;
        changed.map(|changed| self.fitted(node, changed, by)).transpose()
    }

    /// An example of a task that an override adds below a node, if it adds one.
    pub(super) fn added_example(&self, node: &Node, by: &TaskExampleOverride) -> Result<Option<TaskExample>> {
        let added = new_task_example(by, self.output.is_some())?;
        added.map(|added| self.fitted(node, added, by)).transpose()
    }

    fn fitted(&self, node: &Node, example: TaskExample, by: &TaskExampleOverride) -> Result<TaskExample> {
        check_task_example(&node.section, &node.path, &example)
            .and_then(|()| {
                fitted_task_example(&node.section, &node.path, &example, &self.tools, self.output.as_ref())
            })
            .map_err(|error| {
                let mut diagnostic = error.diagnostic().clone();
                diagnostic.code = Code::BadOverride;
                placed(error.replaced(diagnostic), &by.place)
            })
    }

    /// What is wrong with overrides that fit, and what of them does nothing.
    #[doc(hidden)]
    pub fn override_problems(&self, overrides: &Resolved, missing: Missing) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for by in overrides.sections.values() {
            let Some(node) = self.get_section(&by.path) else { continue };
            for text in by.body.iter().chain(&by.summary) {
                self.text_problems(node, by, text, missing, &mut found);
            }
        }
        for by in overrides.tools.values() {
            let Some(tool) = self.tools.get(&by.name) else { continue };
            found.extend(unknown_params(tool, by));
            found.extend(tool.overridden(by).err().into_iter().flat_map(Error::into_diagnostics));
            found.extend(tool_examples(tool, by).err().into_iter().flat_map(Error::into_diagnostics));
        }
        for by in &overrides.task_examples {
            let Some(node) = self.get_section(&by.path) else { continue };
            let checked = match (&by.change, &node.section.body) {
                (TaskExampleChange::Append { .. }, _) => self.added_example(node, by),
                (_, Body::TaskExample(example)) => self.changed_example(node, example, by),
                _ => Ok(None),
            };
            found.extend(checked.err().into_iter().flat_map(Error::into_diagnostics));
        }
        found
    }

    fn text_problems(
        &self,
        node: &Node,
        by: &SectionOverride,
        text: &str,
        missing: Missing,
        found: &mut Vec<Diagnostic>,
    ) {
        let Body::Template { engine, .. } = &node.section.body else { return };
        let source = source_of(node, by, text);
        if engine != DEFAULT_ENGINE {
            let options = serde_json::Map::new();
            let loader = self.loader.clone();
            let job = Job { source, loader, settings: &self.settings, options: &options, place: None };
            let compiled = self.engines.get(engine, None).and_then(|engine| engine.compile(job));
            found.extend(compiled.err().into_iter().flat_map(Error::into_diagnostics));
            return;
        }
        if missing == Missing::Keep {
            return;
        }
        let template = dollar::Template::compile(source.clone());
        let mut sink = Sink::new(usize::MAX, text.len(), 0);
        let written = template.write(0, &mut sink, missing, &mut |_, _| Some(serde_json::Value::from("x")));
        if let Err(fault @ Fault::Invalid { .. }) = written {
            found.extend(template.error(fault, [], usize::MAX).into_diagnostics());
        }
        let fields = || node.section.params.iter().flat_map(|params| &params.record.fields);
        for read in &template.names().reads {
            let name = read.root.as_str();
            if fields().any(|field| field.name == name) || [SYSTEM, SESSION].contains(&name) {
                continue;
            }
            let message = format!("the override of `{}` uses the undeclared name `{name}`", node.dotted);
            let near = did_you_mean(&nearest(name, fields().map(|field| field.name.as_str())));
            let hint = near.unwrap_or_else(|| format!("write `$${name}` to print a dollar sign"));
            let diagnostic = Diagnostic::new(Code::UndeclaredVariable, message);
            found.push(diagnostic.at(source.place(read.range.clone())).hint(hint));
        }
    }
}

/// Descriptions of parameters that the tool does not have.
fn unknown_params(tool: &SectionTool, by: &ToolOverride) -> Vec<Diagnostic> {
    let fields = || tool.params.iter().flat_map(|record| &record.fields);
    let is_unknown =
        |name: &&String| !fields().any(|field| field.name == **name || field.key() == name.as_str());
    let reported = by.param_descriptions.keys().filter(is_unknown).map(|name| {
        let message =
            format!("the tool `{}` has no parameter `{name}`, so this description has no effect", tool.name);
        let mut diagnostic = Diagnostic::new(Code::BadOverride, message).severity(Severity::Warning);
        diagnostic.place.clone_from(&by.place);
        let near = did_you_mean(&nearest(name, fields().map(|field| field.name.as_str())));
        diagnostic.hint(near.unwrap_or_else(|| "remove the entry".to_owned()))
    });
    reported.collect()
}
