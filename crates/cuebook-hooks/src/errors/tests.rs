//! What is said about faults that no Python is needed for.

use cuebook::source::Source;

use super::*;
use crate::protocol::{Cause, Frame, Raised};

const SCRIPT: &str =
    "import x\n\n\nasync def pre_render(variables, context):\n    y = 1 +\n    return variables\n";

fn failed_call<T>(check: impl FnOnce(FailedCall<'_>) -> T) -> T {
    let script = Script {
        source: Source::new("prompts/p/prompt.py", SCRIPT),
        path: "/lib/prompts/p/prompt.py".into(),
        folder: "/lib/prompts/p".into(),
        pack: None,
        modules: None,
        mentions_system: true,
        mentions_git: false,
        fingerprint: String::new(),
    };
    let subject = Subject::Prompt { id: "p".into() };
    let limits = Limits { max_execution_time: Duration::from_millis(1500), ..Limits::default() };
    check(FailedCall {
        script: &script,
        function: "pre_render",
        subject: &subject,
        limits: &limits,
        permissions: &Permissions::default(),
    })
}

fn frame(file: &str, line: usize) -> Frame {
    Frame { file: file.into(), line, function: "f".into() }
}

#[test]
fn an_exception_points_at_the_scripts_last_line() {
    let raised = Raised {
        stage: "call".into(),
        kind: "ValueError".into(),
        message: "no\nmore".into(),
        frames: vec![
            frame("/lib/prompts/p/prompt.py", 4),
            frame("/lib/prompts/p/prompt.py", 6),
            frame("/lib/prompts/p/unreadable.py", 2),
            frame("/usr/lib/python3.11/json/decoder.py", 9),
        ],
        causes: vec![Cause { kind: "OSError".into(), explicit: true, ..Cause::default() }],
        ..Raised::default()
    };
    let error = failed_call(|failed_call| failed_call.fault(&Fault::Raised(Box::new(raised))));
    let diagnostic = error.diagnostic();
    assert_eq!(diagnostic.message, "`pre_render` of the prompt `p` raised ValueError: no …");
    assert_eq!(diagnostic.place.as_ref().unwrap().text(), "return variables");
    assert_eq!(diagnostic.related.len(), 1);
    assert_eq!(diagnostic.label.as_deref(), Some("raised in json/decoder.py:9 (f)"));
    assert_eq!(diagnostic.hint.as_deref(), Some("caused by OSError"));
    let files: Vec<_> =
        error.field("traceback").unwrap().as_array().unwrap().iter().map(|f| &f["file"]).collect();
    let [script, helper] = ["prompts/p/prompt.py", "prompts/p/unreadable.py"];
    assert_eq!(files, [script, script, helper, "/usr/lib/python3.11/json/decoder.py"]);
    assert_eq!(error.field("exception").unwrap()["message"], "no\nmore");
}

#[test]
fn a_syntax_error_points_at_its_column() {
    let syntax = crate::protocol::Syntax {
        file: "/lib/prompts/p/prompt.py".into(),
        line: 5,
        column: 11,
        message: "invalid syntax".into(),
    };
    let raised = Raised { stage: "load".into(), syntax: Some(syntax), ..Raised::default() };
    let error = failed_call(|failed_call| failed_call.fault(&Fault::Raised(Box::new(raised))));
    assert_eq!(
        error.to_string(),
        "PromptHookError: prompts/p/prompt.py:5:11: prompts/p/prompt.py is not valid Python: invalid syntax [CB410]"
    );
}

#[test]
fn a_wrong_result_points_at_the_function() {
    let fault = Fault::Returned { kind: "NoneType".into(), wanted: "dict".into(), yields: false };
    let error = failed_call(|failed_call| failed_call.fault(&fault));
    assert_eq!(
        error.diagnostic().message,
        "`pre_render` of the prompt `p` returned `None` instead of a dict"
    );
    assert_eq!(error.diagnostic().hint.as_deref(), Some("end it with `return variables`"));
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 4);
}

#[test]
fn a_timeout_says_which_limit_and_where_it_is_set() {
    let error = failed_call(|failed_call| failed_call.broken(&CallFailure::Timeout(None)));
    assert_eq!(
        error.diagnostic().message,
        "`pre_render` of the prompt `p` took longer than 1.5 seconds and was stopped"
    );
    assert!(error.diagnostic().hint.as_ref().unwrap().contains("`LIMITS` of prompt.py"));
}

#[test]
fn a_timeout_says_what_was_waited_for_if_there_is_such_a_thing() {
    let message = |waited: &str| {
        let error = failed_call(|failed_call| failed_call.broken(&CallFailure::Timeout(Some(waited.into()))));
        error.diagnostic().message.clone()
    };
    assert!(message("llm_call").ends_with("and was stopped while it waited for `llm_call`"));
    assert!(message("any lie").ends_with("and was stopped"));
}

#[test]
fn a_long_way_to_a_value_is_shortened_in_the_middle() {
    assert_eq!(shortened("variables[\"x\"][0][\"y\"]"), "variables[\"x\"][0][\"y\"]");
    assert_eq!(shortened(&format!("variables[\"x\"]{}", "[0]".repeat(100))), "variables[\"x\"][0]…[0]");
    assert_eq!(shortened("text"), "text");
}

#[test]
fn types_have_the_right_article() {
    let said = ["int", "async_generator", "set", "uuid.UUID", "NoneType", "object"].map(a);
    assert_eq!(said, ["an int", "an async_generator", "a set", "a uuid.UUID", "`None`", "an object"]);
}

#[test]
fn more_lines_than_one_are_announced() {
    assert_eq!(first_line("one\n"), "one");
    assert_eq!(first_line("one\ntwo"), "one …");
    assert_eq!(first_line(&"x".repeat(LONGEST + 1)), format!("{}…", "x".repeat(LONGEST)));
    assert_eq!(first_line(""), "");
}

/// What is advised about an exception on a line of the script.
fn advice(kind: &str, base: &str, message: &str, more: impl FnOnce(&mut Raised)) -> Option<String> {
    let mut raised = Raised {
        stage: "call".into(),
        kind: kind.into(),
        bases: vec![base.into()],
        message: message.into(),
        frames: vec![frame("/lib/prompts/p/prompt.py", 5)],
        ..Raised::default()
    };
    more(&mut raised);
    let error = failed_call(|failed_call| failed_call.fault(&Fault::Raised(Box::new(raised))));
    error.diagnostic().hint.as_deref().map(str::to_owned)
}

const NETWORK: &str = "hooks have no direct network access: use `context[\"http_request\"]`";

#[test]
fn the_network_is_named_where_it_is_missing() {
    let refused = "[Errno 1] Operation not permitted";
    let library = |raised: &mut Raised| raised.frames.push(frame("/usr/lib/python3.11/socket.py", 9));
    for kind in
        ["requests.exceptions.ConnectionError", "urllib3.exceptions.NewConnectionError", "httpx.ConnectError"]
    {
        let message = format!("Failed: {refused}");
        assert_eq!(advice(kind, "OSError", &message, library).as_deref(), Some(NETWORK), "{kind}");
        assert_eq!(advice(kind, "OSError", "bad certificate", library), None, "{kind}");
    }
    assert_eq!(advice("PermissionError", "PermissionError", refused, library).as_deref(), Some(NETWORK));
    assert_eq!(advice("PermissionError", "PermissionError", refused, |_| {}), None);
    // Behind another exception.
    let cause = |ours: bool| {
        move |raised: &mut Raised| {
            let frames = vec![frame("/usr/lib/python3.11/socket.py", 9)];
            let cause = Cause { kind: "ConnectionError".into(), ours, frames, ..Cause::default() };
            raised.causes.push(cause);
        }
    };
    assert!(advice("Odd", "Exception", "", cause(false)).unwrap().starts_with(NETWORK));
    assert!(!advice("Odd", "Exception", "", cause(true)).unwrap().starts_with(NETWORK));
    assert_eq!(advice("ConnectionError", "ConnectionError", "refused", |raised| raised.ours = true), None);
}

#[test]
fn causes_that_say_the_same_again_are_left_out() {
    let hint = advice("requests.X", "OSError", "gave up (Caused by: no way)", |raised| {
        for (kind, message) in
            [("urllib3.X", "gave up (Caused by: no way)"), ("Y", "no way"), ("Z", "more\nlines")]
        {
            raised.causes.push(Cause { kind: kind.into(), message: message.into(), ..Cause::default() });
        }
    });
    assert_eq!(hint.as_deref(), Some("while handling Z: more …"));
}

#[test]
fn an_unwritable_system_uses_the_temporary_folder() {
    let hint = advice("OSError", "OSError", "[Errno 30] Read-only file system: 'x'", |_| {});
    assert_eq!(hint.as_deref(), Some("write only to the temporary directory: `tempfile.gettempdir()`"));
}

#[test]
fn a_missing_await_and_a_needless_one_are_reported() {
    for message in [
        "'coroutine' object has no attribute 'upper'",
        "argument of type 'coroutine' is not iterable",
        "can only concatenate str (not \"coroutine\") to str",
        "unsupported operand type(s) for +: 'coroutine' and 'str'",
    ] {
        let hint = advice("TypeError", "TypeError", message, |_| {}).unwrap();
        assert!(hint.contains("await the functions of `context`"), "{hint}");
    }
    // The hook of these tests is one that awaits.
    assert_eq!(
        advice("TypeError", "TypeError", "object str can't be used in 'await' expression", |_| {}),
        None
    );
}
