//! The real Python says the same about literals and about what is valid.

#[path = "../../../../../skip.rs"]
mod skip;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Literal, LiteralValue, Module, source};

/// Literals that both read.
const LITERALS: &[&str] = &[
    "None",
    "True",
    "False",
    "0",
    "00",
    "1",
    "-1",
    "+1",
    "1_000_000",
    "0xFf",
    "0XfF",
    "0o17",
    "0O1_7",
    "0b1_0",
    "-0x10",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1.",
    ".5",
    "-0.0",
    "1e3",
    "1E-3",
    "1_0.0_1e1_0",
    "5e-324",
    "1.7976931348623157e308",
    "0.1",
    "123456789.123456789",
    "- 1",
    "(1)",
    "((('a')))",
    "''",
    "\"\"",
    "'a'",
    "'a' 'b'",
    "('a'\n  \"b\"\n)",
    "'''a\nb'''",
    "\"\"\"a\"b\"\"\"",
    "r'\\n\\''",
    "R'\\u0041'",
    "u'a'",
    "'\\\n'",
    "'\\a\\b\\f\\n\\r\\t\\v\\\\\\'\\\"'",
    "'\\0\\7\\77\\377\\1234'",
    "'\\x00\\x7f\\xff'",
    "'\\u00e9\\u2028'",
    "'\\U0001F600'",
    "'\\N{SNOWMAN}\\N{em dash}'",
    "'\\d\\ \\%'",
    "'é😀\u{a0}\u{2028}'",
    "'\t\u{c}'",
    "'{{ x }} {% y %} #'",
    "'\\\\ud800'",
    "'\u{fffd}'",
    "[]",
    "[1,]",
    "[ 1 , -2.5 , 'c' ]",
    "()",
    "(1,)",
    "1,",
    "1, 2",
    "(1, (2, [3]))",
    "{}",
    "{'a': 1}",
    "{'a': {'b': {'c': [None, {}]}},}",
    "{\n # comment\n 'a': 1, # more\n 'b': (2),\n}",
    "{'b': 1, 'a': 2}",
    "{'': 0}",
    "{'a' 'b': 1}",
    "[[[[[[[[[[1]]]]]]]]]]",
    "{'a': -1, 'b': +1.5}",
];

/// Expressions that neither takes for a literal.
const COMPUTED: &[&str] = &[
    "--1",
    "-True",
    "not 1",
    "~1",
    "1 + 1",
    "'a' + 'b'",
    "'a' * 2",
    "'%s' % 1",
    "f'a'",
    "f'{1}'",
    "a",
    "a.b",
    "a()",
    "a[0]",
    "[a for a in b]",
    "{**{}}",
    "[*[]]",
    "lambda: 1",
    "1 if 2 else 3",
    "1 < 2",
    "1 and 2",
    "dict(a=1)",
    "-'a'",
    "(yield)",
    "{a: 1}",
    "{'a': b}",
    "-(-1)",
];

/// Modules, valid and not.
const MODULES: &[&str] = &[
    "",
    "\n\n",
    "# only a comment",
    "x = 1; y = 2",
    "x = 1;",
    "print 'a'",
    "exec 'a'",
    "print('a')",
    "x = ",
    "x = {",
    "x = }",
    "x = (1]",
    "x = 'a",
    "x = '''a",
    "x = 01",
    "x = 0x",
    "x = 1__0",
    "x = 1_",
    "x = 0b2",
    "x = '\\x1'",
    "x = '\\u12'",
    "x = '\\N{NO SUCH NAME}'",
    "x = '\\U00110000'",
    "x = b'é'",
    "x = 'a' b'b'",
    "def f(): pass",
    "def f(:",
    "def f()",
    "def f(a=1, b): pass",
    "def f(*, **k): pass",
    "def f(a, /, b, *c, d, **e): pass",
    "return 1",
    "yield 1",
    "break",
    "continue",
    "while 1:\n  break",
    "nonlocal x",
    "await x",
    "if x:\npass",
    "  x = 1",
    "if x:\n\tpass\n  pass",
    "if x:\n        a\n\tb",
    "x = $",
    "x = a?b",
    "x == 1 = 2",
    "f() = 1",
    "1 = x",
    "None = 1",
    "del f()",
    "x: int",
    "x: int = 1",
    "(x): int = 1",
    "x, y: int = 1, 2",
    "for x in y: pass",
    "import a.b as c",
    "from . import a",
    "from a import (b, c,)",
    "from a import b,",
    "try: pass",
    "try:\n  pass\nfinally:\n  pass",
    "class A(B, metaclass=C): pass",
    "@a.b(c)\ndef f(): pass",
    "@a\nx = 1",
    "x = [1, 2",
    "x = 1 if 2",
    "x = lambda: (yield)",
    "raise x from y",
    "raise x, y",
    "assert x, y",
    "x <> y",
    "`x`",
    "x = 1L",
    "x = 0777",
    "except: pass",
    "with a as b, c as d: pass",
    "global x",
    "x = y = z",
    "x += y += z",
    "x = *a, b",
    "x = *a",
    "f(**a, *b)",
    "f(a=1, b)",
    "f(a for a in b, c)",
    "async def f():\n  await x",
    "async x",
    "if (x := 1): pass",
    "x := 1",
    "é = 1",
    "x = 'é'",
    "x\u{a0}= 1",
    "x = \"\u{0}\"",
    "pass\\\n",
    "\\\nx = 1",
    "x = 1 \\ \ny",
    "…",
];

/// Says on standard output, as one JSON list, what Python makes of each text.
const SCRIPT: &str = r#"
import ast, json, struct, sys, warnings
warnings.simplefilter("ignore")
def tag(v):
    if v is None: return ["None"]
    if isinstance(v, bool): return ["bool", v]
    if isinstance(v, int): return ["int", str(v)]
    if isinstance(v, float): return ["float", struct.pack(">d", v).hex()]
    if isinstance(v, str): return ["str", v]
    if isinstance(v, dict): return ["dict", [[k, tag(i)] for k, i in v.items()]]
    return [type(v).__name__, [tag(i) for i in v]]
def literal(text):
    try: return tag(ast.literal_eval(text))
    except ValueError: return "computed"
def valid(text):
    try:
        compile(text, "prompt.py", "exec", dont_inherit=True)
        return True
    except (SyntaxError, ValueError): return False
texts = json.load(sys.stdin)
json.dump({"literals": [literal(t) for t in texts["literals"]], "modules": [valid(t) for t in texts["modules"]]}, sys.stdout)
"#;

/// What the real Python says; `None`, with a word about it, where it is missing.
fn ask_python(texts: &Value) -> Option<Value> {
    let command = Command::new("python3")
        .args(["-I", "-X", "utf8", "-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = command else {
        skip::missing_peer("python3 is missing");
        return None;
    };
    child.stdin.take().unwrap().write_all(texts.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "python3 failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn tag(literal: &Literal) -> Value {
    let all = |items: &[Literal]| items.iter().map(tag).collect::<Value>();
    match &literal.value {
        LiteralValue::None => json!(["None"]),
        LiteralValue::Bool(value) => json!(["bool", value]),
        LiteralValue::Int(value) => json!(["int", value.to_string()]),
        LiteralValue::Float(value) => json!(["float", format!("{:016x}", value.to_bits())]),
        LiteralValue::Str(value) => json!(["str", value]),
        LiteralValue::List(items) => json!(["list", all(items)]),
        LiteralValue::Tuple(items) => json!(["tuple", all(items)]),
        LiteralValue::Dict(entries) => {
            json!(["dict", entries.iter().map(|e| json!([e.key, tag(&e.value)])).collect::<Value>()])
        }
    }
}

#[test]
fn python_agrees_on_literals_and_validity() {
    let texts: Vec<&str> = LITERALS.iter().chain(COMPUTED).copied().collect();
    let Some(answers) = ask_python(&json!({"literals": texts, "modules": MODULES})) else { return };
    let mut differences = Vec::new();
    for (text, python) in texts.iter().zip(answers["literals"].as_array().unwrap()) {
        let ours = match Module::parse(&source(&format!("X = {text}"))) {
            Ok(module) => module.literal("X").map_or(json!("computed"), |literal| tag(literal.unwrap())),
            // `X = (yield)` is valid for Python's reader of expressions and for no module.
            Err(_) if *text == "(yield)" => json!("computed"),
            Err(error) => json!(error.to_string()),
        };
        if ours != *python {
            differences.push(format!("{text:?}: {ours} here, {python} there"));
        }
    }
    for (text, python) in MODULES.iter().zip(answers["modules"].as_array().unwrap()) {
        let ours = Module::parse(&source(text));
        if Some(ours.is_ok()) != python.as_bool() {
            let ours = ours.map_or_else(|error| error.to_string(), |_| "valid".to_owned());
            differences.push(format!("{text:?}: {ours} here, {python} there"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
