//! The same script in every Python that is installed here.

use crate::support::skip;

use std::path::{Path, PathBuf};

use cuebook::error::Code;
use cuebook_hooks::{Interpreter, OLDEST};
use serde_json::json;

use crate::support::{Bench, config};

/// Every CPython that can be found: by name on the PATH, and where pyenv keeps them.
fn installed() -> Vec<(PathBuf, (u8, u8))> {
    let path = std::env::var_os("PATH");
    let mut names: Vec<String> = (OLDEST.1..=14).map(|minor| format!("python3.{minor}")).collect();
    let home = std::env::var("PYENV_ROOT").or_else(|_| std::env::var("HOME").map(|home| home + "/.pyenv"));
    let versions = home.ok().and_then(|root| std::fs::read_dir(Path::new(&root).join("versions")).ok());
    names.extend(
        versions
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("bin/python3").display().to_string()),
    );
    let mut found: Vec<_> = names
        .iter()
        .filter_map(|name| Interpreter::find(name, Path::new("/nowhere"), path.as_deref()).ok())
        .map(|interpreter| (interpreter.program, interpreter.version))
        .collect();
    found.sort();
    found.dedup();
    found
}

const SCRIPT: &str = "
import helper
async def pre_render(variables, context):
    variables['file'] = await context['read_file']('x')
    variables['late'] = await helper.late()
    variables['list'] = [1.5, None, 'é', {'k': [True]}]
    return variables
def post_render(text, variables, context):
    print('printed')
    if text == 'fail':
        raise ValueError(text)
    return text + context['render_template']('t')
def provide(context):
    return {'bad': {1, 2}}
";

const HELPER: &str = "
async def late():
    import asyncio
    await asyncio.sleep(0.001)
    return 'late'
";

#[test]
fn every_python_runs_the_same_script_with_the_same_results() {
    let found = installed();
    println!("found: {found:?}");
    if found.is_empty() {
        return skip::missing_peer("Python is missing");
    }
    for (program, version) in found {
        let bench = Bench::with_config(SCRIPT, config(program.to_str().unwrap()))
            .file("prompts/p/helper.py", HELPER)
            .granting(&["read_file"]);
        for _ in 0..2 {
            let expected = json!({"a": "b", "file": "text of x", "late": "late", "list": [1.5, null, "é", {"k": [true]}]});
            assert_eq!(bench.pre_render(json!({"a": "b"})), expected, "{version:?}");
        }
        assert_eq!(bench.post_render("x"), "x<t none>", "{version:?}");
        assert_eq!(bench.printed(), "printed\n", "{version:?}");
        let error = bench.try_post_render("fail").unwrap_err();
        assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 11, "{version:?}");
        let error = bench.try_provide().unwrap_err();
        assert_eq!(error.code(), Code::HookReturn);
        assert!(
            error.diagnostic().message.ends_with("`provide()[\"bad\"]` is a set"),
            "{version:?}: {error}"
        );
        assert_eq!(bench.hooks.idle_workers(), 1, "{version:?}");
    }
}
