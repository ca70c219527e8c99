//! The system's space: the items that are part of the program.
//!
//! Each is signed like any other item, with a key whose public half is among them, so that a copy of one in a project is
//! still valid.

macro_rules! file {
    ($path:literal) => {
        ($path, include_bytes!(concat!("../../system/", $path)))
    };
}

/// A file by its path below `.ai`, and what it holds; sorted, one line for each file of the folder `system`.
pub(super) const FILES: &[(&str, &[u8])] = &[
    file!("config/keys/trusted/c6c547bee16d153f.toml"),
    file!("directives/rye/agent/continuation.md"),
    file!("directives/rye/core/create_directive.md"),
    file!("knowledge/rye/core/directive-metadata-reference.md"),
    file!("tools/rye/bash/bash.py"),
    file!("tools/rye/core/primitives/http_client.yaml"),
    file!("tools/rye/core/primitives/subprocess.yaml"),
    file!("tools/rye/core/runtimes/bash/bash.yaml"),
    file!("tools/rye/core/runtimes/mcp/http.yaml"),
    file!("tools/rye/core/runtimes/mcp/stdio.yaml"),
    file!("tools/rye/core/runtimes/node/node.yaml"),
    file!("tools/rye/core/runtimes/python/function.yaml"),
    file!("tools/rye/core/runtimes/python/lib/_cuebook.py"),
    file!("tools/rye/core/runtimes/python/script.yaml"),
    file!("tools/rye/file-system/edit.py"),
    file!("tools/rye/file-system/glob.py"),
    file!("tools/rye/file-system/grep.py"),
    file!("tools/rye/file-system/list.py"),
    file!("tools/rye/file-system/read.py"),
    file!("tools/rye/file-system/write.py"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn files(folder: &Path, below: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{below}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => files(&entry.path(), &format!("{path}/"), found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_listed_and_in_order() {
        let mut found = Vec::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("system"), "", &mut found);
        found.sort();
        let listed: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        assert_eq!(listed, found);
    }
}
