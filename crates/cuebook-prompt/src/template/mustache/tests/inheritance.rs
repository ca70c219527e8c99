//! Parents and blocks beyond what the specification's own cases say.

use serde_json::json;

use super::Case;

#[test]
fn a_parent_with_its_arguments_is_like_one_tag_on_its_line() {
    let case = Case::new(
        "a\n  {{<p}}{{$x}}X{{/x}}{{/p}}\nb {{<p}}{{/p}} c\n  {{<p}}\n  ignored {{y}}\n  {{/p}} d\n",
    )
    .with(&[("p", "<{{$x}}-{{/x}}>")]);
    assert_eq!(case.text(json!({})), "a\n  <X>b <-> c\n  <-> d\n");
}

#[test]
fn ignored_parts_of_a_parent_are_not_read() {
    let case = Case::new("{{<p}}{{>nowhere}}{{y}}{{#z}}{{$x}}no{{/x}}{{/z}}{{/p}}")
        .with(&[("p", "{{$x}}yes{{/x}}")]);
    let template = case.compile().unwrap();
    assert_eq!(template.program().names()[0].reads, []);
    assert_eq!(case.text(json!({"z": true})), "yes");
}

#[test]
fn of_two_arguments_with_one_name_the_last_counts() {
    let case = Case::new("{{<p}}{{$x}}1{{/x}}{{$x}}2{{/x}}{{/p}}").with(&[("p", "{{$x}}{{/x}}")]);
    assert_eq!(case.text(json!({})), "2");
}

#[test]
fn blocks_reach_through_partials_and_computed_parents() {
    let case = Case::new("{{<*which}}{{$x}}X{{/x}}{{/ * which }}")
        .with(&[("a", "[{{>inner}}]"), ("inner", "{{$x}}default{{/x}}")]);
    assert_eq!(case.text(json!({"which": "a"})), "[X]");
    assert_eq!(case.text(json!({})), "");
}

#[test]
fn a_replacement_that_begins_with_a_section_is_indented_once() {
    let case = Case::new("{{<p}}{{$x}}\n{{#items}}\n- {{.}}\n{{/items}}\n{{/x}}{{/p}}")
        .with(&[("p", "of:\n  {{$x}}{{/x}}end\nof:\n  {{$x}}\n  {{/x}}\nend")]);
    assert_eq!(case.text(json!({"items": [1, 2]})), "of:\n  - 1\n  - 2\nend\nof:\n  - 1\n  - 2\nend");
    assert_eq!(case.text(json!({"items": []})), "of:\n  end\nof:\nend");
}

#[test]
fn dedent_removes_at_most_the_white_space_of_a_line() {
    let case = Case::new("{{<p}}{{$x}}\n\n    one\n  two\n      {{y}}\n\t three\n    {{>q}}\n{{/x}}{{/p}}")
        .with(&[("p", "{{$x}}{{/x}}"), ("q", "q\nq\n")]);
    assert_eq!(case.text(json!({"y": "Y"})), "\none\ntwo\n  Y\n\t three\nq\nq\n");
}
