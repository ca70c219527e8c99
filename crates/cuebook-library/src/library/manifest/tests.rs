use std::fs;

use proptest::prelude::*;
use serde_json::Map;

use super::fields::FIELDS;
use super::*;
use crate::error::report;
use crate::json::{MAX_FINDINGS, shown};
use crate::library::Claims;
use crate::prompt::{Limits, Permissions};

const PROVIDER_EXAMPLE: &str = r#"{
  "pack_id": "git_toolkit",
  "variable_providers": [
    {
      "file": "variables/git_provider.py",
      "namespace": "git",
      "description": "Git リポジトリの情報を提供"
    }
  ]
}"#;

const PACK_EXAMPLE: &str = r#"{
  "pack_id": "advanced_coding_prompts",
  "name": "Advanced Coding Prompts",
  "version": "2.0.0",
  "type": "prompt_pack",
  "prompts": ["advanced_coding_system", "code_review"],
  "variable_providers": [
    {
      "file": "variables/code_metrics.py",
      "namespace": "metrics",
      "description": "コードメトリクスを変数として提供"
    }
  ],
  "replaces": {
    "prompts": {
      "coding_system": "advanced_coding_system"
    }
  }
}"#;

fn read(text: &str) -> Result<(Manifest, Vec<Diagnostic>)> {
    Manifest::read(&Source::new("pack.json", text))
}

fn manifest(text: &str) -> Manifest {
    let (manifest, warnings) = read(text).unwrap_or_else(|error| panic!("{}", shown(error.diagnostics())));
    assert_eq!(shown(&warnings), "");
    manifest
}

/// Everything that is said against a manifest.
fn problems(text: &str) -> String {
    match read(text) {
        Ok((_, warnings)) => shown(&warnings),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Pack);
            shown(error.diagnostics())
        }
    }
}

/// What is said against one field beside a sound id.
fn problem(field: &str) -> String {
    problems(&format!("{{\"pack_id\": \"p\", {field}}}"))
}

#[test]
fn the_examples_of_the_specification_are_accepted_as_they_are() {
    let provider = manifest(PROVIDER_EXAMPLE);
    assert_eq!((provider.name.as_str(), provider.version.as_str()), ("git_toolkit", "1.0.0"));
    assert_eq!(
        provider.variable_providers,
        [VariableProvider {
            file: "variables/git_provider.py".into(),
            namespace: "git".into(),
            description: Some("Git リポジトリの情報を提供".into()),
            optional: false,
            permissions: Permissions::default(),
            limits: Limits::default(),
        }]
    );
    let pack = manifest(PACK_EXAMPLE);
    assert_eq!(pack.prompts, ["advanced_coding_system", "code_review"]);
    assert_eq!(pack.replaces.prompts["coding_system"], "advanced_coding_system");
    let replacing = manifest(
        r#"{
  "pack_id": "my_coding_pack",
  "prompts": ["my_coding_system"],
  "replaces": {
    "prompts": {"coding_system": "my_coding_system"},
    "tools": {"file_read": "my_enhanced_file_read"},
    "flows": {"default.agent_run": "my_agent_run"}
  },
  "vocab": {
    "prompt.system_prompt": ["prompt.systemprompt", "prompt.system-prompt", "prompt.SystemPrompt"],
    "api.finish_reason": ["api.stop_reason", "api.end_reason"]
  }
}"#,
    );
    assert_eq!(replacing.replaces.flows["default.agent_run"], "my_agent_run");
    assert_eq!(replacing.vocab["api.finish_reason"], ["api.stop_reason", "api.end_reason"]);
}

#[test]
fn the_json_form_has_every_field_and_reads_back_as_the_same() {
    let text = r#"{
        "pack_id": "a.b-c_1", "type": "full_agent_pack", "description": "two\nlines", "author": "R", "license": "MIT",
        "tags": ["x"], "partials": ["prompts/partials/a.md"], "tools": ["file_read"], "agents": ["coder"],
        "variable_providers": [{"file": "v.py", "namespace": "v", "optional": true,
            "permissions": {"llm_call": true}, "limits": {"max_execution_time": 0.5, "max_output_size": 10}}],
        "$schema": "pack.schema.json", "version": null
    }"#;
    let json = manifest(text).to_json();
    let permissions =
        json!({"read_file": false, "http_request": false, "llm_call": true, "session_state": false});
    assert_eq!(
        json,
        json!({
            "pack_id": "a.b-c_1", "name": "a.b-c_1", "version": "1.0.0", "type": "full_agent_pack",
            "description": "two\nlines", "author": "R", "license": "MIT", "tags": ["x"], "prompts": [],
            "partials": ["prompts/partials/a.md"], "tools": ["file_read"], "agents": ["coder"],
            "variable_providers": [{
                "file": "v.py", "namespace": "v", "description": null, "optional": true, "permissions": permissions,
                "limits": {"max_execution_time": 0.5, "max_output_size": 10},
            }],
            "replaces": {"prompts": {}, "tools": {}, "flows": {}},
            "vocab": {},
        })
    );
    assert_eq!(manifest(&json.to_string()).to_json(), json);
    let limits = &manifest(PROVIDER_EXAMPLE).to_json()["variable_providers"][0]["limits"];
    assert_eq!(limits.to_string(), r#"{"max_execution_time":5,"max_output_size":50000}"#);
}

#[test]
fn all_errors_come_at_once_with_warnings_last() {
    let text = r#"{
  "pack_id": "My Pack",
  "version": 2,
  "type": "partal_pack",
  "prompts": ["codeReview", "a", "a"],
  "replaces": {"promts": {}, "prompts": {"x": "b"}},
  "licence": "MIT"
}"#;
    assert_eq!(
        problems(text),
        "\
error pack.json:2:14: invalid pack id `My Pack` [CB201]
  at \"My Pack\" -- an id must have lowercase letters, digits, `_`, `.` and `-`, starting with a letter or digit
  help: write `my_pack`
error pack.json:5:15: `codeReview` is not a prompt id [CB201]
  at \"codeReview\" -- use lowercase letters, digits, `_` and `-`, starting with a letter or digit
  help: write `code_review`
error pack.json:5:34: duplicate `a` [CB201]
  at \"a\" -- second one here
  and pack.json:5:29 \"a\" -- first one here
  help: remove one of them
error pack.json:6:47: `b` replaces `x`, but the pack does not list it [CB201]
  at \"b\" -- not a prompt of this pack
  help: add \"b\" to `prompts`
error pack.json:3:14: `version` must be a string [CB201]
  at 2 -- this is a number
  help: write a string here
error pack.json:4:11: unknown pack type `partal_pack` [CB201]
  at \"partal_pack\" -- this type
  help: did you mean `partial_pack`?
warning pack.json:7:3: unknown key `licence` in pack.json [CB315]
  at \"licence\" -- ignored
  help: did you mean `license`?
warning pack.json:6:16: unknown key `promts` in `replaces` [CB315]
  at \"promts\" -- ignored
  help: known: prompts, tools, flows
"
    );
}

#[test]
fn a_manifest_needs_its_id_and_nothing_else() {
    assert_eq!(manifest("{\"pack_id\": \"p\"}").kind, PackKind::PromptPack);
    assert_eq!(
        problems("{}"),
        "\
error pack.json:1:1: `pack_id` is missing [CB201]
  at { -- it belongs in this object
  help: add it, for example: \"pack_id\": \"my_pack\"
"
    );
    assert_eq!(
        problems("{\n  \"packid\": \"p\"}"),
        "\
error pack.json:1:1: `pack_id` is missing [CB201]
  at { -- it belongs in this object
  help: rename `packid` to `pack_id`
warning pack.json:2:3: unknown key `packid` in pack.json [CB315]
  at \"packid\" -- ignored
  help: did you mean `pack_id`?
"
    );
    assert_eq!(
        problems("[]"),
        "\
error pack.json:1:1: pack.json must be an object [CB201]
  at [ -- this is an array
  help: write an object here
"
    );
    assert!(problems("{\"pack_id\": null}").contains("`pack_id` must be a string"));
}

#[test]
fn a_pack_id_is_a_safe_name_for_a_folder() {
    for id in ["p", "0", "a.b", "a-b_c.d", &"x".repeat(64)] {
        manifest(&json!({ "pack_id": id }).to_string());
    }
    for id in [
        "", ".", "..", "a..b", ".a", "-a", "_a", "A", "a/b", "a\\b", "é", "a b", "nul", "com1.x", "a.", "a\n",
    ] {
        let reported = problems(&json!({ "pack_id": id }).to_string());
        assert!(reported.contains("invalid pack id"), "{id:?}: {reported}");
    }
    assert!(problems(&json!({"pack_id": "x".repeat(65)}).to_string()).contains("at most 64 characters"));
}

#[test]
fn an_unusual_version_is_a_warning_and_an_empty_one_an_error() {
    for version in ["1.0", "1.0.0", "2.0.0-rc.1", "1.2.3+build-5"] {
        manifest(&json!({"pack_id": "p", "version": version}).to_string());
    }
    assert_eq!(
        problem(r#""version": "v1""#),
        "\
warning pack.json:1:29: unusual version `v1` [CB201]
  at \"v1\" -- Cuebook cannot compare this version
  help: write three numbers separated by dots, as in 1.0.0
"
    );
    assert_eq!(
        problem(r#""version": " ""#),
        "\
error pack.json:1:29: `version` is empty [CB201]
  at \" \" -- this is empty
  help: write a value, or remove it
"
    );
}

#[test]
fn texts_that_would_garble_a_terminal_are_refused() {
    assert_eq!(
        problem(r#""name": "a\u001b[2J""#),
        "\
error pack.json:1:26: `name` has a control character or a line break [CB201]
  at \"a\\u001b[2J\" -- in this text
  help: remove the character
"
    );
    assert_eq!(problem(r#""description": "a\nb""#), "");
}

#[test]
fn lists_hold_strings_and_each_of_them_once() {
    assert_eq!(
        problem(r#""prompts": "a""#),
        "\
error pack.json:1:29: `prompts` must be an array of strings [CB201]
  at \"a\" -- this is a string
  help: write an array of strings here
"
    );
    assert_eq!(
        problem(r#""prompts": ["code-review", 5, "code_review", "partials"]"#),
        "\
error pack.json:1:45: `prompts[1]` must be a string [CB201]
  at 5 -- this is a number
  help: write a string here
error pack.json:1:63: `partials` cannot be a prompt [CB201]
  at \"partials\" -- prompts/partials is the folder of partials
  help: remove it from the list, or list its files under `partials`
error pack.json:1:48: duplicate `code_review` [CB201]
  at \"code_review\" -- second one here
  and pack.json:1:30 \"code-review\" -- first one here
  help: remove one of them
"
    );
}

#[test]
fn files_of_a_pack_have_plain_paths_inside_it() {
    let hint = "write the path of a .md file relative to the pack's folder, with `/` between its parts";
    for (path, reason) in [
        ("../a.md", "leads out of the pack with `..`"),
        ("/a.md", "is an absolute path"),
        ("C:/a.md", "begins with a drive letter"),
        ("a.txt", "does not end with .md"),
        ("./a.md", "starts with `./`"),
        ("partials/", "is a folder"),
        (".hidden/a.md", "has a part that packs leave out"),
        ("", "has no name"),
    ] {
        let wanted = format!(
            "error pack.json:1:31: `{path}` {reason} [CB201]\n  at \"{path}\" -- this path\n  help: {hint}\n"
        );
        assert_eq!(problem(&format!(r#""partials": ["{path}"]"#)), wanted);
    }
    let reported = problem(r#""variable_providers": [{"file": "a\\b.py", "namespace": "n"}]"#);
    assert!(
        reported.starts_with("error pack.json:1:50: `a\\b.py` has a backslash in its name [CB201]\n"),
        "{reported}"
    );
}

#[test]
fn a_provider_needs_its_file_and_a_namespace() {
    assert_eq!(
        problem(r#""variable_providers": [{"fil": "a.py"}, 5]"#),
        "\
error pack.json:1:41: `variable_providers[0]` has no `file` [CB201]
  at { -- it belongs in this object
  help: add `file`: the path of a .py file in the pack
error pack.json:1:41: `variable_providers[0]` has no `namespace` [CB201]
  at { -- it belongs in this object
  help: add `namespace`: the name that templates use
error pack.json:1:58: `variable_providers[1]` must be an object [CB201]
  at 5 -- this is a number
  help: write an object here
warning pack.json:1:42: unknown key `fil` in `variable_providers[0]` [CB315]
  at \"fil\" -- ignored
  help: did you mean `file`?
"
    );
}

#[test]
fn a_namespace_is_a_free_template_name() {
    let meaning = "templates already use this name";
    let unwritable = "templates cannot use this name";
    let letters = "use letters, digits and `_`, starting with a letter";
    for (name, label, hint) in [
        ("system", meaning, "choose another name, for example `system_info`"),
        ("loop", meaning, "choose another name, for example `loop_info`"),
        ("None", meaning, "choose another name, for example `none_info`"),
        ("my-git", unwritable, letters),
        ("1st", unwritable, letters),
        ("", unwritable, letters),
    ] {
        let reported =
            problem(&format!(r#""variable_providers": [{{"file": "a.py", "namespace": "{name}"}}]"#));
        let what = if label == meaning { "reserved" } else { "invalid" };
        let wanted = format!(
            "error pack.json:1:71: {what} namespace `{name}` [CB201]\n  at \"{name}\" -- {label}\n  help: {hint}\n"
        );
        assert_eq!(reported, wanted);
    }
    assert_eq!(
        problem(
            r#""variable_providers": [{"file": "a.py", "namespace": "n"}, {"file": "b.py", "namespace": "n"}]"#
        ),
        "\
error pack.json:1:107: duplicate provider namespace `n` [CB201]
  at \"n\" -- second one here
  and pack.json:1:71 \"n\" -- first one here
  help: rename one of them
"
    );
}

#[test]
fn permissions_are_booleans_and_limits_are_above_zero() {
    let reported = problem(
        r#""variable_providers": [{"file": "a.py", "namespace": "n", "optional": 1,
 "permissions": {"read_file": "yes", "http": true}, "limits": {"max_execution_time": 0, "max_output_size": 1.5}}]"#,
    );
    assert_eq!(
        reported,
        "\
error pack.json:1:88: `variable_providers[0].optional` must be true or false [CB201]
  at 1 -- this is a number
  help: write true or false here
error pack.json:2:31: `variable_providers[0].permissions.read_file` must be true or false [CB201]
  at \"yes\" -- this is a string
  help: write true or false here
error pack.json:2:86: `variable_providers[0].limits.max_execution_time` must be a number of seconds above zero, and at most one day [CB201]
  at 0 -- this is a number
  help: write a number of seconds above zero, and at most one day here
error pack.json:2:108: `variable_providers[0].limits.max_output_size` must be a whole number of characters above zero [CB201]
  at 1.5 -- this is a number
  help: write a whole number of characters above zero here
warning pack.json:2:38: unknown key `http` in `variable_providers[0].permissions` [CB315]
  at \"http\" -- ignored
  help: did you mean `http_request`?
"
    );
    let huge = r#""variable_providers": [{"file": "a.py", "namespace": "n", "limits": {"max_execution_time": 1e300}}]"#;
    assert!(problem(huge).contains("must be a number of seconds above zero"));
}

#[test]
fn a_prompt_replaces_another_one_with_one_that_the_pack_lists() {
    assert_eq!(
        problem(
            r#""prompts": ["my_system"], "replaces": {"prompts": {"system": "my_sytem", "my-system": "my_system"}}"#
        ),
        "\
error pack.json:1:79: `my_sytem` replaces `system`, but the pack does not list it [CB201]
  at \"my_sytem\" -- not a prompt of this pack
  help: did you mean `my_system`?
error pack.json:1:104: `my-system` would replace itself [CB201]
  at \"my_system\" -- same id
  help: rename the pack's own one, or remove the line
"
    );
    assert_eq!(
        problem(
            r#""prompts": ["b"], "replaces": {"prompts": {"a-a": "b", "a_a": "b", "../x": "b"}, "flows": {"a/b": "c"}}"#
        ),
        "\
error pack.json:1:73: duplicate `a_a` [CB201]
  at \"a_a\" -- second one here
  and pack.json:1:61 \"a-a\" -- first one here
  help: remove one of them
error pack.json:1:85: `../x` is not a prompt id [CB201]
  at \"../x\" -- use lowercase letters, digits, `_` and `-`, starting with a letter or digit
  help: write `x`
error pack.json:1:109: invalid id `a/b` [CB201]
  at \"a/b\" -- use letters, digits, `_`, `.` and `-`, starting with a letter or digit
  help: write `ab`
"
    );
}

#[test]
fn a_vocabulary_has_kinds_and_no_name_for_two_things() {
    assert_eq!(
        problem(
            r#""vocab": {"prompt.a": ["prompt.b", "tool.c", "d"], "prompt.e": ["prompt.b"], "f": [], "tool.g": "tool.h"}"#
        ),
        "\
error pack.json:1:53: `tool.c` cannot be an alias of `prompt.a` [CB201]
  at \"tool.c\" -- this is a `tool`, but the original is a `prompt`
  help: use the same kind for both
error pack.json:1:63: invalid vocabulary entry `d` [CB201]
  at \"d\" -- expected a kind, a dot and a name
  help: write it as `prompt.coding_system`
error pack.json:1:82: duplicate `prompt.b` [CB201]
  at \"prompt.b\" -- second one here
  and pack.json:1:41 \"prompt.b\" -- first one here
  help: remove one of them
error pack.json:1:95: invalid vocabulary entry `f` [CB201]
  at \"f\" -- expected a kind, a dot and a name
  help: write it as `prompt.coding_system`
error pack.json:1:114: `vocab.tool.g` must be an array of strings [CB201]
  at \"tool.h\" -- this is a string
  help: write an array of strings here
"
    );
}

#[test]
fn a_flood_of_mistakes_is_cut_off() {
    let many: Vec<u32> = (0..10_000).collect();
    let keys: Map<String, Value> = (0..1_000).map(|number| (format!("k{number}"), Value::Null)).collect();
    let mut root = json!({"pack_id": "p", "prompts": many, "tags": many});
    root.as_object_mut().unwrap().extend(keys);
    let error = read(&root.to_string()).unwrap_err();
    assert_eq!(error.diagnostics().len(), 2 * MAX_FINDINGS);
}

/// A pack's folder with these files.
fn pack(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    folder
}

#[test]
fn a_pack_that_contains_what_it_lists_is_sound() {
    let folder = pack(&[
        "prompts/advanced_coding_system/prompt.py",
        "prompts/advanced_coding_system/template.md",
        "prompts/code_review/template.md",
        "prompts/partials/typescript_rules.md",
        "prompts/.hidden/template.md",
        "variables/code_metrics.py",
    ]);
    let found = manifest(PACK_EXAMPLE).verify_contents(folder.path(), "packs/p", &Claims::default());
    assert_eq!(shown(&found), "");
    let partials = r#"{"pack_id": "p", "prompts": ["code_review", "advanced_coding_system"],
        "partials": ["prompts/partials/typescript_rules.md", "partials/typescript_rules.md"]}"#;
    assert_eq!(shown(&manifest(partials).verify_contents(folder.path(), "packs/p", &Claims::default())), "");
}

#[test]
fn missing_and_unlisted_files_are_reported() {
    let folder = pack(&["prompts/code_reviews/template.md", "prompts/empty/notes.txt", "variables/v.py/x"]);
    let text = r#"{
  "pack_id": "p",
  "prompts": ["code_review", "empty", "zebra"],
  "partials": ["partials/a.md"],
  "variable_providers": [{"file": "variables/v.py", "namespace": "v"}]
}"#;
    assert_eq!(
        shown(&manifest(text).verify_contents(folder.path(), "packs/p", &Claims::default())),
        "\
error pack.json:3:15: the pack lists the prompt `code_review`, but does not contain it [CB202]
  at \"code_review\" -- neither a folder prompts/code_review nor a file prompts/code_review.prompty exists
  help: did you mean `code_reviews`?
error pack.json:3:30: the pack lists the prompt `empty`, but does not contain it [CB202]
  at \"empty\" -- prompts/empty has neither template.md, prompt.py nor empty.prompty
  help: add prompts/empty/template.md, or remove the id from the list
error pack.json:3:39: the pack lists the prompt `zebra`, but does not contain it [CB202]
  at \"zebra\" -- neither a folder prompts/zebra nor a file prompts/zebra.prompty exists
  help: add prompts/zebra/template.md, or remove the id from the list
error pack.json:4:16: the pack lists the partial `partials/a.md`, but does not contain it [CB202]
  at \"partials/a.md\" -- the file partials/a.md does not exist
  help: add the file, or remove it from the list
error pack.json:5:35: the pack lists the provider `variables/v.py`, but does not contain it [CB202]
  at \"variables/v.py\" -- variables/v.py is not a file
  help: add the file, or remove the provider `v` from the list
warning pack.json:3:14: `packs/p/prompts/code_reviews` is a prompt that pack.json does not list [CB203]
  at [ -- `code_reviews` is not listed here
  help: add `code_reviews` to `prompts`, or remove the folder
"
    );
    let gone = manifest(text).verify_contents(&folder.path().join("gone"), "packs/gone", &Claims::default());
    assert_eq!(shown(&gone), "error packs/gone: the file does not exist [CB110]\n");
}

#[cfg(unix)]
#[test]
fn links_out_of_the_pack_are_refused() {
    use std::os::unix::fs::symlink;
    let outside = pack(&["secret.md", "folder/template.md"]);
    let folder = pack(&["prompts/real/template.md"]);
    let at = |path: &str| folder.path().join(path);
    fs::create_dir(at("prompts/out")).unwrap();
    symlink(outside.path().join("secret.md"), at("prompts/out/template.md")).unwrap();
    symlink(outside.path().join("folder"), at("prompts/far")).unwrap();
    symlink(at("prompts/real"), at("prompts/near")).unwrap();
    let text = r#"{"pack_id": "p", "prompts": ["real", "near", "out", "far"]}"#;
    assert_eq!(
        shown(&manifest(text).verify_contents(folder.path(), "packs/p", &Claims::default())),
        "\
error pack.json:1:46: the pack lists the prompt `out`, but does not contain it [CB202]
  at \"out\" -- prompts/out/template.md is a link that leads out of the pack
  help: add prompts/out/template.md, or remove the id from the list
error pack.json:1:53: the pack lists the prompt `far`, but does not contain it [CB202]
  at \"far\" -- prompts/far/template.md is a link that leads out of the pack
  help: add prompts/far/template.md, or remove the id from the list
"
    );
}

fn near_manifest() -> impl Strategy<Value = String> {
    let field = prop::sample::select(FIELDS);
    let value = prop_oneof![
        Just(json!(null)),
        Just(json!({"prompts": {"a": "b"}, "x": []})),
        Just(json!([{"file": "a.py", "namespace": "n"}, {"limits": []}, 1])),
        ".{0,12}".prop_map(Value::from),
        prop::collection::vec(".{0,6}", 0..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
    ];
    prop::collection::vec((field, value), 0..8).prop_map(|fields| {
        let mut map: Map<String, Value> = Map::new();
        map.insert("pack_id".into(), json!("p"));
        map.extend(fields.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(map).to_string()
    })
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(source) = crate::files::source_from_bytes(bytes, "pack.json")
            && let Err(error) = Manifest::read(&source)
        {
            report(error.diagnostics(), false);
        }
    }

    #[test]
    fn any_json_reads_without_panic_and_accepted_json_rereads(text in near_manifest()) {
        match read(&text) {
            Ok((manifest, warnings)) => {
                report(&warnings, false);
                let json = manifest.to_json();
                prop_assert_eq!(read(&json.to_string()).unwrap().0.to_json(), json);
            }
            Err(error) => {
                report(error.diagnostics(), false);
            }
        }
    }
}
