//! What a new version of a package does differently: its prompts, compared by effect, and its other files.

use std::io::{self, Write};
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use cuebook::error::{printable, report};
use cuebook::library::StagedPackage;
use cuebook::variables::Clock;
use cuebook::{Book, Context, Error, Result};
use cuebook_lab::diff::{self, Diff, Names, Version};
use cuebook_share::{Change, LockedPackage, PackageKind, PackageState};
use serde_json::{Value as Json, json};

use crate::commands::diff::show;
use crate::versions::OpenVersion;

/// The differences of a version of a package.
pub(super) struct Effects {
    prompts: Vec<(String, PromptEffect)>,
    /// Files that are code, with a word for what became of them.
    code: Vec<(String, &'static str)>,
}

enum PromptEffect {
    Compared(Box<Diff>),
    New,
    Removed,
    Failed(Error),
}

impl Effects {
    /// Compares what is installed with what would be.
    pub fn of(book: &Book, change: &Change<'_>) -> Result<Effects> {
        let clock = diff::stopped_clock();
        let prompts = match &change.staged {
            StagedPackage::Pack(pack) => {
                let name = &change.package.name;
                let new = &pack.manifest().prompts;
                // A damaged or missing pack has nothing to compare with.
                let old = book
                    .library()
                    .inspect_pack(name)
                    .map(|(manifest, _)| manifest.prompts)
                    .unwrap_or_default();
                let mut all: Vec<&String> = old.iter().chain(new).collect();
                all.sort();
                all.dedup();
                let effect = |id: &String| match (old.contains(id), new.contains(id)) {
                    (true, true) => pack_prompt(book, pack.folder(), name, id, &clock),
                    (true, false) => PromptEffect::Removed,
                    _ => PromptEffect::New,
                };
                all.into_iter().map(|id| (id.clone(), effect(id))).collect()
            }
            StagedPackage::Folder(folder) => {
                let LockedPackage { name, kind, .. } = &change.package;
                let installed = book.library().root().join(kind.folder(name));
                let effect = match kind.file(name).filter(|_| installed.is_dir()) {
                    Some(file) => text_of_folder(
                        book,
                        &installed,
                        folder.folder(),
                        (name.as_str(), file.as_str()),
                        &clock,
                    ),
                    None => PromptEffect::New,
                };
                vec![(name.clone(), effect)]
            }
        };
        Ok(Effects { prompts, code: code(change) })
    }

    /// Shows them to the user, on stderr: stdout is for results.
    pub fn show(&self) -> Result<()> {
        let shown = self.print(&mut anstream::stderr());
        // What cannot be shown cannot be agreed to.
        shown.map_err(|error| cuebook::files::write_error("the terminal", &error))
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
        for (id, effect) in &self.prompts {
            let id = printable(id);
            match effect {
                PromptEffect::Compared(diff) if diff.is_same() => {}
                PromptEffect::Compared(diff) => show(diff, out)?,
                PromptEffect::New => writeln!(out, "{good}+ {id}{good:#}  new")?,
                PromptEffect::Removed => writeln!(out, "{bad}- {id}{bad:#}  removed")?,
                PromptEffect::Failed(error) => {
                    writeln!(out, "{id} cannot be compared:\n{}", report(error.diagnostics(), true))?;
                }
            }
        }
        let bold = Style::new().bold();
        for (path, what) in &self.code {
            writeln!(out, "{bold}{}{bold:#}  {what}", printable(path))?;
        }
        Ok(())
    }

    /// The prompts as scripts see them.
    pub fn to_json(&self) -> Json {
        let row = |(id, effect): &(String, PromptEffect)| {
            let (mut object, status) = match effect {
                PromptEffect::Compared(diff) if diff.is_same() => (diff.to_json(), "same"),
                PromptEffect::Compared(diff) => (diff.to_json(), "changed"),
                PromptEffect::New => (json!({}), "added"),
                PromptEffect::Removed => (json!({}), "removed"),
                PromptEffect::Failed(error) => (json!({"error": error.to_json()["error"]}), "failed"),
            };
            object["prompt"] = json!(id);
            object["status"] = json!(status);
            object
        };
        Json::Array(self.prompts.iter().map(row).collect())
    }
}

fn effect(compared: Result<Diff>) -> PromptEffect {
    match compared {
        Ok(diff) => PromptEffect::Compared(Box::new(diff)),
        Err(error) => PromptEffect::Failed(error),
    }
}

fn pack_prompt(
    book: &Book,
    folder: &std::path::Path,
    pack: &str,
    id: &str,
    clock: &Arc<dyn Clock>,
) -> PromptEffect {
    let context = Context::default();
    let compare = || -> Result<Diff> {
        let name = format!("{pack}/{id}");
        let old = OpenVersion::Here { book, prompt: name.clone(), label: name };
        let new = OpenVersion::staged(folder, "new", id)?;
        Ok(diff::compare(&old.version(&context, clock)?.without_code(), &new.version(&context, clock)?))
    };
    effect(compare())
}

/// Compares the text of a skill or a prompt, which is in one file.
fn text_of_folder(
    book: &Book,
    installed: &std::path::Path,
    folder: &std::path::Path,
    (name, file): (&str, &str),
    clock: &Arc<dyn Clock>,
) -> PromptEffect {
    let context = Context::default();
    let library = book.library();
    let names = Names::new("new:", library.root()).without(format!("{}/", library.name(folder)));
    let compare = || -> Result<Diff> {
        let path = |folder: &std::path::Path| folder.join(file).to_string_lossy().into_owned();
        let old = Version::find(book, &path(installed), &context, clock)?.labelled(name);
        let new = Version::find(book, &path(folder), &context, clock)?.called(format!("new:{name}"), &names);
        Ok(diff::compare(&old, &new))
    };
    effect(compare())
}

/// The files of code that are new, gone or changed.
fn code(change: &Change<'_>) -> Vec<(String, &'static str)> {
    let Some(before) = &change.before else { return Vec::new() };
    let PackageState::Changed { added, removed, changed } =
        PackageState::between(&before.files, &change.package.files)
    else {
        return Vec::new();
    };
    let is_code = |path: &String| match change.package.kind {
        PackageKind::Pack => path.ends_with(".py"),
        // A skill may bring scripts in any language.
        PackageKind::Skill => path != "SKILL.md",
        PackageKind::Prompt => false,
    };
    let of = |files: Vec<String>, what: &'static str| files.into_iter().map(move |path| (path, what));
    of(added, "new file")
        .chain(of(removed, "removed file"))
        .chain(of(changed, "changed file"))
        .filter(|(path, _)| is_code(path))
        .collect()
}
