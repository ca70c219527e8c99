use std::sync::Arc;

use serde_json::json;

use super::{Literal, LiteralValue, Module};
use crate::error::{Code, Error, ErrorKind};
use crate::source::Source;

mod cpython;
mod hostile;
mod round_trip;

fn source(text: &str) -> Arc<Source> {
    Source::new("prompt.py", text)
}

fn module(text: &str) -> Module {
    Module::parse(&source(text)).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn refused(text: &str) -> Error {
    Module::parse(&source(text)).expect_err(text)
}

/// The value of `X` in a module.
fn value(text: &str) -> Literal {
    let module = module(text);
    let literal = module.literal("X").unwrap_or_else(|error| panic!("{text:?}: {error}"));
    literal.unwrap_or_else(|| panic!("{text:?} does not assign X")).clone()
}

fn json_of(text: &str) -> serde_json::Value {
    value(text).to_json()
}

/// What asking for `X` says, with the text that is underlined.
fn fault(text: &str) -> (String, String) {
    let error = module(text).literal("X").map(|literal| literal.cloned()).expect_err(text);
    assert_eq!(error.kind(), ErrorKind::PromptRead);
    let diagnostic = error.diagnostic();
    assert!(diagnostic.hint.is_some(), "{text:?}: no hint");
    (error.to_string(), diagnostic.place.as_ref().unwrap().text().to_owned())
}

#[track_caller]
fn assert_fault(text: &str, message: &str, underlined: &str) {
    assert_eq!(
        fault(text),
        (format!("PromptReadError: prompt.py:{message}"), underlined.to_owned()),
        "{text:?}"
    );
}

#[test]
fn a_plain_assignment_has_its_value_and_every_part_its_place() {
    let text = "X = {\"a\": [1, (2.5, None)], 'b': True,}\n";
    let literal = value(text);
    assert_eq!(literal.to_json(), json!({"a": [1, [2.5, null]], "b": true}));
    assert_eq!(&text[literal.range.clone()], "{\"a\": [1, (2.5, None)], 'b': True,}");
    let a = literal.get("a").unwrap();
    assert_eq!(&text[a.range.clone()], "[1, (2.5, None)]");
    assert_eq!(&text[a.items().unwrap()[1].range.clone()], "(2.5, None)");
    assert_eq!(&text[literal.entries().unwrap()[1].key_range.clone()], "'b'");
    assert!(literal.get("c").is_none() && a.get("a").is_none());
}

#[test]
fn every_kind_of_value_has_the_name_that_python_gives_it() {
    for (text, name) in [
        ("None", "None"),
        ("False", "bool"),
        ("1", "int"),
        ("1.0", "float"),
        ("''", "str"),
        ("[]", "list"),
        ("()", "tuple"),
        ("{}", "dict"),
    ] {
        assert_eq!(value(&format!("X = {text}")).type_name(), name);
    }
}

#[test]
fn annotated_and_parenthesised_and_chained_assignments_count() {
    assert_eq!(json_of("X: dict[str, int] = {'a': 1}"), json!({"a": 1}));
    assert_eq!(json_of("(X): int = 1"), json!(1));
    assert_eq!(json_of("X = (\n  (1)\n)"), json!(1));
    assert_eq!(json_of("X = Y = [1]"), json!([1]));
    assert_eq!(json_of("X = 1, 2"), json!([1, 2]));
    assert!(module("X: dict").literal("X").unwrap().is_none());
    assert!(module("Y = 1").literal("X").unwrap().is_none());
}

#[test]
fn the_last_plain_assignment_wins_whatever_was_before() {
    for before in
        ["X = 1", "X = load()", "from a import X", "X = {}\nX['a'] = 2", "if y:\n  X = 3", "from a import *"]
    {
        assert_eq!(json_of(&format!("{before}\nX = 'last'")), json!("last"), "{before}");
    }
}

#[test]
fn strings_are_joined_and_their_escapes_understood() {
    assert_eq!(json_of("X = ('a' \"b\"\n  r'\\n' '''c\nd''')"), json!("ab\\nc\nd"));
    assert_eq!(json_of(r"X = '\x41\u00e9\U0001f600\N{EM DASH}\101\t\\\'\q'"), json!("Aé😀—A\t\\'\\q"));
    assert_eq!(json_of("X = 'a\\\nb'"), json!("ab"));
    assert_eq!(json_of("X = \"\"\"\r\na\r\n\"\"\""), json!("\na\n"));
}

#[test]
fn numbers_are_read_in_every_spelling_up_to_64_bits() {
    for (text, wanted) in [
        ("-1", json!(-1)),
        ("+1", json!(1)),
        ("1_000", json!(1000)),
        ("0xFF", json!(255)),
        ("0o17", json!(15)),
        ("0b101", json!(5)),
        ("-0", json!(0)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-1.5e3", json!(-1500.0)),
        ("1_0.5", json!(10.5)),
        (".5", json!(0.5)),
        ("1.", json!(1.0)),
    ] {
        assert_eq!(json_of(&format!("X = {text}")), wanted, "{text}");
    }
}

#[test]
fn values_that_json_cannot_hold_are_bad_definitions() {
    let code = Code::BadDefinition;
    assert_fault(
        "X = [18446744073709551616]",
        &format!("1:6: an integer in `X` does not fit into 64 bits [{code}]"),
        "18446744073709551616",
    );
    assert_fault(
        "X = -9223372036854775809",
        "1:5: an integer in `X` does not fit into 64 bits [CB303]",
        "-9223372036854775809",
    );
    assert_fault("X = 1e400", "1:5: a float in `X` is too large [CB303]", "1e400");
    assert_fault("X = 'a\\\\\\ud800'", "1:9: a string in `X` has an unpaired surrogate [CB303]", "\\ud800");
    assert_fault("X = {1: 2}", "1:6: a key in `X` must be a string, but this is of type int [CB303]", "1");
    assert_fault(
        "X = {('a',): 2}",
        "1:6: a key in `X` must be a string, but this is of type tuple [CB303]",
        "('a',)",
    );
    assert_eq!(json_of("X = '\\\\ud800 \u{fffd}'"), json!("\\ud800 \u{fffd}"));
    assert_eq!(json_of("X = r'\\ud800 \u{fffd}'"), json!("\\ud800 \u{fffd}"));
}

#[test]
fn a_key_that_is_there_twice_is_shown_in_both_places() {
    let module = module("X = {'a': 1,\n     'b': 2,\n     \"a\": 3}");
    let error = module.literal("X").unwrap_err();
    assert_eq!(error.to_string(), "PromptReadError: prompt.py:3:6: duplicate key \"a\" in `X` [CB303]");
    let (place, label) = &error.diagnostic().related[0];
    assert_eq!((place.to_string().as_str(), label.as_str()), ("prompt.py:1:6", "first here"));
}

#[test]
fn the_part_that_is_no_literal_is_underlined() {
    let be =
        |what: &str, at: &str| format!("{at}: `X` must be a literal, but this is computed ({what}) [CB302]");
    assert_fault("X = {'a': [1, f'{b}']}", &be("an f-string", "1:15"), "f'{b}'");
    assert_fault("X = f'plain'", &be("an f-string", "1:5"), "f'plain'");
    assert_fault("X = {'a': load('b')}", &be("a call", "1:11"), "load('b')");
    assert_fault("X = {KEY: 1}", &be("a name", "1:6"), "KEY");
    assert_fault("X = os.path", &be("an attribute", "1:5"), "os.path");
    assert_fault("X = a[0]", &be("a lookup", "1:5"), "a[0]");
    assert_fault("X = 'a' + 'b'", &be("an operation", "1:5"), "'a' + 'b'");
    assert_fault("X = --1", &be("an operation", "1:5"), "--1");
    assert_fault("X = -True", &be("an operation", "1:5"), "-True");
    assert_fault("X = not True", &be("an operation", "1:5"), "not True");
    assert_fault("X = [a for a in b]", &be("a comprehension", "1:5"), "[a for a in b]");
    assert_fault("X = lambda: 1", &be("a lambda", "1:5"), "lambda: 1");
    assert_fault("X = 1 if a else 2", &be("a conditional expression", "1:5"), "1 if a else 2");
    let unpacks = "1:6: `X` must be a literal, but this unpacks another value [CB302]";
    assert_fault("X = {** base, 'a': 1}", unpacks, "** base");
    assert_fault("X = [*base, 1]", unpacks, "*base");
    let plain = |what: &str| format!("1:5: `X` must hold plain values, but this is {what} [CB302]");
    assert_fault("X = {1, 2}", &plain("a set"), "{1, 2}");
    assert_fault("X = b'a'", &plain("bytes"), "b'a'");
    assert_fault("X = -2j", &plain("a complex number"), "-2j");
    assert_fault("X = ...", &plain("`...`"), "...");
}

#[test]
fn a_value_that_is_changed_later_is_not_known() {
    for change in [
        "X['a'] = 1",
        "X['a']['b'] += 1",
        "X |= {'b': 2}",
        "X.update(b=2)",
        "X['a'].append(3)",
        "X.setdefault('a', []).append(3)",
        "X.get('a').sort()",
        "del X['a']",
        "X.attribute = 1",
        "X['a'], y = 1, 2",
        "X['a']: int = 1",
    ] {
        let text = format!("X = {{'a': 1}}\n{change}\n");
        let (message, underlined) = fault(&text);
        assert_eq!(
            message, "PromptReadError: prompt.py:2:1: `X` is changed after it is assigned [CB302]",
            "{change}"
        );
        assert!(change.starts_with(&underlined), "{change}: {underlined}");
    }
    for change in [
        "for i in y:\n  X[i] = 1",
        "if y:\n  X.clear()",
        "print(X.pop('a'))",
        "with y as X['a']:\n  pass",
        "class C:\n  X['a'] = 1",
        "y = [X.update(i) for i in z]",
        "assert X.pop('a')",
        "def f(a=X.pop('a')):\n  pass",
        "@X.setdefault('a', y)\ndef f():\n  pass",
        "y = f'{X.pop(0)}'",
        "while X.popitem():\n  pass",
    ] {
        let text = format!("X = {{'a': 1}}\n{change}\n");
        assert!(fault(&text).0.ends_with("`X` is changed after it is assigned [CB302]"), "{change}");
    }
    let module = module("X = {}\nX['a'] = 1");
    let error = module.literal("X").unwrap_err();
    assert_eq!(error.diagnostic().related[0].0.to_string(), "prompt.py:1:1");
}

#[test]
fn reading_a_value_does_not_change_it() {
    for use_ in [
        "print(X['a'], X.get('b'), len(X))",
        "Y = X['a'] + 1",
        "def f():\n  X['a'] = 2\n  X = 3\n  return X",
        "g = lambda: X.pop()",
        "class C:\n  X = {}\n  X['a'] = 2\n  def X(self): pass",
        "if __name__ == '__main__':\n  print(X)",
        "Y = [X for X in y]",
        "for i in X:\n  print(i)",
    ] {
        assert_eq!(json_of(&format!("X = {{'a': 1}}\n{use_}\n")), json!({"a": 1}), "{use_}");
    }
}

#[test]
fn a_value_that_is_assigned_in_a_block_is_not_known() {
    for (block, at) in [
        ("if a:\n  X = 1", "3:3"),
        ("if a:\n  pass\nelif b:\n  pass\nelse:\n  X = 1", "7:3"),
        ("try:\n  X = 1\nexcept E:\n  pass", "3:3"),
        ("try:\n  pass\nexcept E as X:\n  pass", "4:13"),
        ("try:\n  pass\nfinally:\n  X = 1", "5:3"),
        ("for X in y:\n  pass", "2:5"),
        ("for a, (b, *X) in y:\n  pass", "2:13"),
        ("for a in y:\n  pass\nelse:\n  X = 1", "5:3"),
        ("while a:\n  X: int = 1", "3:3"),
        ("with a as X:\n  pass", "2:11"),
        ("with a:\n  (X, y) = 1, 2", "3:4"),
        ("match a:\n  case {'b': X}:\n    pass", "3:14"),
        ("match a:\n  case [*X]:\n    pass", "3:10"),
        ("match a:\n  case {**X}:\n    pass", "3:11"),
        ("match a:\n  case 1 | 2 as X:\n    pass", "3:17"),
    ] {
        let message = format!("{at}: `X` is assigned inside a block, so its value is computed [CB302]");
        assert_fault(&format!("X = 0\n{block}\n"), &message, "X");
    }
}

#[test]
fn names_without_plain_assignment_are_unknown() {
    assert_fault("X, y = 1, 2", "1:1: `X` is one of several targets of an assignment [CB302]", "X");
    assert_fault("[a, *X] = b", "1:6: `X` is one of several targets of an assignment [CB302]", "X");
    assert_fault("print(X := 1)", "1:7: `X` is assigned inside an expression [CB302]", "X");
    assert_fault("y = [X := a for a in b]", "1:6: `X` is assigned inside an expression [CB302]", "X");
    assert_fault(
        "from a import X",
        "1:15: `X` is imported, and Cuebook does not follow imports [CB302]",
        "X",
    );
    assert_fault(
        "from a import b as X",
        "1:15: `X` is imported, and Cuebook does not follow imports [CB302]",
        "b as X",
    );
    assert_fault("import X.y", "1:8: `X` is imported, and Cuebook does not follow imports [CB302]", "X.y");
    assert_fault("def X():\n  pass", "1:5: `X` must be a value, but this is a function [CB302]", "X");
    assert_fault("class X:\n  pass", "1:7: `X` must be a value, but this is a class [CB302]", "X");
    assert_fault("type X = int", "1:6: `X` must be a value, but this is a type alias [CB302]", "X");
    assert_fault("X = 1\ndel X", "2:1: `X` is deleted [CB302]", "del X");
    assert_fault("X = 1\nif a:\n  del (y, X)", "3:3: `X` is deleted [CB302]", "del (y, X)");
}

#[test]
fn a_star_import_makes_names_unknown() {
    let text = "X = 1\nfrom a import *\nY = 2\n";
    assert_fault(text, "2:1: `X` may come from a star import [CB302]", "from a import *");
    let module = module(text);
    assert_eq!(module.literal("Y").unwrap().unwrap().to_json(), json!(2));
    assert_eq!(module.literal("Z").unwrap_err().code(), Code::NotLiteral);
    assert_eq!(module.star_import(), Some(6..21));
}

#[test]
fn the_hint_says_what_to_write() {
    let hint = |text: &str| module(text).literal("X").unwrap_err().diagnostic().hint.clone().unwrap();
    assert_eq!(hint("X = f()"), "write a literal: Cuebook reads X without running the file");
    assert_eq!(hint("X = {}\nX['a'] = 1"), "write the final value as one plain assignment: X = …");
    assert_eq!(hint("X = {1}"), "use a list: […]");
    assert_eq!(hint("X = {1: 2}"), "write it as a string: \"1\"");
}

#[test]
fn a_function_says_how_many_values_it_takes() {
    let text = "def a(x, y): ...\ndef b(x, y=1, *, k=2): ...\ndef c(x, *rest): ...\ndef d(x, *, k): ...\n@wrap\ndef e(): ...\n";
    let module = Module::parse(&Source::new("m.py", text)).unwrap();
    let takes =
        |name: &str| (0..4).filter(|count| module.function(name).unwrap().takes(*count)).collect::<Vec<_>>();
    assert_eq!(takes("a"), [2]);
    assert_eq!(takes("b"), [1, 2]);
    assert_eq!(takes("c"), [1, 2, 3]);
    assert!(takes("d").is_empty());
    assert_eq!(takes("e"), [0, 1, 2, 3], "a decorator may make anything of it");
}

#[test]
fn functions_are_found_with_their_parameters_and_their_place() {
    let text = "\
@decorate(1)
# def not_this
async  def first(a, /, b=1, *rest, c, d: int = 2, **more):
    def inner(): pass

if condition:
    def second(): pass
else:
    def second(x): pass

class C:
    def method(self): pass
";
    let module = module(text);
    let names: Vec<&str> = module.functions().iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "second"]);
    let first = module.function("first").unwrap();
    assert!(first.is_async);
    assert_eq!(first.parameters, ["a", "b", "*rest", "c", "d", "**more"]);
    assert_eq!(&text[first.range.clone()], "async  def first");
    let second = module.function("second").unwrap();
    assert!(!second.is_async);
    assert_eq!(second.parameters, ["x"], "the last definition wins");
    assert_eq!(&text[second.range.clone()], "def second");
    assert!(module.function("method").is_none() && module.function("inner").is_none());
}

#[test]
fn whatever_binds_a_name_defines_it() {
    for (text, place) in [
        ("def f(): pass", "def f"),
        ("f = wrap(g)", "f"),
        ("f: Any = None", "f"),
        ("class f: pass", "f"),
        ("from a import b as f", "b as f"),
        ("import f.g", "f.g"),
        ("try:\n  import f\nexcept E:\n  f = None", "f"),
        ("for f in g: pass", "f"),
        ("(f := 1)", "f"),
    ] {
        let module = module(text);
        assert_eq!(module.defines("f").map(|range| &text[range]), Some(place), "{text}");
        assert!(module.names().any(|name| name == "f"), "{text}");
    }
    for text in [
        "f: int",
        "def g():\n  f = 1",
        "class C:\n  f = 1",
        "f = 1\ndel f",
        "f()",
        "from a import *",
        "lambda f: f",
    ] {
        assert_eq!(module(text).defines("f"), None, "{text}");
    }
}

#[test]
fn a_function_that_is_bound_anew_is_no_longer_the_function() {
    let module = module("def f(a): pass\nf = cached(f)\n");
    assert!(module.function("f").is_none());
    assert_eq!(module.defines("f"), Some(15..16));
}

#[test]
fn the_docstring_is_the_string_that_the_module_begins_with() {
    assert_eq!(module("# c\n'''One\n  two''' 'three'\nX = 1").docstring(), Some("One\n  twothree"));
    for text in ["", "X = 1\n'late'", "f'a'", "b'a'", "1", "('a', 'b')"] {
        assert_eq!(module(text).docstring(), None, "{text}");
    }
}

#[test]
fn a_syntax_error_has_its_place_and_the_reason() {
    for (text, message) in [
        ("X = 1 +\n", "1:8: not valid Python: expected an expression"),
        ("X = 'a\n", "1:5: not valid Python: missing closing quote in string literal"),
        ("X = {'a': 1\ndef f():\n  pass\n", "1:5: not valid Python: `{` is not closed"),
        ("X = {'a': 1\nY = 2\n", "1:5: not valid Python: `{` is not closed"),
        ("X = [1,\n", "1:5: not valid Python: `[` is not closed"),
        ("X = [1, (2, 3]\n", "1:9: not valid Python: `(` is not closed"),
        ("X = 1)\n", "1:6: not valid Python: `)` has no opening bracket"),
        ("if a:\nX = 1\n", "2:1: not valid Python: expected an indented block after `if` statement"),
        ("a = 1\n  b = 2\n", "2:1: not valid Python: unexpected indentation"),
        ("return 1\n", "1:1: not valid Python: `return` outside a function"),
        ("class C:\n  return 1\n", "2:3: not valid Python: `return` outside a function"),
        ("X = await f()\n", "1:5: not valid Python: `await` outside a function"),
        ("yield 1\n", "1:1: not valid Python: `yield` outside a function"),
        ("if a:\n  break\n", "2:3: not valid Python: `break` outside a loop"),
        ("for a in b:\n  class C:\n    continue\n", "3:5: not valid Python: `continue` outside a loop"),
        ("X = *a\n", "1:5: not valid Python: a starred value without a list or tuple around it"),
        ("X = 'a\0b'\n", "1:7: not valid Python: a NUL byte"),
        ("nonlocal a\n", "1:1: not valid Python: `nonlocal` at module level"),
        ("async with a: pass\n", "1:1: not valid Python: `async with` outside an async function"),
        (
            "lazy import a\n",
            "1:1: not valid Python: cannot use `lazy` import statement on Python 3.14 (syntax was added in Python 3.15)",
        ),
    ] {
        let error = refused(text);
        assert_eq!(error.to_string(), format!("PromptReadError: prompt.py:{message} [CB301]"), "{text}");
        let label = error.diagnostic().label.clone().unwrap();
        assert!(message.ends_with(&label), "{label}");
    }
    let hint = refused("X = 1 +").diagnostic().hint.clone().unwrap();
    assert_eq!(hint, "check the file with Python: python3 -m py_compile prompt.py");
    module("for a in b:\n  if c:\n    break\n  async def f():\n    await g()\n    yield 1\n");
}

#[test]
fn the_print_of_python_2_is_recognised() {
    let error = refused("a = 1\nif a:\n    print 'hello'\n");
    assert_eq!(
        error.to_string(),
        "PromptReadError: prompt.py:3:11: not valid Python: simple statements must be separated by newlines or semicolons [CB301]"
    );
    assert_eq!(error.diagnostic().hint.as_deref(), Some("`print` is a function in Python 3: write print(…)"));
}

#[test]
fn an_encoding_that_python_would_read_differently_is_refused() {
    let error = refused("#!/usr/bin/python\n# -*- coding: latin-1 -*-\nX = 'é'\n");
    assert_eq!(
        error.to_string(),
        "PromptReadError: prompt.py:2:15: not valid Python: the file declares the encoding `latin-1` [CB301]"
    );
    for text in [
        "# -*- coding: UTF_8 -*-\nX = 'é'\n",
        "# vim: set fileencoding=utf-8 :\nX = 'é'\n",
        "# coding: latin-1\nX = 'e'\n",
        "X = 'é'\n# coding: latin-1\n",
        "#\n#\n# coding: latin-1\nX = 'é'\n",
    ] {
        module(text);
    }
}

#[test]
fn places_survive_byte_order_mark_and_windows_lines() {
    let source = source("\u{feff}A = 1\r\nX = f()\r\n");
    let error = Module::parse(&source).unwrap().literal("X").unwrap_err();
    assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "prompt.py:2:5");
    assert_eq!(error.to_json()["error"]["range"], json!([14, 17]));
}

#[test]
fn integers_that_were_made_elsewhere_keep_their_size_in_json() {
    let literal = Literal { value: LiteralValue::Int(i128::from(u64::MAX) + 1), range: 0..0 };
    assert_eq!(literal.to_json(), json!(18446744073709551616.0));
}
