//! Files that `cuebook convert` wrote from a prompt, and that no longer fit it ([CB530](crate::Code::StaleOutput),
//! [CB529](crate::Code::LeftoverTag)).

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::book::Book;
use crate::convert::{closure, origin_of, tag_in};
use crate::error::{Code, Diagnostic, ErrorKind, Hint, Result, Severity};
use crate::files;
use crate::library::{Candidate, Survey};
use crate::prompt::{Claim, SKILL};
use crate::targets::place;
use crate::variables::Context;
use cuebook::limits::FILE_BYTES;

/// Files in the folder of the project that agents read.
const FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];

/// Looks at files that agents read, at skills and at `.prompt` files.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let library = book.library();
    // The dialects of other programs: nothing else is written from a prompt and says so.
    let is_foreign = |candidate: &&Candidate| {
        matches!(candidate.dialect.claim, Claim::File(_)) || candidate.dialect.claim == Claim::End(".prompt")
    };
    let offered = survey.ids().flat_map(|(_, candidates)| candidates).filter(is_foreign).filter_map(place);
    let paths: BTreeSet<PathBuf> =
        FILES.iter().map(|file| library.root().join(file)).chain(offered).collect();
    let mut findings = Vec::new();
    for path in paths.iter().filter(|path| path.is_file()) {
        let name = library.name(path);
        // A file that cannot be read is reported as a prompt.
        let Ok(source) = files::read_text(path, &name, FILE_BYTES) else { continue };
        let Some(origin) = origin_of(source.text()) else { continue };
        let stale = |message: String| Diagnostic::new(Code::StaleOutput, message).file(&name);
        let command = format!("cuebook convert {} --out … --force", origin.prompt);
        match book.prepare(&origin.prompt, &Context { without_hooks: true, ..Context::default() }) {
            Err(error) if error.kind() == ErrorKind::PromptNotFound => {
                let hint = "delete the file, or restore the prompt";
                findings.push(
                    stale(format!("the file was written from `{}`, which is gone", origin.prompt)).hint(hint),
                );
            }
            // What keeps the source from being read is reported there.
            Err(_) => {}
            Ok(prepared) if closure(&prepared) != origin.source_sha256 => {
                let message = format!("the file is out of date: `{}` has changed since", origin.prompt);
                findings.push(stale(message).hint(Hint::run("write it again", command)));
            }
            Ok(_) if origin.text_now != origin.text_sha256 => {
                let message = format!("the file was written from `{}`, and changed by hand", origin.prompt);
                let hint = Hint::run("make the change in the prompt, and write the file again", command);
                findings.push(stale(message).severity(Severity::Warning).hint(hint));
            }
            Ok(prepared) => {
                let text = &source.text()[origin.text_start..];
                let is_literal = !name.ends_with(".prompt") && *prepared.prompt().dialect != SKILL;
                if let Some(tag) = tag_in(text).filter(|_| is_literal) {
                    let at = origin.text_start + text.find(tag).unwrap_or_default();
                    let message = format!("the file still has a template tag: `{tag}`");
                    let found =
                        Diagnostic::new(Code::LeftoverTag, message).at(source.place(at..at + tag.len()));
                    findings.push(found.hint("its reader sees the tag as text: remove it from the prompt"));
                }
            }
        }
    }
    Ok(findings)
}
