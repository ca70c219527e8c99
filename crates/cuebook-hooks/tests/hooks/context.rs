//! The context has what is granted, and its functions ask the host.

use cuebook::hooks::Values;
use serde_json::json;

use crate::support::{Bench, hint, values};

const ALL: [&str; 4] = ["read_file", "http_request", "llm_call", "session_state"];

#[test]
fn only_what_is_granted_is_there() {
    let text = "def provide(context):\n    return {'keys': sorted(context), 'is': type(context).__name__}\n";
    let Some(bench) = Bench::new(text) else { return };
    assert_eq!(
        bench.provide()["keys"],
        json!(["get_variable", "render_template", "session", "workspace_path"])
    );
    let bench = bench.granting(&ALL);
    let keys = json!([
        "get_variable",
        "http_request",
        "llm_call",
        "read_file",
        "render_template",
        "session",
        "session_state",
        "workspace_path"
    ]);
    assert_eq!(bench.provide(), json!({"keys": keys, "is": "dict"}));
}

#[test]
fn a_missing_permission_is_named() {
    let Some(bench) = Bench::new("def pre_render(variables, context):\n    context['read_file']('x')\n")
    else {
        return;
    };
    let error = bench.error();
    assert_eq!(error.diagnostic().message, "`pre_render` of the prompt `p` raised KeyError: 'read_file'");
    assert_eq!(hint(&error), "`read_file` is not granted: declare it in `PERMISSIONS` of the prompt");
}

#[test]
fn asking_behind_the_contexts_back_is_refused_by_the_host() {
    let Some(bench) = Bench::new(
        "def pre_render(variables, context):
    make = context['get_variable'].__globals__
    make['part']('context', 'read_file')('x')
",
    ) else {
        return;
    };
    assert_eq!(
        bench.message(),
        "CB410: `pre_render` of the prompt `p` raised PermissionError: the prompt `p` does not have the permission `read_file`"
    );
}

const EVERYTHING: &str = "
PLACEHOLDER pre_render(variables, context):
    c = context
    return {
        'file': AWAIT c['read_file']('a.txt'),
        'path': AWAIT c['read_file'](__import__('pathlib').PurePath('b') / 'c'),
        'template': AWAIT c['render_template']('t', {'x': [1]}),
        'named': AWAIT c['render_template'](name='t'),
        'variable': AWAIT c['get_variable']('git.branch'),
        'http': AWAIT c['http_request']('https://x.example/', headers={'a': 'b'}, json={'k': 1}, timeout=2),
        'swapped': (AWAIT c['http_request']('PUT', 'https://y.example/', body='z'))['status'],
        'llm': AWAIT c['llm_call']('why', system='be brief', max_tokens=5),
        'state': c['session_state']['mode'],
        'called': AWAIT c['session_state']('mode'),
        'default': AWAIT c['session_state']('nothing', 7),
        'session': c['session'],
    }
";

#[test]
fn every_function_works_in_plain_and_in_async_hooks() {
    for (definition, wait) in [("def", ""), ("async def", "await ")] {
        let text = EVERYTHING.replace("PLACEHOLDER", definition).replace("AWAIT ", wait);
        let Some(bench) = Bench::new(&text) else { return };
        let mut bench = bench.granting(&ALL);
        bench.session = values(json!({"session_id": "s"}));
        bench.state = values(json!({"mode": "fast"}));
        let expected = json!({
            "file": "text of a.txt",
            "path": "text of b/c",
            "template": "<t {\"x\":[1]}>",
            "named": "<t none>",
            "variable": {"path": "git.branch"},
            "http": {"status": 200, "url": "https://x.example/", "headers": {"x": "y"}, "body": "hello"},
            "swapped": 200,
            "llm": "answer to why",
            "state": "fast",
            "called": "fast",
            "default": 7,
            "session": {"session_id": "s"},
        });
        assert_eq!(bench.pre_render(json!({})), expected, "{definition}");
        let requests = bench.host.requests.lock().unwrap();
        assert_eq!((requests[0].method.as_str(), requests[0].body.as_deref()), ("POST", Some("{\"k\":1}")));
        assert_eq!((requests[1].method.as_str(), requests[1].url.as_str()), ("PUT", "https://y.example/"));
        assert_eq!(bench.host.prompts.lock().unwrap()[0].max_tokens, Some(5));
    }
}

#[test]
fn a_refusal_is_raised_as_the_exception_that_it_names() {
    let Some(bench) = Bench::new(
        "def pre_render(variables, context):
    found = []
    for path in ('missing', 'surprise', 5, {1}):
        try:
            context['read_file'](path)
        except Exception as error:
            found.append(f'{type(error).__name__}: {error}')
    try:
        context['render_template']('t', {1})
    except Exception as error:
        found.append(f'{type(error).__name__}: {error}')
    try:
        context['get_variable']()
    except Exception as error:
        found.append(f'{type(error).__name__}: {error}')
    return {'found': found}
",
    ) else {
        return;
    };
    let found = bench.granting(&["read_file"]).pre_render(json!({}));
    let expected = json!({"found": [
        "FileNotFoundError: read_file: missing does not exist",
        "RuntimeError: odd",
        "TypeError: expected str, bytes or os.PathLike object, not int",
        "TypeError: expected str, bytes or os.PathLike object, not set",
        "TypeError: render_template: JSON cannot represent arguments[\"variables\"] of type set",
        "TypeError: get_variable() missing 1 required positional argument: 'name'",
    ]});
    assert_eq!(found, expected);
}

#[test]
fn many_threads_may_ask_at_once() {
    let Some(bench) = Bench::new(
        "from concurrent.futures import ThreadPoolExecutor
def pre_render(variables, context):
    with ThreadPoolExecutor(8) as pool:
        variables['all'] = list(pool.map(lambda n: context['render_template'](f't{n}'), range(50)))
    return variables
",
    ) else {
        return;
    };
    let all: Vec<String> = (0..50).map(|number| format!("<t{number} none>")).collect();
    assert_eq!(bench.pre_render(json!({}))["all"], json!(all));
}

#[test]
fn large_answers_and_questions_arrive_whole() {
    let Some(mut bench) = Bench::new(
        "def pre_render(variables, context):
    text = context['render_template']('x', {'text': 'é' * 200000})
    return {'length': len(text), 'end': text[-4:]}
",
    ) else {
        return;
    };
    bench.limits.max_output_size = 200_000;
    assert_eq!(bench.pre_render(json!({})), json!({"length": 200_015, "end": "é\"}>"}));
    let _: Values = Values::new();
}
