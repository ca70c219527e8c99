//! Code in files: which of it may run, and when it is another code. What runs it here only says what it was asked to run.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::sync::{Arc, Mutex};

use cuebook::hooks::{Answer, Call, Changes, HookContext, Hooks, Refusal, Script, ScriptEngine, Values};
use cuebook::{Book, Code, Context, Error, ErrorKind, Rendered, Result};
use cuebook_lab::BookExt;
use serde_json::json;
use support::{Project, values};

/// Notes what it should run. A script that says `fail` fails.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<(String, Script)>>);

impl ScriptEngine for Recorder {
    fn run(&self, script: &Script, call: Call<'_>, context: &HookContext<'_>) -> Result<Answer> {
        let knows = match &call {
            Call::PreRender { variables } | Call::PostRender { variables, .. } => {
                variables.contains_key("system")
            }
            Call::Provide => false,
        };
        let knowing = if knows { ", knowing the system" } else { "" };
        let what = format!("{} of {}{knowing}", call.function(), context.subject);
        self.0.lock().unwrap().push((what, script.clone()));
        if script.source.text().contains("fail") {
            return Err(Refusal::failed("it failed").into());
        }
        Ok(match call {
            Call::PreRender { .. } => Answer::Changes(Changes::default()),
            Call::PostRender { text, .. } => Answer::Text(text.to_owned()),
            Call::Provide => {
                let mut values = Values::new();
                values.insert("branch".into(), json!("main"));
                Answer::Values(values)
            }
        })
    }
}

struct Setup {
    project: Project,
    engine: Arc<Recorder>,
    book: Book,
}

impl Setup {
    fn new(project: Project) -> Setup {
        let engine = Arc::new(Recorder::default());
        let book = project.book().with_hooks(Hooks::new().engine(engine.clone()));
        Setup { project, engine, book }
    }

    /// A pack with a hook and a provider, and a prompt of the user's that uses both.
    fn with_pack() -> Setup {
        let project = Project::new().file("prompts/own/template.md", "on {{ git.branch }}");
        pack(&project, "tools", "");
        Setup::new(project)
    }

    fn render(&self, prompt: &str) -> Result<Rendered, Error> {
        self.book.render(prompt, &values(json!({})), &Context::default())
    }

    fn approve(&self, pack: &str) {
        let (_, content) = self.book.library().pack_code(pack).unwrap();
        self.book.library().approve_pack(pack, &content).unwrap();
    }

    fn ran(&self) -> Vec<String> {
        self.engine.0.lock().unwrap().drain(..).map(|(what, _)| what).collect()
    }

    fn scripts(&self) -> Vec<Script> {
        self.engine.0.lock().unwrap().drain(..).map(|(_, script)| script).collect()
    }
}

fn pack(project: &Project, id: &str, more: &str) {
    let folder = format!("user_data/packs/{id}");
    let manifest = format!(
        "{{\"pack_id\": \"{id}\", \"prompts\": [\"{id}_prompt\"], \
         \"variable_providers\": [{{\"file\": \"variables/git.py\", \"namespace\": \"git\"{more}}}]}}"
    );
    project.write(&format!("{folder}/pack.json"), &manifest);
    project.write(&format!("{folder}/variables/git.py"), "async def provide(context): ...\n");
    let prompt = "TEMPLATE = \"x\"\nasync def pre_render(variables, context): ...\n";
    project.write(&format!("{folder}/prompts/{id}_prompt/prompt.py"), prompt);
}

#[test]
fn code_of_a_pack_runs_only_once_it_is_approved() {
    let stage = Setup::with_pack();
    for prompt in ["tools_prompt", "own"] {
        let error = stage.render(prompt).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PromptApprovalRequired);
        assert_eq!(error.code(), Code::ApprovalRequired);
        assert_eq!(error.diagnostic().message, "you have not approved the code of the pack `tools`");
        assert!(error.diagnostic().hint.as_ref().unwrap().contains("cuebook pack approve tools"));
        assert_eq!(error.field("approval"), Some(&json!("missing")));
    }
    assert!(stage.ran().is_empty(), "nothing may run");
    stage.approve("tools");
    assert_eq!(stage.render("own").unwrap().text(), "on main");
    stage.render("tools_prompt").unwrap();
    assert_eq!(
        stage.ran(),
        ["provide of the provider `git` of the pack `tools`", "pre_render of the prompt `tools_prompt`"]
    );
}

#[test]
fn a_changed_pack_loses_its_approval_with_the_reason() {
    let stage = Setup::with_pack();
    stage.approve("tools");
    stage.render("own").unwrap();
    stage.ran();
    // A file that is not even code: the approval is of the whole pack.
    stage.project.write("user_data/packs/tools/prompts/partials/x.md", "new");
    stage
        .project
        .write("user_data/packs/tools/variables/git.py", "import os\nasync def provide(context): ...\n");
    let error = stage.render("own").unwrap_err();
    assert_eq!(error.diagnostic().message, "the pack `tools` has changed since you approved its code");
    let hint = error.diagnostic().hint.clone().unwrap();
    assert!(
        hint.contains("new: prompts/partials/x.md") && hint.contains("changed: variables/git.py"),
        "{hint}"
    );
    assert_eq!(error.field("changed"), Some(&json!(["variables/git.py"])));
    assert!(stage.ran().is_empty(), "nothing may run");
}

#[test]
fn code_of_the_users_own_needs_no_approval() {
    let project =
        Project::new().file("prompts/p/prompt.py", "TEMPLATE = \"x\"\ndef post_render(t, v, c): ...\n");
    let stage = Setup::new(project);
    stage.render("p").unwrap();
    let scripts = stage.scripts();
    assert_eq!((scripts[0].pack.as_deref(), scripts.len()), (None, 1));
    assert!(scripts[0].folder.ends_with("prompts/p"));
}

#[test]
fn code_of_an_uninstalled_pack_never_runs_by_path() {
    let project = Project::new();
    project.write("download/pack.json", "{\"pack_id\": \"d\"}");
    project.write("download/prompts/p/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n");
    let path = project.path("download/prompts/p");
    let stage = Setup::new(project);
    let error = stage.render(&path.to_string_lossy()).unwrap_err();
    assert_eq!(error.code(), Code::ApprovalRequired);
    assert!(stage.ran().is_empty());
}

#[cfg(unix)]
#[test]
fn code_of_a_pack_is_the_packs_whatever_way_leads_to_it() {
    let stage = Setup::with_pack();
    let pack = "user_data/packs/tools/prompts";
    stage.project.write(
        &format!("{pack}/tools_prompt/a/b/c/d/prompt.py"),
        "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n",
    );
    std::os::unix::fs::symlink(
        stage.project.path(&format!("{pack}/tools_prompt")),
        stage.project.path("prompts/link"),
    )
    .unwrap();
    std::os::unix::fs::symlink(stage.project.path(pack), stage.project.path("linked")).unwrap();
    stage.project.write("cuebook.toml", "[library]\npaths = [\"linked\"]\n");
    stage.project.write("elsewhere/pack.json", "{\"pack_id\": \"e\"}");
    stage.project.write("elsewhere/x/y/z/w/v/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n");
    let at = |path: &str| stage.project.path(path).to_string_lossy().into_owned();
    for way in [
        "link".to_owned(),
        at("linked/tools_prompt"),
        at(&format!("{pack}/tools_prompt")),
        at(&format!("{pack}/tools_prompt/a/b/c/d")),
        at("elsewhere/x/y/z/w/v"),
    ] {
        let error = stage.render(&way).unwrap_err();
        assert_eq!(error.code(), Code::ApprovalRequired, "{way}: {error}");
    }
    assert!(stage.ran().is_empty(), "nothing may run");
}

#[test]
fn a_project_that_is_made_into_a_pack_is_the_users_own() {
    let project = Project::new().file("prompts/p/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n");
    project.write("pack.json", "{\"pack_id\": \"mine\", \"prompts\": [\"p\"]}");
    let stage = Setup::new(project);
    stage.render("p").unwrap();
    assert_eq!(stage.scripts()[0].pack, None);
}

#[test]
fn permissions_hold_for_the_text_that_they_stand_in() {
    let stage = Setup::with_pack();
    stage.approve("tools");
    let context = Context::default();
    let prepared = stage.book.prepare("tools_prompt", &context).unwrap();
    prepared.render(&values(json!({})), &Arc::new(context.clone())).unwrap();
    stage.ran();
    // The prompt was read with one text, and another one has been approved in the meantime.
    let file = "user_data/packs/tools/prompts/tools_prompt/prompt.py";
    let text = stage.project.read(file);
    stage.project.write(file, &format!("PERMISSIONS = {{\"read_file\": True}}\n{text}"));
    stage.approve("tools");
    let error = prepared.render(&values(json!({})), &Arc::new(context)).unwrap_err();
    assert_eq!(error.code(), Code::ApprovalRequired);
    assert!(error.diagnostic().message.contains("changed while Cuebook read it"), "{error}");
    assert!(stage.ran().is_empty());
    stage.render("tools_prompt").unwrap();
}

#[test]
fn a_script_runs_with_its_approved_modules() {
    let stage = Setup::with_pack();
    stage.project.write("user_data/packs/tools/variables/helper.py", "X = 1\n");
    stage.project.write("user_data/packs/tools/variables/__pycache__/hidden.py", "X = 2\n");
    stage.project.write("user_data/packs/tools/variables/.hidden.py", "X = 3\n");
    stage.approve("tools");
    stage.render("own").unwrap();
    let script = stage.scripts().remove(0);
    let names: Vec<String> = script
        .modules
        .unwrap()
        .keys()
        .map(|path| path.strip_prefix(&script.folder).unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["prompts/tools_prompt/prompt.py", "variables/git.py", "variables/helper.py"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_text_cannot_hide_behind_another() {
    use std::os::unix::ffi::OsStrExt;

    let stage = Setup::with_pack();
    stage.approve("tools");
    let name = std::ffi::OsStr::from_bytes(b"a\xff.py");
    std::fs::write(stage.project.path("user_data/packs/tools/variables").join(name), "X = 1").unwrap();
    let error = stage.render("own").unwrap_err();
    assert_eq!(error.code(), Code::NotUtf8);
    assert!(stage.ran().is_empty());
}

#[test]
fn a_script_is_another_one_when_any_code_beside_it_changes() {
    let project = Project::new().file("prompts/p/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n");
    let stage = Setup::new(project);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let fingerprint = || {
        stage.render("p").unwrap();
        stage.scripts().remove(0).fingerprint
    };
    let first = fingerprint();
    assert_eq!(fingerprint(), first);
    stage.project.write("prompts/p/helper.py", "x = 1");
    let second = fingerprint();
    assert_ne!(second, first);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let settled = fingerprint();
    stage.project.write("prompts/p/template.ja.md", "no code");
    std::thread::sleep(std::time::Duration::from_millis(50));
    stage.project.write("prompts/p/helper.py", "x = 2");
    assert_ne!(fingerprint(), settled);
}

#[test]
fn two_packs_for_one_namespace_are_a_conflict() {
    let stage = Setup::with_pack();
    pack(&stage.project, "other", "");
    let error = stage.render("own").unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::PromptConflict, Code::ProviderConflict));
    assert_eq!(error.diagnostic().message, "2 packs provide `git`");
    let error = stage.book.set_resolution("provider.git", "nobody").unwrap_err();
    assert_eq!(error.code(), Code::UnknownSource);
    assert!(stage.book.check(&[], |_| {}).unwrap().findings.iter().any(|f| f.code == Code::ProviderConflict));
    stage.book.set_resolution("provider.git", "other").unwrap();
    let report = stage.book.check(&[], |_| {}).unwrap();
    assert_eq!(report.errors(), 0, "{:#?}", report.findings);
    stage.approve("other");
    assert_eq!(stage.render("own").unwrap().text(), "on main");
    assert_eq!(stage.ran(), ["provide of the provider `git` of the pack `other`"]);
    // A third one makes it a conflict again, and so does losing the chosen one.
    pack(&stage.project, "third", "");
    assert_eq!(stage.render("own").unwrap_err().code(), Code::ProviderConflict);
    stage.book.library().remove_pack("third").unwrap();
    stage.book.library().remove_pack("other").unwrap();
    let error = stage.render("own").unwrap_err();
    assert_eq!(error.code(), Code::ProviderConflict);
    assert!(error.diagnostic().message.ends_with("no longer exists"), "{error}");
}

#[test]
fn a_failed_optional_provider_is_skipped_with_a_warning() {
    let project = Project::new()
        .file("prompts/own/template.md", "on {% if git %}{{ git.branch }}{% else %}nothing{% endif %}");
    pack(&project, "tools", ", \"optional\": true");
    project.write("user_data/packs/tools/variables/git.py", "fail");
    let stage = Setup::new(project);
    let rendered = stage.render("own").unwrap();
    assert_eq!(rendered.text(), "on nothing");
    assert_eq!(rendered.notes()[0].code, Code::ProviderSkipped);
    assert_eq!(
        rendered.notes()[0].message,
        "the provider `git` of the pack `tools` was skipped: you have not approved the code of the pack `tools`"
    );
    stage.approve("tools");
    let rendered = stage.render("own").unwrap();
    assert_eq!(rendered.notes()[0].message, "the provider `git` of the pack `tools` was skipped: it failed");
    assert_eq!(rendered.to_json()["notes"][0]["code"], json!("CB416"));
}

#[test]
fn check_finds_misspelt_and_uncallable_hooks() {
    let project = Project::new().file(
        "prompts/p/prompt.py",
        "PERMISION = {\"read_file\": True}\nTEMPLATE = \"x\"\ndef prerender(variables, context): ...\ndef post_render(text): ...\ndef render(): ...\nPRICE = 1\n",
    );
    pack(&project, "tools", "");
    project.write("user_data/packs/tools/variables/git.py", "def provides(context): ...\n");
    let found = |targets: &[&str]| -> Vec<String> {
        let targets: Vec<String> = targets.iter().map(|target| target.to_string()).collect();
        let report = project.book().check(&targets, |_| {}).unwrap();
        report.findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect()
    };
    assert_eq!(
        found(&["p"]),
        [
            "CB315 unknown name `PERMISION`, similar to `PERMISSIONS`",
            "CB315 unknown name `prerender`, similar to `pre_render`",
            "CB317 `post_render` cannot be called as post_render(text, variables, context)",
        ]
    );
    let pack = project.path("user_data/packs/tools");
    let provider = [
        "CB317 the variable provider has no function `provide(context)`",
        "CB315 unknown name `provides`, similar to `provide`",
    ];
    for findings in [found(&[&pack.to_string_lossy()]), found(&[])] {
        assert!(provider.iter().all(|wanted| findings.iter().any(|found| found == wanted)), "{findings:#?}");
    }
}

#[test]
fn system_variables_go_to_code_that_mentions_them() {
    let project = Project::new()
        .file("prompts/says/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): return v['system']\n")
        .file("prompts/helped/prompt.py", "TEMPLATE = \"x\"\nimport helper\ndef post_render(t, v, c): ...\n")
        .file("prompts/helped/helper.py", "def date(v): return v['system']['date']\n")
        .file("prompts/silent/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n");
    let stage = Setup::new(project);
    for prompt in ["says", "helped", "silent"] {
        stage.render(prompt).unwrap();
    }
    assert_eq!(
        stage.ran(),
        [
            "pre_render of the prompt `says`, knowing the system",
            "post_render of the prompt `helped`, knowing the system",
            "pre_render of the prompt `silent`",
        ]
    );
}

#[test]
fn hooks_that_are_turned_off_are_refused_and_not_skipped() {
    let project = Project::new()
        .file("cuebook.toml", "[hooks]\nenabled = false\n")
        .file("prompts/p/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): ...\n");
    let stage = Setup::new(project);
    let error = stage.render("p").unwrap_err();
    assert_eq!(error.code(), Code::HooksUnavailable);
    assert!(error.diagnostic().message.contains("`hooks.enabled`"), "{error}");
    assert!(stage.ran().is_empty());
}

#[test]
fn a_home_folder_is_no_workspace_for_code_of_a_pack() {
    let stage = Setup::with_pack();
    stage.approve("tools");
    let home = std::env::home_dir().unwrap();
    let context = Context { workspace_path: Some(home.to_string_lossy().into()), ..Context::default() };
    let error = stage.book.render("own", &values(json!({})), &context).unwrap_err();
    assert_eq!(error.code(), Code::BadWorkspace);
    assert!(stage.ran().is_empty());
    // Nor by way of a hook of the user's own, which may see it.
    stage.project.write("prompts/asks/template.md", "x");
    let asking = Hooks::new().engine(stage.engine.clone()).pre_render("asks", |variables, context| {
        let refusal = context.get_variable("git.branch").unwrap_err();
        assert!(refusal.message.contains("home folder"), "{}", refusal.message);
        Ok(variables)
    });
    stage.project.book().with_hooks(asking).render("asks", &values(json!({})), &context).unwrap();
    assert!(stage.ran().is_empty());
}
