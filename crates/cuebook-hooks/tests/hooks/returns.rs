//! What functions may return, and what is said about everything else.

use cuebook::error::Code;
use serde_json::json;

use crate::support::{Bench, hint};

#[track_caller]
fn refused(body: &str) -> Option<(String, String)> {
    let bench = Bench::new(&format!("def pre_render(variables, context):\n    {body}\n"))?;
    let error = bench.error();
    assert_eq!(error.code(), Code::HookReturn, "{error}");
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 1);
    let message = error.diagnostic().message.clone();
    let hint = hint(&error).to_owned();
    let message = message.strip_prefix("`pre_render` of the prompt `p` returned ").unwrap().to_owned();
    Some((message, hint))
}

#[test]
fn a_result_of_the_wrong_type_is_named() {
    let Some((message, hint)) = refused("pass") else { return };
    assert_eq!(
        (message.as_str(), hint.as_str()),
        ("`None` instead of a dict", "end it with `return variables`")
    );
    assert_eq!(refused("return [variables]").unwrap().0, "a list instead of a dict");
    let (message, hint) = refused("yield variables").unwrap();
    assert_eq!(
        (message.as_str(), hint.as_str()),
        ("a generator instead of a dict", "use `return` instead of `yield`")
    );
    let bench = Bench::new("async def pre_render(variables, context):\n    yield variables\n").unwrap();
    assert_eq!(
        bench.message(),
        "CB411: `pre_render` of the prompt `p` returned an async_generator instead of a dict"
    );
    let bench = Bench::new("def post_render(text, variables, context):\n    return text.encode()\n").unwrap();
    let error = bench.try_post_render("x").unwrap_err();
    assert_eq!(
        error.diagnostic().message,
        "`post_render` of the prompt `p` returned a bytes instead of a str"
    );
}

#[test]
fn a_value_outside_json_is_reported_with_its_path() {
    let cases = [
        ("variables['tree'] = [1, 2, 3, {4}]", "`variables[\"tree\"][3]` is a set"),
        ("variables['x'] = b'1'", "`variables[\"x\"]` is a bytes"),
        ("variables['x'] = object()", "`variables[\"x\"]` is an object"),
        ("variables['x'] = [float('nan')]", "`variables[\"x\"][0]` is nan"),
        ("variables['x'] = {'y': float('-inf')}", "`variables[\"x\"][\"y\"]` is -inf"),
        ("variables['x'] = '\\udc80'", "`variables[\"x\"]` is a string with half a surrogate pair"),
        ("variables['x'] = [1 << 64]", "`variables[\"x\"][0]` is a number of more than 64 bits"),
        ("variables['x'] = -(1 << 63) - 1", "`variables[\"x\"]` is a number of more than 64 bits"),
        ("variables['x'] = {1: 2}", "a key of `variables[\"x\"]` is 1, of type int"),
        ("variables[None] = 2", "a key of `variables` is None, of type NoneType"),
        ("variables['x'] = variables", "`variables[\"x\"]` contains itself"),
        ("variables['x'] = __import__('datetime').date(2026, 1, 1)", "`variables[\"x\"]` is a datetime.date"),
    ];
    for (body, expected) in cases {
        let Some((message, _)) = refused(&format!("{body}; return variables")) else { return };
        let what = message.strip_prefix("a value that JSON cannot represent: ").unwrap();
        assert_eq!(what, expected, "{body}");
    }
    let deep = "for _ in range(500): variables = {'x': variables}\n    return variables";
    let expected = "`variables[\"x\"][\"x\"]…[\"x\"]` is nested more than 100 deep";
    assert!(refused(deep).unwrap().0.ends_with(expected));
}

#[test]
fn there_is_a_hint_for_types_that_people_return_by_mistake() {
    let cases = [
        ("__import__('pathlib').Path('a')", "convert it to a string: `str(path)`"),
        (
            "__import__('decimal').Decimal(1)",
            "convert it to a number with `float()` or to a string with `str()`",
        ),
        (
            "__import__('dataclasses').make_dataclass('D', ['a'])(1)",
            "convert it to a dict: `dataclasses.asdict(…)`",
        ),
        ("__import__('enum').Enum('E', 'A').A", "return its value: `.value`"),
        ("object()", "return strings, numbers, booleans, None, lists and dicts"),
    ];
    for (value, expected) in cases {
        let Some((_, hint)) = refused(&format!("variables['x'] = {value}; return variables")) else { return };
        assert_eq!(hint, expected, "{value}");
    }
}

#[test]
fn a_value_that_contains_itself_is_named_by_the_shortest_path() {
    for (body, path) in [
        ("variables['a'] = variables", "variables[\"a\"]"),
        ("x = [1]; x.append(x); variables['b'] = [x]", "variables[\"b\"][0]"),
    ] {
        let Some((message, _)) = refused(&format!("{body}; return variables")) else { return };
        assert_eq!(message, format!("a value that JSON cannot represent: `{path}` contains itself"));
    }
}

#[test]
fn subclasses_of_plain_types_are_plain() {
    let Some(bench) = Bench::new(
        "import collections, enum
class Text(str): pass
class Number(enum.IntEnum):
    ONE = 1
def pre_render(variables, context):
    found = collections.OrderedDict(variables)
    found['text'] = Text('x')
    found['number'] = [Number.ONE]
    found['point'] = collections.namedtuple('Point', 'x y')(1, 2)
    found['edge'] = [(1 << 64) - 1, -(1 << 63)]
    return found
def post_render(text, variables, context):
    return Text(text)
",
    ) else {
        return;
    };
    let expected = json!({"a": 1, "text": "x", "number": [1], "point": [1, 2], "edge": [u64::MAX, i64::MIN]});
    assert_eq!(bench.pre_render(json!({"a": 1})), expected);
    assert_eq!(bench.post_render("x"), "x");
}

#[test]
fn a_result_beyond_all_measure_is_not_even_sent() {
    let Some(mut bench) = Bench::new("def provide(context):\n    return {'text': 'x' * 10_000_000}\n") else {
        return;
    };
    bench.limits.max_output_size = 100;
    let error = bench.try_provide().unwrap_err();
    assert_eq!(error.code(), Code::HookOutput);
    assert!(error.diagnostic().message.contains("bytes"), "{error}");
}

#[test]
fn a_forged_kept_value_is_no_value() {
    let Some(bench) = Bench::new(
        "def pre_render(variables, context):
    inner = context['get_variable'].__globals__
    inner['perform'] = lambda: {'values': {}, 'kept': ['never sent']}
    return variables
",
    ) else {
        return;
    };
    assert_eq!(bench.pre_render(json!({"a": 1})), json!({"a": 1}));
    assert_eq!(bench.error().code(), Code::HookDied);
}
