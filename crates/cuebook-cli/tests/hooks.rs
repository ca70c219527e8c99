//! Hooks and providers through the command, with a real Python in the real sandbox: what people write, what they see.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use support::skip;

use std::process::{Command, Output, Stdio};

use serde_json::{Value as Json, json};
use support::{Project, python_or_skip};

fn cuebook(project: &Project, args: &[&str]) -> Output {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

fn stdout(project: &Project, args: &[&str]) -> String {
    let Output { status, stdout, stderr } = cuebook(project, args);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn stderr(project: &Project, args: &[&str]) -> String {
    String::from_utf8(cuebook(project, args).stderr).unwrap()
}

/// A prompt that looks at the workspace before it is rendered, as a prompt for a coding agent would.
const SURVEYOR: &str = r#"
METADATA = {"type": "system", "description": "Looks at the workspace"}
PERMISSIONS = {"read_file": True, "session_state": True}
LIMITS = {"max_execution_time": 5, "max_output_size": 50000}
TEMPLATE = "Stack: {{ stack }}\nTurn {{ turn }}\n{{ tree }}"


async def pre_render(variables: dict, context: dict) -> dict:
    import os

    workspace = context.get("workspace_path", ".")
    lines = []
    for root, folders, files in os.walk(workspace):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        depth = root.replace(workspace, "").count(os.sep)
        lines.append("  " * depth + os.path.basename(root) + "/")
        lines.extend("  " * (depth + 1) + file for file in sorted(files))
    variables["tree"] = "\n".join(lines)
    stack = []
    if os.path.exists(os.path.join(workspace, "package.json")):
        manifest = await context["read_file"]("package.json")
        stack.append("TypeScript" if "typescript" in manifest else "Node.js")
    variables["stack"] = ", ".join(stack) or "unknown"
    variables["turn"] = context["session_state"].get("turn", 0)
    return variables


async def post_render(rendered_text: str, variables: dict, context: dict) -> str:
    return rendered_text + "\n-- " + context["session"]["session_id"]
"#;

#[test]
fn a_prompt_looks_at_the_workspace_before_it_is_rendered() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("user_data/shared/prompts/surveyor/prompt.py", SURVEYOR);
    project.write("ws/package.json", r#"{"devDependencies": {"typescript": "5"}}"#);
    project.write("ws/src/index.ts", "");
    project.write("ws/.git/config", "");
    let workspace = format!("workspace_path={}", project.path().join("ws").display());
    let args = [
        "render",
        "surveyor",
        "--context",
        &workspace,
        "--context",
        "session_id=s7",
        "--context",
        "session_state:={\"turn\": 3}",
    ];
    assert_eq!(
        stdout(&project, &args),
        "Stack: TypeScript\nTurn 3\nws/\n  package.json\n  src/\n    index.ts\n-- s7"
    );
    // Where each part came from.
    let spans: Json = serde_json::from_str(&stdout(&project, &[&args[..], &["--json"]].concat())).unwrap();
    let origins: Vec<String> = spans["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| match span["origin"]["kind"].as_str().unwrap() {
            "value" => format!(
                "{} by {}",
                span["origin"]["variables"][0]["path"], span["origin"]["variables"][0]["by"]["function"]
            ),
            "hook" => format!("hook {}", span["origin"]["function"]),
            other => other.to_owned(),
        })
        .collect();
    let by = "by \"pre_render\"";
    assert_eq!(
        origins,
        [
            "literal",
            &format!("\"stack\" {by}"),
            "literal",
            &format!("\"turn\" {by}"),
            "literal",
            &format!("\"tree\" {by}"),
            "hook \"post_render\""
        ]
    );
    let explained = stdout(&project, &[&["explain"], &args[1..]].concat());
    assert!(explained.contains("stack (pre_render of surveyor)"), "{explained}");
    assert!(explained.contains("post_render of surveyor"), "{explained}");
}

const BRANCH: &str = r#"
import subprocess


async def provide(context: dict) -> dict:
    try:
        branch = subprocess.check_output(
            ["git", "rev-parse", "--abbrev-ref", "HEAD"], cwd=context.get("workspace_path", "."), text=True
        ).strip()
    except Exception as error:
        print("no branch:", error)
        branch = None
    return {"branch": branch, "available": branch is not None}
"#;

fn git_toolkit() -> Project {
    let project = Project::new();
    let manifest = json!({
        "pack_id": "repo_toolkit",
        "variable_providers": [{"file": "variables/repo.py", "namespace": "git", "description": "The repository"}],
    });
    project.write("download/pack.json", manifest.to_string());
    project.write("download/variables/repo.py", BRANCH);
    project.write(
        "prompts/status/template.md",
        "{% if git.available %}on {{ git.branch }}{% else %}no repository{% endif %}",
    );
    project
}

/// A project with the pack installed and approved, and a repository in the folder `main` on the branch `trunk`.
fn repository() -> Option<Project> {
    python_or_skip()?;
    if Command::new("git").arg("--version").output().is_err() {
        skip::missing_peer("git is missing");
        return None;
    }
    let project = git_toolkit();
    std::fs::create_dir_all(project.path().join("main/sub")).unwrap();
    git(&project, &["init", "-q", "-b", "trunk", "main"]);
    git(&project, &["-C", "main", "commit", "-q", "--allow-empty", "-m", "x"]);
    stderr(&project, &["pack", "install", "download"]);
    stderr(&project, &["pack", "approve", "repo_toolkit", "--yes"]);
    Some(project)
}

fn git(project: &Project, args: &[&str]) {
    let who = ["-c", "user.name=x", "-c", "user.email=x@y"];
    assert!(
        project.command("git", project.path()).args(who).args(args).status().unwrap().success(),
        "{args:?}"
    );
}

/// What the prompt about the branch prints in a workspace, and the advice of its warning.
fn status_in(project: &Project, folder: &str) -> (String, Option<String>) {
    let workspace = format!("workspace_path={}", project.path().join(folder).display());
    let output = cuebook(project, &["render", "status", "--context", &workspace]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let advice =
        said.split_once("warning[CB421]").map(|(_, rest)| rest.split_once("help: ").unwrap().1.to_owned());
    assert_eq!(advice.is_none(), said.is_empty(), "{said}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), advice)
}

/// Follows the advice: adds the setting that it names to the user's.
fn follow(project: &Project, advice: &str) {
    let setting = advice.split('`').nth(1).unwrap();
    project.write("home/.ai/config/cuebook.toml", format!("[hooks]\n{setting}\n"));
}

#[test]
fn a_hidden_repository_is_reported_and_can_be_granted() {
    let Some(project) = repository() else { return };
    git(&project, &["-C", "main", "worktree", "add", "-q", "-b", "side", "../tree"]);
    std::fs::create_dir_all(project.path().join("tree/deep")).unwrap();
    assert_eq!(status_in(&project, "main"), ("on trunk".into(), None));
    for (folder, branch) in [("main/sub", "trunk"), ("tree", "side"), ("tree/deep", "side")] {
        project.write("home/.ai/config/cuebook.toml", "");
        let (text, advice) = status_in(&project, folder);
        assert_eq!(text, "no repository", "{folder}");
        follow(&project, &advice.unwrap());
        assert_eq!(status_in(&project, folder), (format!("on {branch}"), None), "{folder}");
    }
    // A project cannot open a repository to its hooks.
    project.write("home/.ai/config/cuebook.toml", "");
    let git_folder = project.path().join("main/.git");
    project.write("cuebook.toml", format!("[hooks]\nreadable = [{git_folder:?}]\n"));
    let workspace = format!("workspace_path={}", project.path().join("main/sub").display());
    let refused = stderr(&project, &["render", "status", "--context", &workspace]);
    assert!(refused.contains("[CB231]") && refused.contains("[CB421]"), "{refused}");
    project.allow();
    assert_eq!(status_in(&project, "main/sub").0, "on trunk");
}

#[test]
fn a_git_file_cannot_suggest_a_foreign_folder() {
    let Some(project) = repository() else { return };
    git(&project, &["-C", "main", "worktree", "add", "-q", "-b", "side", "../tree"]);
    project.write("secrets/HEAD", "ref: refs/heads/x\n");
    // The last one is a repository of the user's, whose worktree is another folder.
    for named in ["../secrets", "/etc", "../nowhere", "", "../main/.git", "../main/.git/worktrees/tree"] {
        project.write("foreign/.git", format!("gitdir: {named}\n"));
        let (text, advice) = status_in(&project, "foreign");
        let advice = advice.unwrap();
        assert_eq!(text, "no repository");
        assert!(advice.contains(".git leads to a folder that does not belong to it"), "{named}: {advice}");
        assert!(!advice.contains("readable"), "{named}: {advice}");
    }
    // The user's own keys are never shown.
    project.write("home/.ai/config/cuebook.toml", "[hooks]\nreadable = [\"~/.ai\"]\n");
    let refused = stderr(&project, &["render", "status"]);
    assert!(refused.contains("error[CB105]: `hooks.readable` would show your keys"), "{refused}");
}

#[test]
fn an_approved_pack_provides_the_git_branch() {
    let Some(()) = python_or_skip() else { return };
    if Command::new("git").arg("--version").output().is_err() {
        return skip::missing_peer("git is missing");
    }
    let project = git_toolkit();
    std::fs::create_dir_all(project.path().join("ws")).unwrap();
    git(&project, &["init", "-q", "-b", "trunk", "ws"]);
    git(&project, &["-C", "ws", "commit", "-q", "--allow-empty", "-m", "x"]);
    let workspace = format!("workspace_path={}", project.path().join("ws").display());
    let render = ["render", "status", "--context", &workspace];
    assert!(stderr(&project, &["pack", "install", "download"]).contains("cuebook pack approve repo_toolkit"));
    let refused = stderr(&project, &render);
    assert!(refused.contains("error[CB207]"), "{refused}");
    let shown = stderr(&project, &["pack", "approve", "repo_toolkit", "--yes"]);
    assert!(shown.contains("variables/repo.py (provider, may: nothing special)"), "{shown}");
    assert!(shown.contains("async def provide(context: dict)"), "every line is shown: {shown}");
    assert_eq!(stdout(&project, &render), "on trunk");
    // What the project itself is has no repository; the provider copes, and says so to a caller that listens.
    let verbose = cuebook(&project, &["render", "status", "--verbose"]);
    assert_eq!(String::from_utf8_lossy(&verbose.stdout), "no repository");
    let said = String::from_utf8_lossy(&verbose.stderr).into_owned();
    assert!(said.contains("provide of the provider `git` of the pack `repo_toolkit`: no branch:"), "{said}");
}

#[test]
fn a_provider_whose_namespace_no_template_uses_does_not_run() {
    let Some(()) = python_or_skip() else { return };
    let project = git_toolkit();
    stderr(&project, &["pack", "install", "download"]);
    project.write("prompts/plain/template.md", "Hello {{ name }}");
    // The user has not approved the code, and no one needs it.
    assert_eq!(stdout(&project, &["render", "plain", "--var", "name=Ada"]), "Hello Ada");
    // What the caller gives is not provided.
    let given = ["render", "status", "--var", "git:={\"available\": true, \"branch\": \"mine\"}"];
    assert_eq!(stdout(&project, &given), "on mine");
}

#[test]
fn prints_of_a_hook_are_never_part_of_the_text() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write(
        "prompts/chatty/prompt.py",
        "TEMPLATE = \"text\"\nprint('loading')\ndef pre_render(v, c):\n    import sys, os\n    print('to stdout')\n    print('to stderr', file=sys.stderr)\n    os.system('echo from a child')\n    return v\n",
    );
    let quiet = cuebook(&project, &["render", "chatty"]);
    assert_eq!((String::from_utf8_lossy(&quiet.stdout).as_ref(), quiet.stderr.len()), ("text", 0));
    let verbose = cuebook(&project, &["render", "chatty", "-v"]);
    assert_eq!(String::from_utf8_lossy(&verbose.stdout), "text");
    let said = String::from_utf8_lossy(&verbose.stderr).into_owned();
    for line in ["loading", "to stdout", "to stderr", "from a child"] {
        assert!(said.contains(&format!("pre_render of the prompt `chatty`: {line}\n")), "{said}");
    }
}

#[test]
fn modules_beside_a_prompt_are_found() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("prompts/p/prompt.py", "TEMPLATE = \"{{ x }}\"\nfrom helpers.words import word\n\ndef pre_render(v, c):\n    v['x'] = word(v['n'])\n    return v\n");
    project.write("prompts/p/helpers/__init__.py", "");
    project.write("prompts/p/helpers/words.py", "def word(n):\n    return ['zero', 'one'][n]\n");
    assert_eq!(stdout(&project, &["render", "p", "--var", "n:=1"]), "one");
    let error = stderr(&project, &["render", "p", "--var", "n:=7"]);
    assert!(error.contains("error[CB410]") && error.contains("IndexError"), "{error}");
    assert!(error.contains("prompts/p/prompt.py:5"), "{error}");
    assert!(error.contains("helpers/words.py:2"), "{error}");
    assert!(
        !error.contains("bootstrap") && !error.contains("<cuebook"),
        "our own frames do not show: {error}"
    );
    let json: Json =
        serde_json::from_slice(&cuebook(&project, &["render", "p", "--var", "n:=7", "--json"]).stdout)
            .unwrap();
    assert_eq!(json["error"]["type"], "PromptHookError");
    assert_eq!(json["error"]["exception"]["type"], "IndexError");
    assert_eq!(json["error"]["traceback"].as_array().unwrap().len(), 2, "{json:#}");
}

#[test]
fn a_prompt_without_hooks_needs_no_python() {
    let project = Project::new();
    project.write("cuebook.toml", "[hooks]\npython = \"nowhere/python\"\n");
    project.allow();
    project.write("prompts/plain/template.md", "Hello {{ name }}");
    assert_eq!(stdout(&project, &["render", "plain", "--var", "name=Ada"]), "Hello Ada");
    project.write("prompts/p/prompt.py", "TEMPLATE = \"x\"\ndef pre_render(v, c): return v\n");
    assert_eq!(stdout(&project, &["render", "p", "--no-hooks"]), "x");
    assert!(stderr(&project, &["render", "p"]).contains("error[CB408]"));
}

#[test]
fn doctor_says_what_there_is_to_run_hooks_with() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    let found: Json = serde_json::from_slice(&cuebook(&project, &["doctor", "--json"]).stdout).unwrap();
    assert!(found["python"]["version"].as_str().unwrap().starts_with("3."), "{found:#}");
    assert_eq!(found["sandbox_for_packs"], "full");
    if cfg!(target_os = "linux") {
        assert_eq!((&found["sandbox"], &found["missing"]), (&json!("full"), &json!([])), "{found:#}");
    }
    assert!(stdout(&project, &["doctor"]).contains("sandbox"));
}
