//! What must be true of sections, their tools and their examples.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::super::errors::{caused, hinted, invalid};
use super::super::examples;
use super::super::section::{Body, Section, Skill};
use super::super::tool::{SectionTool, ToolResult, check_tool_name};
use super::super::tree::{Filling, Text};
use super::TreeBuild;
use crate::chat::output::{Container, OutputSpec, read_arguments};
use crate::error::{Code, Diagnostic, Result, Severity, did_you_mean, nearest};
use crate::overrides::{TaskExample, ToolExample};
use crate::prompt::{Record, Shape};
use crate::template::engine::Compiled;

/// Refuses a fenced input in a text whose engine would show it without its fence.
pub(in super::super) fn refuse_unfenced(
    section: &Section,
    path: &[String],
    compiled: &dyn Compiled,
) -> Result<()> {
    let Some(params) = section.params.as_ref().filter(|params| !params.fences.is_empty()) else {
        return Ok(());
    };
    let outline = compiled.outline();
    for (unit, names) in outline.units().iter().zip(outline.names()) {
        let Some(read) = names.reads.iter().find(|read| params.fence(&read.root).is_some()) else { continue };
        let name = &read.root;
        let message = format!("the input `{name}` is fenced, and the engine of this section fences nothing");
        let hint = format!(
            "write `${name}` with `engine: dollar`, or remove `fence` and write `{{{{ {name}|fence }}}}` in a `jinja2` section"
        );
        let error = hinted(invalid(section, path, message).with("placeholder", name), Some(hint));
        let diagnostic = error.diagnostic().clone().at(unit.source().place(read.range.clone()));
        return Err(error.replaced(diagnostic));
    }
    Ok(())
}

/// The longest task of an example, in characters.
const MAX_OBJECTIVE: usize = 500;

impl TreeBuild<'_> {
    /// Notes the type that fills a section, and returns its index.
    pub(super) fn check_params(&mut self, section: &Section, path: &[String]) -> Result<Option<usize>> {
        let Some(of) = &section.params else {
            return match section.default_params {
                None => Ok(None),
                Some(_) => {
                    Err(invalid(section, path, "Section without parameters cannot define default_params."))
                }
            };
        };
        let default = section.default_params.as_ref();
        if let Some(default) = default.filter(|default| default.type_name() != of.name) {
            let hint =
                format!("the default is a `{}`, but the section takes a `{}`", default.type_name(), of.name);
            let message = "Section defaults must match section params type.";
            return Err(caused(invalid(section, path, message), &hint));
        }
        let entry = self.types.entry(of.name.clone());
        let index = entry.index();
        let filling = entry.or_insert_with(|| Filling { of: of.clone(), default: None });
        if filling.default.is_none() {
            filling.default = default.cloned();
        }
        Ok(Some(index))
    }

    /// A body may ask only for names that the section is filled with. A summary, too, but that is reported and not refused: as long
    /// as the section is not summarized, it does no harm.
    pub(super) fn check_names(
        &mut self,
        section: &Section,
        path: &[String],
        body: &Text,
        summary: Option<&Text>,
    ) -> Result<()> {
        for (text, is_body) in [(Some(body), true), (summary, false)] {
            if let Some(Text::Other(compiled)) = text {
                refuse_unfenced(section, path, &**compiled)?;
            }
            let Some(Text::Dollar(template, ..)) = text else { continue };
            let mut names: Vec<&String> = template.placeholders().iter().collect();
            names.sort_unstable();
            let Some(name) = names.into_iter().find(|name| !has(section, name)) else { continue };
            let fields = section.params.iter().flat_map(|params| &params.record.fields);
            let hint = did_you_mean(&nearest(name, fields.map(|field| field.name.as_str())));
            let read = template.names().reads.iter().find(|read| read.root == *name);
            let place = read.map(|read| template.source().place(read.range.clone()));
            if is_body {
                let message = match &section.params {
                    None => "Section does not accept parameters but declares placeholders.",
                    Some(_) => "Template references unknown placeholder.",
                };
                let error = hinted(invalid(section, path, message).with("placeholder", name), hint);
                let mut diagnostic = error.diagnostic().clone();
                diagnostic.place = place.or(diagnostic.place);
                return Err(error.replaced(diagnostic.label("unknown name")));
            }
            let message = format!("the summary of `{}` uses the unknown name `{name}`", path.join("."));
            let mut note = Diagnostic::new(Code::UndefinedValue, message).severity(Severity::Warning);
            note.place = place;
            self.notes.push(note.label("unknown name").hint_opt(hint));
        }
        Ok(())
    }

    pub(super) fn check_tools(&mut self, section: &mut Section, path: &[String]) -> Result<()> {
        for index in 0..section.tools.len() {
            let tool = &section.tools[index];
            let refuse = |message: &str| {
                let error = invalid(section, path, message).with("tool", &tool.name);
                error.with("dataclass_type", tool.params_name())
            };
            if super::super::disclosure::NAMES.contains(&tool.name.as_str()) {
                let message = format!("Cuebook itself adds a tool with the name `{}`", tool.name);
                let error = hinted(refuse(&message), Some("rename the tool".into()));
                let mut diagnostic = error.diagnostic().clone();
                diagnostic.place = tool.place.clone().or(diagnostic.place);
                return Err(error.replaced(diagnostic));
            }
            if let Some(other) = self.tools.get(&tool.name) {
                let error = refuse("Duplicate tool name registered for prompt.");
                let hint = format!("rename one of the tools `{}`", tool.name);
                let mut diagnostic = error.diagnostic().clone().hint(hint);
                if let Some(place) = &tool.place {
                    diagnostic = diagnostic.at(place.clone());
                }
                if let Some(place) = &other.place {
                    diagnostic = diagnostic.related(place.clone(), "the other one");
                }
                return Err(error.replaced(diagnostic));
            }
            let changed = completed(tool).map_err(|why| {
                let message = format!("an example does not fit the tool `{}`", tool.name);
                caused(refuse(&message), &why).with("placeholder", "examples")
            })?;
            if let Some(changed) = changed {
                section.tools[index] = Arc::new(changed);
            }
            let tool = &section.tools[index];
            self.tools.insert(tool.name.clone(), tool.clone());
        }
        Ok(())
    }

    pub(super) fn check_skills(&mut self, section: &Section, path: &[String]) -> Result<()> {
        for Skill { name, .. } in &section.skills {
            if !self.skills.insert(name.clone()) {
                let message = format!("Duplicate skill name '{name}' registered for prompt.");
                return Err(invalid(section, path, message).with("dataclass_type", ()));
            }
        }
        Ok(())
    }

    /// Checks and writes out the examples of tasks, which speak of tools anywhere in the tree.
    pub(super) fn finish_task_examples(&mut self) -> Result<()> {
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let Body::TaskExample(example) = &node.section.body else { continue };
            let output = self.builder.output.as_ref();
            let example = fitted_task_example(&node.section, &node.path, example, &self.tools, output)?;
            let node = &mut self.nodes[index];
            node.body = Text::Example(examples::of_task(&example));
            node.section.body = Body::TaskExample(example);
        }
        Ok(())
    }
}

/// An example of a task as it is shown: its steps call tools of the tree with what these take, and what comes out is what the prompt
/// asks for.
pub(in crate::render::sections) fn fitted_task_example(
    section: &Section,
    path: &[String],
    example: &TaskExample,
    tools: &IndexMap<String, Arc<SectionTool>>,
    output: Option<&OutputSpec>,
) -> Result<TaskExample> {
    let mut example = example.clone();
    for (number, step) in example.steps.iter_mut().enumerate() {
        let Some(tool) = tools.get(&step.tool) else {
            let mut known: Vec<&str> = tools.keys().map(String::as_str).collect();
            known.sort_unstable();
            let hint = did_you_mean(&nearest(&step.tool, known.iter().copied()));
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!(
                "Unknown tool \"{}\" in task example step {number}. Available tools: {known}.",
                step.tool
            );
            return Err(hinted(invalid(section, path, message), hint).with("placeholder", "steps"));
        };
        let fitted = fit(tool, &step.input, &step.output).map_err(|why| {
            let message = format!("step {number} of the example does not fit the tool `{}`", step.tool);
            caused(invalid(section, path, message), &why).with("placeholder", "steps")
        })?;
        (step.input, step.output) = fitted;
    }
    example.outcome = outcome(&example.outcome, output).map_err(|(message, why)| {
        let error = invalid(section, path, message).with("placeholder", "outcome");
        hinted(error, why)
    })?;
    Ok(example)
}

/// What comes out of an example: a text, or what the prompt's output looks like. The error may say why.
fn outcome(outcome: &Json, output: Option<&OutputSpec>) -> Result<Json, (String, Option<String>)> {
    let kind = examples::kind_of(outcome);
    let Some(output) = output else {
        return match outcome.is_string() {
            true => Ok(outcome.clone()),
            false => Err((
                format!(
                    "Task example outcome must be a string when prompt has no structured output. Got: {kind}."
                ),
                None,
            )),
        };
    };
    if !outcome.is_object() {
        let message =
            format!("Task example outcome type mismatch. Expected: {}, got: {kind}.", output.record.name);
        return Err((message, None));
    }
    let one = OutputSpec { container: Container::Object, ..output.clone() };
    one.accept(outcome).map_err(|error| {
        let message = format!("the outcome of the task example must be {}", output.record.name);
        (message, Some(error.diagnostic().message.clone()))
    })?;
    Ok(examples::completed(&Shape::Record(output.record.clone()), outcome))
}

fn has(section: &Section, name: &str) -> bool {
    section.params.as_ref().is_some_and(|params| params.has(name))
}

/// The tool with its examples as they are shown: every field is there. `None` if it has none.
fn completed(tool: &SectionTool) -> Result<Option<SectionTool>, String> {
    if tool.examples.is_empty() {
        return Ok(None);
    }
    let mut whole = tool.clone();
    for ToolExample { input, output, .. } in &mut whole.examples {
        (*input, *output) = fit(tool, input, output)?;
    }
    Ok(Some(whole))
}

/// What a tool is given and answers in an example, with every field; the error says what does not fit.
pub(in crate::render::sections) fn fit(
    tool: &SectionTool,
    input: &Json,
    output: &Json,
) -> Result<(Json, Json), String> {
    let one = |record: &Arc<Record>, value: &Json, what: &str| {
        read_arguments(record, value)
            .map_err(|error| format!("the {what}: {}", error.diagnostic().message))
            .map(|_| examples::completed(&Shape::Record(record.clone()), value))
    };
    let input = match &tool.params {
        Some(record) => one(record, input, "input")?,
        None if input.is_null() => Json::Null,
        None => return Err("the tool takes no input, so the input must be null".to_owned()),
    };
    let output = match (&tool.result, output) {
        (_, Json::Null) => Json::Null,
        (ToolResult::One(record), output) => one(record, output, "output")?,
        (ToolResult::Many(record), Json::Array(items)) => {
            items.iter().map(|item| one(record, item, "output")).collect::<Result<Json, String>>()?
        }
        (ToolResult::Many(_), _) => return Err("the tool returns a list".to_owned()),
        // A tool that does not say what it answers with may show anything.
        (ToolResult::Nothing, output) => output.clone(),
    };
    Ok((input, output))
}

/// What must be true of examples of tasks by themselves.
pub(in crate::render::sections) fn task_example(
    section: &Section,
    path: &[String],
    example: &TaskExample,
) -> Result<()> {
    let refuse = |placeholder: &str, message: String| {
        let hint = match placeholder {
            "objective" => "describe the goal in one plain sentence",
            "steps" => "add at least one tool call",
            _ => "use lowercase letters, digits, `_` and `-`",
        };
        Err(hinted(invalid(section, path, message), Some(hint.to_owned())).with("placeholder", placeholder))
    };
    let objective = example.objective.trim();
    if objective.is_empty() {
        return refuse("objective", "objective must not be empty".into());
    }
    if objective.chars().count() > MAX_OBJECTIVE {
        return refuse("objective", format!("objective must be <= {MAX_OBJECTIVE} characters"));
    }
    if !objective.is_ascii() {
        return refuse("objective", "objective must contain only printable ASCII characters".into());
    }
    if example.steps.is_empty() {
        return refuse("steps", "steps must not be empty".into());
    }
    match example.steps.iter().find(|step| !check_tool_name(step.tool.trim())) {
        Some(step) => refuse("tool_name", format!("Invalid tool name format: '{}'", step.tool)),
        None => Ok(()),
    }
}

/// The sections below one that lists examples of tasks are such examples.
pub(super) fn examples_of_tasks(section: &Section, path: &[String], children: &[Section]) -> Result<()> {
    let is_example = |child: &Section| matches!(child.body, Body::TaskExample(_));
    let refuse = |message: &str, hint: &str| {
        Err(hinted(invalid(section, path, message), Some(hint.to_owned())).with("placeholder", "examples"))
    };
    match &section.body {
        Body::TaskExample(example) if children.is_empty() && section.tools.is_empty() => {
            task_example(section, path, example)
        }
        Body::TaskExample(_) => refuse(
            "a task example cannot have subsections or tools",
            "move the tools to another section: an example can use all tools of the tree",
        ),
        Body::TaskExamples if children.is_empty() => refuse(
            "TaskExamplesSection requires at least one example",
            "add an example, or remove the section",
        ),
        Body::TaskExamples if !children.iter().all(is_example) => refuse(
            "a section of task examples can contain only task examples",
            "move the other sections out of it",
        ),
        _ => Ok(()),
    }
}
