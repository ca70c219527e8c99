//! Examples, and what overrides make of lists of them.
//!
//! Removals come first, then changes, then additions; since indexes count the original list, the order shows in nothing but
//! that additions stand at the end. An index beyond the list is an error: [`super::Store::resolve`] has left out what does
//! not fit, so it means that overrides and examples are not of the same prompt.

use serde_json::Value as Json;

use super::entry::{
    JsonText, NewTaskStep, TaskExampleChange, TaskExampleOverride, TaskStepOverride, ToolExampleChange,
    ToolExampleOverride,
};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Place;

/// An example of a tool's use.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolExample {
    /// What it shows.
    pub description: String,
    /// What the tool is given; null if it takes nothing.
    pub input: Json,
    /// What the tool answers; null if it answers nothing.
    pub output: Json,
}

/// An example of a task: what is to be done, the calls on the way, and what comes out.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskExample {
    /// The task.
    pub objective: String,
    /// What comes out of it: a string, or a record where the prompt declares its output.
    pub outcome: Json,
    /// The way to it.
    pub steps: Vec<TaskStep>,
}

/// A step of an example of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskStep {
    /// The tool that is called.
    pub tool: String,
    /// What the step is for.
    pub description: String,
    /// What the tool is given.
    pub input: Json,
    /// What the tool answers.
    pub output: Json,
}

/// The examples of a tool with its overrides applied.
pub fn apply_tool_examples(
    examples: &[ToolExample],
    overrides: &[ToolExampleOverride],
) -> Result<Vec<ToolExample>> {
    let mut list = Editing::new(examples);
    for by in overrides {
        if let ToolExampleChange::Remove { index, .. } = &by.change {
            list.remove(*index, "the tool has", "examples", &by.place)?;
        }
    }
    for by in overrides {
        match &by.change {
            ToolExampleChange::Remove { .. } => {}
            ToolExampleChange::Modify { index, description, input, output, .. } => {
                let example = list.at(*index, "the tool has", "examples", &by.place)?;
                replace(&mut example.description, description);
                replace_json(&mut example.input, input);
                replace_json(&mut example.output, output);
            }
            ToolExampleChange::Append { description, input, output } => list.new.push(ToolExample {
                description: description.clone(),
                input: value_of(input),
                output: value_of(output),
            }),
        }
    }
    Ok(list.finish())
}

/// The examples of one section that lists them, with the overrides of that section applied. `is_structured` says whether
/// the prompt declares its output, so that outcomes are records and not texts.
pub fn apply_task_examples<'o>(
    examples: &[TaskExample],
    overrides: impl IntoIterator<Item = &'o TaskExampleOverride>,
    is_structured: bool,
) -> Result<Vec<TaskExample>> {
    let overrides: Vec<&TaskExampleOverride> = overrides.into_iter().collect();
    let mut list = Editing::new(examples);
    for by in &overrides {
        if let TaskExampleChange::Remove { index, .. } = &by.change {
            list.remove(*index, "the section has", "examples", &by.place)?;
        }
    }
    for by in overrides {
        match &by.change {
            TaskExampleChange::Remove { .. } => {}
            TaskExampleChange::Modify { index, .. } => {
                let example = list.at(*index, "the section has", "examples", &by.place)?;
                if let Some(changed) = change_task_example(example, by, is_structured)? {
                    *example = changed;
                }
            }
            TaskExampleChange::Append { .. } => list.new.extend(new_task_example(by, is_structured)?),
        }
    }
    Ok(list.finish())
}

/// What an override makes of one example of a task: `None` if it takes it out. One that adds an example leaves it alone.
pub fn change_task_example(
    example: &TaskExample,
    by: &TaskExampleOverride,
    is_structured: bool,
) -> Result<Option<TaskExample>> {
    let mut example = example.clone();
    match &by.change {
        TaskExampleChange::Remove { .. } => return Ok(None),
        TaskExampleChange::Append { .. } => {}
        TaskExampleChange::Modify {
            objective,
            outcome,
            step_overrides,
            steps_to_remove,
            steps_to_append,
            ..
        } => {
            replace(&mut example.objective, objective);
            if let Some(text) = outcome {
                example.outcome = outcome_of(text, is_structured, &by.place)?;
            }
            let mut steps = Editing::new(&example.steps);
            for &index in steps_to_remove {
                steps.remove(index, "the example has", "steps", &by.place)?;
            }
            for change in step_overrides {
                change_step(steps.at(change.index, "the example has", "steps", &by.place)?, change);
            }
            steps.new.extend(steps_to_append.iter().map(new_step));
            example.steps = steps.finish();
        }
    }
    Ok(Some(example))
}

/// The example of a task that an override adds, if it adds one.
pub fn new_task_example(by: &TaskExampleOverride, is_structured: bool) -> Result<Option<TaskExample>> {
    let TaskExampleChange::Append { objective, outcome, steps } = &by.change else { return Ok(None) };
    Ok(Some(TaskExample {
        objective: objective.clone(),
        outcome: outcome_of(outcome, is_structured, &by.place)?,
        steps: steps.iter().map(new_step).collect(),
    }))
}

fn outcome_of(text: &str, is_structured: bool, place: &Option<Place>) -> Result<Json> {
    if !is_structured {
        return Ok(Json::String(text.to_owned()));
    }
    serde_json::from_str(text).map_err(|error| {
        let message = format!("this `outcome` is not JSON, but the prompt declares its output: {error}");
        let hint = "write the outcome as JSON inside the string";
        refusal(message, place, hint)
    })
}

fn change_step(step: &mut TaskStep, by: &TaskStepOverride) {
    replace(&mut step.tool, &by.tool_name);
    replace(&mut step.description, &by.description);
    replace_json(&mut step.input, &by.input);
    replace_json(&mut step.output, &by.output);
}

fn new_step(step: &NewTaskStep) -> TaskStep {
    TaskStep {
        tool: step.tool_name.clone(),
        description: step.description.clone(),
        input: value_of(&step.input),
        output: value_of(&step.output),
    }
}

fn replace(old: &mut String, new: &Option<String>) {
    if let Some(new) = new {
        old.clone_from(new);
    }
}

fn replace_json(old: &mut Json, new: &Option<JsonText>) {
    if let Some(new) = new {
        old.clone_from(new.value());
    }
}

fn value_of(text: &Option<JsonText>) -> Json {
    text.as_ref().map_or(Json::Null, |text| text.value().clone())
}

fn refusal(message: String, place: &Option<Place>, hint: &str) -> Error {
    let mut diagnostic = Diagnostic::new(Code::BadOverride, message).hint(hint);
    diagnostic.place.clone_from(place);
    Error::new(ErrorKind::Overrides, diagnostic)
}

/// A list whose elements keep their indexes while it is changed.
struct Editing<T> {
    /// `None` where an element was removed.
    old: Vec<Option<T>>,
    new: Vec<T>,
}

impl<T: Clone> Editing<T> {
    fn new(items: &[T]) -> Editing<T> {
        Editing { old: items.iter().cloned().map(Some).collect(), new: Vec::new() }
    }

    fn at(&mut self, index: usize, owner: &str, what: &str, place: &Option<Place>) -> Result<&mut T> {
        let count = self.old.len();
        match self.old.get_mut(index) {
            Some(Some(item)) => Ok(item),
            Some(None) => {
                let message = format!("number {index} of its {what} is both changed and removed");
                Err(refusal(message, place, "remove one of the two entries"))
            }
            None => {
                let message = format!("number {index} does not exist: {owner} {count} {what}");
                Err(refusal(message, place, "numbers start at 0"))
            }
        }
    }

    fn remove(&mut self, index: usize, owner: &str, what: &str, place: &Option<Place>) -> Result<()> {
        self.at(index, owner, what, place)?;
        self.old[index] = None;
        Ok(())
    }

    fn finish(self) -> Vec<T> {
        self.old.into_iter().flatten().chain(self.new).collect()
    }
}
