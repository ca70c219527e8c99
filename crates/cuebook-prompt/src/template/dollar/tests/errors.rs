//! What is wrong, and where.

use serde_json::json;

use super::{Fault, Missing, run, template};
use crate::error::{Code, ErrorKind};
use crate::template::sink::Sink;

fn invalid(text: &str) -> (usize, usize, String) {
    match run(text, json!({"a": "x\ny"}), Missing::Error).err().unwrap() {
        Fault::Invalid { line, column, place } => (line, column, place.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_invalid_dollar_has_offset_and_file_place() {
    assert_eq!(invalid("\n\n   x\n   é $ "), (2, 3, "body.md:4:6".to_owned()));
    assert_eq!(invalid("$$ $a $1"), (1, 7, "body.md:1:7".to_owned()));
    assert_eq!(invalid("a\r\nb\rc\u{2028}d\u{85}\x1c$"), (6, 1, "body.md:2:8".to_owned()));
    assert_eq!(invalid("x${a }"), (1, 2, "body.md:1:2".to_owned()));
}

#[test]
fn the_first_problem_is_reported() {
    let fault = |text| run(text, json!({}), Missing::Error).err().unwrap();
    assert!(matches!(fault("$missing $1"), Fault::Missing { name, .. } if name == "missing"));
    assert!(matches!(fault("$1 $missing"), Fault::Invalid { .. }));
}

#[test]
fn errors_show_the_place_and_a_way_out() {
    let shown = |text: &str| {
        let fault = run(text, json!({}), Missing::Error).err().unwrap();
        let error = template(text).error(fault, ["user_name", "task"], 10);
        assert_eq!(error.kind(), ErrorKind::PromptRender);
        crate::json::shown(error.diagnostics())
    };
    assert_eq!(
        shown("\n  Hi\n  ${user_nmae}!"),
        "\
error body.md:3:3: `user_nmae` has no value [CB502]
  at ${user_nmae} -- unknown name
  help: did you mean `user_name`?
"
    );
    assert_eq!(
        shown("$zebra"),
        "\
error body.md:1:1: `zebra` has no value [CB502]
  at $zebra -- unknown name
  help: give `zebra` a value, or write `$$zebra` to print a dollar sign
"
    );
    assert_eq!(
        shown("It costs $5."),
        "\
error body.md:1:10: `$` does not begin a placeholder [CB304]
  at $ -- no name follows
  help: write `$$` for a dollar sign, or `$name` or `${name}` for a value
"
    );
    assert_eq!(
        shown("${a.b}"),
        "\
error body.md:1:1: `$` does not begin a placeholder [CB304]
  at $ -- no name follows
  help: write one name of ASCII letters, digits and `_` between `${` and `}`; write `$${` to print `${`
"
    );
}

#[test]
fn a_value_that_prints_too_long_is_refused_and_so_is_a_text() {
    let template = template("$a").limited(8);
    let mut sink = Sink::new(100, 0, 0);
    let list = json!(["long", "longer"]);
    let fault = template.write(0, &mut sink, Missing::Error, &mut |_, _| Some(list.clone())).unwrap_err();
    assert!(matches!(&fault, Fault::Unprintable { too_large: true, .. }));
    let error = template.error(fault, [], 100);
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::ValueTooLarge));

    let mut sink = Sink::new(3, 0, 0);
    let text = json!("four");
    let fault = template.write(0, &mut sink, Missing::Error, &mut |_, _| Some(text.clone())).unwrap_err();
    assert!(matches!(fault, Fault::Full));
    let error = template.error(fault, [], 3);
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::OutputTooLarge));
}
