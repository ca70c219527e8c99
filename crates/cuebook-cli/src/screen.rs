//! Text that fits the width of a terminal.

use std::borrow::Cow;
use std::path::Path;

/// The width of output that goes to a file or a pipe.
const USUAL: usize = 80;
/// Wider lines are hard to read.
const WIDEST: usize = 110;
const NARROWEST: usize = 40;

/// Columns that output may have: those of the terminal, or 80.
pub fn width() -> usize {
    columns().unwrap_or(USUAL).clamp(NARROWEST, WIDEST)
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    None
}

/// What marks a file inside the program.
const MARK: &str = "built-in:";

/// The folders that files inside the program seem to be in.
const BUILT_IN: [&str; 2] = ["ecosystem/default/prompts/", "system:cuebook/"];

/// The name of a file, or of a line in it, as people see it: one inside the program is marked as built in, because no folder of the
/// project has it.
pub fn file_name<'n>(project: &Path, name: &'n str) -> Cow<'n, str> {
    let file = match name.rsplit_once(':') {
        Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => file,
        _ => name,
    };
    match BUILT_IN.iter().find_map(|folder| name.strip_prefix(folder)) {
        Some(rest) if !project.join(file).exists() => Cow::Owned(format!("{MARK}{rest}")),
        _ => Cow::Borrowed(name),
    }
}

/// A path that is cut at its beginning if it has more than some columns: its end says most.
pub fn cut(path: &str, columns: usize) -> Cow<'_, str> {
    let length = path.chars().count();
    if length <= columns {
        return Cow::Borrowed(path);
    }
    if let Some(rest) = path.strip_prefix(MARK) {
        return Cow::Owned(format!("{MARK}{}", cut(rest, columns.saturating_sub(MARK.len()))));
    }
    let end: String = path.chars().skip(length + 1 - columns.max(1)).collect();
    // A part of a folder's name says nothing.
    let end = end.find('/').filter(|at| *at < end.len() / 2).map_or(end.as_str(), |at| &end[at..]);
    Cow::Owned(format!("…{end}"))
}

/// A line as several that have at most some columns. Spaces at its beginning stay; a word that is too long is cut.
pub fn wrap(line: &str, columns: usize) -> Vec<Cow<'_, str>> {
    // Also the spaces at its end stay if it fits.
    if textwrap::core::display_width(line) <= columns {
        return vec![Cow::Borrowed(line)];
    }
    textwrap::wrap(
        line,
        textwrap::Options::new(columns.max(1)).word_separator(textwrap::WordSeparator::AsciiSpace),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_where_a_folder_begins() {
        assert_eq!(cut("prompts/a/template.md", 30), "prompts/a/template.md");
        assert_eq!(cut("very/long/folders/prompts/a/template.md:12", 26), "…/prompts/a/template.md:12");
        assert_eq!(
            cut("built-in:directives/rye/agent/continuation.md", 32),
            "built-in:…/agent/continuation.md"
        );
        assert!(cut("averyverylongnamewithoutfolders.md", 12).chars().count() <= 12);
    }

    #[test]
    fn a_file_inside_the_program_is_marked() {
        let project = tempfile::tempdir().unwrap();
        let name = "ecosystem/default/prompts/general_system/template.md:3";
        assert_eq!(file_name(project.path(), name), "built-in:general_system/template.md:3");
        assert_eq!(file_name(project.path(), "prompts/x/template.md"), "prompts/x/template.md");
        let file = project.path().join("ecosystem/default/prompts/general_system/template.md");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "ours").unwrap();
        assert_eq!(file_name(project.path(), name), name);
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("", 8), [""]);
        assert_eq!(wrap("ends with a space ", 20), ["ends with a space "]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    }
}
