//! `cuebook sync`

use std::io::Write;
use std::process::ExitCode;

use cuebook::error::printable;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint};
use cuebook_share::{LOCK_FILE, LockedPackage, PackageState, Packages};
use serde_json::{Value as Json, json};

use super::{Facts, document};
use crate::args::{Options, SyncArgs};
use crate::output::{Outcome, print_json, say};
use crate::terminal;

pub fn run(args: &SyncArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let looks = args.frozen || args.dry_run;
    let mut packages = if looks { Packages::look(&book)? } else { Packages::open(&book)? };
    let states: Vec<(LockedPackage, PackageState)> =
        packages.states()?.into_iter().map(|(package, state)| (package.clone(), state)).collect();
    let unlocked = packages.unlocked()?;
    if args.frozen {
        frozen(packages.has_lock(), &states, &unlocked)?;
    }
    if !packages.has_lock() && !options.json {
        say(format_args!("the project has no {LOCK_FILE}; `cuebook add SOURCE` adds the first package"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout();
    let mut rows: Vec<Json> = Vec::new();
    for (package, state) in &states {
        let mut facts = None;
        let status = match state {
            PackageState::Missing | PackageState::Changed { .. } if !looks => {
                // Edits of the user are not lost without a question.
                if let PackageState::Changed { added, removed, changed } = state
                    && !args.yes
                {
                    let files = [added.as_slice(), removed, changed].concat().join(", ");
                    let question = format!("`{}` was changed here ({files}). Replace it?", package.name);
                    if !terminal::confirm(&question, "--yes")? {
                        say(format_args!("{} stays as it is", package.name));
                        return Ok(ExitCode::FAILURE);
                    }
                }
                let change = packages.restore(package)?;
                facts = Some(Facts::of(&change)?);
                packages.commit(change, &[])?;
                "restored"
            }
            state => state.as_str(),
        };
        if options.json {
            let mut row = document(package);
            row["status"] = json!(status);
            if let PackageState::Changed { added, removed, changed } = state {
                row["files"] = json!({"added": added, "removed": removed, "changed": changed});
            }
            rows.push(row);
            continue;
        }
        let version =
            package.version.as_deref().map(|version| format!(" {}", printable(version))).unwrap_or_default();
        writeln!(out, "{}{version} ({}): {status}", package.name, package.kind.as_str())?;
        if let Some(facts) = facts {
            facts.print(&book, package);
        }
    }
    if options.json {
        print_json(&json!({"packages": rows, "unlocked": unlocked}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in unlocked {
        let name = printable(&name);
        writeln!(out, "{name} (pack): installed, but not in {LOCK_FILE}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// An error if anything differs.
fn frozen(
    has_lock: bool,
    states: &[(LockedPackage, PackageState)],
    unlocked: &[String],
) -> Result<(), Error> {
    let mut wrong = Vec::new();
    let mut report = |message: String, file: Option<String>, hint: Hint| {
        let diagnostic = Diagnostic::new(Code::PackagesDiffer, message).hint(hint);
        wrong.push(match file {
            Some(file) => diagnostic.file(file),
            None => diagnostic,
        });
    };
    if !has_lock {
        report(
            format!("the project has no {LOCK_FILE}"),
            None,
            Hint::run("add a package", "cuebook add SOURCE"),
        );
    }
    for (package, state) in states {
        let folder = package.kind.folder(&package.name);
        let restore = Hint::run("restore the package", "cuebook sync");
        match state {
            PackageState::Same => {}
            PackageState::Missing => report("the package is not installed".to_owned(), Some(folder), restore),
            PackageState::Changed { added, removed, changed } => {
                let lists =
                    [("is not in cuebook.lock", added), ("is missing", removed), ("was changed", changed)];
                for (what, files) in lists {
                    for file in files {
                        report(format!("the file {what}"), Some(format!("{folder}/{file}")), restore.clone());
                    }
                }
            }
        }
    }
    for name in unlocked {
        let message = format!("the pack is not in {LOCK_FILE}");
        let hint = format!("add it with cuebook add, or remove it: cuebook pack remove {name}");
        report(message, Some(format!("user_data/packs/{name}")), hint.into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::all(ErrorKind::Pack, wrong)) }
}
