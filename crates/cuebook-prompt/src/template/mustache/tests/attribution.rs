//! Who wrote which byte.

use serde_json::json;

use super::Case;

#[test]
fn literals_have_places_and_values_tags_and_paths() {
    let case = Case::new("Hi {{user.name}},\n{{#items}}\n- {{title}}: {{{.}}}\n{{/items}}\nBye{{! x }}.");
    assert_eq!(
        case.pieces(json!({"user": {"name": "<Al>"}, "items": [{"title": "one"}, "two"]})),
        "\
main.md@0 \"Hi \"
main.md {{user.name}} \"&lt;Al&gt;\" of user.name
main.md@16 \",\\n\"
main.md@29 \"- \"
main.md {{title}} \"one\" of items.title, items[].title, title
main.md@40 \": \"
main.md {{{.}}} \"{\\\"title\\\":\\\"one\\\"}\" of items, items[]
main.md@49 \"\\n\"
main.md@29 \"- \"
main.md {{title}} \"\" of items.title, items[].title, title
main.md@40 \": \"
main.md {{{.}}} \"two\" of items, items[]
main.md@49 \"\\n\"
main.md@61 \"Bye\"
main.md@72 \".\"
"
    );
}

#[test]
fn indentation_of_a_partial_belongs_to_its_user() {
    let case = Case::new("List:\n  {{>list}}\nEnd").with(&[
        ("list", "a\n\n{{#items}}\n {{>item}}\n{{/items}}\nz\n"),
        ("item", "* {{name}}\n  {{{note}}}\n"),
    ]);
    let data = json!({"items": [{"name": "x", "note": "1\n2"}]});
    assert_eq!(case.text(data.clone()), "List:\n  a\n\n   * x\n     1\n2\n  z\nEnd");
    assert_eq!(
        case.pieces(data),
        "\
main.md@0 \"List:\\n\"
main.md@6 \"  \"
list@0 \"a\\n\"
list@2 \"\\n\"
main.md@6 \"  \"
list@14 \" \"
item@0 \"* \"
item {{name}} \"x\" of items.name, items[].name, name
item@10 \"\\n\"
main.md@6 \"  \"
list@14 \" \"
item@11 \"  \"
item {{{note}}} \"1\\n2\" of items.note, items[].note, note
item@23 \"\\n\"
main.md@6 \"  \"
list@36 \"z\\n\"
main.md@18 \"End\"
"
    );
}

#[test]
fn a_block_override_keeps_its_author_and_is_reindented() {
    let case = Case::new("{{<page}}{{$body}}\n    one {{x}}\n    two\n{{/body}}{{/page}}\n")
        .with(&[("page", "{{#box}}\n  {{$body}}\n  {{/body}}\n{{/box}}\n-- {{$foot}}{{x}}{{/foot}}")]);
    let data = json!({"x": "outer", "box": {"x": "inner"}});
    assert_eq!(case.text(data.clone()), "  one inner\n  two\n-- outer");
    assert_eq!(
        case.pieces(data),
        "\
page@9 \"  \"
main.md@23 \"one \"
main.md {{x}} \"inner\" of box.x, box[].x, x
main.md@32 \"\\n\"
page@9 \"  \"
main.md@37 \"two\\n\"
page@42 \"-- \"
page {{x}} \"outer\" of x
"
    );
}

#[test]
fn a_partial_in_the_middle_of_a_line_is_written_as_it_is() {
    let case = Case::new("  {{>outer}}\n").with(&[("outer", "a {{>inner}}\nb\n"), ("inner", "1\n2")]);
    assert_eq!(case.text(json!({})), "  a 1\n2\n  b\n");
}

#[test]
fn a_line_that_begins_with_a_tag_is_indented_once() {
    let case =
        Case::new("  {{>p}}\n").with(&[("p", "{{#a}}x{{/a}}|\n{{b}}{{b}}\n{{!c}}{{b}}\n{{^a}}{{/a}}\n")]);
    assert_eq!(case.text(json!({"a": [1, 2], "b": ""})), "  xx|\n  \n  \n  \n");
}

#[test]
fn windows_line_ends_are_line_ends() {
    let case = Case::new("a\r\n  {{>p}}\r\n{{#x}}\r\nb\r\n{{/x}}\r\n").with(&[("p", "1\r\n\r\n2\r\n")]);
    assert_eq!(case.text(json!({"x": true})), "a\r\n  1\r\n\r\n  2\r\nb\r\n");
}
