//! `cuebook sign`

use std::path::Path;
use std::process::ExitCode;

use cuebook::actions::sign::{SignRequest, Signed, sign};
use cuebook::dialect::skill::SkillFolder;
use cuebook::items::{ItemId, ItemType, SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use cuebook_run::policy::hooks;
use cuebook_run::provider::ProviderFile;
use jiff::Timestamp;
use serde_json::json;

use super::skills;
use crate::args::{Options, SignArgs, Signable};
use crate::output::{Outcome, print_json, say};
use crate::progress::Progress;

pub fn run(args: &SignArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let kind = match (args.kind.item(), args.kind) {
        (Some(kind), _) => kind,
        (None, Signable::Skill) => return sign_skills(&args.id, &spaces, options),
        (None, _) => return config(Path::new(&args.id), &spaces, options),
    };
    let space = SpaceKind::from(args.space);
    let request = SignRequest::new(kind, &args.id).in_space(space);
    let name = match request.is_pattern() {
        true => String::new(),
        false => must_be_there(&spaces, kind, space, &args.id)?,
    };
    SigningKey::load(&spaces)?;
    let mut progress = Progress::new("signed");
    let signed = sign(&spaces, &trust, &request, Timestamp::now(), &mut |done, of| progress.show(done, of))?;
    let failed = matches!(&signed, Signed::Items(items) if !items.failed.is_empty());
    match &signed {
        signed if options.json => print_json(&signed.to_json())?,
        Signed::Item(item) => say(format_args!("signed {name} with {}", item.fingerprint)),
        Signed::Items(items) => {
            for (id, error) in &items.failed {
                let said: Vec<&str> =
                    error.diagnostics().iter().map(|found| found.message.as_str()).collect();
                say(format_args!("not signed: {kind} {id}: {}", said.join("; ")));
            }
            let more = match items.failed.len() {
                0 => String::new(),
                count => format!(", {count} failed"),
            };
            say(format_args!("Signed {}/{} items{more}", items.signed.len(), items.total()));
        }
        _ => {}
    }
    for warning in signed.warnings().iter().filter(|_| !options.json) {
        say(format_args!("warning: {warning}"));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Signs skills of the project and the user, each with all its files.
fn sign_skills(id: &str, spaces: &Spaces, options: &Options) -> Outcome {
    let book = options.book()?;
    let key = SigningKey::load(spaces)?;
    let found = if id == "*" { skills::own(&book)? } else { vec![skills::named(&book, id)?] };
    for skill in &found {
        skill.sign(&key)?;
    }
    let fingerprint = key.public().fingerprint();
    let names: Vec<&str> = found.iter().map(SkillFolder::shown).collect();
    match options.json {
        true => print_json(&json!({"status": "signed", "skills": names, "fingerprint": fingerprint}))?,
        false => names.iter().for_each(|name| say(format_args!("signed {name} with {fingerprint}"))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Signs a file that says how threads run: of a provider, or of hooks. Like items, only what would work is signed.
fn config(path: &Path, spaces: &Spaces, options: &Options) -> Outcome {
    let name = path.display().to_string();
    if !path.is_file() {
        return Err(files::not_there(path, &name).into());
    }
    let key = SigningKey::load(spaces)?;
    let bytes = files::read_bytes(path, &name, 1 << 20)?;
    let source = files::source_from_bytes(bytes.clone(), &name)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let real = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let purpose = if real.parent().is_some_and(|folder| folder.ends_with(".ai/config/providers")) {
        ProviderFile::read(&source, &stem)?;
        Purpose::config(&format!("providers/{}", real.file_name().unwrap_or_default().display()))
    } else if real.ends_with(".ai/config/agent/hooks.yaml") {
        hooks::of_file(&source, hooks::Layer::Project)?;
        Purpose::config("agent/hooks.yaml")
    } else {
        let message = format!("{name} is not a provider file or a hooks file");
        let hint = "sign .ai/config/providers/NAME.yaml or .ai/config/agent/hooks.yaml";
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)).into());
    };
    let signed = sign_for(&purpose, "yaml", &bytes, &key, Timestamp::now())?;
    files::write_atomic(path, &name, &signed)?;
    let fingerprint = key.public().fingerprint();
    match options.json {
        true => {
            print_json(&json!({"status": "signed", "path": name, "signature": {"pubkey_fp": fingerprint}}))?
        }
        false => say(format_args!("signed {name} with {fingerprint}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the item's file, or the error for an id that nothing in this space has.
fn must_be_there(spaces: &Spaces, kind: ItemType, space: SpaceKind, id: &str) -> Result<String> {
    let id = ItemId::new(id)?;
    let space = spaces.space(space).or_else(|| spaces.space(SpaceKind::Project));
    match space.map(|space| space.locate(kind, &id)).transpose()?.flatten() {
        Some(located) => Ok(located.name),
        None => Err(elsewhere(spaces, kind, &id)?.unwrap_or_else(|| spaces.not_found(kind, &id))),
    }
}

/// The error for an id that another space has than the one whose items are to be signed.
fn elsewhere(spaces: &Spaces, kind: ItemType, id: &ItemId) -> Result<Option<Error>> {
    let Some(located) = spaces.find(kind, id)? else { return Ok(None) };
    let (message, hint) = match located.space {
        SpaceKind::System => (
            format!("{kind} {id} is in the system space, which is read-only"),
            Hint::run("copy it first", format!("cuebook load {kind} {id} --to project")),
        ),
        space => (
            format!("{kind} {id} is in the {}'s space", space.as_str()),
            Hint::run("sign it there", format!("cuebook sign {kind} {id} --space {}", space.as_str())),
        ),
    };
    Ok(Some(Error::new(ErrorKind::ItemNotFound, Diagnostic::new(Code::ItemNotFound, message).hint(hint))))
}
