//! Texts: parameters, engines, attribution, limits.

use serde_json::json;

use super::*;
use crate::error::{Code, ErrorKind};
use crate::render::Origin;

#[test]
fn bound_parameters_win_over_section_and_type_defaults() {
    let section = |key: &str| Section::of::<Task>(key, key, "$goal").unwrap();
    let default = |goal: &str| Task { goal: goal.into(), brief: false };
    let tree = tree([
        section("a").into(),
        section("b").default(default("of b")).unwrap().into(),
        section("c").default(default("of c")).unwrap().into(),
    ]);
    let text = |bound: &[BoundParams]| tree.render(&Setting::new(bound)).unwrap().text().to_owned();
    assert_eq!(text(&[]), "# a\n\nof b\n\n# b\n\nof b\n\n# c\n\nof c");
    assert_eq!(text(&task("x", false)), "# a\n\nx\n\n# b\n\nx\n\n# c\n\nx");
}

#[test]
fn parameters_that_are_missing_twice_or_unwanted_are_errors() {
    let tree = tree([Section::of::<Task>("a", "A", "no placeholder").unwrap().into()]);
    let fails = |bound: &[BoundParams]| tree.render(&Setting::new(bound)).unwrap_err();
    let error = fails(&[]);
    assert_eq!((error.kind(), message(&error)), (ErrorKind::PromptRender, "Missing parameters for section."));
    let hint = error.diagnostic().hint.clone().unwrap();
    assert!(hint.contains("`goal`, `brief`"), "{hint}");
    let both = [task("x", true), task("y", true)].concat();
    assert_eq!(message(&fails(&both)), "Duplicate params type supplied to prompt.");
    let other = BoundParams::new("Nobody", &serde_json::Map::new());
    assert_eq!(message(&fails(&[other])), "Unexpected params type supplied to prompt.");
}

#[test]
fn a_type_with_all_defaults_needs_no_binding() {
    #[derive(Serialize, JsonSchema)]
    struct Greeting {
        #[serde(default = "world")]
        name: String,
    }
    fn world() -> String {
        "world".into()
    }
    let tree = tree([Section::of::<Greeting>("a", "A", "Hello $name").unwrap().into()]);
    assert_eq!(tree.render(&Setting::new(&[])).unwrap().text(), "# A\n\nHello world");
}

#[test]
fn an_empty_body_leaves_the_heading_alone() {
    let tree = tree([
        Section::of::<Task>("a", "A", " $goal ").unwrap().into(),
        Section::new("b", "B", ""),
        plain("c", []),
    ]);
    let rendered = tree.render(&Setting::new(&task(" \n", false))).unwrap();
    assert_eq!(rendered.text(), "# A\n\n# B\n\n# c\n\nc");
}

#[test]
fn a_name_that_nothing_fills_is_an_error_or_stays() {
    let section = plain("a", []).summary("see $this").visible(Visibility::Summary);
    let tree = tree([plain("p", [section])]);
    let error = tree.render(&Setting::new(&[])).unwrap_err();
    assert_eq!(message(&error), "Missing placeholder during render.");
    assert_eq!(error.field("placeholder").unwrap(), "this");
    assert_eq!(error.field("section_path").unwrap(), &json!(["p", "a"]));
    assert_eq!(error.diagnostic().place.as_ref().unwrap().text(), "$this");
    let kept = tree.render(&Setting::new(&[]).missing(Missing::Keep)).unwrap();
    assert!(kept.text().contains("see $this"), "{}", kept.text());
}

#[test]
fn a_section_may_have_another_engine() {
    let jinja = Section::of::<Task>("a", "A", "{% if brief %}Be brief.{% endif %} {{ goal }}").unwrap();
    let mustache = Section::of::<Task>("b", "B", "{{{goal}}}!").unwrap();
    let tree = tree([
        jinja.map(|section| section.engine("jinja2").summary("{{ goal | upper }}")).into(),
        mustache.map(|section| section.engine("mustache")).into(),
    ]);
    let bound = task("x", true);
    let rendered = tree.render(&Setting::new(&bound)).unwrap();
    assert_eq!(rendered.text(), "# A\n\nBe brief. x\n\n# B\n\nx!");
    let values: Vec<(String, String)> = rendered
        .spans()
        .filter(|span| matches!(span.origin, Origin::Value { .. }))
        .map(|span| (span.section.unwrap().to_string(), rendered.text()[span.range].to_owned()))
        .collect();
    assert_eq!(values, [("a".to_owned(), "x".to_owned()), ("b".to_owned(), "x".to_owned())]);
    let mut session = VisibilityOverrides::new();
    session.set(&path("a"), Visibility::Summary);
    let rendered = tree.render(&Setting::new(&bound).session(&session)).unwrap();
    assert!(rendered.text().starts_with("# A\n\nX\n\n---\n"), "{}", rendered.text());
    let broken = plain("a", []).engine("jinja2");
    let error = refused([Section::new("z", "Z", "{% if %}").engine("jinja2"), broken]);
    assert_eq!(error.field("section_path").unwrap(), &json!(["z"]));
}

#[test]
fn spans_have_sections_and_values_forge_no_heading() {
    let tree = tree([
        Section::of::<Task>("a", "A", "About $goal.").unwrap().into(),
        plain("p", [summarized("b", [])]),
    ]);
    let rendered = tree.render(&Setting::new(&task("\n\n# Fake\n\nx", false))).unwrap();
    assert!(rendered.text().starts_with("# A\n\nAbout \n\n# Fake\n\nx.\n\n# p"), "{}", rendered.text());
    let mut at = 0;
    let mut headings = Vec::new();
    for span in rendered.spans() {
        assert_eq!(span.range.start, at, "without gaps");
        at = span.range.end;
        let text = &rendered.text()[span.range.clone()];
        let section = span.section.expect("a section").to_string();
        match &span.origin {
            Origin::Frame { name } if name == "heading" => headings.push((section, text.trim().to_owned())),
            Origin::Value { shown, .. } => {
                assert_eq!(
                    (section.as_str(), text, shown[0].path.as_str()),
                    ("a", "\n\n# Fake\n\nx", "goal")
                );
            }
            Origin::Literal { source, range, .. } => assert_eq!(&source.text()[range.clone()], text),
            _ => {}
        }
    }
    assert_eq!(at, rendered.text().len());
    let wanted = [("a", "# A"), ("p", "# p"), ("p.b", "## b")];
    assert_eq!(headings, wanted.map(|(section, text)| (section.to_owned(), text.to_owned())));
}

#[test]
fn a_text_has_a_limit() {
    let tree = tree([Section::of::<Task>("a", "A", "$goal").unwrap().into()]);
    let bound = task(&"x".repeat(100), false);
    assert!(tree.render(&Setting::new(&bound).limit(105)).is_ok());
    let error = tree.render(&Setting::new(&bound).limit(104)).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::OutputTooLarge));
    assert_eq!(error.field("section_path").unwrap(), &json!(["a"]));
}

#[test]
fn sections_that_must_make_room_show_their_summary_or_nothing() {
    let tree =
        tree([plain("a", [plain("b", [])]).summary("short"), plain("c", [plain("d", [])]), plain("e", [])]);
    let folded = [(0, Fold::Summary), (2, Fold::Gone)];
    let setting = Setting::new(&[]).fold(&folded);
    let rendered = tree.render(&setting).unwrap();
    assert_eq!(states(&rendered), ["summary", "hidden", "dropped", "dropped", "full"]);
    assert_eq!(tree.decided_by(2, &setting), Some(DecidedBy::Budget));
    let read = tree.read_section(&json!({"section_key": "a"}), &setting).unwrap();
    assert_eq!(read, "# a\n\na\n\n## b\n\nb", "what was folded can be read");
}

#[test]
fn a_prompt_without_sections_is_empty() {
    let rendered = tree([]).render(&Setting::new(&[])).unwrap();
    assert_eq!((rendered.text(), rendered.spans().count()), ("", 0));
}
