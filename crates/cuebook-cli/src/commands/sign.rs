//! `cuebook sign`

use std::process::ExitCode;

use cuebook::items::sign::{SignRequest, sign};
use cuebook::items::{ItemId, ItemType, SpaceKind, Spaces};
use cuebook::trust::{SigningKey, Trust};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use jiff::Timestamp;
use serde_json::Value as Json;

use crate::args::{Options, SignArgs};
use crate::output::{Outcome, print_json, say};
use crate::progress::Progress;

pub fn run(args: &SignArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let kind = ItemType::from(args.kind);
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
    let code = if answer["status"] == "error" || refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if options.json {
        print_json(&answer)?;
        return Ok(code);
    }
    match answer["status"].as_str() {
        Some("signed") => {
            say(format_args!("{} is signed with {}", name, text(&answer["signature"]["pubkey_fp"])));
            for warning in answer["warnings"].as_array().into_iter().flatten() {
                say(format_args!("warning: {}", text(warning)));
            }
        }
        Some("completed") => {
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
        _ => return Err(refusal(kind, &name, &answer).into()),
    }
    Ok(code)
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
        None => Err(spaces.not_found(kind, &id)),
    }
}

/// What stands in the way of a signature, one finding each.
fn refusal(kind: ItemType, name: &str, answer: &Json) -> Error {
    let code = match kind {
        ItemType::Directive => Code::BadDirective,
        ItemType::Tool => Code::BadTool,
        ItemType::Knowledge => Code::BadKnowledge,
    };
    let error = text(&answer["error"]);
    let found = ["issues", "details"].iter().find_map(|field| answer[field].as_array());
    let messages: Vec<String> = match found {
        Some(found) if !found.is_empty() => {
            found.iter().map(|one| format!("{error}: {}", text(one))).collect()
        }
        _ => vec![error.to_owned()],
    };
    let hint = answer["hint"].as_str().unwrap_or("correct it, and sign the file then");
    let diagnostics =
        messages.into_iter().map(|message| Diagnostic::new(code, message).file(name).hint(hint));
    Error::all(ErrorKind::PromptRead, diagnostics.collect())
}
