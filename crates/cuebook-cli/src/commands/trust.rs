//! `cuebook trust`

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::printable;
use cuebook::items::{SpaceKind, Spaces};
use cuebook::limits::KEY_BYTES;
use cuebook::trust::{PublicKey, SigningKey, Trust, TrustEntry};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use jiff::Timestamp;
use serde_json::json;

use crate::args::{Options, TrustCommand};
use crate::output::{Outcome, print_json, say};

pub fn run(command: &TrustCommand, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    match command {
        TrustCommand::Add { key, owner, space } => add(&spaces, &trust, key, owner, (*space).into(), options),
        TrustCommand::List => list(&trust, options),
        TrustCommand::Remove { fingerprint, space } => {
            let removed = trust.remove((*space).into(), fingerprint)?;
            match options.json {
                true => print_json(&json!({"removed": removed}))?,
                false => say(format_args!("{removed} is no longer trusted")),
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn add(
    spaces: &Spaces,
    trust: &Trust,
    file: &Path,
    owner: &str,
    space: SpaceKind,
    options: &Options,
) -> Outcome {
    let key = PublicKey::from_pem(&read(file)?).map_err(|error| {
        let diagnostic = error.diagnostic().clone().file(file.to_string_lossy());
        Error::new(error.kind(), diagnostic)
    })?;
    // In a project it counts for others only through a signature that they trust.
    let signer = match space {
        SpaceKind::Project => Some(SigningKey::load(spaces)?),
        _ => SigningKey::load(spaces).ok(),
    };
    let trusted = trust.add(space, &key, owner, signer.as_ref(), Timestamp::now())?;
    match options.json {
        true => print_json(&json!({
            "fingerprint": key.fingerprint(),
            "owner": trusted.owner,
            "file": trusted.file,
            "signed_by": trusted.signed_by,
        }))?,
        false => say(format_args!("{} is trusted: {}", key.fingerprint(), trusted.file)),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<String> {
    let name = file.to_string_lossy();
    if name == "-" {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(KEY_BYTES).read_to_string(&mut text);
        read.map_err(|error| files::io_error("stdin", &error))?;
        return Ok(text);
    }
    if !file.exists() {
        return Err(files::not_there(file, &name));
    }
    let text = files::read_text(file, &name, KEY_BYTES)?.text().to_owned();
    if text.contains("PRIVATE KEY") {
        let diagnostic =
            Diagnostic::new(Code::BadKey, "this is a private key, which only its owner may have")
                .file(name)
                .hint(Hint::run("ask for the public half", "cuebook keys export"));
        return Err(Error::new(ErrorKind::Integrity, diagnostic));
    }
    Ok(text)
}

fn list(trust: &Trust, options: &Options) -> Outcome {
    let entries = trust.list()?;
    if options.json {
        let one = |entry: &TrustEntry| {
            let key = entry.key.as_ref();
            json!({
                "fingerprint": entry.fingerprint,
                "owner": key.ok().and_then(|key| key.owner.clone()),
                "space": entry.space.as_str(),
                "file": entry.file,
                "signed_by": key.ok().and_then(|key| key.signed_by.clone()),
                "trusted": key.is_ok(),
                "problem": key.err().map(|error| error.diagnostic().message.clone()),
            })
        };
        print_json(&entries.iter().map(one).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        say(
            "no trusted keys; `cuebook keys generate` creates one, `cuebook trust add` adds another person's",
        );
    }
    let (bold, quiet, alarm) = (Style::new().bold(), Style::new().dimmed(), AnsiColor::Yellow.on_default());
    let mut out = anstream::stdout().lock();
    for entry in &entries {
        write!(out, "{bold}{}{bold:#}  {:7}  ", printable(&entry.fingerprint), entry.space.as_str())?;
        match &entry.key {
            Ok(key) => {
                let owner = key.owner.as_deref().unwrap_or("-");
                let signed = match key.signed_by.as_deref() {
                    Some(by) if by == entry.fingerprint => " self-signed".to_owned(),
                    Some(by) => format!(" signed by {by}"),
                    None => String::new(),
                };
                writeln!(out, "{}{quiet}{}{quiet:#}", printable(owner), printable(&signed))?;
            }
            Err(error) => {
                writeln!(out, "{alarm}ignored: {}{alarm:#}", printable(&error.diagnostic().message))?
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
