//! What overrides make of lists of examples.

use super::*;
use crate::error::{Code, ErrorKind};
use crate::overrides::entry::{NewTaskStep, ToolExampleChange};
use crate::overrides::example::{apply_task_examples, apply_tool_examples, change_task_example};
use crate::overrides::{
    JsonText, TaskExampleChange, TaskExampleOverride, TaskStepOverride, ToolExampleOverride,
};

fn by(change: ToolExampleChange) -> ToolExampleOverride {
    ToolExampleOverride { change, place: None }
}

fn remove(index: usize) -> ToolExampleOverride {
    by(ToolExampleChange::Remove { index, expected_hash: String::new() })
}

fn modify(index: usize, description: &str) -> ToolExampleOverride {
    by(ToolExampleChange::Modify {
        index,
        expected_hash: String::new(),
        description: Some(description.into()),
        input: None,
        output: None,
    })
}

fn tool_examples() -> Vec<ToolExample> {
    TOOL_EXAMPLES.iter().map(|description| tool_example(description)).collect()
}

fn tasks() -> Vec<TaskExample> {
    TASKS.iter().map(|objective| task(objective)).collect()
}

fn by_task(change: TaskExampleChange) -> TaskExampleOverride {
    TaskExampleOverride { path: path("examples/one"), change, place: None }
}

/// A change of the first task that changes nothing yet.
fn modify_task() -> TaskExampleChange {
    TaskExampleChange::Modify {
        index: 0,
        expected_hash: String::new(),
        objective: None,
        outcome: None,
        step_overrides: Vec::new(),
        steps_to_remove: Vec::new(),
        steps_to_append: Vec::new(),
    }
}

#[test]
fn indexes_count_the_original_list_whatever_else_is_removed() {
    let append = by(ToolExampleChange::Append { description: "birds".into(), input: None, output: None });
    let overrides = [append, modify(2, "big fish"), remove(0), remove(1)];
    let found = apply_tool_examples(&tool_examples(), &overrides).unwrap();
    let names: Vec<&str> = found.iter().map(|example| &*example.description).collect();
    assert_eq!(names, ["big fish", "birds"]);
    assert_eq!(found[0].input, json!({"query": "fish"}), "what is not said stays");
    assert_eq!((&found[1].input, &found[1].output), (&Json::Null, &Json::Null));
}

#[test]
fn json_null_is_a_value_and_not_the_same_as_nothing() {
    let change = ToolExampleChange::Modify {
        index: 1,
        expected_hash: String::new(),
        description: None,
        input: Some(JsonText::parse("null").unwrap()),
        output: Some(JsonText::from(json!([1, 2]))),
    };
    let found = apply_tool_examples(&tool_examples(), &[by(change)]).unwrap();
    assert_eq!((&found[1].input, &found[1].output), (&Json::Null, &json!([1, 2])));
    assert_eq!((found[0].clone(), found[2].clone()), (tool_example("cats"), tool_example("fish")));
}

#[test]
fn missing_entries_are_neither_changed_nor_removed() {
    for overrides in
        [vec![remove(3)], vec![modify(3, "x")], vec![modify(1, "x"), remove(1)], vec![remove(1); 2]]
    {
        let error = apply_tool_examples(&tool_examples(), &overrides).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Overrides, Code::BadOverride));
    }
    let error = apply_tool_examples(&tool_examples(), &[remove(7)]).unwrap_err();
    assert_eq!(error.diagnostic().message, "number 7 does not exist: the tool has 3 examples");
}

#[test]
fn a_task_can_get_other_words_and_other_steps() {
    let mut change = modify_task();
    if let TaskExampleChange::Modify { objective, step_overrides, steps_to_remove, steps_to_append, .. } =
        &mut change
    {
        *objective = Some("uno".into());
        step_overrides.push(TaskStepOverride {
            index: 2,
            tool_name: Some("shut".into()),
            output: Some(JsonText::from(json!(true))),
            ..TaskStepOverride::default()
        });
        steps_to_remove.push(0);
        steps_to_append.push(NewTaskStep {
            tool_name: "rest".into(),
            description: "rest now".into(),
            ..NewTaskStep::default()
        });
    }
    let found = apply_task_examples(&tasks(), &[by_task(change)], false).unwrap();
    let tools: Vec<&str> = found[0].steps.iter().map(|step| &*step.tool).collect();
    assert_eq!(
        (&*found[0].objective, &found[0].outcome, tools),
        ("uno", &json!("done"), vec!["open", "shut", "rest"])
    );
    assert_eq!((&*found[0].steps[1].description, &found[0].steps[1].output), ("close it", &json!(true)));
    assert_eq!(found[1..], tasks()[1..]);
}

#[test]
fn tasks_are_removed_and_added() {
    let steps =
        vec![NewTaskStep { tool_name: "search".into(), description: "d".into(), ..NewTaskStep::default() }];
    let append =
        TaskExampleChange::Append { objective: "four".into(), outcome: "{\"ok\": true}".into(), steps };
    let remove = |index| TaskExampleChange::Remove { index, expected_hash: String::new() };
    let overrides = [by_task(append), by_task(remove(2)), by_task(remove(0))];
    let found = apply_task_examples(&tasks(), &overrides, true).unwrap();
    assert_eq!(found[0], task("two"));
    assert_eq!((&*found[1].objective, &found[1].outcome), ("four", &json!({"ok": true})));
    assert_eq!((found.len(), found[1].steps.len()), (2, 1));
    let text = apply_task_examples(&tasks(), &overrides, false).unwrap();
    assert_eq!(text[1].outcome, json!("{\"ok\": true}"), "without a declared output an outcome is a text");
    assert_eq!(change_task_example(&task("two"), &overrides[1], false).unwrap(), None);
}

#[test]
fn an_outcome_must_be_json_where_the_prompt_declares_its_output() {
    let mut change = modify_task();
    if let TaskExampleChange::Modify { outcome, .. } = &mut change {
        *outcome = Some("all is well".into());
    }
    let overrides = [by_task(change)];
    let error = apply_task_examples(&tasks(), &overrides, true).unwrap_err();
    assert!(error.to_string().contains("this `outcome` is not JSON"), "{error}");
    assert_eq!(apply_task_examples(&tasks(), &overrides, false).unwrap()[0].outcome, json!("all is well"));
}

#[test]
fn a_step_that_is_not_there_is_refused() {
    let mut change = modify_task();
    if let TaskExampleChange::Modify { steps_to_remove, .. } = &mut change {
        steps_to_remove.push(3);
    }
    let error = apply_task_examples(&tasks(), &[by_task(change)], false).unwrap_err();
    assert_eq!(error.diagnostic().message, "number 3 does not exist: the example has 3 steps");
}
