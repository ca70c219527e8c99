//! A prompt that was made to fit is the one that a render with the same folds gives, byte for byte and origin for origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::overriding::{file, stored};
use super::*;
use crate::overrides::{Resolved, SectionOverride, TaskExample, TaskStep};
use crate::tokens::{Counter, Tokenizer};

/// A tree with everything that a text can be, and in which almost everything may make room. It counts how often its one condition
/// is asked.
fn mixed(asked: &Arc<AtomicUsize>) -> Tree {
    let words = "Some words that take a number of tokens, again and again. ".repeat(4);
    let example = |key: &str| {
        let step = TaskStep {
            tool: "search".into(),
            description: "look".into(),
            input: json!(null),
            output: json!(null),
        };
        let example =
            TaskExample { objective: format!("Find {key}"), outcome: json!("ok"), steps: vec![step] };
        Section::task_example(key, None, example).unwrap().priority(-3)
    };
    let search = SectionTool::new("search", "Search.").unwrap();
    let search = search.example("Finds nothing.", json!(null), json!(null)).unwrap();
    let asked = asked.clone();
    let asked = Section::of::<Task>("asked", "Asked", format!("About $goal. {words}"))
        .unwrap()
        .map(|section| section.summary("In short: $goal.").priority(1))
        .enabled_if(move |task: &Task| {
            asked.fetch_add(1, Ordering::Relaxed);
            !task.brief
        });
    let jinja = Section::of::<Task>("jinja", "Jinja", format!("{{{{ goal }}}}! {words}")).unwrap();
    let jinja = jinja.map(|section| section.engine("jinja2").summary("{{ goal }} in short").priority(2));
    let heading_only = Section::new("empty", "Empty", "").tool(search).summary("Nothing.").priority(-1);
    let mut disabled = plain("disabled", [plain("below", [])]);
    disabled.enabled = Selector::Always(false);
    builder([
        heading_only,
        Section::new("other", "Other", words.as_str())
            .summary("Other words.")
            .priority(-2)
            .child(asked)
            .child(summarized("short", [plain("hidden", [])]).priority(-5))
            .child(jinja),
        disabled,
        Section::task_examples("te", "Examples", [example("one"), example("two")]).priority(-1),
        Section::new("last", "Last", words.as_str()).summary("The end").priority(3),
    ])
    .headings(Headings::Numbered)
    .build()
    .unwrap()
}

fn overridden(tree: &Tree) -> Resolved {
    let step = json!({"tool_name": "search", "description": "find", "input_json": "null"});
    let added = json!([{"path": ["te"], "index": -1, "expected_hash": null, "action": "append",
        "objective": "Find z", "outcome": "z", "steps_to_append": [step]}]);
    let mut resolved = stored(tree, file(json!({}), added));
    let body = Some("Other words for $goal.".to_owned());
    let by = SectionOverride { path: path("other.asked"), body, ..SectionOverride::default() };
    resolved.sections.insert(by.path.clone(), by);
    resolved
}

/// How sections made room, from what became of them.
fn folds(whole: &RenderedPrompt, fitted: &RenderedPrompt, tree: &Tree) -> Vec<(usize, Fold)> {
    let mut folds: Vec<(usize, Fold)> = Vec::new();
    let mut behind = 0;
    for (index, (before, now)) in whole.states.iter().zip(&fitted.states).enumerate() {
        if before == now || index < behind {
            continue;
        }
        behind = tree.nodes[index].end;
        folds.push((index, if *now == SectionState::Dropped { Fold::Gone } else { Fold::Summary }));
    }
    folds
}

fn spans(rendered: &RenderedPrompt) -> Vec<String> {
    rendered.spans().map(|span| format!("{span:?}")).collect()
}

#[test]
fn a_fitted_prompt_is_the_render_with_the_same_folds() {
    let (tree, tokenizer, counter) = (mixed(&Arc::default()), Tokenizer::for_model("gpt-4o"), Counter::new());
    let (bound, overrides) = (task("prices", false), overridden(&tree));
    for setting in [Setting::new(&bound), Setting::new(&bound).overrides(&overrides)] {
        let whole = tree.render(&setting).unwrap();
        let tokens = tokenizer.count(whole.text());
        let (mut shortest, mut seen) = (usize::MAX, Vec::new());
        for budget in (0..=tokens + 1).rev() {
            let Ok((fitted, fitting)) = tree.fit(&setting, budget, &tokenizer, &counter) else { continue };
            let folds = folds(&whole, &fitted, &tree);
            let expected = tree.render(&setting.fold(&folds)).unwrap();
            assert_eq!(fitted.text(), expected.text(), "{budget}: {:?}", fitting.steps);
            assert_eq!((&fitted.states, names(&fitted)), (&expected.states, names(&expected)));
            assert_eq!(spans(&fitted), spans(&expected), "{budget}");
            assert_eq!((fitting.before, fitting.tokens), (tokens, tokenizer.count(fitted.text())));
            assert!(fitting.tokens <= budget && fitting.tokens <= shortest);
            shortest = fitting.tokens;
            seen.push(folds);
        }
        seen.dedup();
        assert!(seen.len() > 8, "{seen:?}");
    }
}

#[test]
fn fitting_asks_a_condition_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (tree, bound) = (mixed(&asked), task("prices", false));
    let (setting, tokenizer) = (Setting::new(&bound), Tokenizer::for_model("gpt-4o"));
    let whole = tokenizer.count(tree.render(&setting).unwrap().text());
    assert_eq!(asked.swap(0, Ordering::Relaxed), 1);
    let (_, fitting) = tree.fit(&setting, whole / 2, &tokenizer, &Counter::new()).unwrap();
    assert!(fitting.steps.len() > 1);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}
