//! The files of a traceback: which are the script's own, what people call them, and their lines.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cuebook::hooks::Script;
use cuebook::source::{Place, Source};

use crate::protocol::Frame;

/// Bytes of a module that are read to show a line of it.
const LARGEST: u64 = 1 << 20;

/// Frames that are looked at. A worker sends fewer, unless it wants to keep us busy.
pub const MAX_FRAMES: usize = 100;

/// The script and the modules beside it. Each is read once, so that its lines are shown in one excerpt.
#[derive(Debug)]
pub struct Files<'c> {
    script: &'c Script,
    read: RefCell<BTreeMap<String, Option<Arc<Source>>>>,
}

impl<'c> Files<'c> {
    /// Those of a script.
    pub fn new(script: &'c Script) -> Files<'c> {
        let itself = (script.path.to_string_lossy().into_owned(), Some(script.source.clone()));
        Files { script, read: RefCell::new(BTreeMap::from([itself])) }
    }

    /// The line that a frame is at, if it is one of the script's own.
    pub fn place(&self, frame: &Frame) -> Option<Place> {
        self.source(&frame.file).map(|source| line(&source, frame.line))
    }

    /// The last line of the script's own on the way to an exception, and its place on that way.
    pub fn last_own(&self, frames: &[Frame]) -> Option<(usize, Place)> {
        let places = frames.iter().enumerate().rev().take(MAX_FRAMES);
        places.filter_map(|(index, frame)| Some((index, self.place(frame)?))).next()
    }

    /// The text of a file of the script's own.
    pub fn source(&self, file: &str) -> Option<Arc<Source>> {
        if let Some(known) = self.read.borrow().get(file) {
            return known.clone();
        }
        let source = self.own(file).and_then(|name| Some(Source::new(name, self.text(Path::new(file))?)));
        self.read.borrow_mut().insert(file.to_owned(), source.clone());
        source
    }

    /// How a file is called: the script's own as people know them, others as Python does.
    pub fn name(&self, file: &str) -> String {
        self.own(file).unwrap_or_else(|| file.to_owned())
    }

    /// The same in short: modules of a library by their path in it.
    pub fn short_name(&self, file: &str) -> String {
        self.own(file).unwrap_or_else(|| in_library(file).to_owned())
    }

    /// The name of a file of the script's own: its path from where the name of the script begins.
    fn own(&self, file: &str) -> Option<String> {
        let Script { source, path, folder, .. } = self.script;
        if Path::new(file) == path {
            return Some(source.name().to_owned());
        }
        let beside = source.name().rsplit_once('/').map_or("", |(folder, _)| folder);
        // The name of the folder is what is left of the script's without the script's path in it.
        let inside =
            path.strip_prefix(folder).ok().and_then(|below| source.name().strip_suffix(below.to_str()?));
        let places = [(path.parent(), Some(beside)), (Some(folder.as_path()), inside.or(Some("")))];
        places.into_iter().find_map(|(folder, name)| {
            let below = Path::new(file).strip_prefix(folder?).ok()?;
            // Files that were installed there are not the user's own.
            let plain = |part: Component<'_>| match part {
                Component::Normal(name) => name != "site-packages",
                _ => false,
            };
            let name = name?.trim_end_matches('/');
            let separator = if name.is_empty() { "" } else { "/" };
            below.components().all(plain).then(|| format!("{name}{separator}{}", below.display()))
        })
    }

    /// What stands in a file. Of a pack that is what was approved; no other file is looked at for it.
    fn text(&self, file: &Path) -> Option<String> {
        if let Some(modules) = &self.script.modules {
            return modules.get(file).cloned();
        }
        let real = |path: &Path| fs::canonicalize(path).ok();
        let found = real(file)?;
        let folders: [Option<PathBuf>; 2] =
            [real(&self.script.folder), self.script.path.parent().and_then(real)];
        let is_inside = folders.iter().flatten().any(|folder| found.starts_with(folder));
        if self.script.pack.is_some() || !is_inside || !fs::metadata(&found).ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        let length = File::open(found).ok()?.take(LARGEST + 1).read_to_string(&mut text).ok()?;
        (length as u64 <= LARGEST).then_some(text)
    }
}

/// A module's path in the library that it belongs to.
fn in_library(file: &str) -> &str {
    for folder in ["/site-packages/", "/dist-packages/"] {
        if let Some((_, inside)) = file.rsplit_once(folder) {
            return inside;
        }
    }
    let inside = file.split_once("/lib/python").and_then(|(_, rest)| rest.split_once('/'));
    inside.map_or(file, |(_, inside)| inside)
}

/// A line, without what it is indented by.
pub fn line(source: &Arc<Source>, number: usize) -> Place {
    source.place(range_of_line(source.text(), number))
}

/// A column of a line, or all of it.
pub fn point(source: &Arc<Source>, number: usize, column: usize) -> Place {
    let text = source.text();
    let line = range_of_line(text, number);
    let start = text[..line.start].rfind('\n').map_or(0, |newline| newline + 1);
    let characters = text[start..line.end].char_indices();
    let offset = characters.map(|(offset, _)| start + offset).nth(column.wrapping_sub(1));
    match offset {
        Some(offset) if offset >= line.start => {
            let length = text[offset..].chars().next().map_or(0, char::len_utf8);
            source.place(offset..offset + length)
        }
        _ => source.place(line),
    }
}

/// The bytes of a line, from its first character that is no space to its last.
fn range_of_line(text: &str, number: usize) -> Range<usize> {
    let mut start = 0;
    for (index, line) in text.split('\n').enumerate() {
        if index + 1 == number {
            let indent = line.len() - line.trim_start().len();
            return start + indent..(start + line.trim_end().len()).max(start + indent);
        }
        start += line.len() + 1;
    }
    text.len()..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(name: &str, path: &str, folder: &str) -> Script {
        Script {
            source: Source::new(name, ""),
            path: path.into(),
            folder: folder.into(),
            pack: None,
            modules: None,
            mentions_system: true,
            mentions_git: false,
            fingerprint: String::new(),
        }
    }

    #[test]
    fn a_line_is_found_whatever_its_number() {
        assert_eq!(range_of_line("a\n  b \n", 2), 4..5);
        assert_eq!(range_of_line("a\n", 9), 2..2);
        assert_eq!(range_of_line("", 0), 0..0);
    }

    #[test]
    fn a_module_is_called_by_its_path_as_the_script_is() {
        let prompt = script("prompts/p/prompt.py", "/lib/prompts/p/prompt.py", "/lib/prompts/p");
        let provider = script("packs/k/variables/git.py", "/lib/packs/k/variables/git.py", "/lib/packs/k");
        for (script, file, name) in [
            (&prompt, "/lib/prompts/p/prompt.py", "prompts/p/prompt.py"),
            (&prompt, "/lib/prompts/p/a/b.py", "prompts/p/a/b.py"),
            (&prompt, "/lib/prompts/q/b.py", "/lib/prompts/q/b.py"),
            (&prompt, "/lib/prompts/p/../q/b.py", "/lib/prompts/p/../q/b.py"),
            (&prompt, "/lib/prompts/p/v/site-packages/b.py", "b.py"),
            (&provider, "/lib/packs/k/variables/near.py", "packs/k/variables/near.py"),
            (&provider, "/lib/packs/k/shared.py", "packs/k/shared.py"),
            (&script("git.py", "/k/variables/git.py", "/k"), "/k/shared.py", "shared.py"),
            (&prompt, "/usr/lib/python3.11/json/decoder.py", "json/decoder.py"),
            (&prompt, "/v/lib/python3.12/site-packages/requests/api.py", "requests/api.py"),
            (&prompt, "<string>", "<string>"),
        ] {
            assert_eq!(Files::new(script).short_name(file), name, "{file}");
        }
    }

    #[test]
    fn of_a_pack_only_what_was_approved_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let [inside, secret] = [folder.join("k/helper.py"), folder.join("secret.py")];
        fs::create_dir(folder.join("k")).unwrap();
        fs::write(&inside, "on disk\n").unwrap();
        fs::write(&secret, "secret\n").unwrap();
        std::os::unix::fs::symlink(&secret, folder.join("k/link.py")).unwrap();
        let mut script = script("k/prompt.py", "", "");
        script.path = folder.join("k/prompt.py");
        script.folder = folder.join("k");
        let text = |script: &Script, file: &str| {
            let source = Files::new(script).source(folder.join(file).to_str().unwrap());
            source.map(|source| source.text().to_owned())
        };
        assert_eq!(text(&script, "k/helper.py").as_deref(), Some("on disk\n"));
        for outside in ["secret.py", "k/link.py", "k/../secret.py", "k/missing.py", "k"] {
            assert_eq!(text(&script, outside), None, "{outside}");
        }
        script.pack = Some("k".into());
        assert_eq!(text(&script, "k/helper.py"), None);
        script.modules = Some([(inside, "approved\n".to_owned())].into());
        assert_eq!(text(&script, "k/helper.py").as_deref(), Some("approved\n"));
    }
}
