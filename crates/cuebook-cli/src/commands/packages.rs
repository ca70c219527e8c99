//! `cuebook add|pull|push|sync|update|remove`

mod effects;
mod registry;
mod sync;
mod update;

use std::process::ExitCode;

use cuebook::error::{printable, shell_word};
use cuebook::library::StagedPackage;
use cuebook::trust::Approval;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result, Severity};
use cuebook_share::{
    Change, KeyState, LOCK_FILE, LockedPackage, PackageKind, PackageState, Packages, Source,
};
use serde_json::{Value as Json, json};

pub use registry::{pull, push};
pub use sync::run as sync;
pub use update::run as update;

use crate::args::{AddArgs, Options, RemoveArgs};
use crate::output::{Outcome, print_findings, print_json, say};
use crate::terminal;

pub fn add(args: &AddArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let source = given(&args.source, &book)?;
    let mut packages = Packages::open(&book)?;
    let change = packages.add(&source, None)?;
    install(&mut packages, change, args.key.as_deref(), &book, options)
}

/// Moves a new package to its place.
fn install<'b>(
    packages: &mut Packages<'b>,
    change: Change<'b>,
    key: Option<&str>,
    book: &'b Book,
    options: &Options,
) -> Outcome {
    if !options.json {
        introduce(&change);
    }
    accept_key(&change, key, options)?;
    let (package, facts) = (change.package.clone(), Facts::of(&change)?);
    let notes = change.notes.clone();
    packages.commit(change, &[])?;
    if options.json {
        let mut object = document(&package);
        object["needs_approval"] = json!(facts.needs_approval);
        object["proposed"] = json!(facts.proposed);
        object["notes"] = json!(notes);
        print_json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("added the {} {} to {LOCK_FILE}", package.kind.as_str(), package.name));
    facts.print(book, &package);
    Ok(ExitCode::SUCCESS)
}

pub fn remove(args: &RemoveArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let mut packages = Packages::open(&book)?;
    let package = packages.lock().find(&args.name)?.clone();
    let (kind, name) = (package.kind.as_str(), &package.name);
    if !args.yes && !terminal::confirm(&format!("Remove the {kind} `{name}`?"), "--yes")? {
        say("not removed");
        return Ok(ExitCode::FAILURE);
    }
    packages.remove(&package)?;
    let library = book.library();
    let prefix = format!("{}/", package.kind.folder(name));
    let resolutions = library.resolutions()?;
    let came = |id: &&str| {
        resolutions.get(id).is_some_and(|choice| format!("{}/", choice.source).starts_with(&prefix))
    };
    let stale: Vec<&str> = resolutions.ids().filter(came).collect();
    if options.json {
        let mut object = document(&package);
        object["removed"] = json!(true);
        object["stale_resolutions"] = json!(stale);
        print_json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format_args!("removed the {kind} {name}"));
    for id in stale {
        let word = shell_word(id);
        say(format_args!("  `{id}` came from it: choose again with cuebook resolve {word} SOURCE"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A source of the command line.
fn given(text: &str, book: &Book) -> Result<Source> {
    let absolute = |path: &std::path::Path| {
        std::path::absolute(path).map_err(|error| cuebook::files::io_error(&path.to_string_lossy(), &error))
    };
    Source::given(text, &absolute(std::path::Path::new("."))?, &absolute(book.library().root())?)
}

/// Says what a package is, and what is odd about it.
fn introduce(change: &Change<'_>) {
    let LockedPackage { name, kind, version, commit, .. } = &change.package;
    let (findings, skipped, (files, bytes)) = match &change.staged {
        StagedPackage::Pack(pack) => (pack.findings(), pack.skipped(), pack.size()),
        StagedPackage::Folder(folder) => (&[][..], folder.skipped(), folder.size()),
    };
    print_findings(findings);
    if !findings.is_empty() {
        say("");
    }
    let version = version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    let what = if matches!(change.package.source, Source::Oci(_)) { "digest" } else { "commit" };
    let commit =
        commit.as_deref().map(|hash| format!(", {what} {}", &hash[..12.min(hash.len())])).unwrap_or_default();
    let plural = if files == 1 { "" } else { "s" };
    say(format_args!(
        "{}{} ({}): {files} file{plural}, {bytes} bytes{commit}",
        printable(name),
        printable(&version),
        kind.as_str()
    ));
    for path in skipped {
        say(format_args!("  left out {}", printable(path)));
    }
    if let StagedPackage::Folder(folder) = &change.staged {
        for path in folder.executables() {
            say(format_args!("  not executable here: {} (name its interpreter to run it)", printable(path)));
        }
    }
    for note in &change.notes {
        say(format_args!("  {}", printable(note)));
    }
}

/// Packages whose files differ from the lockfile, as warnings; only the one that a prompt came from, if its place is given.
pub fn differences(book: &Book, source: Option<&str>) -> Result<Vec<Diagnostic>> {
    let packages = Packages::look(book)?;
    let mut found = Vec::new();
    for package in packages.lock().packages() {
        let folder = package.kind.folder(&package.name);
        if source.is_some_and(|source| !format!("{source}/").starts_with(&format!("{folder}/"))) {
            continue;
        }
        let message = match packages.state(package)? {
            PackageState::Same => continue,
            PackageState::Missing => format!("the package is in {LOCK_FILE}, but is not installed"),
            PackageState::Changed { added, removed, changed } => {
                let files = [added, removed, changed].concat();
                format!("the package differs from {LOCK_FILE}: {}", files.join(", "))
            }
        };
        let hint =
            format!("restore it: cuebook sync; or take its new version: cuebook update {}", package.name);
        let diagnostic = Diagnostic::new(Code::PackagesDiffer, message).severity(Severity::Warning);
        found.push(diagnostic.file(folder).hint(hint));
    }
    Ok(found)
}

/// Makes sure that the user accepts a publisher's key that is new.
fn accept_key(change: &Change<'_>, accepted: Option<&str>, options: &Options) -> Result<()> {
    let name = &change.package.name;
    let KeyState::New(key) = &change.key else {
        if let (KeyState::Known(key), false) = (&change.key, options.json) {
            say(format_args!("  signed with the key {}", key.fingerprint()));
        }
        return Ok(());
    };
    let fingerprint = key.fingerprint();
    if accepted == Some(fingerprint) {
        return Ok(());
    }
    let refused = |message: String| {
        let hint = format!("if this is the fingerprint of the publisher, accept it with --key {fingerprint}");
        let diagnostic = Diagnostic::new(Code::PublisherKey, message).hint(hint);
        Err(Error::new(ErrorKind::Integrity, diagnostic).with("fingerprint", fingerprint))
    };
    if let Some(other) = accepted {
        return refused(format!("`{name}` is signed with the key {fingerprint}, not with {other}"));
    }
    let question = format!(
        "`{name}` is signed with the key {fingerprint}, which you do not know. Accept it for this package?"
    );
    let asked = !options.json && terminal::is_interactive();
    if asked && terminal::confirm(&question, "--key")? {
        return Ok(());
    }
    refused(format!("`{name}` is signed with the key {fingerprint}, which you have not accepted"))
}

/// What the user may have to decide after a change.
struct Facts {
    needs_approval: bool,
    /// The replacements that a pack proposes: kind and target.
    proposed: Vec<(&'static str, String)>,
    prompts: Vec<String>,
}

impl Facts {
    /// Taken before the package is moved: once it is in its place, another process may exchange or remove it.
    fn of(change: &Change<'_>) -> Result<Facts> {
        let StagedPackage::Pack(pack) = &change.staged else {
            return Ok(Facts {
                needs_approval: false,
                proposed: Vec::new(),
                prompts: vec![change.package.name.clone()],
            });
        };
        let held = pack.held()?;
        let open = pack.proposals().into_iter().filter(|proposal| !held.contains(proposal));
        Ok(Facts {
            needs_approval: matches!(pack.approval()?, Approval::Missing | Approval::Changed { .. }),
            proposed: open.map(|proposal| (proposal.kind, proposal.target)).collect(),
            prompts: pack.manifest().prompts.clone(),
        })
    }

    fn print(&self, book: &Book, package: &LockedPackage) {
        for (kind, target) in &self.proposed {
            say(format_args!("  not replaced: {kind} `{target}`"));
            if *kind == "prompt" {
                let word = shell_word(target);
                say(format_args!("    to choose it later: cuebook resolve {word} {}", package.name));
            }
        }
        for id in self.prompts.iter().filter(|id| book.library().choose(id).is_err()) {
            let word = shell_word(id);
            say(format_args!("  `{id}` has several candidates now: cuebook resolve {word} SOURCE"));
        }
        if self.needs_approval && package.kind == PackageKind::Pack {
            let name = &package.name;
            say(format_args!("  its code runs only after you approve it: cuebook pack approve {name}"));
        }
    }
}

/// A package as scripts see it.
fn document(package: &LockedPackage) -> Json {
    json!({
        "name": package.name,
        "type": package.kind.as_str(),
        "version": package.version,
        "source": package.source.to_string(),
        "commit": package.commit,
        "key": package.key,
        "digest": package.files.digest(),
    })
}
