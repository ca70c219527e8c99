//! Templates that mean no good.

use serde_json::json;

use super::Case;
use crate::error::Code;

#[test]
fn long_and_odd_texts_are_read_in_time() {
    let long = [
        "{{".repeat(200_000),
        "{{{".repeat(200_000),
        " ".repeat(500_000) + "{{#a}}",
        "{{x}}".repeat(50_000),
        " {{! }}\n".repeat(50_000),
        "{{=| |=}}|={{ }}=|".repeat(20_000),
        "{{#a}}{{/a}}\n".repeat(30_000),
        "{{$a}}\n\n{{/a}}\n".repeat(20_000),
        "}}".repeat(100_000),
    ];
    for text in long {
        let started = std::time::Instant::now();
        let _ = Case::new(text.as_str()).compile();
        assert!(started.elapsed().as_secs() < 20, "{}", &text[..20]);
    }
}

#[test]
fn more_than_can_be_traced_is_refused() {
    let sections: String =
        (0..20_000).map(|index| format!("{{{{#s{index}}}}}{{{{>p}}}}{{{{/s{index}}}}}")).collect();
    let values = "{{x}}".repeat(20_000);
    let error = Case::new(sections).with(&[("p", values.as_str())]).compile().err().unwrap();
    assert_eq!(error.code(), Code::TooDeep);
}

#[test]
fn odd_delimiters_do_what_they_say() {
    let data = json!({"x": "X", "a": true});
    for (text, wanted) in [
        ("{{=| |=}}|x||#a|y|/a|", "Xy"),
        ("{{={ }=}}{x}", "X"),
        ("{{=ä ö=}}äxö{{x}}", "X{{x}}"),
        ("{{=<< >>=}}<<{x}>><<&x>>", "XX"),
        ("{{=a a=}}axa", "X"),
        ("{{x}}{{ =<% %>=}}<%x%>", "XX"),
    ] {
        assert_eq!(Case::new(text).text(data.clone()), wanted, "{text}");
    }
}

#[test]
fn the_deepest_render_that_is_allowed_fits_on_a_small_stack() {
    let deep = "{{#a}}".repeat(100) + "{{>p}}" + &"{{/a}}".repeat(100);
    let render =
        move || Case::new("{{>p}}").with(&[("p", deep.as_str())]).error(json!({"a": {"b": 1}})).code();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(render).unwrap();
    assert_eq!(thread.join().unwrap(), Code::TooDeep);
}
