//! Bodies that mean no good.

use std::time::Instant;

use serde_json::json;

use super::{Fault, Missing, run, template};

#[test]
fn long_and_odd_texts_are_read_and_rendered_in_time() {
    let many: String = (0..60_000).map(|number| format!("$n{number} ")).collect();
    let long = [
        "$".repeat(1 << 20),
        "$".repeat((1 << 20) + 1),
        "${".repeat(1 << 19),
        "$a".repeat(100_000),
        " ".repeat(1 << 20),
        " \n".repeat(1 << 19),
        "\t x\n".repeat(200_000),
        format!("$a{}", "\u{3000}".repeat(300_000)),
        format!("$a{}$a", " ".repeat(1 << 20)),
        "${".to_owned() + &"a".repeat(1 << 20),
        many,
    ];
    for text in long {
        let started = Instant::now();
        for missing in [Missing::Error, Missing::Keep] {
            let _ = run(&text, json!({"a": " "}), missing);
        }
        assert!(started.elapsed().as_secs() < 20, "{:?}", text.chars().take(20).collect::<String>());
    }
}

#[test]
fn a_megabyte_of_dollars_is_half_a_megabyte_of_dollars() {
    let even = "$".repeat(1 << 20);
    assert_eq!(template(&even).is_static(), Some(&even[..1 << 19]));
    assert_eq!(run(&even, json!({}), Missing::Error).unwrap().text.len(), 1 << 19);
    let odd = even + "$";
    let fault = run(&odd, json!({}), Missing::Error).err().unwrap();
    assert!(matches!(fault, Fault::Invalid { line: 1, column, .. } if column == (1 << 20) + 1));
    assert_eq!(run(&odd, json!({}), Missing::Keep).unwrap().text.len(), (1 << 19) + 1);
}
