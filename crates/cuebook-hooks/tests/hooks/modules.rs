//! Modules beside a script are its own, and nothing else is imported from where a user could put it.

use serde_json::json;

use crate::support::Bench;

#[test]
fn modules_and_packages_beside_the_script_are_found() {
    let Some(bench) = Bench::new(
        "import helper
from package import part
from package.deep.er import value
import loose.inner
def provide(context):
    import late
    return {'all': [helper.value, part.value, value, loose.inner.value, late.value], 'file': helper.__file__ == __file__.replace('prompt.py', 'helper.py')}
",
    ) else {
        return;
    };
    let bench = bench
        .file("prompts/p/helper.py", "value = 1\n")
        .file("prompts/p/package/__init__.py", "")
        .file("prompts/p/package/part.py", "from . import other\nvalue = other.value\n")
        .file("prompts/p/package/other.py", "value = 2\n")
        .file("prompts/p/package/deep/__init__.py", "")
        .file("prompts/p/package/deep/er.py", "from ..other import value as two\nvalue = two + 1\n")
        .file("prompts/p/loose/inner.py", "value = 4\n")
        .file("prompts/p/late.py", "value = 5\n");
    assert_eq!(bench.provide(), json!({"all": [1, 2, 3, 4, 5], "file": true}));
    assert!(!bench.path("prompts/p/__pycache__").exists());
}

#[test]
fn a_provider_finds_modules_beside_itself_and_in_its_pack() {
    let Some(mut bench) = Bench::new("") else { return };
    bench = bench
        .file("pack/variables/near.py", "value = 1\n")
        .file("pack/shared.py", "value = 2\n")
        .file("pack/near.py", "value = 3\n");
    bench.script.path = bench.path("pack/variables/git.py");
    bench.script.folder = bench.path("pack");
    let text = "import near, shared\ndef provide(context): return {'n': near.value, 's': shared.value, 'name': __name__}\n";
    bench.script.source = cuebook::source::Source::new("git.py", text);
    assert_eq!(bench.provide(), json!({"n": 1, "s": 2, "name": "cuebook_git"}));
}

#[test]
fn the_standard_library_wins_over_a_file_of_the_same_name() {
    let Some(bench) = Bench::new(
        "import json, colorsys
def provide(context):
    return {'json': json.loads('1'), 'colorsys': hasattr(colorsys, 'rgb_to_hsv')}
",
    ) else {
        return;
    };
    let bench = bench
        .file("prompts/p/json.py", "raise ValueError('ours')\n")
        .file("prompts/p/colorsys.py", "raise ValueError('ours')\n")
        .file("prompts/p/site.py", "raise ValueError('ours')\n");
    assert_eq!(bench.provide(), json!({"json": 1, "colorsys": true}));
}

#[test]
fn nothing_is_imported_from_the_workspace() {
    let Some(bench) = Bench::new("def pre_render(variables, context):\n    import workspace_module\n") else {
        return;
    };
    let bench = bench.file("workspace/workspace_module.py", "");
    assert_eq!(
        bench.message(),
        "CB410: `pre_render` of the prompt `p` raised ModuleNotFoundError: No module named 'workspace_module'"
    );
}

#[test]
fn byte_code_and_libraries_beside_the_script_are_never_run() {
    let Some(bench) = Bench::new(
        "import py_compile, sys
def found(name):
    try:
        __import__(name)
        return True
    except ModuleNotFoundError:
        return False
def provide(context):
    names = ['compiled', 'native', 'package.compiled', 'package.native', 'loose.compiled']
    return {name: found(name) for name in names}
",
    ) else {
        return;
    };
    let bench = bench
        .file("prompts/p/package/__init__.py", "")
        .file("prompts/p/native.so", "")
        .file("prompts/p/package/native.abi3.so", "");
    // Made by the very interpreter that would run it.
    let python = &bench.hooks.interpreter().unwrap().program;
    let source = bench.path("evil.py");
    std::fs::write(&source, "raise SystemExit('byte code was run')\n").unwrap();
    for place in ["prompts/p/compiled.pyc", "prompts/p/package/compiled.pyc", "prompts/p/loose/compiled.pyc"]
    {
        std::fs::create_dir_all(bench.path(place).parent().unwrap()).unwrap();
        let code = format!(
            "import py_compile; py_compile.compile({source:?}, {:?}, doraise=True)",
            bench.path(place)
        );
        assert!(std::process::Command::new(python).args(["-I", "-c", &code]).status().unwrap().success());
    }
    assert_eq!(
        bench.provide(),
        json!({"compiled": false, "native": false, "package.compiled": false, "package.native": false,
            "loose.compiled": false})
    );
}

#[test]
fn stale_byte_code_in_a_cache_is_not_read() {
    let Some(bench) = Bench::new("import helper\ndef provide(context): return {'value': helper.value}\n")
    else {
        return;
    };
    let bench = bench.file("prompts/p/helper.py", "value = 'evil'\n");
    let python = &bench.hooks.interpreter().unwrap().program;
    let helper = bench.path("prompts/p/helper.py");
    // Byte code that claims to be right whatever the source says.
    let code = format!(
        "import py_compile; py_compile.compile({helper:?}, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)"
    );
    assert!(std::process::Command::new(python).args(["-I", "-c", &code]).status().unwrap().success());
    assert!(bench.path("prompts/p/__pycache__").exists());
    std::fs::write(&helper, "value = 'good'\n").unwrap();
    assert_eq!(bench.provide(), json!({"value": "good"}));
}

#[test]
fn installed_modules_are_looked_for_when_nothing_else_is_found() {
    let Some(bench) = Bench::new(
        "import sys
def provide(context):
    before = 'site' in sys.modules
    try:
        import certainly_not_installed
    except ModuleNotFoundError:
        pass
    import helper
    return {'before': before, 'after': 'site' in sys.modules, 'packages': any('-packages' in entry for entry in sys.path), 'helper': helper.value}
",
    ) else {
        return;
    };
    let bench = bench
        .file("prompts/p/helper.py", "value = 1\n")
        .file("prompts/p/sitecustomize.py", "raise ValueError('never')\n")
        .file("prompts/p/usercustomize.py", "raise ValueError('never')\n");
    let found = bench.provide();
    assert_eq!(
        (&found["before"], &found["after"], &found["helper"]),
        (&json!(false), &json!(true), &json!(1))
    );
}

#[test]
fn usual_modules_of_the_library_do_not_bring_what_is_installed() {
    let Some(bench) = Bench::new(
        "import copy, os, pathlib, re, subprocess, sys
def provide(context):
    return {'site': 'site' in sys.modules, 'ours': [name for name in ('json', 'asyncio', 'traceback', 'inspect') if name in sys.modules]}
",
    ) else {
        return;
    };
    assert_eq!(bench.provide(), json!({"site": false, "ours": []}));
}
