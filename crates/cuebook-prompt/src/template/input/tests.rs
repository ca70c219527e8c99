//! Tests of texts with `{input:key}` in them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::template::sink::Writer;

/// Values for tests: inputs, and an environment of their own.
#[derive(Debug, Default)]
struct Given {
    inputs: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
}

impl Given {
    fn new(inputs: &[(&str, &str)], env: &[(&str, &str)]) -> Given {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        Given { inputs: map(inputs), env: map(env) }
    }
}

impl Values for Given {
    fn input(&self, key: &str) -> Option<String> {
        self.inputs.get(key).cloned()
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned()
    }
}

fn render(text: &str, given: &Given) -> String {
    let template = Template::compile(Source::new("d.md", text), 0..text.len());
    let output = template.render(usize::MAX, given).unwrap();
    assert_eq!(output.text, expand(text, given), "both ways say the same");
    output.text
}

#[test]
fn every_form_has_its_value_and_its_way_without_one() {
    let given =
        Given::new(&[("a", "A"), ("empty", ""), ("ключ", "K"), ("1", "one")], &[("V", "v"), ("E", "")]);
    for (text, expected) in [
        ("{input:a} {input:a?} {input:a:d} {input:a|d} ${inputs.a}", "A A A A A"),
        ("{input:x}[{input:x?}]{input:x:d}{input:x|e}${inputs.x}", "{input:x}[]de${inputs.x}"),
        ("[{input:empty:d}]", "[]"),
        ("[{input:x:}][{input:x:a:b|c {d\n}]", "[][a:b|c {d\n]"),
        ("{input:ключ}{input:1}", "Kone"),
        ("{env:V}{env:E}{env:N}{env:N:d}[{env:N:}]", "v{env:N}d[]"),
        ("{env:N?}{env:N|d}", "{env:N?}{env:N|d}"),
        ("{{input:a}}", "{A}"),
        ("{inputs.a} $${inputs.a}", "{inputs.a} $A"),
        (
            "{input:my-key}{input:a.b}{input: a}{input:x?y}{Input:a}{input:}",
            "{input:my-key}{input:a.b}{input: a}{input:x?y}{Input:a}{input:}",
        ),
        ("{input:a{input:a}}", "{input:aA}"),
        ("{input:a", "{input:a"),
        ("{input:x:no end", "{input:x:no end"),
        ("{input:a\n}", "{input:a\n}"),
    ] {
        assert_eq!(render(text, &given), expected, "{text}");
    }
}

#[test]
fn values_are_never_parsed() {
    let given = Given::new(&[("a", "{input:b}${inputs.b}{env:V}"), ("b", "B")], &[("V", "{input:b}")]);
    assert_eq!(render("{input:a} {env:V}", &given), "{input:b}${inputs.b}{env:V} {input:b}");
    assert_eq!(render("{input:{input:b}}", &given), "{input:B}");
}

#[test]
fn every_byte_has_its_writer() {
    let text = "Hi {input:a}, {input:x|you}{env:V}.";
    let template = Template::compile(Source::new("d.md", text), 0..text.len());
    let output = template.render(100, &Given::new(&[("a", "Ann")], &[("V", "!")])).unwrap();
    assert_eq!(output.text, "Hi Ann, you!.");
    let writers: Vec<Writer> = output.pieces.iter().map(|piece| piece.writer).collect();
    assert_eq!(
        writers,
        [
            Writer::Literal { unit: 0, offset: 0 },
            Writer::Value { unit: 0, offset: 3 },
            Writer::Literal { unit: 0, offset: 12 },
            Writer::Literal { unit: 0, offset: 23 },
            Writer::Value { unit: 0, offset: 27 },
            Writer::Literal { unit: 0, offset: 34 },
        ]
    );
    let unit = template.unit();
    assert_eq!(unit.emission(3).map(|emission| emission.paths.clone()), Some(vec!["a".to_owned()]));
    assert_eq!(unit.emission(27).map(|emission| emission.paths.clone()), Some(vec!["env:V".to_owned()]));
}

#[test]
fn outer_white_space_of_values_is_trimmed() {
    let text = "{input:a} {input:b}";
    let template = Template::compile(Source::new("d.md", text), 0..text.len());
    let write = |a: &str, b: &str| {
        let mut sink = Sink::new(100, 0, 0);
        sink.frame(0, b"| ").unwrap();
        template.write_stripped(0, &mut sink, &Given::new(&[("a", a), ("b", b)], &[])).unwrap();
        sink.finish().0
    };
    assert_eq!(write(" \nx ", " y\n"), "| x   y");
    assert_eq!(write(" ", "\n"), "| ", "what stood before stays");
}

#[test]
fn hostile_texts_take_no_more_than_linear_time() {
    let start = std::time::Instant::now();
    let given = Given::default();
    for piece in ["{input:x:", "{", "${inputs.", "{env:", "{input:x|", "{input:", "}"] {
        let text = piece.repeat(200_000);
        assert_eq!(expand(&text, &given).len() + usize::from(text.is_empty()), text.len(), "{piece}");
    }
    let words = format!("{{input:{}", "x".repeat(1_000_000)).repeat(2);
    assert_eq!(expand(&words, &given), words);
    assert!(start.elapsed().as_secs() < 20);
}

proptest! {
    #[test]
    fn pieces_cover_the_text_and_literals_are_the_bytes_of_the_file(
        text in "(\\{input:[ab]\\}|\\{input:[abx][?]\\}|\\{input:x[:|][a-z]{0,3}\\}|\\{env:[VW]\\}|[ a-z{}$:é]{0,6}){0,12}",
        a in ".{0,12}",
        v in ".{0,12}",
    ) {
        let source = Source::verbatim("d.md", text.clone());
        let template = Template::compile(source, 0..text.len());
        let given = Given::new(&[("a", &a), ("b", "")], &[("V", &v)]);
        let output = template.render(usize::MAX, &given).unwrap();
        prop_assert_eq!(&output.text, &expand(&text, &given));
        let ends = output.pieces.iter().map(|piece| piece.start as usize).skip(1).chain([output.text.len()]);
        let mut at = 0;
        for (piece, end) in output.pieces.iter().zip(ends) {
            prop_assert_eq!(piece.start as usize, at);
            let shown = &output.text[at..end];
            match piece.writer {
                Writer::Literal { offset, .. } => {
                    prop_assert_eq!(shown, &text[offset as usize..offset as usize + shown.len()]);
                }
                _ => prop_assert!(shown == a || shown == v),
            }
            at = end;
        }
        prop_assert_eq!(at, output.text.len());
    }
}
