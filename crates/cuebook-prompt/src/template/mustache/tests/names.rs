//! What a template mentions, known before it is rendered.

use serde_json::json;

use super::Case;
use crate::template::jinja::names::ReferenceKind;

/// The paths of every emission of a unit.
fn emissions(case: &Case, unit: usize) -> Vec<String> {
    let program = case.compile().unwrap().program();
    let emissions = program.units()[unit].emissions();
    assert_eq!(emissions.len(), program.names()[unit].emissions.len());
    emissions.iter().map(|emission| emission.paths.join(" ")).collect()
}

#[test]
fn reads_are_the_names_with_everything_that_they_can_mean() {
    let program =
        Case::new("{{a.b}}{{#items}}{{title}}{{^x}}{{/x}}{{/items}}{{>*p}}").compile().unwrap().program();
    let reads: Vec<String> = program.names()[0]
        .reads
        .iter()
        .map(|read| format!("{} {} {:?} {}", read.root, read.path, read.range, read.maybe_local))
        .collect();
    assert_eq!(
        reads,
        [
            "a a.b 2..5 false",
            "items items 10..15 false",
            "items items.title 19..24 true",
            "items items[].title 19..24 true",
            "title title 19..24 true",
            "items items.x 29..30 true",
            "items items[].x 29..30 true",
            "x x 29..30 true",
            "p p 52..53 false",
        ]
    );
}

#[test]
fn references_and_blocks_have_their_places() {
    let case = Case::new("{{>a}}{{#x}}{{>*y}}{{/x}}{{<b}}{{$c}}{{>a}}{{/c}}{{/b}}{{$d}}{{/d}}")
        .with(&[("a", ""), ("b", "")]);
    let program = case.compile().unwrap().program();
    let names = &program.names()[0];
    let references: Vec<_> = names
        .references
        .iter()
        .map(|r| (r.kind, r.names.as_ref().map(|names| names[0].as_str()), r.range.start, r.conditional))
        .collect();
    assert_eq!(
        references,
        [
            (ReferenceKind::Include, Some("a"), 0, false),
            (ReferenceKind::Include, None, 12, true),
            (ReferenceKind::Extends, Some("b"), 25, false),
            (ReferenceKind::Include, Some("a"), 37, true),
        ]
    );
    let blocks: Vec<_> = names.blocks.iter().map(|block| (block.name.as_str(), block.range.start)).collect();
    assert_eq!(blocks, [("c", 31), ("d", 55)]);
    assert_eq!((program.target(0, 0), program.target(0, 1), program.target(0, 2)), (Some(1), None, Some(2)));
}

#[test]
fn a_partial_sees_the_values_of_every_place_that_uses_it() {
    let case = Case::new("{{#a}}{{>p}}{{/a}}{{#b.c}}{{>p}}{{/b.c}}").with(&[("p", "{{x}} {{.}}")]);
    assert_eq!(emissions(&case, 1), ["a.x a[].x b.c.x b.c[].x x", "a a[] b.c b.c[]"]);
}

#[test]
fn a_replacement_sees_the_values_of_the_block_wherever_that_is() {
    let case = Case::new("{{<p}}{{$k}}{{x}}{{/k}}{{$unused}}{{y}}{{/unused}}{{/p}}")
        .with(&[("p", "{{>q}}"), ("q", "{{#s}}{{$k}}{{/k}}{{/s}}")]);
    assert_eq!(emissions(&case, 0), ["s.x s[].x x", "y"]);
}

#[test]
fn recursion_is_covered_by_bare_names() {
    let case = Case::new("{{>node}}").with(&[("node", "{{name}}{{#children}}{{>node}}{{/children}}")]);
    assert_eq!(emissions(&case, 1), ["children name"]);
    let shown = case
        .text(json!({"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": []}]}]}));
    assert_eq!(shown, "abc");
}

#[test]
fn the_scope_itself_is_a_dot() {
    assert_eq!(emissions(&Case::new("{{.}}{{#.}}{{x}}{{.}}{{/.}}"), 0), [".", "[].x x", ". []"]);
}

#[test]
fn a_shape_that_no_render_narrows_stays_wide() {
    let sections: String =
        (0..100).map(|index| format!("{{{{#s{index}}}}}{{{{>p}}}}{{{{/s{index}}}}}")).collect();
    let case = Case::new(sections).with(&[("p", "{{x}}")]);
    let paths = emissions(&case, 1).remove(0);
    assert_eq!(paths.split(' ').count(), 101, "every section and the name itself");
    assert!(paths.split(' ').any(|path| path == "x") && paths.split(' ').any(|path| path == "s42"));
}
