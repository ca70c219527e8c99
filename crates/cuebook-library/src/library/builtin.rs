//! The prompts that ship inside the binary: the last place of `ecosystem/default/prompts`.

macro_rules! files {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../../builtin/prompts/", $path))),)*]
    };
}

/// Every file by its path below the prompts' folder, sorted.
static FILES: &[(&str, &str)] = files! {
    "coding_system/prompt.py"
    "coding_system/template.ja.md"
    "coding_system/template.md"
    "general_system/prompt.py"
    "general_system/template.ja.md"
    "general_system/template.md"
    "history_compression/prompt.py"
    "history_compression/template.ja.md"
    "history_compression/template.md"
    "memory_update/prompt.py"
    "memory_update/template.ja.md"
    "memory_update/template.md"
    "partials/output_format.ja.md"
    "partials/output_format.md"
    "partials/safety_rules.ja.md"
    "partials/safety_rules.md"
    "partials/tool_instructions.ja.md"
    "partials/tool_instructions.md"
    "planning_task_decomposition/prompt.py"
    "planning_task_decomposition/template.ja.md"
    "planning_task_decomposition/template.md"
};

/// The text of a file.
pub fn file(path: &str) -> Option<&'static str> {
    let index = FILES.binary_search_by_key(&path, |(name, _)| name).ok()?;
    Some(FILES[index].1)
}

/// The paths of all files.
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| *path)
}

pub(crate) fn has_folder(name: &str) -> bool {
    FILES.iter().any(|(path, _)| path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
}

/// The names of the files in a folder.
#[doc(hidden)]
pub fn files_in(folder: &str) -> Vec<String> {
    let inside = |path: &str| Some(path.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
    paths().filter_map(inside).collect()
}

/// The folders, sorted.
pub(crate) fn folders() -> Vec<String> {
    let mut names: Vec<String> = FILES
        .iter()
        .filter_map(|(path, _)| path.split_once('/'))
        .map(|(folder, _)| folder.to_owned())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_names_every_file_of_the_folder() {
        let mut sorted: Vec<&str> = paths().collect();
        sorted.sort_unstable();
        assert_eq!(sorted, paths().collect::<Vec<_>>());
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("builtin/prompts");
        let mut on_disk: Vec<String> = Vec::new();
        for prompt in std::fs::read_dir(&folder).unwrap() {
            let prompt = prompt.unwrap();
            for file in std::fs::read_dir(prompt.path()).unwrap() {
                let name = file.unwrap().file_name().into_string().unwrap();
                on_disk.push(format!("{}/{name}", prompt.file_name().to_str().unwrap()));
            }
        }
        on_disk.sort_unstable();
        assert_eq!(on_disk, sorted);
    }
}
