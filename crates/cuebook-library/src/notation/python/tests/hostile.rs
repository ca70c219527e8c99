//! Files that are written to break the reader get an answer, on a small stack and in reasonable time.

use super::{Module, source};

/// Half a megabyte: a quarter of what a thread gets by default, in a build without optimisation.
const STACK: usize = 512 << 10;

/// What reading says, for people: `ok` or the message.
fn read(text: String) -> String {
    let reader = move || match Module::parse(&source(&text)) {
        Ok(module) => match module.literal("X") {
            Ok(literal) => literal.map_or("absent".into(), |literal| format!("{}", literal.to_json())),
            Err(error) => error.diagnostic().message.clone(),
        },
        Err(error) => error.diagnostic().message.clone(),
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(reader).unwrap();
    thread.join().unwrap()
}

fn many(text: &str) -> String {
    text.repeat(30_000)
}

#[test]
fn deep_nesting_is_refused_without_stack_overflow() {
    let brackets = "not valid Python: brackets are nested more than 100 deep";
    let operators = "not valid Python: more than 500 operators build on each other";
    for (text, message) in [
        (format!("X = {}", "[".repeat(100_000)), brackets),
        (format!("X = {}{}", "[".repeat(100_000), "]".repeat(100_000)), brackets),
        (format!("X = {}1{}", many("{'a': 1, 'b': "), many("}")), brackets),
        (format!("X = {}{}", many("(1, "), many(")")), brackets),
        (format!("X = {}{}", many("f'{"), many("}'")), brackets),
        (format!("X = f'{}{}'", many("{a:"), many("}")), brackets),
        (many("(a := "), brackets),
        (many("(]"), brackets),
        (format!("match a:\n  case {}: pass", many("A(")), brackets),
        (format!("X = 1{}", "+1".repeat(100_000)), operators),
        (format!("X = {}1", "-".repeat(100_000)), operators),
        (format!("X = 1{}", many("**1")), operators),
        (format!("X = [1, 2{}]", many(" + 3")), operators),
        (format!("X = {}1", many("not ")), operators),
        (format!("X = a{}", many(".a")), operators),
        (format!("X = a{}", many("(a, b)")), operators),
        (format!("X = a{}", many("[0, 1]")), operators),
        (format!("X = {}1", many("1 if a else ")), operators),
        (format!("X = {}1", many("lambda a, b: ")), operators),
        (format!("X = [{}1]", many("lambda a, b: ")), operators),
        (format!("X = [{}1]", many("lambda a=lambda b: b, c: ")), operators),
        (format!("X = {}1", many("await ")), operators),
        (many("async "), operators),
        (many("yield "), operators),
        (many("@"), operators),
        (many("for a, b in c: "), operators),
    ] {
        let start: String = text.chars().take(40).collect();
        assert_eq!(read(text), message, "{start}…");
    }
}

#[test]
fn blocks_without_end_are_refused_and_do_not_overflow_the_stack() {
    let nested = |start: &str, line: &str| {
        let lines: String = (0..1500).map(|depth| format!("{}{line}\n", " ".repeat(depth))).collect();
        format!("{start}{lines}{}pass\n", " ".repeat(1500))
    };
    let blocks = "not valid Python: blocks are nested more than 100 deep";
    assert_eq!(read(nested("", "if a:")), blocks);
    assert_eq!(read(nested("", "with a as b, c as d:")), blocks);
    // Behind an open bracket the lexer sees no blocks, and the parser, which takes the bracket for a slip, does.
    assert_eq!(read(nested("(a\n", "for a in b, c:")), "not valid Python: `(` is not closed");
    assert_eq!(read(nested("X = [1,\n", "with a as b, c as d:")), "not valid Python: `[` is not closed");
}

#[test]
fn the_place_where_it_becomes_too_deep_is_underlined() {
    let text = format!("# é\nX = {}{}", "[".repeat(300), "]".repeat(300));
    let error = Module::parse(&source(&text)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PromptReadError: prompt.py:2:105: not valid Python: brackets are nested more than 100 deep [CB301]"
    );
    assert_eq!(error.diagnostic().place.as_ref().unwrap().text(), "[");
}

#[test]
fn a_definition_just_below_the_limits_is_read() {
    let computed = "`X` must be a literal, but this is computed (an operation)";
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    assert_eq!(read(format!("X = {deep}")), deep);
    assert_eq!(read(format!("X = 1{}", "+1".repeat(499))), computed);
    assert_eq!(read(format!("X = {}1", "-".repeat(499))), computed);
    assert_eq!(read(format!("X = {}1", "not ".repeat(499))), computed);
    assert_eq!(
        read(format!("X = a{}", "()".repeat(499))),
        "`X` must be a literal, but this is computed (a call)"
    );
    assert_eq!(
        read(format!("X = {}1", "lambda: ".repeat(249))),
        "`X` must be a literal, but this is computed (a lambda)"
    );
}

#[test]
fn long_is_not_deep() {
    let numbers: Vec<i64> = (0..5000).map(|n| -n).collect();
    let list = format!("{numbers:?}").replace(' ', "");
    assert_eq!(read(format!("X = {list}")), list);
    let lambdas = "lambda a, b: a + b, ".repeat(2000);
    assert_eq!(read(format!("Y = [{lambdas}]\nX = 1")), "1");
    assert_eq!(read(format!("X = ({})", "'a'\n".repeat(5000))), format!("\"{}\"", "a".repeat(5000)));
    assert_eq!(read(format!("if a: pass\n{}X = 1", "elif b + c: pass\n".repeat(2000))), "1");
    assert_eq!(read("a = b + c\n".repeat(5000)), "absent");
}
