//! The scripts of the design's own pages, word for word where it matters.

use std::process::Command;

use serde_json::json;

use crate::support::Bench;

const CODING_SYSTEM: &str = r#"
async def pre_render(variables: dict, context: dict) -> dict:
    import os

    workspace = context.get("workspace_path", ".")

    tree = []
    for root, dirs, files in os.walk(workspace):
        dirs[:] = [d for d in dirs if d not in {".git", "node_modules", "__pycache__", ".rumi"}]
        level = root.replace(workspace, "").count(os.sep)
        indent = "  " * level
        tree.append(f"{indent}{os.path.basename(root)}/")
        for f in files[:20]:
            tree.append(f"{indent}  {f}")
        if len(tree) > 200:
            break

    variables["file_tree"] = "\n".join(tree[:200])

    tech_stack = []
    if os.path.exists(os.path.join(workspace, "package.json")):
        content = await context["read_file"]("package.json")
        tech_stack.append("Node.js")
        if '"typescript"' in content:
            tech_stack.append("TypeScript")
    if os.path.exists(os.path.join(workspace, "pyproject.toml")):
        tech_stack.append("Python")

    variables["tech_stack"] = ", ".join(tech_stack) if tech_stack else "不明"

    return variables


async def post_render(rendered_text: str, variables: dict, context: dict) -> str:
    return rendered_text
"#;

#[test]
fn the_hooks_of_the_coding_prompt_look_at_the_workspace() {
    let Some(bench) = Bench::new(CODING_SYSTEM) else { return };
    let bench =
        bench.granting(&["read_file"]).file("workspace/package.json", "{}").file("workspace/src/a.py", "");
    let returned = bench.pre_render(json!({"agent_name": "ルミ"}));
    let expected = json!({
        "agent_name": "ルミ",
        "file_tree": "workspace/\n  package.json\n  src/\n    a.py",
        "tech_stack": "Node.js",
    });
    assert_eq!(returned, expected);
    assert_eq!(bench.post_render("あなたは"), "あなたは");
}

const GIT_PROVIDER: &str = r#"
import subprocess

async def provide(context: dict) -> dict:
    workspace = context.get("workspace_path", ".")
    try:
        branch = subprocess.check_output(
            ["git", "rev-parse", "--abbrev-ref", "HEAD"],
            cwd=workspace, text=True
        ).strip()
    except Exception:
        branch = None

    return {
        "branch": branch,
        "available": branch is not None,
    }
"#;

#[test]
fn the_git_provider_knows_the_branch() {
    let Some(bench) = Bench::new(GIT_PROVIDER) else { return };
    assert_eq!(bench.provide(), json!({"branch": null, "available": false}));
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b.example"]).args(arguments);
        command.current_dir(bench.path("workspace")).output().is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q", "-b", "topic"]) || !git(&["commit", "-q", "--allow-empty", "-m", "first"]) {
        println!("skipped: git does not work here");
        return;
    }
    assert_eq!(bench.provide(), json!({"branch": "topic", "available": true}));
    assert_eq!(bench.hooks.idle_workers(), 1);
}
