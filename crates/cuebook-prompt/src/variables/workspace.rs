//! What a workspace looks like: its files and what it is written in, for prompts about code.

use std::fs;
use std::path::Path;

use crate::files;

/// Folders that hold what programs made.
const SKIPPED: [&str; 6] = ["node_modules", "__pycache__", "target", "dist", "build", "venv"];
/// Lines of a listing.
const MAX_LINES: usize = 200;
/// Files of one folder that are listed.
const MAX_FILES: usize = 20;
/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 10_000;
/// Folders below each other that are listed.
const DEEPEST: usize = 12;
/// Bytes of `package.json` that are looked at.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a folder, one per line and indented, folders first. Hidden entries and links are left out.
pub(super) fn file_tree(folder: &Path) -> String {
    let mut lines = Vec::new();
    list(folder, 0, &mut lines);
    lines.truncate(MAX_LINES);
    lines.join("\n")
}

fn list(folder: &Path, depth: usize, lines: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        if name.starts_with('.') || name.contains(char::is_control) {
            continue;
        }
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            folders.push(name);
        } else if kind.is_file() {
            files.push(name);
        }
    }
    folders.sort_unstable();
    files.sort_unstable();
    let indent = "  ".repeat(depth);
    for name in folders {
        if lines.len() >= MAX_LINES {
            return;
        }
        lines.push(format!("{indent}{name}/"));
        if depth < DEEPEST {
            list(&folder.join(name), depth + 1, lines);
        }
    }
    let more = files.len().saturating_sub(MAX_FILES);
    lines.extend(files.iter().take(MAX_FILES).map(|name| format!("{indent}{name}")));
    if more > 0 {
        lines.push(format!("{indent}… {more} more"));
    }
}

/// What a project is written in, as its files say; empty if they do not.
pub(super) fn tech_stack(folder: &Path) -> String {
    let has = |name: &str| folder.join(name).is_file();
    let mut found = Vec::new();
    if has("package.json") {
        found.push("Node.js");
        let manifest = files::read_text(&folder.join("package.json"), "package.json", MAX_BYTES);
        if manifest.is_ok_and(|manifest| manifest.text().contains("\"typescript\"")) {
            found.push("TypeScript");
        }
    }
    for (files, language) in [
        (&["pyproject.toml", "setup.py", "requirements.txt"][..], "Python"),
        (&["Cargo.toml"], "Rust"),
        (&["go.mod"], "Go"),
        (&["pom.xml", "build.gradle", "build.gradle.kts"], "Java"),
        (&["Gemfile"], "Ruby"),
    ] {
        if files.iter().any(|file| has(file)) {
            found.push(language);
        }
    }
    found.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_sorted_bounded_and_free_of_what_programs_made() {
        let folder = tempfile::tempdir().unwrap();
        for path in
            ["src/b.rs", "src/a.rs", "node_modules/x.js", ".git/config", "Cargo.toml", "src/deep/c.rs"]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        assert_eq!(file_tree(folder.path()), "src/\n  deep/\n    c.rs\n  a.rs\n  b.rs\nCargo.toml");
        for number in 0..300 {
            fs::create_dir(folder.path().join(format!("d{number}"))).unwrap();
            fs::write(folder.path().join(format!("src/f{number}")), "").unwrap();
        }
        let tree = file_tree(folder.path());
        assert_eq!(tree.lines().count(), MAX_LINES);
        assert_eq!(file_tree(&folder.path().join("src")).lines().last(), Some("… 282 more"));
        assert_eq!(file_tree(&folder.path().join("missing")), "");
    }

    #[test]
    fn the_stack_is_what_the_files_of_the_project_say() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(tech_stack(folder.path()), "");
        fs::write(folder.path().join("package.json"), r#"{"devDependencies": {"typescript": "5"}}"#).unwrap();
        fs::write(folder.path().join("pyproject.toml"), "").unwrap();
        assert_eq!(tech_stack(folder.path()), "Node.js, TypeScript, Python");
    }
}
