//! Who wrote which byte.

use serde_json::json;

use super::{pieces, run, run_source};
use crate::source::Source;
use crate::template::dollar::{Missing, Template};
use crate::template::sink::{Sink, Writer};

#[test]
fn literals_lead_to_the_author_and_values_to_their_placeholders() {
    let output =
        run("\n  Dear $name:\n    $$5 for ${what}.\n", json!({"name": "A\n  B", "what": 7}), Missing::Error);
    assert_eq!(
        pieces(&output.unwrap()),
        "\
3..8 \"Dear \"
$name \"A\\n  B\" of name
13..19 \":\\n  \"
20..27 \"$5 for \"
${what} \"7\" of what
34..35 \".\"
"
    );
}

#[test]
fn white_space_at_both_ends_goes_wherever_it_came_from() {
    let output = run(
        "$a \n$b\n x\n$c \n ${d}",
        json!({"a": " \t", "b": "\u{3000}\u{1f}B ", "c": "C\u{a0}", "d": "\n"}),
        Missing::Error,
    );
    assert_eq!(
        pieces(&output.unwrap()),
        "\
$a \"\" of a
$b \"B \" of b
6..10 \"\\n x\\n\"
$c \"C\" of c
${d} \"\" of d
"
    );
}

#[test]
fn a_leading_literal_is_trimmed_and_keeps_its_place() {
    let output = run("$a\n\n  x $b", json!({"a": "", "b": ""}), Missing::Error).unwrap();
    assert_eq!(pieces(&output), "$a \"\" of a\n6..7 \"x\"\n$b \"\" of b\n");
}

#[test]
fn an_unfilled_name_is_the_authors_text() {
    let output = run(" a ${b}$", json!({}), Missing::Keep).unwrap();
    assert_eq!(pieces(&output), "1..3 \"a \"\n3..7 \"${b}\"\n7..8 \"$\"\n");
}

#[test]
fn a_part_of_a_file_leads_back_into_the_file() {
    let file = Source::new("prompt.md", "# Title\r\n\r\n    Hi $name\r\n    there\r\n");
    let part = Source::inside(&file, 9..file.text().len());
    let output = run_source(part.clone(), json!({"name": "Ada"}), Missing::Error).unwrap();
    assert_eq!(output.text, "Hi Ada\nthere");
    let unit = &output.units[0];
    let place = unit.source().place(unit.emissions()[0].range.clone());
    assert_eq!((place.to_string().as_str(), place.text()), ("prompt.md:3:8", "$name"));
    let Writer::Literal { offset, .. } = output.pieces[2].writer else { panic!("{:?}", output.pieces) };
    let place = unit.place(offset as usize + 1..offset as usize + 6);
    assert_eq!((place.to_string().as_str(), place.text()), ("prompt.md:4:5", "there"));
}

#[test]
fn templates_that_share_a_sink_keep_apart() {
    let mut sink = Sink::new(100, 0, 0);
    sink.frame(0, b"# One \n\n").unwrap();
    for (unit, body) in [(4, "a $x"), (5, "$x"), (6, "$x b")] {
        let template = Template::compile(Source::verbatim("body.md", body));
        template
            .write(unit, &mut sink, Missing::Error, &mut |_, _| Some(serde_json::Value::from(" \n")))
            .unwrap();
        sink.frame(1, b" \n").unwrap();
    }
    let (text, pieces) = sink.finish();
    assert_eq!(text, "# One \n\na \n \nb \n");
    let writers: Vec<(u32, Writer)> = pieces.iter().map(|piece| (piece.start, piece.writer)).collect();
    let frame = |frame| Writer::Frame { frame };
    let literal = |unit, offset| Writer::Literal { unit, offset };
    assert_eq!(
        writers,
        // Between two frames that are one, nothing was written.
        [(0, frame(0)), (8, literal(4, 0)), (9, frame(1)), (13, literal(6, 3)), (14, frame(1))]
    );
}
