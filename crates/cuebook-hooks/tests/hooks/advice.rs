//! Mistakes that people make in hooks, and what they are advised.

use std::time::Duration;

use cuebook::error::Code;
use serde_json::json;

use crate::support::{Bench, hint};

const NOT_GRANTED: &str = "is not granted: declare it in `PERMISSIONS` of the prompt";

/// The hint for a hook that does this.
#[track_caller]
fn advised(define: &str, body: &str, granted: &[&str]) -> Option<String> {
    let bench =
        Bench::new(&format!("{define} pre_render(variables, context):\n    {body}\n    return variables\n"))?;
    Some(hint(&bench.granting(granted).error()).to_owned())
}

#[test]
fn a_name_that_the_context_does_not_have_is_explained() {
    let all = "workspace_path, session, render_template, get_variable";
    let cases: &[(&str, &[&str], String)] = &[
        ("context['read_file']('a')", &[], format!("`read_file` {NOT_GRANTED}")),
        ("name = 'llm_call'; context[name]('a')", &[], format!("`llm_call` {NOT_GRANTED}")),
        ("context.read_file('a')", &[], format!("`read_file` {NOT_GRANTED}")),
        (
            "context.read_file('a')",
            &["read_file"],
            "`context` is a dict: write `context[\"read_file\"]`".into(),
        ),
        ("context['readfile']('a')", &["read_file"], "did you mean `read_file`?".into()),
        (
            "context['readfile']('a')",
            &[],
            "did you mean `read_file`? It is not granted: declare it in `PERMISSIONS` of the prompt".into(),
        ),
        ("context['workspace']", &[], "did you mean `workspace_path`?".into()),
        ("context['qqq']", &["llm_call"], format!("`context` has {all}, llm_call")),
        ("context.qqq", &[], format!("`context` is a dict with {all}")),
        // Other dicts have their own names.
        ("variables['read_file']", &[], String::new()),
        ("variables['context']", &[], String::new()),
        ("k = 'a'; variables['session'], context[k]", &[], String::new()),
        ("context['session']['read_file']", &[], String::new()),
        ("context['session'].read_file", &[], String::new()),
        ("raise KeyError('read_file')", &[], String::new()),
    ];
    for (body, granted, expected) in cases {
        let Some(hint) = advised("def", body, granted) else { return };
        assert_eq!(hint, *expected, "{body}");
    }
}

#[test]
fn a_missing_await_and_a_needless_one_are_reported() {
    let forgotten =
        "in an `async def` hook, await the functions of `context`: `await context[\"read_file\"](…)`";
    for body in [
        "context['read_file']('a').upper()",
        "'x' in context['read_file']('a')",
        "'x' + context['read_file']('a')",
        "context['read_file']('a') + 'x'",
        "list(context['read_file']('a'))",
    ] {
        let Some(hint) = advised("async def", body, &["read_file"]) else { return };
        assert_eq!(hint, forgotten, "{body}");
    }
    let hint = advised("def", "await context['read_file']('a')", &["read_file"]).unwrap();
    assert_eq!(hint, "a function that uses `await` must start with `async def`");
    let plain = "in a plain `def`, call the functions of `context` without `await`";
    for body in [
        "async def f(): await context['read_file']('a')\n    __import__('asyncio').run(f())",
        "__import__('asyncio').run(context['read_file']('a'))",
    ] {
        assert_eq!(advised("def", body, &["read_file"]).unwrap(), plain, "{body}");
    }
}

#[test]
fn a_script_may_refuse_a_connection() {
    let network = "hooks have no direct network access: use `context[\"http_request\"]`";
    let Some(hint) = advised("def", "raise ConnectionError('none')", &[]) else { return };
    assert_eq!(hint, "");
    for body in [
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/')",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket().connect(('127.0.0.1', 9))",
    ] {
        let hint = advised("def", body, &[]).unwrap();
        assert_eq!(hint, network, "{body}");
        let wrapped =
            format!("try:\n        {body}\n    except OSError as error: raise KeyError('x') from error");
        assert!(advised("def", &wrapped, &[]).unwrap().starts_with(network), "{wrapped}");
    }
}

#[test]
fn modules_have_names_that_python_does_not_use() {
    let relative = "import modules from the script's folder by their plain name: `import helper`";
    for body in ["from .helper import x", "from . import helper"] {
        let Some(hint) = advised("def", body, &[]) else { return };
        assert_eq!(hint, relative, "{body}");
    }
    for body in ["import secrets; secrets.mine()", "from secrets import mine"] {
        let text = format!("def pre_render(variables, context):\n    {body}\n");
        let bench = Bench::new(&text).unwrap().file("prompts/p/secrets.py", "def mine(): pass\n");
        assert_eq!(
            hint(&bench.error()),
            "`secrets` is a module of Python's library: give yours another name",
            "{body}"
        );
    }
    // A module of one's own that lacks something is just that.
    let bench = Bench::new("import helper\ndef pre_render(variables, context): helper.mine()\n").unwrap();
    assert_eq!(hint(&bench.file("prompts/p/helper.py", "").error()), "");
}

#[test]
fn a_hook_that_was_stopped_while_it_waited_for_us_says_for_what() {
    let text =
        "def pre_render(variables, context):\n    context['render_template']('x')\n    return variables\n";
    let Some(mut bench) = Bench::new(text) else { return };
    assert_eq!(bench.pre_render(json!({"a": 1})), json!({"a": 1}));
    bench.host.slowness = Duration::from_millis(400);
    let error = bench.time(300).error();
    assert_eq!(error.code(), Code::HookTimeout);
    assert_eq!(error.field("waited_for"), Some(&json!("render_template")));
    assert!(error.diagnostic().message.ends_with("stopped while it waited for `render_template`"), "{error}");
}
