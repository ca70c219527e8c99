//! Trees: order, numbers, registry, and what is refused when they are built.

use super::*;
use crate::error::{ErrorKind, Severity};

#[test]
fn parents_come_before_children_with_path_and_depth() {
    let tree = tree([plain("a", [plain("b", [plain("c", [])]), plain("d", [])]), plain("e", [])]);
    let found: Vec<(&str, usize, &str)> =
        tree.sections().iter().map(|node| (node.dotted(), node.depth, node.number.as_str())).collect();
    let wanted = [("a", 0, "1"), ("a.b", 1, "1.1"), ("a.b.c", 2, "1.1.1"), ("a.d", 1, "1.2"), ("e", 0, "2")];
    assert_eq!(found, wanted);
    assert_eq!(tree.get_section(&path("a.b.c")).unwrap().number, "1.1.1");
    assert!(tree.get_section(&path("a.c")).is_none());
}

#[test]
fn headings_are_plain_or_numbered() {
    let sections = || [plain("a", [plain("b", [])])];
    let render = |tree: Tree| tree.render(&Setting::new(&[])).unwrap().text().to_owned();
    assert_eq!(render(tree(sections())), "# a\n\na\n\n## b\n\nb");
    let numbered = builder(sections()).headings(Headings::Numbered).build().unwrap();
    assert_eq!(render(numbered), "## 1. a (a)\n\na\n\n### 1.1. b (a.b)\n\nb");
}

#[test]
fn a_tree_is_built_once_and_renders_for_any_number_of_threads() {
    let tree = tree([Section::of::<Task>("a", "A", "$goal").unwrap().into()]);
    std::thread::scope(|scope| {
        for number in 0..4 {
            let tree = &tree;
            scope.spawn(move || {
                let bound = task(&number.to_string(), false);
                assert_eq!(tree.render(&Setting::new(&bound)).unwrap().text(), format!("# A\n\n{number}"));
            });
        }
    });
}

#[test]
fn the_types_of_parameters_are_listed_once_each() {
    #[derive(Serialize, JsonSchema)]
    struct Other {
        n: i64,
    }
    let section = |key: &str| Section::from(Section::of::<Task>(key, "", "$goal").unwrap());
    let tree = tree([section("a"), Section::of::<Other>("b", "", "$n").unwrap().into(), section("c")]);
    let names: Vec<&str> = tree.params_types().map(|of| of.record.name.as_str()).collect();
    assert_eq!(names, ["Task", "Other"]);
}

#[test]
fn keys_that_are_none_are_refused_with_a_suggestion() {
    let error = refused([plain("Intro", [])]);
    assert_eq!(error.kind(), ErrorKind::PromptValidation);
    assert_eq!(message(&error), "Section key must match ^[a-z0-9][a-z0-9._-]{0,63}$.");
    assert_eq!(error.diagnostic().hint.as_deref(), Some("write `intro`"));
    assert!(Tree::builder("a b", "c").build().is_err());
}

#[test]
fn two_sections_side_by_side_have_two_keys() {
    let error = refused([plain("p", [plain("a", []), plain("a", [])])]);
    assert_eq!(message(&error), "two sibling sections have the key `a`");
    assert_eq!(error.field("section_path").unwrap(), &serde_json::json!(["p", "a"]));
    assert!(builder([plain("a", []), plain("b", [plain("a", [])])]).build().is_ok());
}

#[test]
fn a_body_asks_only_for_what_fills_it() {
    let error = refused([Section::of::<Task>("a", "A", "$brief $gaol").unwrap().into()]);
    assert_eq!(message(&error), "Template references unknown placeholder.");
    assert_eq!(error.field("placeholder").unwrap(), "gaol");
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `goal`?"));
    assert_eq!(error.diagnostic().place.as_ref().unwrap().text(), "gaol");
    let error = refused([Section::new("a", "A", "$goal")]);
    assert_eq!(message(&error), "Section does not accept parameters but declares placeholders.");
}

#[test]
fn a_summary_with_other_names_is_reported_and_not_refused() {
    let section = Section::of::<Task>("a", "A", "$goal").unwrap();
    let tree = tree([section.map(|section| section.summary("$gaol")).into()]);
    let [note] = tree.notes() else { panic!("{:?}", tree.notes()) };
    assert_eq!(note.severity, Severity::Warning);
    assert_eq!(note.message, "the summary of `a` uses the unknown name `gaol`");
}

#[test]
fn sections_are_nested_only_so_deep() {
    let nested = |levels: usize| (1..levels).fold(plain("k", []), |below, _| plain("k", [below]));
    assert!(builder([nested(MAX_LEVELS)]).build().is_ok());
    assert!(message(&refused([nested(MAX_LEVELS + 1)])).contains("64 levels"));
}
