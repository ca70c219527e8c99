//! The extension for VS Code: its script builds, tests and packages it. VS Code itself does not run here.

use std::path::Path;
use std::process::Command;

use super::skip;

#[test]
fn the_extension_builds_passes_its_tests_and_is_packaged() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/vscode");
    // A copy: the sources get no folder of packages. The next run finds them in the copy.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vscode");
    std::fs::create_dir_all(&folder).unwrap();
    let copied = Command::new("cp").arg("-R").arg(source.join(".")).arg(&folder).status().unwrap();
    assert!(copied.success());
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !is_there("node") || !is_there("npm") {
        return skip::missing_peer("the extension needs node and npm".to_owned());
    }
    let installed = folder.join("node_modules/.package-lock.json").exists();
    let npm = |arguments: &[&str]| Command::new("npm").args(arguments).current_dir(&folder).output().unwrap();
    if !installed {
        let output = npm(&["install", "--silent", "--no-audit", "--no-fund"]);
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return skip::missing_peer(format!("npm cannot install what the extension needs: {why}"));
        }
    }
    let package = folder.join("cuebook.vsix");
    let _ = std::fs::remove_file(&package);
    for step in ["test", "package"] {
        let output = npm(&["run", "--silent", step]);
        let (said, failed) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "npm run {step}\n{said}\n{failed}");
    }
    // A `.vsix` is a ZIP archive.
    assert!(std::fs::read(&package).unwrap().starts_with(b"PK"));
}
