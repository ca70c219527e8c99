//! `cuebook keys`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::error::printable;
use cuebook::items::SpaceKind;
use cuebook::trust::{SigningKey, Trust};
use jiff::Timestamp;
use serde_json::json;

use crate::args::{KeysCommand, Options};
use crate::output::{Outcome, print_json, print_text, say};

pub fn run(command: &KeysCommand, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    match command {
        KeysCommand::Generate { owner, replace } => {
            let key = SigningKey::generate()?;
            key.save(&spaces, *replace)?;
            let trusted = trust.add(SpaceKind::User, key.public(), owner, Some(&key), Timestamp::now())?;
            if options.json {
                print_json(&json!({
                    "fingerprint": key.fingerprint(),
                    "owner": trusted.owner,
                    "public_key": key.public().pem(),
                    "trusted": trusted.file,
                }))?;
            } else {
                say(format_args!("your key is {}, trusted in {}", key.fingerprint(), trusted.file));
                say("share its public half: cuebook keys export");
            }
        }
        KeysCommand::List => {
            let key = SigningKey::load(&spaces)?;
            let trusted = trust.trusts(key.fingerprint())?;
            if options.json {
                print_json(&json!([{
                    "fingerprint": key.fingerprint(),
                    "owner": trusted.as_ref().and_then(|key| key.owner.clone()),
                    "trusted": trusted.is_some(),
                    "public_key": key.public().pem(),
                }]))?;
                return Ok(ExitCode::SUCCESS);
            }
            let bold = Style::new().bold();
            let owner = trusted.as_ref().and_then(|key| key.owner.as_deref()).unwrap_or("-");
            let state = if trusted.is_some() { "trusted" } else { "not trusted: cuebook trust add" };
            writeln!(
                anstream::stdout(),
                "{bold}{}{bold:#}  {}  {state}",
                key.fingerprint(),
                printable(owner)
            )?;
        }
        KeysCommand::Export => {
            let key = SigningKey::load(&spaces)?;
            match options.json {
                true => {
                    print_json(&json!({"fingerprint": key.fingerprint(), "public_key": key.public().pem()}))?
                }
                false => print_text(key.public().pem())?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
