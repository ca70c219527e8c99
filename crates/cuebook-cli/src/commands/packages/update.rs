//! `cuebook update`

use std::process::ExitCode;

use cuebook::library::{Proposal, StagedPackage};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};
use cuebook_share::{Change, LockedPackage, PackageState, Packages, Source};
use serde_json::{Value as Json, json};

use super::effects::Effects;
use super::{Facts, accept_key, document, given, introduce};
use crate::args::{Options, UpdateArgs};
use crate::output::{Outcome, print_json, say};
use crate::terminal;

pub fn run(args: &UpdateArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let source = args.source.as_deref().map(|text| given(text, &book)).transpose()?;
    if (source.is_some() || args.key.is_some()) && args.names.len() != 1 {
        let diagnostic = Diagnostic::new(Code::BadInput, "--source and --key are for one package")
            .hint(Hint::run("name the package", "cuebook update NAME --source SOURCE"));
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    let mut packages = Packages::open(&book)?;
    let named: Vec<LockedPackage> = match args.names.as_slice() {
        [] => packages.lock().packages().cloned().collect(),
        names => names.iter().map(|name| packages.lock().find(name).cloned()).collect::<Result<_>>()?,
    };
    if named.is_empty() && !options.json {
        say("there are no packages; `cuebook add SOURCE` adds one");
    }
    let (mut rows, mut is_declined) = (Vec::new(), false);
    for package in &named {
        let row = one(&mut packages, package, source.as_ref(), args, &book, options)?;
        is_declined |= row["status"] == "declined";
        rows.push(row);
    }
    if options.json {
        print_json(&json!({"packages": rows}))?;
    }
    Ok(if is_declined { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Updates one package, and gives its row.
pub(super) fn one<'b>(
    packages: &mut Packages<'b>,
    package: &LockedPackage,
    source: Option<&Source>,
    args: &UpdateArgs,
    book: &'b Book,
    options: &Options,
) -> Result<Json> {
    let Some(change) = packages.update(package, source)? else {
        if !options.json {
            say(format_args!("{} is up to date", package.name));
        }
        let mut row = document(package);
        row["status"] = json!("same");
        return Ok(row);
    };
    let effects = Effects::of(book, &change)?;
    if !options.json {
        introduce(&change);
        effects.show()?;
    }
    let mut row = document(&change.package);
    row["before"] = document(package);
    row["prompts"] = effects.to_json();
    row["files"] = files(package, &change);
    if args.dry_run {
        row["status"] = json!("available");
        return Ok(row);
    }
    accept_key(&change, args.key.as_deref(), options)?;
    let replacing = replacing(&change)?;
    if !options.json {
        for proposal in &replacing {
            let Proposal { kind, target, replacement } = proposal;
            say(format_args!("  it changes `{replacement}`, which replaces the {kind} `{target}`"));
        }
    }
    let question = format!("Update `{}`?", package.name);
    if !args.yes && (options.json || !terminal::confirm(&question, "--yes")?) {
        say(format_args!("{} stays as it is", package.name));
        row["status"] = json!("declined");
        return Ok(row);
    }
    let (locked, facts) = (change.package.clone(), Facts::of(&change)?);
    packages.commit(change, &replacing)?;
    row["status"] = json!("updated");
    row["needs_approval"] = json!(facts.needs_approval);
    if !options.json {
        say(format_args!("updated the {} {}", locked.kind.as_str(), locked.name));
        facts.print(book, &locked);
    }
    Ok(row)
}

/// The replacements that the user accepted before, and that the new version changes.
fn replacing(change: &Change<'_>) -> Result<Vec<Proposal>> {
    match &change.staged {
        StagedPackage::Pack(pack) => pack.changed_replacements(),
        StagedPackage::Folder(_) => Ok(Vec::new()),
    }
}

/// The files that differ from the locked ones.
fn files(package: &LockedPackage, change: &Change<'_>) -> Json {
    match PackageState::between(&package.files, &change.package.files) {
        PackageState::Changed { added, removed, changed } => {
            json!({"added": added, "removed": removed, "changed": changed})
        }
        _ => json!({"added": [], "removed": [], "changed": []}),
    }
}
