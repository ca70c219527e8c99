//! `cuebook sign`

use std::path::Path;
use std::process::ExitCode;

use cuebook::actions::sign::{SignRequest, sign};
use cuebook::items::{ItemId, ItemType, SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use cuebook_run::policy::hooks;
use cuebook_run::provider::ProviderFile;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::args::{Options, SignArgs};
use crate::output::{Outcome, print_json, say};
use crate::progress::Progress;

pub fn run(args: &SignArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let Some(kind) = args.kind.item() else { return config(Path::new(&args.id), &spaces, options) };
    let space = SpaceKind::from(args.space);
    let request = SignRequest {
        item_type: kind.as_str().to_owned(),
        item_id: args.id.clone(),
        source: Some(space.as_str().to_owned()),
    };
    let name = match request.is_pattern() {
        true => String::new(),
        false => must_be_there(&spaces, kind, space, &args.id)?,
    };
    SigningKey::load(&spaces)?;
    let mut progress = Progress::new("signed");
    let answer = sign(&spaces, &trust, &request, Timestamp::now(), &mut |done, of| progress.show(done, of));
    let refused = answer["failed"].as_array().map_or(0, Vec::len);
    let code = if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if answer["status"] == "error" {
        return Err(refusal(kind, &name, &answer).into());
    }
    if options.json {
        print_json(&answer)?;
        return Ok(code);
    }
    match answer["status"].as_str() {
        Some("signed") => {
            say(format_args!("signed {} with {}", name, text(&answer["signature"]["pubkey_fp"])));
            for warning in answer["warnings"].as_array().into_iter().flatten() {
                say(format_args!("warning: {}", text(warning)));
            }
        }
        _ => {
            for one in answer["failed"].as_array().into_iter().flatten() {
                let details: Vec<&str> = one["details"].as_array().into_iter().flatten().map(text).collect();
                let details =
                    if details.is_empty() { String::new() } else { format!(": {}", details.join("; ")) };
                say(format_args!(
                    "not signed: {} {}: {}{details}",
                    kind,
                    text(&one["item"]),
                    text(&one["error"])
                ));
            }
            say(text(&answer["summary"]));
        }
    }
    Ok(code)
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

fn text(json: &Json) -> &str {
    json.as_str().unwrap_or_default()
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
            format!("copy it first: cuebook load {kind} {id} --to project"),
        ),
        space => (
            format!("{kind} {id} is in the {}'s space", space.as_str()),
            format!("sign it there: cuebook sign {kind} {id} --space {}", space.as_str()),
        ),
    };
    Ok(Some(Error::new(ErrorKind::ItemNotFound, Diagnostic::new(Code::ItemNotFound, message).hint(hint))))
}

/// What stands in the way of a signature, one finding each.
fn refusal(kind: ItemType, name: &str, answer: &Json) -> Error {
    let code = match kind {
        ItemType::Directive => Code::BadDirective,
        ItemType::Tool => Code::BadTool,
        ItemType::Knowledge => Code::BadKnowledge,
    };
    let error = text(&answer["error"]);
    // A pattern that nothing fits is no fault of a file.
    if let Some(folder) = answer["searched_in"].as_str() {
        let hint = format!("Cuebook searched {folder}; list all with: cuebook search '' --scope {kind}");
        let diagnostic = Diagnostic::new(Code::ItemNotFound, error).hint(hint);
        return Error::new(ErrorKind::ItemNotFound, diagnostic);
    }
    let found = ["issues", "details"].iter().find_map(|field| answer[field].as_array());
    let messages: Vec<String> = match found {
        Some(found) if !found.is_empty() => {
            found.iter().map(|one| format!("{error}: {}", text(one))).collect()
        }
        _ => vec![error.to_owned()],
    };
    let hint = answer["hint"].as_str().unwrap_or("fix it, then sign the file");
    let in_file = |message| {
        let diagnostic = Diagnostic::new(code, message);
        if name.is_empty() { diagnostic } else { diagnostic.file(name) }
    };
    let mut diagnostics: Vec<Diagnostic> = messages.into_iter().map(in_file).collect();
    // The hint is about all of them, so only the last one shows it.
    if let Some(last) = diagnostics.pop() {
        diagnostics.push(last.hint(hint));
    }
    Error::all(ErrorKind::PromptRead, diagnostics)
}
