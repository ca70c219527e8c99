//! Functions of every kind are called with what they must be called with.

use serde_json::json;

use crate::support::Bench;

#[test]
fn pre_render_changes_adds_and_removes_variables() {
    let Some(bench) = Bench::new(
        "def pre_render(variables, context):
    variables['changed'] = variables['changed'] + 1
    variables['added'] = {'list': [1, 2.5, None, True, 'é\\n'], 'tuple': (1, 2)}
    variables['nested'].append('x')
    del variables['removed']
    return variables
",
    ) else {
        return;
    };
    let sent =
        json!({"kept": "same", "changed": 1, "removed": 2, "nested": ["a"], "none": null, "big": u64::MAX});
    let returned = bench.pre_render(sent);
    let expected = json!({"kept": "same", "changed": 2, "nested": ["a", "x"], "none": null, "big": u64::MAX,
        "added": {"list": [1, 2.5, null, true, "é\n"], "tuple": [1, 2]}});
    assert_eq!(returned, expected);
    // What was there keeps its place, and what is new comes behind.
    let names: Vec<_> = returned.as_object().unwrap().keys().collect();
    assert_eq!(names, ["kept", "changed", "nested", "none", "big", "added"]);
}

#[test]
fn post_render_and_provide_are_called_with_their_arguments() {
    let Some(bench) = Bench::new(
        "def post_render(text, variables, context):
    return text.upper() + str(variables['v'])
async def provide(context):
    return {'keys': sorted(context)}
",
    ) else {
        return;
    };
    assert_eq!(bench.post_render("straße"), "STRASSE1");
    assert_eq!(
        bench.provide(),
        json!({"keys": ["get_variable", "render_template", "session", "workspace_path"]})
    );
}

#[test]
fn a_coroutine_runs_without_a_loop_until_it_needs_one() {
    let Some(bench) = Bench::new(
        "import sys
async def inner():
    return 1
async def pre_render(variables, context):
    variables['one'] = await inner()
    variables['template'] = await context['render_template']('t')
    variables['loop'] = 'async' + 'io' in sys.modules
    return variables
",
    ) else {
        return;
    };
    assert_eq!(bench.pre_render(json!({})), json!({"one": 1, "template": "<t none>", "loop": false}));
}

#[test]
fn a_script_that_uses_asyncio_runs_in_a_loop() {
    let Some(bench) = Bench::new(
        "import asyncio
async def pre_render(variables, context):
    async def late():
        await asyncio.sleep(0.01)
        return await context['render_template']('t')
    variables['both'] = await asyncio.gather(late(), late())
    variables['other'] = await asyncio.get_running_loop().run_in_executor(None, lambda: 5)
    return variables
",
    ) else {
        return;
    };
    for _ in 0..2 {
        assert_eq!(bench.pre_render(json!({})), json!({"both": ["<t none>", "<t none>"], "other": 5}));
    }
    assert_eq!(bench.hooks.idle_workers(), 1);
}

#[test]
fn a_coroutine_that_comes_to_need_a_loop_on_its_way_gets_one() {
    let Some(bench) = Bench::new(
        "async def pre_render(variables, context):
    import helper
    await helper.use(variables)
    return variables
",
    ) else {
        return;
    };
    let bench = bench.file(
        "prompts/p/helper.py",
        "import asyncio
async def use(variables):
    variables['task'] = asyncio.current_task() is not None
    variables['loop'] = asyncio.get_running_loop().is_running()
    async def late():
        await asyncio.sleep(0.01)
        return 5
    variables['waited'] = await asyncio.wait_for(asyncio.create_task(late()), 1)
    asyncio.create_task(asyncio.sleep(100))
",
    );
    for _ in 0..2 {
        assert_eq!(bench.pre_render(json!({})), json!({"task": true, "loop": true, "waited": 5}));
    }
}

#[test]
fn a_coroutine_that_does_not_wait_returns_and_raises() {
    let text = "async def pre_render(variables, context):
    __import__('async' + 'io').create_task(context['render_template']('x'))
    if 'fail' in variables:
        raise KeyError('fail')
    return variables
";
    let Some(bench) = Bench::new(text) else { return };
    assert_eq!(bench.pre_render(json!({"a": 1})), json!({"a": 1}));
    let Some(bench) = Bench::new(text) else { return };
    let error = bench.try_pre_render(json!({"fail": 1})).unwrap_err();
    assert_eq!(error.diagnostic().message, "`pre_render` of the prompt `p` raised KeyError: 'fail'");
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 4);
}

#[test]
fn whatever_can_be_awaited_is_awaited() {
    let Some(bench) = Bench::new(
        "import functools
class Later:
    def __init__(self, value): self.value = value
    def __await__(self):
        yield
        return self.value
def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper
def pre_render(variables, context):
    return Later(dict(variables, plain=context['render_template']('t')))
@decorated
async def post_render(text, variables, context):
    return await context['render_template'](text)
class Provide:
    async def __call__(self, context):
        return {'text': await context['render_template']('o')}
provide = Provide()
",
    ) else {
        return;
    };
    assert_eq!(bench.pre_render(json!({})), json!({"plain": "<t none>"}));
    assert_eq!(bench.post_render("x"), "<x none>");
    assert_eq!(bench.provide(), json!({"text": "<o none>"}));
}

#[test]
fn a_large_value_goes_both_ways() {
    let Some(mut bench) = Bench::new(
        "def pre_render(variables, context):
    variables['list'] = [text.upper() for text in variables['list']]
    return variables
",
    ) else {
        return;
    };
    bench.limits.max_output_size = 20_000_000;
    let list: Vec<String> = (0..20_000).map(|number| format!("é{number:0100}")).collect();
    let returned = bench.pre_render(json!({"list": list, "text": "x".repeat(3_000_000)}));
    assert_eq!(returned["list"][19_999], list[19_999].to_uppercase());
    assert_eq!(returned["text"].as_str().unwrap().len(), 3_000_000);
}

#[test]
fn prints_are_reported_with_their_function() {
    let Some(bench) = Bench::new(
        "import os, sys
def pre_render(variables, context):
    print('one')
    print('two', end='')
    sys.stderr.write('three')
    return variables
def post_render(text, variables, context):
    os.write(1, b'x' * 300000)
    return text
",
    ) else {
        return;
    };
    bench.pre_render(json!({}));
    let printed: Vec<_> = bench.host.printed.lock().unwrap().drain(..).collect();
    assert_eq!(printed.len(), 1);
    assert_eq!(printed[0].0, "pre_render");
    assert!(
        printed[0].1.starts_with("one\n") && printed[0].1.contains("two") && printed[0].1.contains("three")
    );
    bench.post_render("x");
    let printed = bench.printed();
    assert!(printed.ends_with(&format!("xx\n… and {} more bytes\n", 300_000 - 65_536)));
    // A quiet call says nothing.
    bench.provide_nothing();
}

impl Bench {
    fn provide_nothing(&self) {
        assert!(self.try_provide().is_err());
        assert_eq!(self.printed(), "");
    }
}

#[test]
fn a_worker_sees_its_workspace_and_a_clean_environment() {
    let Some(bench) = Bench::new(
        "import os, sys
def provide(context):
    return {
        'cwd': os.getcwd() == context['workspace_path'],
        'path': [entry for entry in sys.path if entry in ('', os.getcwd())],
        'environment': sorted(set(os.environ) - {'TZ', 'LC_CTYPE'}),
        'argv': sys.argv == [__file__],
        'name': __name__,
        'input': sys.stdin.read(),
        'encoding': open(__file__).encoding.lower(),
    }
",
    ) else {
        return;
    };
    assert_eq!(
        bench.provide(),
        json!({
            "cwd": true,
            "path": [],
            "environment": ["GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_KEY_0", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_VALUE_0",
                "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_OPTIONAL_LOCKS",
                "GIT_TERMINAL_PROMPT", "HOME", "LANG", "PATH", "TMPDIR"],
            "argv": true,
            "name": "prompt",
            "input": "",
            "encoding": "utf-8",
        })
    );
}
