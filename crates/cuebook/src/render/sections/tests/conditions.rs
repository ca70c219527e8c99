//! Whether sections are there and how much of them is shown: all shapes of conditions, and how often they are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::error::ErrorKind;

/// Counts how often it is asked.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn asked(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn enables(&self, enabled: bool) -> impl Fn() -> bool + use<> {
        let counter = self.clone();
        move || {
            counter.0.fetch_add(1, Ordering::Relaxed);
            enabled
        }
    }

    fn shows(&self, visibility: Visibility) -> impl Fn() -> Visibility + use<> {
        let counter = self.clone();
        move || {
            counter.0.fetch_add(1, Ordering::Relaxed);
            visibility
        }
    }
}

fn is_open(session: Option<&dyn Session>) -> bool {
    session.is_some_and(|session| session.visibility(&path("open")) == Some(Visibility::Full))
}

#[test]
fn enabled_has_four_shapes() {
    let section = |key: &str| Section::of::<Task>(key, key, "$goal").unwrap();
    let tree = tree([
        section("nothing").enabled_if(|| true).into(),
        section("session").enabled_if(is_open).into(),
        section("params").enabled_if(|task: &Task| task.brief).into(),
        section("both")
            .enabled_if(|task: &Task, session: Option<&dyn Session>| task.brief && is_open(session))
            .into(),
        Section::new("untyped", "untyped", "").enabled_if(is_open),
    ]);
    let mut session = VisibilityOverrides::new();
    let bound = task("x", true);
    let shown =
        |session: &VisibilityOverrides| states(&tree.render(&Setting::new(&bound).session(session)).unwrap());
    assert_eq!(shown(&session), ["full", "disabled", "full", "disabled", "disabled"]);
    session.set(&path("open"), Visibility::Full);
    assert_eq!(shown(&session), ["full"; 5]);
}

#[test]
fn visibility_has_four_shapes() {
    let pick = |brief: bool| if brief { Visibility::Summary } else { Visibility::Full };
    let section = |key: &str| Section::of::<Task>(key, key, "$goal").unwrap();
    let tree = tree([
        section("nothing").visible_if(|| Visibility::Summary).into(),
        section("session").visible_if(move |session: Option<&dyn Session>| pick(is_open(session))).into(),
        section("params").visible_if(move |task: &Task| pick(task.brief)).into(),
        section("both")
            .visible_if(move |task: &Task, session: Option<&dyn Session>| {
                pick(task.brief && is_open(session))
            })
            .into(),
    ]);
    let bound = task("x", true);
    let rendered = tree.render(&Setting::new(&bound)).unwrap();
    assert_eq!(states(&rendered), ["summary", "full", "summary", "full"]);
}

#[test]
fn nothing_below_a_disabled_section_is_asked() {
    let (own, below) = (Counter::default(), Counter::default());
    let child = plain("b", []).enabled_if(below.enables(true)).visible_if(below.shows(Visibility::Full));
    let seen = own.shows(Visibility::Full);
    let tree = tree([plain("a", [child]).enabled_if(own.enables(false)).visible_if(seen), plain("c", [])]);
    let rendered = tree.render(&Setting::new(&[])).unwrap();
    assert_eq!(rendered.text(), "# c\n\nc");
    assert_eq!(states(&rendered), ["disabled", "disabled", "full"]);
    assert_eq!((own.asked(), below.asked()), (1, 0), "one question: whether it is there");
}

#[test]
fn conditions_are_evaluated_once_and_not_below_summaries() {
    let (own, below) = (Counter::default(), Counter::default());
    let child = plain("b", []).enabled_if(below.enables(true)).visible_if(below.shows(Visibility::Full));
    let parent = plain("a", [child]).enabled_if(own.enables(true)).visible_if(own.shows(Visibility::Summary));
    let tree = tree([parent, summarized("c", [])]);
    let rendered = tree.render(&Setting::new(&[])).unwrap();
    assert_eq!(states(&rendered), ["summary", "hidden", "summary"]);
    assert_eq!((own.asked(), below.asked()), (2, 0));
}

#[test]
fn a_condition_is_not_asked_where_the_session_has_decided() {
    let counter = Counter::default();
    let tree = tree([plain("a", []).visible_if(counter.shows(Visibility::Summary))]);
    let mut session = VisibilityOverrides::new();
    session.set(&path("a"), Visibility::Full);
    let setting = Setting::new(&[]).session(&session);
    assert_eq!(states(&tree.render(&setting).unwrap()), ["full"]);
    assert_eq!(counter.asked(), 0);
    assert_eq!(tree.decided_by(0, &setting), Some(DecidedBy::Session));
    assert_eq!(tree.decided_by(0, &Setting::new(&[])), Some(DecidedBy::Condition));
}

#[test]
fn a_section_that_is_never_there_needs_no_parameters() {
    let mut off = Section::from(Section::of::<Task>("a", "A", "$goal").unwrap());
    off.enabled = Selector::Always(false);
    assert_eq!(tree([off]).render(&Setting::new(&[])).unwrap().text(), "");
}

#[test]
fn a_condition_that_fails_says_why() {
    let mut section = plain("a", []);
    section.enabled = Selector::Asked(Arc::new(|_| Err("no network".to_owned())));
    let error = tree([section]).render(&Setting::new(&[])).unwrap_err();
    assert_eq!(
        (error.kind(), message(&error)),
        (ErrorKind::PromptRender, "Section enabled predicate failed.")
    );
    assert_eq!(error.field("cause").unwrap(), "no network");
    assert_eq!(error.field("section_path").unwrap(), &serde_json::json!(["a"]));
}
