//! `cuebook pull|push`

use std::process::ExitCode;

use cuebook::error::shell_word;
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use cuebook_lab::convert::LangfusePrompt;
use cuebook_share::{
    Langfuse, LangfuseSource, LangfuseVersion, LockedPackage, PackageKind, PackageLock, Packages, Source,
    is_label,
};
use serde_json::json;

use super::{given, install, update};
use crate::args::{Options, PullArgs, PushArgs, UpdateArgs};
use crate::output::{Outcome, print_json, say};

pub fn pull(args: &PullArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let source = given(&args.source, &book)?;
    let Source::Langfuse(langfuse) = &source else {
        let message = format!("the source `{}` is not a prompt of a registry", args.source);
        let hint = format!("write langfuse:NAME@LABEL; for a pack or a skill: cuebook add {}", args.source);
        let diagnostic = Diagnostic::new(Code::BadPackageSource, message).hint(hint);
        return Err(Error::new(ErrorKind::Pack, diagnostic).into());
    };
    let mut packages = Packages::open(&book)?;
    let Some(package) = pulled(packages.lock(), &langfuse.name, args.id.as_deref()).cloned() else {
        let change = packages.add(&source, args.id.as_deref())?;
        if args.dry_run {
            say(format_args!("{} would be new", change.package.name));
            return Ok(ExitCode::SUCCESS);
        }
        return install(&mut packages, change, None, &book, options);
    };
    let (names, yes, dry_run) = (vec![package.name.clone()], args.yes, args.dry_run);
    let asked = UpdateArgs { names, source: None, dry_run, yes, key: None };
    let row = update::one(&mut packages, &package, Some(&source), &asked, &book, options)?;
    if options.json {
        print_json(&row)?;
    }
    Ok(if row["status"] == "declined" { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The package that a prompt of Langfuse was pulled as.
fn pulled<'l>(lock: &'l PackageLock, name: &str, id: Option<&str>) -> Option<&'l LockedPackage> {
    lock.packages().filter(|package| package.kind == PackageKind::Prompt).find(|package| {
        let is_it = matches!(&package.source, Source::Langfuse(source) if source.name == name);
        is_it && id.is_none_or(|id| id == package.name)
    })
}

pub fn push(args: &PushArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let name = LangfuseSource::name_of(&args.target)?;
    if let Some(label) = args.labels.iter().find(|label| !is_label(label)) {
        let message = format!("`{label}` is not a label of Langfuse");
        let hint = "a label has at most 36 characters: a-z, 0-9, `_`, `-` and `.`";
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)).into());
    }
    let prompt = LangfusePrompt::of(&book, &args.prompt, &name)?;
    if args.dry_run {
        print_json(&prompt.to_json(&args.labels))?;
        return Ok(ExitCode::SUCCESS);
    }
    let version = Langfuse::from_environment()?.push(&prompt, &args.labels)?;
    if options.json {
        print_json(&json!({"name": name, "version": version, "labels": args.labels}))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("pushed `{}` to langfuse:{name} as version {version}", args.prompt));
    let packages = Packages::look(&book)?;
    if let Some(package) = pulled(packages.lock(), &name, None) {
        let Source::Langfuse(source) = &package.source else { return Ok(ExitCode::SUCCESS) };
        let is_labelled =
            matches!(&source.version, LangfuseVersion::Label(label) if args.labels.contains(label));
        let from = if is_labelled { source.to_string() } else { format!("langfuse:{name}@{version}") };
        let (id, from) = (shell_word(&package.name), shell_word(&from));
        say(format_args!("  to record it in cuebook.lock: cuebook update {id} --source {from}"));
    }
    Ok(ExitCode::SUCCESS)
}
