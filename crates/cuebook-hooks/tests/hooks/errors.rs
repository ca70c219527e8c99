//! Exceptions point at the line of the script, and say what can be done.

use cuebook::error::Code;
use serde_json::json;

use crate::support::{Bench, explain, hint};

#[test]
fn an_exception_is_shown_with_its_line_and_callers() {
    let Some(bench) = Bench::new(
        "def inner(values):
    return values['missing']

def pre_render(variables, context):
    return inner(variables)
",
    ) else {
        return;
    };
    let error = bench.error();
    assert_eq!(
        explain(&error),
        "\
error[CB410]: `pre_render` of the prompt `p` raised KeyError: 'missing'
 --> prompts/p/prompt.py:2:5
  |
1 | def inner(values):
2 |     return values['missing']
  |     ^^^^^^^^^^^^^^^^^^^^^^^^ raised here
3 |
4 | def pre_render(variables, context):
5 |     return inner(variables)
  |     ----------------------- called from here
"
    );
    let traceback = error.field("traceback").unwrap();
    assert_eq!(traceback[0]["function"], "pre_render");
    assert_eq!((&traceback[1]["function"], &traceback[1]["line"]), (&json!("inner"), &json!(2)));
    assert_eq!(error.field("exception").unwrap()["type"], "KeyError");
    // The worker has survived it.
    assert_eq!(bench.hooks.idle_workers(), 1);
}

#[test]
fn an_exception_from_elsewhere_names_where() {
    let Some(bench) = Bench::new(
        "import helper, json
def pre_render(variables, context):
    try:
        json.loads('{')
    except ValueError as error:
        raise helper.Odd('no') from error
def post_render(text, variables, context):
    helper.fail()
",
    ) else {
        return;
    };
    let bench = bench.file(
        "prompts/p/helper.py",
        "class Odd(Exception): pass\ndef fail():\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        raise Odd()\n",
    );
    let error = bench.error();
    assert_eq!(error.diagnostic().message, "`pre_render` of the prompt `p` raised helper.Odd: no");
    let (place, label) = &error.diagnostic().related[0];
    assert_eq!((place.line(), place.text()), (4, "json.loads('{')"));
    assert!(label.starts_with("caused by json.decoder.JSONDecodeError: Expecting property name"), "{label}");
    let error = bench.try_post_render("x").unwrap_err();
    assert_eq!(error.diagnostic().message, "`post_render` of the prompt `p` raised helper.Odd");
    assert_eq!(
        explain(&error),
        "\
error[CB410]: `post_render` of the prompt `p` raised helper.Odd
 --> prompts/p/helper.py:6:9
  |
3 |     try:
4 |         1 / 0
  |         ----- while handling ZeroDivisionError: division by zero
5 |     except ZeroDivisionError:
6 |         raise Odd()
  |         ^^^^^^^^^^^ raised here
  |
 ::: prompts/p/prompt.py:8:5
  |
7 | def post_render(text, variables, context):
8 |     helper.fail()
  |     ------------- called from here
"
    );
    let json = error.to_json().to_string();
    assert!(!json.contains(bench.path("").to_str().unwrap()), "{json}");
}

#[test]
fn library_frames_are_folded() {
    let Some(bench) = Bench::new(
        "import json
def pre_render(variables, context):
    return json.loads('x')
",
    ) else {
        return;
    };
    let error = bench.error();
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 3);
    let label = error.diagnostic().label.as_deref().unwrap();
    assert!(label.starts_with("raised in json/decoder.py:") && label.ends_with(" (raw_decode)"), "{label}");
    // The exception that Python itself handled there is no news, but it is said to scripts.
    assert_eq!(error.field("exception").unwrap()["causes"].as_array().unwrap().len(), 0);
    assert_eq!(hint(&error), "");
}

#[test]
fn a_module_that_is_no_python_is_shown_at_its_own_line() {
    let Some(bench) = Bench::new("import tools.helper\ndef pre_render(variables, context): pass\n") else {
        return;
    };
    let bench = bench.file("prompts/p/tools/helper.py", "x = 1\n\nif x print(x)\n");
    let error = bench.error();
    let place = error.diagnostic().place.as_ref().unwrap();
    assert_eq!((place.file(), place.line()), ("prompts/p/tools/helper.py", 3));
    let (importer, label) = &error.diagnostic().related[0];
    assert_eq!(
        (importer.file(), importer.line(), label.as_str()),
        ("prompts/p/prompt.py", 1, "imported from here")
    );
    let message = &error.diagnostic().message;
    assert!(message.starts_with("prompts/p/tools/helper.py is not valid Python: "), "{message}");
}

#[test]
fn modules_of_a_pack_are_shown_as_they_were_approved() {
    let Some(mut bench) = Bench::new("import helper\ndef pre_render(variables, context): helper.fail()\n")
    else {
        return;
    };
    let modules =
        [("prompt.py", bench.script.source.text()), ("helper.py", "def fail():\n    return 1 / 0\n")];
    let modules = modules.map(|(name, text)| (bench.path("prompts/p").join(name), text.to_owned()));
    bench.script.pack = Some("k".into());
    bench.script.modules = Some(modules.into());
    let bench = bench.file("prompts/p/helper.py", "# Changed.\n# Since.\n");
    let error = bench.error();
    let place = error.diagnostic().place.as_ref().unwrap();
    assert_eq!((place.file(), place.text()), ("prompts/p/helper.py", "return 1 / 0"));
}

#[test]
fn the_exceptions_of_a_group_are_listed_with_their_lines() {
    let Some(bench) = Bench::new(
        "class Group(Exception):
    exceptions = ()
def caught(number):
    try:
        return int(number)
    except ValueError as error:
        return error
def pre_render(variables, context):
    outer, inner = Group('several'), Group('few')
    inner.exceptions = (KeyError('k'),)
    outer.exceptions = (caught('x'), inner)
    raise outer
",
    ) else {
        return;
    };
    let error = bench.error();
    assert_eq!(
        hint(&error),
        "ValueError: invalid literal for int() with base 10: 'x' (prompts/p/prompt.py:5)\nKeyError: 'k'"
    );
    assert_eq!(error.field("exception").unwrap()["exceptions"][0]["frame"]["file"], "prompts/p/prompt.py");
}

#[test]
fn a_script_that_cannot_be_loaded_says_where_and_may_be_mended() {
    let Some(mut bench) = Bench::new("x = 1\ny = undefined\ndef pre_render(variables, context): pass\n")
    else {
        return;
    };
    let error = bench.error();
    assert_eq!(
        error.diagnostic().message,
        "the script of the prompt `p` raised NameError: name 'undefined' is not defined while loading"
    );
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 2);
    // It is loaded anew each time until that works.
    assert_eq!(bench.error().diagnostic().message, error.diagnostic().message);
    bench.script.source = cuebook::source::Source::new("prompts/p/prompt.py", "x = 1\nif x\n");
    bench.script.fingerprint = "2".into();
    let error = bench.error();
    assert_eq!(error.code(), Code::HookFailed);
    assert!(error.diagnostic().message.starts_with("prompts/p/prompt.py is not valid Python: "), "{error}");
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 2);
}

#[test]
fn a_function_that_takes_other_arguments_is_explained() {
    let Some(bench) = Bench::new("def pre_render(variables):\n    return variables\n") else { return };
    let error = bench.error();
    assert_eq!(error.code(), Code::HookFailed);
    assert_eq!(hint(&error), "define it as `def pre_render(variables, context)`");
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 1);
    // A type error inside is another thing.
    let bench = Bench::new("def pre_render(variables, context):\n    len(5)\n").unwrap();
    assert_eq!(hint(&bench.error()), "");
    let bench = Bench::new("pre_render = 5\n").unwrap();
    assert_eq!(bench.message(), "CB410: `pre_render` of the prompt `p` is not a function but an int");
    assert_eq!(bench.error().diagnostic().place.as_ref().unwrap().line(), 1);
    let bench = Bench::new("pre_render = None\n").unwrap();
    assert_eq!(bench.message(), "CB410: `pre_render` of the prompt `p` is not a function but `None`");
    let bench = Bench::new("").unwrap();
    assert_eq!(bench.message(), "CB410: `pre_render` of the prompt `p` is not defined");
    let message = bench.try_provide().unwrap_err().diagnostic().message.clone();
    assert_eq!(message, "`provide` of the prompt `p` is not defined");
}

#[test]
fn exceptions_that_usually_end_a_program_end_the_call() {
    for (body, expected) in [
        ("import sys; sys.exit(3)", "raised SystemExit: 3"),
        ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
        ("raise GeneratorExit", "raised GeneratorExit"),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGINT); __import__('time').sleep(1)",
            "raised KeyboardInterrupt",
        ),
        ("def f(): f()\n    f()", "raised RecursionError: maximum recursion depth exceeded"),
    ] {
        let Some(bench) = Bench::new(&format!("def pre_render(variables, context):\n    {body}\n")) else {
            return;
        };
        let message = bench.message();
        assert!(
            message.starts_with(&format!("CB410: `pre_render` of the prompt `p` {expected}")),
            "{body}: {message}"
        );
    }
}

#[test]
fn the_strangest_exceptions_are_described() {
    let Some(bench) = Bench::new(
        "class Silent(Exception):
    def __str__(self): raise ValueError
class Long(Exception):
    __module__ = None
def pre_render(variables, context):
    raise Silent()
def post_render(text, variables, context):
    if text == 'long': raise Long('\\udc80' + 'x' * 1000000)
    error = ValueError('noted')
    if hasattr(error, 'add_note'): error.add_note('look here')
    else: error.__notes__ = ['look here']
    raise error
",
    ) else {
        return;
    };
    assert_eq!(
        bench.message(),
        "CB410: `pre_render` of the prompt `p` raised Silent: (its text cannot be made)"
    );
    let error = bench.try_post_render("long").unwrap_err();
    assert!(error.diagnostic().message.contains("raised Long: \\udc80xxx"), "{error}");
    assert!(error.diagnostic().message.chars().count() < 400);
    assert_eq!(hint(&bench.try_post_render("x").unwrap_err()), "look here");
}
