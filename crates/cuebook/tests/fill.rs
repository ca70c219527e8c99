//! Reading definitions and filling variables: layers, types, inheritance, system values, hooks, limits.

#![allow(clippy::unwrap_used)] // A test that fails to unwrap has failed.

mod support;

use cuebook::source::Source;
use cuebook::{Agent, Code, Context, ErrorKind, Variables};
use cuebook_lab::BookExt;
use serde_json::{Value as Json, json};
use support::{Project, values};

fn prompt(python: &str, template: &str) -> Project {
    Project::with_template(template).file("prompts/p/prompt.py", python)
}

const LAYERED: &str = "
VARIABLES = {
    'custom': [{'name': 'v', 'type': 'string', 'default': 'custom'}, {'name': 'w', 'default': 'custom w'}],
    'optional': [{'name': 'date', 'type': 'string', 'source': 'system', 'default': 'never'}],
}
";

#[test]
fn later_layers_win_and_explain_names_them() {
    let project = prompt(LAYERED, "{{ v }}/{{ w }}/{{ date }}/{{ d }}").file(
        "user_data/shared/prompts/defaults.json",
        r#"{"variables": {"d": "library", "v": "library v"}}"#,
    );
    let agent = Source::new(
        "agent.json",
        r#"{"agent_id": "a1", "name": "Agent", "prompt_variables": {"w": "agent"}}"#,
    );
    let context = Context { agent: Agent::read(&agent).unwrap(), ..Context::default() };
    let book = project.book();
    let layer = |variables: Json, name: &str| -> (String, String) {
        let explanation = book.explain("p", &values(variables), &context).unwrap();
        let found = explanation.variables().into_iter().find(|variable| variable.name == name).unwrap();
        (found.value.as_str().unwrap().to_owned(), found.layer.unwrap().as_str().to_owned())
    };
    let pair = |value: &str, layer: &str| (value.to_owned(), layer.to_owned());
    assert_eq!(layer(json!({}), "d"), pair("library", "defaults"));
    assert_eq!(layer(json!({}), "v"), pair("custom", "custom"));
    assert_eq!(layer(json!({}), "date"), pair("2026-02-20", "system"));
    assert_eq!(layer(json!({}), "w"), pair("agent", "agent"));
    assert_eq!(layer(json!({"w": "caller", "date": "today"}), "w"), pair("caller", "caller"));
    assert_eq!(layer(json!({"w": "caller", "date": "today"}), "date"), pair("today", "caller"));
}

#[test]
fn system_variables_have_the_forms_of_the_seed() {
    let names = cuebook::variables::SYSTEM_NAMES;
    let template: String = names.iter().map(|name| format!("{name}={{{{ system.{name} }}}}\n")).collect();
    let project = Project::with_template(&template);
    let context = Context {
        agent: Agent {
            id: Some("coding_assistant".into()),
            name: Some("Coding Assistant".into()),
            ..Agent::default()
        },
        model: Some("claude-sonnet-4".into()),
        session_id: Some("sess_abc123".into()),
        workspace_path: Some("/workspace/my-project".into()),
        language: Some("ja".into()),
        ..Context::default()
    };
    let text = project.book().render("p", &values(json!({})), &context).unwrap().into_text();
    let os = std::env::consts::OS;
    assert_eq!(
        text,
        format!(
            "datetime=2026-02-20T15:30:00+09:00\ndate=2026-02-20\ntime=15:30:00\ntimezone=Asia/Tokyo\nos={os}\n\
             os_info={os} {}\nagent_id=coding_assistant\nagent_name=Coding Assistant\nmodel=claude-sonnet-4\n\
             session_id=sess_abc123\nworkspace_path=/workspace/my-project\nlanguage=ja",
            std::env::consts::ARCH
        )
    );
}

#[test]
fn all_mistakes_in_variables_are_reported_together() {
    let project = prompt(
        "VARIABLES = {'required': [
            {'name': 'a', 'type': 'string', 'description': 'the first'}, {'name': 'b', 'type': 'list'},
            {'name': 'c', 'type': 'integer'}, {'name': 'd', 'type': 'boolean'}, {'name': 'e', 'type': 'object'},
            {'name': 'f', 'type': 'number'}, {'name': 'g', 'type': 'any'}]}",
        "{{ a }}{{ b }}{{ c }}{{ d }}{{ e }}{{ f }}{{ g }}",
    );
    let error =
        project.error("p", json!({"b": "x", "c": 1.5, "d": 1, "e": [], "f": "1", "g": null, "extra": 1}));
    assert_eq!((error.kind(), error.code()), (ErrorKind::PromptValidation, Code::InvalidVariables));
    let messages: Vec<&str> = error.diagnostics().iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "the required variable `a` is missing (the first)",
            "`b` must be a list, but the caller passed a string",
            "`c` must be an integer, but the caller passed a number",
            "`d` must be a boolean, but the caller passed an integer",
            "`e` must be an object, but the caller passed a list",
            "`f` must be a number, but the caller passed a string",
        ]
    );
    assert_eq!(error.field("missing"), Some(&json!(["a"])));
    assert_eq!(
        project.text("p", json!({"a": "", "b": [], "c": -3, "d": false, "e": {}, "f": 2, "g": null})),
        "[]-3False{}2None"
    );
}

#[test]
fn a_child_inherits_declarations_only() {
    let project = Project::new()
        .file("prompts/base/prompt.py", "VARIABLES = {'custom': [{'name': 'x', 'default': 'base'}, {'name': 'y', 'default': 'base'}]}\nLIMITS = {'max_output_size': 1}\nPERMISSIONS = {'read_file': True}\nTEMPLATE = '1'")
        .file("prompts/p/prompt.py", "METADATA = {'extends': 'base'}\nVARIABLES = {'custom': [{'name': 'y', 'default': 'child'}]}")
        .file("prompts/p/template.md", "{{ x }} {{ y }}");
    assert_eq!(project.text("p", json!({})), "base child");
    let definition = project.book().get_definition("p").unwrap();
    assert_eq!(definition["variables"]["custom"][1]["inherited_from"], "base");
    assert_eq!(definition["permissions"]["read_file"], false);
    assert_eq!(definition["limits"]["max_output_size"], 1_000_000);
}

#[test]
fn packs_have_a_lower_output_limit_than_projects() {
    let manifest = r#"{"pack_id": "mine", "version": "1.0.0", "name": "Mine", "prompts": ["packed"]}"#;
    let project = Project::new()
        .file("prompts/own/template.md", "{{ text }}")
        .file("user_data/packs/mine/pack.json", manifest)
        .file("user_data/packs/mine/prompts/packed/template.md", "{{ text }}");
    let document = "x".repeat(60_000);
    assert_eq!(project.text("own", json!({"text": document})).len(), 60_000);
    let error = project.error("packed", json!({"text": document}));
    assert_eq!(error.code(), Code::OutputTooLarge);
    let hint = error.diagnostic().hint.as_deref().unwrap_or_default();
    assert!(hint.contains("`max_output_size`") && hint.contains("defaults.json"), "{hint}");
    assert_eq!(project.error("own", json!({"text": "x".repeat(1_000_001)})).code(), Code::OutputTooLarge);
}

#[test]
fn missing_and_circular_parents_are_errors_that_show_the_chain() {
    let project = Project::new()
        .file("prompts/a/prompt.py", "METADATA = {'extends': 'b'}\nTEMPLATE = 'a'")
        .file("prompts/b/prompt.py", "METADATA = {'extends': 'c'}\nTEMPLATE = 'b'");
    let error = project.error("a", json!({}));
    assert_eq!(error.code(), Code::MissingParent);
    assert_eq!(
        error.to_string(),
        "PromptReadError: prompts/b/prompt.py:1:24: the parent `c` does not exist (a → b → c) [CB308]"
    );
    project.write("prompts/c/prompt.py", "METADATA = {'extends': 'a'}\nTEMPLATE = 'c'");
    let error = project.error("a", json!({}));
    assert_eq!(error.code(), Code::ParentCycle);
    assert!(error.diagnostic().message.contains("a → b → c → a"), "{error}");
}

#[test]
fn a_prompt_without_files_of_its_own_uses_the_defaults() {
    let definition = Project::with_template("x").book().get_definition("p").unwrap();
    for (key, value) in [
        ("name", json!("p")),
        ("version", json!("1.0.0")),
        ("type", json!("custom")),
        ("extends", Json::Null),
        ("template", json!("template.md")),
        ("limits", json!({"max_execution_time": 5, "max_output_size": 1_000_000})),
        ("variables", json!({"required": [], "optional": [], "custom": []})),
    ] {
        assert_eq!(definition[key], value, "{key}");
    }
}

#[test]
fn unavailable_hooks_are_errors_and_never_skipped() {
    let project = prompt(
        "VARIABLES = {}\nasync def pre_render(variables, context):\n    return variables\n",
        "{{ file_tree }}",
    );
    let error = project.error("p", json!({}));
    assert_eq!(error.code(), Code::HooksUnavailable);
    assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "prompts/p/prompt.py:2:1");
    assert!(error.diagnostic().hint.as_ref().unwrap().contains("--no-hooks"), "{error:?}");
    let context = Context { without_hooks: true, ..Context::default() };
    let rendered = project.book().render("p", &values(json!({"file_tree": "src/"})), &context).unwrap();
    assert_eq!(rendered.text(), "src/");

    let project = Project::with_template("{{ git.branch }}").file(
        "user_data/packs/git_toolkit/pack.json",
        r#"{"pack_id": "git_toolkit", "variable_providers": [{"file": "variables/git_provider.py", "namespace": "git"}]}"#,
    );
    let error = project.error("p", json!({}));
    assert_eq!((error.code(), error.field("namespace").unwrap()), (Code::ProviderUnavailable, &json!("git")));
    assert_eq!(project.text("p", json!({"git": {"branch": "main"}})), "main");
}

#[test]
fn the_language_selects_variants_of_templates_and_includes() {
    let project = Project::new()
        .file("prompts/base/template.md", "en base {% block b %}{% endblock %}")
        .file("prompts/base/template.ja.md", "ja base {% block b %}{% endblock %}")
        .file(
            "prompts/p/template.md",
            "{% extends 'base/template.md' %}{% block b %}en {% include 'parts/x.md' %}{% endblock %}",
        )
        .file(
            "prompts/p/template.ja.md",
            "{% extends 'base/template.md' %}{% block b %}ja {% include 'parts/x.md' %}{% endblock %}",
        )
        .file("prompts/parts/x.md", "plain")
        .file("prompts/parts/x.pt-br.md", "br");
    let text = |language: Option<&str>| {
        let context = Context { language: language.map(str::to_owned), ..Context::default() };
        project.book().render("p", &values(json!({})), &context).unwrap().into_text()
    };
    assert_eq!(text(None), "en base en plain");
    assert_eq!(text(Some("ja")), "ja base ja plain");
    assert_eq!(text(Some("ja-JP")), "ja base ja plain");
    assert_eq!(text(Some("pt_BR")), "en base en br");
    assert_eq!(text(Some("../x")), "en base en plain");
    project.write("cuebook.toml", "[library]\nlanguage = \"ja\"\n");
    assert_eq!(text(None), "ja base ja plain");
}

#[test]
fn a_limit_error_names_the_setting_that_raises_it() {
    let endless = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    for (template, code, setting) in [
        (
            "{% for i in range(60000) %}xxxxxxxxxxxxxxxxxxxx{% endfor %}",
            Code::OutputTooLarge,
            "max_output_size",
        ),
        (endless, Code::OutOfFuel, "limits.fuel"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Code::TooDeep, "limits.recursion"),
        ("{% include 'p/template.md' %}", Code::TooDeep, "limits.recursion"),
        (
            "{% set ns = namespace(s=1 ~ '') %}{% for i in range(60) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
            Code::ValueTooLarge,
            "limits.string_bytes",
        ),
        ("{{ '%2000000000d'|format(1) }}", Code::ValueTooLarge, "limits.string_bytes"),
    ] {
        let error = Project::with_template(template).error("p", json!({}));
        assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, code), "{template}: {error}");
        let hint = error.diagnostic().hint.clone().unwrap_or_default();
        assert!(hint.contains(setting), "{template}: {hint}");
    }
    let project = Project::new().file("cuebook.toml", "[limits]\ninclude_depth = 3\nfile_size = 100\n");
    for depth in 0..6 {
        project.write(
            &format!("prompts/parts/{depth}.md"),
            &format!("{{% include 'parts/{}.md' %}}", depth + 1),
        );
    }
    project.write("prompts/parts/6.md", "end");
    project.write("prompts/p/template.md", "{% include 'parts/0.md' %}");
    assert_eq!(project.error("p", json!({})).code(), Code::TooDeep);
    project.write("prompts/p/template.md", &"x".repeat(101));
    assert_eq!(project.error("p", json!({})).code(), Code::FileTooLarge);
}

#[test]
fn max_output_size_counts_characters_as_the_seed_says() {
    let project = prompt("LIMITS = {'max_output_size': 4}", "{{ x }}");
    assert_eq!(project.text("p", json!({"x": "あいうえ"})), "あいうえ");
    assert_eq!(project.error("p", json!({"x": "あいうえお"})).code(), Code::OutputTooLarge);
}

#[test]
fn a_missing_variable_is_empty_or_an_error_if_strict() {
    let project = Project::with_template("[{{ nobody }}]{% if nobody %}x{% endif %}");
    assert_eq!(project.text("p", json!({})), "[]");
    let context = Context { strict: true, ..Context::default() };
    let error = project.book().render("p", &values(json!({})), &context).unwrap_err();
    assert_eq!(error.code(), Code::UndefinedValue);
    assert!(error.diagnostic().message.contains("nobody"), "{error}");
}

#[test]
fn an_error_in_an_include_has_its_place_and_include_chain() {
    let project =
        Project::with_template("one\n{% include 'part.md' %}").file("prompts/part.md", "two\n{{ a.b.c }}");
    let error = project.error("p", json!({}));
    let diagnostic = error.diagnostic();
    assert_eq!(diagnostic.place.as_ref().unwrap().line(), 2);
    assert_eq!(diagnostic.file_name(), Some("prompts/part.md"));
    assert_eq!(diagnostic.related[0].0.file(), "prompts/p/template.md");
}

#[test]
fn the_name_of_the_system_variables_is_reserved() {
    let project = Project::with_template("{{ system.language }}");
    let error = project.error("p", json!({"system": "evil"}));
    assert_eq!((error.kind(), error.code()), (ErrorKind::PromptValidation, Code::InvalidVariables));
    assert!(error.to_string().contains("the name `system` is reserved"), "{error}");
    assert_eq!(
        error.diagnostic().hint.as_deref(),
        Some("choose another name, or declare a variable `system`")
    );
    let mut context = Context::default();
    context.agent.variables = values(json!({"system": {}}));
    let error = project.book().render("p", &Variables::new(), &context).unwrap_err();
    assert_eq!(error.field("invalid").unwrap()[0]["layer"], "agent");
    project.write("user_data/shared/prompts/defaults.json", r#"{"variables": {"system": "x"}}"#);
    assert_eq!(project.error("p", json!({})).code(), Code::InvalidVariables);
    std::fs::remove_file(project.path("user_data/shared/prompts/defaults.json")).unwrap();
    project.write("prompts/p/template.md", "{{ system }}");
    project.write("prompts/p/prompt.py", "VARIABLES = {'optional': [{'name': 'system', 'default': 'x'}]}");
    assert_eq!(project.text("p", json!({})), "x", "a declared variable has the name");
    assert_eq!(project.text("p", json!({"system": "mine"})), "mine");
}

#[test]
fn null_for_an_optional_variable_means_that_it_is_not_given() {
    let python = "VARIABLES = {'required': [{'name': 'r', 'type': 'string'}], 'optional': [{'name': 'o', 'type': 'string', 'default': 'O'}], 'custom': [{'name': 'c', 'type': 'integer', 'default': 3}]}";
    let project = prompt(python, "{{ r }} {{ o }} {{ c }}");
    assert_eq!(project.text("p", json!({"r": "R", "o": null, "c": null})), "R O 3");
    assert_eq!(project.error("p", json!({"r": null})).code(), Code::InvalidVariables);
}

#[test]
fn the_optional_default_wins_over_a_custom_one() {
    let both = |optional: &str| {
        format!(
            "VARIABLES = {{'custom': [{{'name': 'v', 'type': 'string', 'default': 'c'}}], 'optional': [{{'name': 'v'{optional}}}]}}"
        )
    };
    assert_eq!(prompt(&both(", 'default': 'o'"), "{{ v }}").text("p", json!({})), "o");
    assert_eq!(prompt(&both(""), "{{ v }}").text("p", json!({})), "c");
    let twice = "VARIABLES = {'custom': [{'name': 'v'}], 'required': [{'name': 'v'}]}";
    assert_eq!(prompt(twice, "{{ v }}").error("p", json!({})).code(), Code::BadDefinition);
}

#[test]
fn an_unset_variable_named_like_a_function_is_empty() {
    for name in ["range", "dict", "namespace", "cycler", "joiner", "lipsum"] {
        let template = format!("[{{{{ {name} }}}}{{% if {name} %}}yes{{% endif %}}]");
        let declared = format!("VARIABLES = {{'optional': [{{'name': '{name}'}}]}}");
        for project in [Project::with_template(&template), prompt(&declared, &template)] {
            assert_eq!(project.text("p", json!({})), "[]", "{name}");
            assert_eq!(project.text("p", json!({name: "v"})), "[vyes]", "{name}");
            let strict = Context { strict: true, ..Context::default() };
            let error = project.book().render("p", &Variables::new(), &strict).unwrap_err();
            assert_eq!(error.code(), Code::UndefinedValue, "{name}");
        }
        let prompty = format!("---\ninputs:\n  {name}: {{kind: string}}\n---\n{template}");
        let project = Project::new().file("prompts/q.prompty", &prompty);
        assert_eq!(project.text("q", json!({})), "[]", "{name}");
    }
    let called = "{% for n in range(2) %}{{ n }}{% endfor %}{{ dict(a=1).a }}{{ range is callable }}";
    assert_eq!(Project::with_template(called).text("p", json!({})), "011True");
}

#[test]
fn the_workspace_is_the_project_folder_by_default() {
    let project = Project::with_template("{{ system.workspace_path }}");
    let root = project.path("");
    assert_eq!(
        project.text("p", json!({})).trim_end_matches('/'),
        root.to_str().unwrap().trim_end_matches('/')
    );
    project.write("Cargo.toml", "");
    project.write("src/main.rs", "");
    let text = project.text("coding_system", json!({"agent_name": "Rumi"}));
    assert!(text.contains("- Tech stack: Rust\n") && text.contains("src/\n  main.rs\n"), "{text}");
    let given =
        project.text("coding_system", json!({"agent_name": "Rumi", "file_tree": "", "tech_stack": "Zig"}));
    assert!(given.contains("- Tech stack: Zig\n") && !given.contains("main.rs"), "{given}");
}

const PACK: &str = r#"{"pack_id": "tools", "variable_providers": [{"file": "variables/git.py", "namespace": "git", "optional": true}]}"#;

#[test]
fn a_failed_optional_provider_leaves_a_testable_namespace() {
    let project = Project::with_template("{% if git.available %}{{ git.branch }}{% else %}no git{% endif %}")
        .file("user_data/packs/tools/pack.json", PACK)
        .file("user_data/packs/tools/variables/git.py", "def provide(context):\n    return {}\n");
    let rendered = project.render("p", json!({})).unwrap();
    assert_eq!(rendered.text(), "no git");
    let [note] = rendered.notes() else { panic!("{:?}", rendered.notes()) };
    assert_eq!(note.code, Code::ProviderSkipped);
}

#[test]
fn a_condition_about_a_namespace_without_a_provider_is_false() {
    let template = "{% if git.available %}{{ git.branch }}{% else %}no git{% endif %}";
    let project = Project::with_template(template);
    let rendered = project.render("p", json!({})).unwrap();
    assert_eq!(rendered.text(), "no git");
    let [note] = rendered.notes() else { panic!("{:?}", rendered.notes()) };
    assert_eq!((note.code, note.place.as_ref().unwrap().line()), (Code::NoProvider, 1));
    // A value fills it, and nothing is reported.
    let given = project.render("p", json!({"git": {"available": true, "branch": "main"}})).unwrap();
    assert_eq!((given.text(), given.notes().len()), ("main", 0));
    // Without a condition there is nothing to fall back to.
    let error = Project::with_template("{{ git.branch }}").error("p", json!({}));
    assert_eq!(error.code(), Code::UndefinedValue);
}

#[test]
fn a_broken_pack_affects_itself_alone() {
    let project = Project::with_template("{% if git.available %}yes{% else %}no{% endif %}")
        .file("user_data/packs/tools/pack.json", PACK)
        .file("user_data/packs/tools/variables/git.py", "def provide(context):\n    return {}\n")
        .file("user_data/packs/broken/pack.json", "{\"pack_id\": \"broken\", \"variable_providers\": [{\"file\": \"a.py\", \"namespace\": \"system\"}]}");
    assert_eq!(project.text("p", json!({})), "no");
    let other = project.file("prompts/q/template.md", "{{ metrics.lines }}");
    let error = other.error("q", json!({}));
    assert_eq!(error.code(), Code::UndefinedValue);
    assert!(error.diagnostics()[1].to_string().contains("broken/pack.json"), "{:?}", error.diagnostics());
    assert_eq!(other.text("q", json!({"metrics": {"lines": 3}})), "3");
}

#[test]
fn a_child_in_a_pack_inherits_from_its_pack_parent() {
    let base = |who: &str| format!("VARIABLES = {{'optional': [{{'name': 'v', 'default': '{who}'}}]}}");
    let project = Project::new()
        .file("user_data/packs/pk/pack.json", r#"{"pack_id": "pk", "prompts": ["base", "kid"]}"#)
        .file("user_data/packs/pk/prompts/base/template.md", "pack {{ v }}{% block b %}{% endblock %}")
        .file("user_data/packs/pk/prompts/base/prompt.py", &base("pack"))
        .file("user_data/packs/pk/prompts/kid/template.md", "{% extends 'base/template.md' %}")
        .file("user_data/packs/pk/prompts/kid/prompt.py", "METADATA = {'extends': 'base'}")
        .file("prompts/base/template.md", "user {{ v }}")
        .file("prompts/base/prompt.py", &base("user"));
    assert_eq!(project.text("kid", json!({})), "pack pack");
}

#[test]
fn reading_a_prompt_never_runs_its_python() {
    let project = prompt("", "{{ x }}");
    let witness = project.path("it_ran");
    let python = format!(
        "open({:?}, 'w').close()\nMETADATA = {{'type': 'system'}}\nVARIABLES = {{'optional': [{{'name': 'x', 'default': 'v'}}]}}\n",
        witness.to_str().unwrap()
    );
    project.write("prompts/p/prompt.py", &python);
    project.write(
        "user_data/packs/k/pack.json",
        r#"{"pack_id": "k", "variable_providers": [{"file": "v.py", "namespace": "n"}]}"#,
    );
    project.write("user_data/packs/k/v.py", &python);
    let book = project.book();
    book.list_prompts(None, None).unwrap();
    book.get_definition("p").unwrap();
    book.list_candidates("p").unwrap();
    book.validate("p", &values(json!({})), &Context::default()).unwrap();
    book.explain("p", &values(json!({})), &Context::default()).unwrap();
    book.check(&[], |_| {}).unwrap();
    book.library().pack("k").unwrap();
    book.library().pack_code("k").unwrap();
    assert_eq!(project.text("p", json!({})), "v");
    assert!(!witness.exists(), "the Python of a prompt was run");
}
