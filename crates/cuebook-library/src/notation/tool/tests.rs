use serde_json::json;

use super::*;

fn read_text(extension: &str, text: &str) -> Result<Tool> {
    let source = Source::new(format!("t.{extension}"), text);
    read(&source, Notation::of_extension(extension).unwrap())
}

#[test]
fn every_notation_says_the_same_things() {
    let texts = [
        (
            "py",
            "__version__: str = '1.2.0'\n__executor_id__ = 'a/b'\n__tool_description__ = 'D'\nCONFIG = {'timeout': 5}\n",
        ),
        (
            "ts",
            "#!/usr/bin/env node\n// c\nexport const __version__: string = '1.2.0' as const;\nlet __executor_id__ = \"a/b\"\n\
             const __tool_description__ = `D`;\nconst CONFIG = { timeout: 5, /* c */ };\n",
        ),
        (
            "sh",
            "#!/bin/sh\n# rye:signed:x\n\n# __version__ = '1.2.0'\n# __executor_id__ = \"a/b\"\n# __tool_description__ = \"D\"\n\
             # CONFIG = {\"timeout\": 5}\necho x\n# __version__ = \"9\"\n",
        ),
        ("yaml", "# c\nversion: 1.2.0\nexecutor_id: a/b\ndescription: D\nconfig: {timeout: 5}\n"),
        (
            "json",
            "{\"version\": \"1.2.0\", \"executor_id\": \"a/b\", \"description\": \"D\", \"config\": {\"timeout\": 5}}",
        ),
        ("toml", "version = '1.2.0'\nexecutor_id = 'a/b'\ndescription = 'D'\n[config]\ntimeout = 5\n"),
    ];
    for (extension, text) in texts {
        let tool = read_text(extension, text).unwrap_or_else(|error| panic!("{extension}: {error}"));
        assert_eq!(tool.version.as_deref(), Some("1.2.0"), "{extension}");
        assert_eq!(tool.executor_id.as_deref(), Some("a/b"), "{extension}");
        assert_eq!(tool.description.as_deref(), Some("D"), "{extension}");
        assert_eq!(Json::Object(tool.config), json!({"timeout": 5}), "{extension}");
    }
}

#[test]
fn an_unreadable_constant_of_a_tool_has_a_place() {
    for (extension, text, wanted) in [
        ("py", "import os\n__version__ = os.name\n", "t.py:2:15"),
        ("js", "const x = 1;\nconst __version__ = x;\n", "t.js:2:21"),
        ("js", "const __version__ = 'a' + x;\n", "t.js:1:25"),
        ("sh", "# __version__ = $(date)\n", "t.sh:1:17"),
        ("yaml", "version: [1]\n", "t.yaml:1:10"),
        ("json", "{\"config\": 3}", "t.json:1:12"),
        ("toml", "executor_id = '../x'\n", "t.toml:1:15"),
        ("toml", "a = \n", "t.toml:1:5"),
        ("py", "def (\n", "t.py:1:5"),
        ("yaml", "- a\n", "t.yaml:1:1"),
    ] {
        let error = read_text(extension, text).unwrap_err();
        assert_eq!(error.code(), Code::BadTool, "{text:?}");
        let place = error.diagnostic().place.as_ref().unwrap().to_string();
        assert_eq!(place, wanted, "{text:?}: {error}");
    }
}

#[test]
fn javascript_is_read_at_its_top_level_and_nowhere_else() {
    let text = "const s = '// __version__'; const r = /[\"/]`/; const t = `${ { a: `}` } } const __version__ = '0'`;\n\
                function f() { const __version__ = '1'; }\n/* const __version__ = '2' */\n\
                export const __version__ = '3';\nconst CONFIG_SCHEMA = { url: \"https://x.y\", 'a-b': [-1, 0x1F, 1e3, .5, null] };\n";
    let found = constants(&Source::new("t.js", text), Notation::JavaScript).unwrap();
    assert_eq!(
        Json::Object(found),
        json!({
            "__version__": "3",
            "CONFIG_SCHEMA": {"url": "https://x.y", "a-b": [-1, 31, 1000.0, 0.5, null]},
        })
    );
}

#[test]
fn other_names_of_a_tool_are_its_own_business() {
    let tool = read_text("py", "from os import *\nimport sys\nx = sys.argv\n__version__ = '1'\n").unwrap();
    assert_eq!(tool.version.as_deref(), Some("1"));
    assert_eq!(tool.executor_id, None);
    let tool = read_text("js", "const config = load();\nconst __mine__ = f();\n").unwrap();
    assert_eq!(tool.version, None);
}

#[test]
fn nothing_makes_a_reader_panic() {
    for text in [
        "",
        "const __version__ =",
        "const __version__ = \"",
        "`${",
        "/",
        "const CONFIG = {a",
        "# __version__ = ",
        "\u{feff}const __version__ = '\\u{}\\ud800'",
    ] {
        for extension in ["py", "js", "sh", "yaml", "json", "toml"] {
            let _ = read_text(extension, text);
        }
    }
    let deep = format!("const CONFIG = {}", "[".repeat(100_000));
    assert!(read_text("js", &deep).is_err());
}
