//! `cuebook diff` with repositories that a hostile project brings along.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, though the lint sees only functions"
)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::Project;

fn diff(project: &Project, folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), folder);
    let output = command.arg("diff").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn git(project: &Project, folder: &Path, args: &[&str]) {
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"];
    let done = project.command("git", folder).args(who).args(args).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A project with a repository in its folder `name`.
fn repository(project: &Project, name: &str) -> std::path::PathBuf {
    let folder = project.path().join(name);
    project.write(&format!("{name}/cuebook.toml"), "");
    project.write(&format!("{name}/prompts/hi/template.md"), format!("Hi from {name}.\n"));
    git(project, &folder, &["init", "-q"]);
    git(project, &folder, &["add", "."]);
    git(project, &folder, &["commit", "-q", "-m", "A step"]);
    folder
}

fn pipe(path: &Path) {
    fs::remove_file(path).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn no_git_of_the_repository_itself_is_asked() {
    let project = Project::new();
    let folder = repository(&project, "own");
    let program = folder.join("bin/git");
    project.write("own/bin/git", format!("#!/bin/sh\ntouch {}\n", folder.join("pwned").display()));
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &folder);
    let path = format!("bin:{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let output = command.args(["diff", "HEAD:hi", "hi"]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.join("pwned").exists());
}

#[test]
fn a_pipe_in_place_of_head_is_refused() {
    let project = Project::new();
    for name in ["HEAD", "config", "index"] {
        let folder = repository(&project, name);
        pipe(&folder.join(".git").join(name));
        let (code, _, said) = diff(&project, &folder, &["HEAD:hi", "hi"]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("CB519") && said.contains("is not a regular file"), "{said}");
    }
}

#[test]
fn a_git_file_cannot_name_another_repository() {
    let project = Project::new();
    let secret = repository(&project, "secret");
    let refused = |folder: &Path| {
        let (code, out, said) = diff(&project, folder, &["HEAD:hi", "hi"]);
        assert_eq!(code, 2, "{out}{said}");
        assert!(said.contains("does not belong to this project") && !out.contains("secret"), "{out}{said}");
    };
    project.write("a/cuebook.toml", "");
    project.write("a/prompts/hi/template.md", "Hi.\n");
    let (a, git_of_secret) = (project.path().join("a"), secret.join(".git"));
    project.write("a/.git", format!("gitdir: {}\n", git_of_secret.display()));
    refused(&a);
    // One that pretends to be a worktree, and takes everything from elsewhere.
    project.write("a/.git", "gitdir: fake/worktrees/a\n");
    project.write("a/fake/worktrees/a/gitdir", format!("{}\n", a.join(".git").display()));
    project.write("a/fake/worktrees/a/commondir", format!("{}\n", git_of_secret.display()));
    project.write("a/fake/worktrees/a/HEAD", "ref: refs/heads/main\n");
    refused(&a);
    // A folder that takes its objects from elsewhere, and a link.
    let b = repository(&project, "b");
    project.write("b/.git/commondir", format!("{}\n", git_of_secret.display()));
    refused(&b);
    let c = repository(&project, "c");
    fs::remove_dir_all(c.join(".git/objects")).unwrap();
    std::os::unix::fs::symlink(git_of_secret.join("objects"), c.join(".git/objects")).unwrap();
    refused(&c);
    let d = repository(&project, "d");
    fs::remove_dir_all(d.join(".git")).unwrap();
    std::os::unix::fs::symlink(&git_of_secret, d.join(".git")).unwrap();
    refused(&d);
}

#[test]
fn worktrees_and_submodules_are_read() {
    let project = Project::new();
    let main = repository(&project, "main");
    git(&project, &main, &["worktree", "add", "-q", "../tree", "-b", "other"]);
    let tree = project.path().join("tree");
    project.write("tree/prompts/hi/template.md", "Hi from the tree.\n");
    let (code, out, said) = diff(&project, &tree, &["HEAD:hi", "hi"]);
    assert_eq!((code, out.contains("Hi from the tree.")), (1, true), "{out}{said}");
    let outer = repository(&project, "outer");
    git(
        &project,
        &outer,
        &["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../main", "inner"],
    );
    let (code, out, said) = diff(&project, &outer.join("inner"), &["HEAD:hi", "hi"]);
    assert_eq!(code, 0, "{out}{said}");
}

#[test]
fn links_to_a_large_folder_are_counted_before_they_are_followed() {
    let project = Project::new();
    let folder = repository(&project, "many");
    for number in 0..300 {
        project.write(&format!("many/prompts/files/{number}.txt"), "");
        std::os::unix::fs::symlink("files", folder.join(format!("prompts/link{number}"))).unwrap();
    }
    git(&project, &folder, &["add", "."]);
    git(&project, &folder, &["commit", "-q", "-m", "Links"]);
    let (code, _, said) = diff(&project, &folder, &["HEAD:hi", "hi"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("in `HEAD` is too large to copy"), "{said}");
}

#[test]
fn a_folder_that_a_killed_run_left_is_removed_by_the_next() {
    let project = Project::new();
    let folder = repository(&project, "a");
    let temporary = project.path().join("temporary");
    fs::create_dir_all(temporary.join("cuebook-diff-left/tree")).unwrap();
    fs::write(temporary.join("cuebook-diff-left/lock"), "").unwrap();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &folder);
    let output = command.env("TMPDIR", &temporary).args(["diff", "HEAD:hi", "hi"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_partial_clone_says_that_a_file_is_not_here() {
    let project = Project::new();
    let whole = repository(&project, "whole");
    git(&project, &whole, &["config", "uploadpack.allowFilter", "true"]);
    let address = format!("file://{}", whole.display());
    git(&project, project.path(), &["clone", "-q", "--no-checkout", "--filter=blob:none", &address, "part"]);
    project.write("part/cuebook.toml", "");
    project.write("part/prompts/hi/template.md", "Hi.\n");
    let part = project.path().join("part");
    let (code, _, said) = diff(&project, &part, &["HEAD:hi", "hi"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is missing: this is a partial clone") && said.contains("git fetch"), "{said}");
}

#[test]
fn an_old_git_fetches_nothing_either() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::new();
    let whole = repository(&project, "whole");
    git(&project, &whole, &["config", "uploadpack.allowFilter", "true"]);
    let address = format!("file://{}", whole.display());
    git(&project, project.path(), &["clone", "-q", "--no-checkout", "--filter=blob:none", &address, "part"]);
    project.write("part/cuebook.toml", "");
    project.write("part/prompts/hi/template.md", "Hi.\n");
    // A release before 2.45 does not know the variable that forbids fetching.
    let path = std::env::var("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|file| file.is_file());
    let script = format!("#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {} \"$@\"\n", real.unwrap().display());
    project.write("old/git", script);
    let old = project.path().join("old");
    fs::set_permissions(old.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let part = project.path().join("part");
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &part);
    let output =
        command.env("PATH", format!("{}:{path}", old.display())).args(["diff", "HEAD:hi", "hi"]).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let blob = "HEAD:prompts/hi/template.md";
    let mut look = project.command("git", &part);
    let found = look.env("GIT_NO_LAZY_FETCH", "1").args(["cat-file", "-e", blob]).output().unwrap();
    assert!(!found.status.success(), "the file was fetched: {said}");
}
