//! Whatever is written, it says the same as the plain reference does, and its pieces cover it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::{Fault, Missing, reference, run, template};

/// Bodies with margins, white space of every kind, and placeholders right and wrong.
fn body() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => "\n[ \t]{0,5}",
        3 => "[a-c. é]{0,4}",
        3 => "\\$\\{?[a-c]\\}?",
        2 => "[$]{1,3}",
        1 => "\\$\\{?[A1_ıſK{} ]{0,3}\\}?",
        2 => "[ \t\r\n\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{1f}\u{85}\u{a0}\u{2028}\u{2029}\u{3000}\u{200b}\u{feff}]{1,3}",
    ];
    ("[ \t\n]{0,4}", proptest::collection::vec(part, 0..12), "[ \t\n]{0,3}")
        .prop_map(|(before, parts, after)| before + &parts.concat() + &after)
}

fn value() -> impl Strategy<Value = String> {
    "[ \t\n\r\u{1c}\u{a0}\u{3000}]{0,3}[x$a{} \n]{0,3}[ \t\n\u{1f}\u{2028}]{0,3}"
}

proptest! {
    #[test]
    fn the_text_is_the_references_and_the_pieces_cover_it(
        body in body(),
        a in value(),
        b in value(),
        with_b: bool,
        keep: bool,
    ) {
        let mut values = BTreeMap::from([("a".to_owned(), a)]);
        if with_b {
            values.insert("b".to_owned(), b);
        }
        let missing = if keep { Missing::Keep } else { Missing::Error };
        // The helper looks at the pieces.
        let ours = run(&body, json!(values), missing).map(|output| output.text).map_err(|fault| match fault {
            Fault::Missing { name, .. } => Err(name),
            Fault::Invalid { line, column, .. } => Ok((line, column)),
            other => panic!("{other:?}"),
        });
        prop_assert_eq!(&ours, &reference::render(&body, &values, keep));
        if let (Some(always), false) = (template(&body).is_static(), keep) {
            prop_assert_eq!(ours, Ok(always.to_owned()));
        }
    }

    #[test]
    fn no_text_panics(body in ".{0,60}", value in ".{0,20}") {
        let _ = run(&body, json!({"a": value}), Missing::Keep);
    }

    #[test]
    fn the_place_of_a_fault_is_in_the_source(body in body()) {
        match run(&body, json!({}), Missing::Error) {
            Err(Fault::Missing { name, place }) => {
                let written = [format!("${name}"), format!("${{{name}}}")];
                prop_assert!(written.iter().any(|written| written == place.text()));
            }
            Err(Fault::Invalid { place, .. }) => prop_assert_eq!(place.text(), "$"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => {}
        }
    }
}
