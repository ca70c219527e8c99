//! `cuebook pack install|list|show|approve|sign|remove`

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::error::{printable, printable_lines, shell_word};
use cuebook::files;
use cuebook::library::{FileChange, InstalledPack, PackCode, Proposal};
use cuebook::trust::{Approval, SigningKey};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};
use cuebook_lab::changes::compare;
use cuebook_share::{LOCK_FILE, PackageKind, Packages};
use serde_json::{Value as Json, json};

use crate::args::{Options, PackCommand};
use crate::output::{Outcome, print_findings, print_json, say};
use crate::terminal;

pub fn run(command: &PackCommand, options: &Options) -> Outcome {
    let book = options.book()?;
    match command {
        PackCommand::Install { path, yes, upgrade } => install(&book, path, *yes, *upgrade, options),
        PackCommand::List => list(&book, options),
        PackCommand::Show { pack } => show(&book, pack, options),
        PackCommand::Approve { pack, yes } => approve(&book, pack, *yes, options),
        PackCommand::Sign { path } => sign(&book, path, options),
        PackCommand::Remove { pack, yes } => remove(&book, pack, *yes, options),
    }
}

fn install(book: &Book, path: &Path, yes: bool, upgrade: bool, options: &Options) -> Outcome {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Err(files::not_there(path, &path.to_string_lossy()).into());
    }
    let installation = book.library().stage_pack(path)?;
    let manifest = installation.manifest().clone();
    let proposals = installation.proposals();
    let (files, bytes) = installation.size();
    if !options.json {
        print_findings(installation.findings());
        if !installation.findings().is_empty() {
            say("");
        }
        let plural = if files == 1 { "" } else { "s" };
        say(format_args!(
            "{} {} ({}): {files} file{plural}, {bytes} bytes",
            printable(&manifest.name),
            printable(&manifest.version),
            manifest.kind.as_str()
        ));
        for skipped in installation.skipped() {
            say(format_args!("  left out {}", printable(skipped)));
        }
    }
    // No question about a pack that will be refused because another one is in its place.
    let refused = installation.installed_version().is_some() && !upgrade;
    let held = installation.held()?;
    let changed = installation.changed_replacements()?;
    let questions: Vec<ReplacementQuestion> = match refused {
        true => Vec::new(),
        false => questions(&proposals, &held, &changed),
    };
    let accepted = accept(&questions, yes, options)?;
    let kept: Vec<&Proposal> = held.iter().filter(|one| !changed.contains(one)).collect();
    // Checked before the move: once the pack is in its place, another process may exchange or remove it.
    let needs_approval = matches!(installation.approval()?, Approval::Missing | Approval::Changed { .. });
    installation.commit(upgrade, &accepted)?;
    let conflicts: Vec<&String> =
        manifest.prompts.iter().filter(|id| book.library().choose(id).is_err()).collect();
    if options.json {
        let declined: Vec<Json> = proposals
            .iter()
            .filter(|p| !accepted.contains(p) && !kept.contains(p))
            .map(Proposal::to_json)
            .collect();
        print_json(&json!({
            "pack_id": manifest.pack_id,
            "version": manifest.version,
            "files": files,
            "bytes": bytes,
            "replaced": accepted.iter().chain(kept.iter().copied()).map(Proposal::to_json).collect::<Vec<_>>(),
            "proposed": declined,
            "conflicts": conflicts,
            "needs_approval": needs_approval,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("installed {}", manifest.pack_id));
    for proposal in &accepted {
        say(format_args!("  {} `{}` is now `{}`", proposal.kind, proposal.target, proposal.replacement));
    }
    for proposal in &kept {
        say(format_args!(
            "  {} `{}` is still `{}`, unchanged",
            proposal.kind, proposal.target, proposal.replacement
        ));
    }
    for proposal in proposals.iter().filter(|one| !accepted.contains(one) && !kept.contains(one)) {
        say(format_args!("  not replaced: {} `{}`", proposal.kind, proposal.target));
        if proposal.kind == "prompt" {
            say(format_args!(
                "    to choose it later: cuebook resolve {} {}",
                shell_word(&proposal.target),
                manifest.pack_id
            ));
        }
    }
    for id in conflicts {
        let word = shell_word(id);
        say(format_args!("  `{id}` has several candidates now: cuebook resolve {word} SOURCE"));
    }
    if needs_approval {
        say(format_args!(
            "  its code runs only after you approve it: cuebook pack approve {}",
            manifest.pack_id
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// What the user has to decide about a replacement.
struct ReplacementQuestion<'p> {
    proposal: &'p Proposal,
    /// Whether it was accepted before, in a version with other content.
    changed: bool,
}

/// A question for every replacement that is new, or that was accepted with other content.
fn questions<'p>(
    proposals: &'p [Proposal],
    held: &[Proposal],
    changed: &'p [Proposal],
) -> Vec<ReplacementQuestion<'p>> {
    let again = changed.iter().map(|proposal| ReplacementQuestion { proposal, changed: true });
    let new = proposals.iter().filter(|proposal| !held.contains(proposal));
    again.chain(new.map(|proposal| ReplacementQuestion { proposal, changed: false })).collect()
}

/// The proposals that the user accepts. Without a terminal and without `--yes` none is accepted.
fn accept(questions: &[ReplacementQuestion<'_>], yes: bool, options: &Options) -> Result<Vec<Proposal>> {
    let mut accepted = Vec::new();
    for ReplacementQuestion { proposal, changed } in questions {
        let Proposal { kind, target, replacement } = proposal;
        let text = match changed {
            true => format!(
                "This version changes `{replacement}`, which replaces the {kind} `{target}`. Allow it?"
            ),
            false => {
                format!("This pack replaces the {kind} `{target}` with its own `{replacement}`. Allow it?")
            }
        };
        let ask = !options.json && terminal::is_interactive();
        if yes || (ask && terminal::confirm(&text, "--yes")?) {
            accepted.push((*proposal).clone());
        }
    }
    Ok(accepted)
}

fn summary(pack: &InstalledPack) -> Json {
    let manifest = &pack.manifest;
    json!({
        "pack_id": pack.id,
        "name": manifest.name,
        "version": manifest.version,
        "type": manifest.kind.as_str(),
        "prompts": manifest.prompts,
        "approval": pack.approval.as_str(),
    })
}

fn list(book: &Book, options: &Options) -> Outcome {
    let packs = book.library().packs()?;
    if options.json {
        let rows: Vec<Json> = packs
            .iter()
            .map(|(id, pack)| match pack {
                Ok(pack) => summary(pack),
                Err(error) => json!({"pack_id": id, "problem": error.diagnostic().message}),
            })
            .collect();
        print_json(&Json::Array(rows))?;
        return Ok(ExitCode::SUCCESS);
    }
    if packs.is_empty() {
        say("no packs are installed; `cuebook pack install PATH` installs one");
        return Ok(ExitCode::SUCCESS);
    }
    let bold = Style::new().bold();
    let mut out = anstream::stdout().lock();
    for (id, pack) in packs {
        match pack {
            Ok(pack) => {
                let approval = match &pack.approval {
                    Approval::NotNeeded => String::new(),
                    other => format!("  code: {}", approval_words(other)),
                };
                let count = pack.manifest.prompts.len();
                let plural = if count == 1 { "" } else { "s" };
                writeln!(
                    out,
                    "{bold}{}{bold:#} {}  {count} prompt{plural}{approval}",
                    printable(&id),
                    printable(&pack.manifest.version)
                )?;
            }
            Err(error) => {
                let problem = error.diagnostic().to_string();
                writeln!(out, "{bold}{}{bold:#}  cannot be read: {}", printable(&id), printable(&problem))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn approval_words(approval: &Approval) -> String {
    match approval {
        Approval::NotNeeded => "none".into(),
        Approval::Approved { approved_at } => format!("approved at {approved_at}"),
        Approval::Missing => "not approved".into(),
        Approval::Changed { added, removed, changed } => {
            let list = |word: &str, files: &[String]| {
                (!files.is_empty()).then(|| format!("{word} {}", printable(&files.join(", "))))
            };
            let parts: Vec<String> =
                [list("added", added), list("removed", removed), list("changed", changed)]
                    .into_iter()
                    .flatten()
                    .collect();
            format!("changed since it was approved ({})", parts.join("; "))
        }
    }
}

fn show(book: &Book, id: &str, options: &Options) -> Outcome {
    let pack = book.library().pack(id)?;
    if options.json {
        let mut object = pack.manifest.to_json();
        object["approval"] = json!(pack.approval.as_str());
        object["findings"] = pack.findings.iter().map(Diagnostic::to_json).map(Json::Object).collect();
        print_json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let manifest = &pack.manifest;
    let bold = Style::new().bold();
    let mut out = anstream::stdout().lock();
    let version = printable(&manifest.version);
    writeln!(out, "{bold}{}{bold:#} {version}  {}", printable(&pack.id), manifest.kind.as_str())?;
    if manifest.name != pack.id {
        writeln!(out, "{}", printable(&manifest.name))?;
    }
    if let Some(description) = &manifest.description {
        writeln!(out, "{}", printable_lines(description))?;
    }
    let row = |out: &mut dyn Write, name: &str, values: &[String]| match values {
        [] => Ok(()),
        values => writeln!(out, "{name:10}{}", printable(&values.join(", "))),
    };
    row(&mut out, "prompts", &manifest.prompts)?;
    row(&mut out, "partials", &manifest.partials)?;
    row(&mut out, "tools", &manifest.tools)?;
    row(&mut out, "agents", &manifest.agents)?;
    let providers: Vec<String> =
        manifest.variable_providers.iter().map(|p| format!("{} ({})", p.namespace, p.file)).collect();
    row(&mut out, "provides", &providers)?;
    let replaces = &manifest.replaces;
    let replaced: Vec<String> =
        [("prompt", &replaces.prompts), ("tool", &replaces.tools), ("flow", &replaces.flows)]
            .into_iter()
            .flat_map(|(kind, entries)| entries.iter().map(move |(old, new)| format!("{kind} {old} → {new}")))
            .collect();
    row(&mut out, "replaces", &replaced)?;
    writeln!(out, "code      {}", approval_words(&pack.approval))?;
    drop(out);
    print_findings(pack.findings.iter().chain(&book.library().unused_approvals()));
    Ok(ExitCode::SUCCESS)
}

fn approve(book: &Book, id: &str, yes: bool, options: &Options) -> Outcome {
    let library = book.library();
    let (code, content) = library.pack_code(id)?;
    let approval = library.approval_of(id, &content)?;
    let changes = library.changes_since_approval(id, &content)?;
    if !options.json {
        // Without a terminal this goes to stderr all the same; what cannot be written there is lost, not approved.
        let _ = show_code(&code, &changes, matches!(approval, Approval::Changed { .. }));
        say(format_args!("approval so far: {}", approval_words(&approval)));
    }
    if !matches!(approval, Approval::NotNeeded | Approval::Approved { .. }) {
        let question = format!("Allow the code of `{id}` to run?");
        let agreed = yes || terminal::confirm(&question, "--yes, after reading the code")?;
        if !agreed {
            say("not approved");
            return Ok(ExitCode::FAILURE);
        }
        library.approve_pack(id, &content)?;
    }
    let files: Vec<Json> = code
        .iter()
        .map(|file| json!({"path": file.path, "role": file.role, "permissions": file.permissions.granted()}))
        .collect();
    let now = library.approval_of(id, &content)?;
    if options.json {
        let changes: Vec<Json> = changes
            .iter()
            .map(|change| {
                let FileChange { path, change, before, after } = change;
                json!({"path": path, "change": change, "before": before, "after": after})
            })
            .collect();
        print_json(&json!({"pack_id": id, "approval": now.as_str(), "files": files, "changes": changes}))?;
    } else {
        say(format_args!("{id}: {}", approval_words(&now)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the code that is to be approved: all of it the first time, and what changed since then.
fn show_code(code: &[PackCode], changes: &[FileChange], is_again: bool) -> io::Result<()> {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    let mut out = anstream::stderr();
    for file in code {
        let granted = file.permissions.granted();
        let may = if granted.is_empty() { "nothing special".to_owned() } else { granted.join(", ") };
        let change = changes.iter().find(|change| change.path == file.path);
        let activity = match change {
            Some(change) if change.change == "added" => ", NEW",
            Some(_) => ", CHANGED",
            None if is_again => ", unchanged",
            None => "",
        };
        let (path, may) = (printable(&file.path), printable(&may));
        writeln!(out, "{bold}{path}{bold:#} ({}, may: {may}{activity})", file.role)?;
        match change {
            Some(FileChange { before: Some(before), .. }) => show_difference(&mut out, before, &file.text)?,
            None if is_again => {}
            _ => {
                for line in file.text.lines() {
                    writeln!(out, "  {quiet}│{quiet:#} {}", printable(line))?;
                }
            }
        }
    }
    for change in changes.iter().filter(|change| !code.iter().any(|file| file.path == change.path)) {
        writeln!(out, "{bold}{}{bold:#} ({})", printable(&change.path), change.change.to_uppercase())?;
        match (&change.before, &change.after) {
            (None, None) => writeln!(out, "  {quiet}its text is too large, or was not stored{quiet:#}")?,
            (before, after) => {
                show_difference(&mut out, before.as_deref().unwrap_or(""), after.as_deref().unwrap_or(""))?;
            }
        }
    }
    Ok(())
}

fn show_difference(out: &mut impl Write, before: &str, after: &str) -> io::Result<()> {
    for line in compare(before, after, None) {
        writeln!(out, "  {} {}", line.change.sign(), printable(&line.text))?;
    }
    Ok(())
}

fn sign(book: &Book, folder: &Path, options: &Options) -> Outcome {
    let key = SigningKey::load(book.library().spaces())?;
    let name = cuebook_share::sign(book, folder, &key)?;
    if options.json {
        print_json(&json!({"name": name, "key": key.fingerprint()}))?;
    } else {
        say(format_args!("signed {name} with {}", key.fingerprint()));
    }
    Ok(ExitCode::SUCCESS)
}

fn remove(book: &Book, id: &str, yes: bool, options: &Options) -> Outcome {
    let library = book.library();
    // A wrong name is an error before anybody is asked anything.
    let pack = library.pack(id);
    if let Err(error) = &pack
        && error.code() == cuebook::Code::PackNotFound
    {
        return Err(error.clone().into());
    }
    // The lockfile must not name a pack that is gone.
    if Packages::look(book)?.lock().get(PackageKind::Pack, id).is_some() {
        let message = format!("{LOCK_FILE} has the pack `{id}`");
        let hint = Hint::run("remove it from both", format!("cuebook remove {}", shell_word(id)));
        return Err(
            Error::new(ErrorKind::Pack, Diagnostic::new(Code::PackagesDiffer, message).hint(hint)).into()
        );
    }
    if !yes && !terminal::confirm(&format!("Remove the pack `{id}`?"), "--yes")? {
        say("not removed");
        return Ok(ExitCode::FAILURE);
    }
    library.remove_pack(id)?;
    let prefix = format!("user_data/packs/{id}/");
    let resolutions = library.resolutions()?;
    let dangling: Vec<String> = resolutions
        .ids()
        .filter(|prompt| resolutions.get(prompt).is_some_and(|choice| choice.source.starts_with(&prefix)))
        .map(str::to_owned)
        .collect();
    if options.json {
        print_json(&json!({"pack_id": id, "removed": true, "stale_resolutions": dangling}))?;
    } else {
        say(format_args!("removed {id}"));
        for prompt in dangling {
            let word = shell_word(&prompt);
            say(format_args!(
                "  `{prompt}` came from this pack: choose again with cuebook resolve {word} SOURCE"
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
