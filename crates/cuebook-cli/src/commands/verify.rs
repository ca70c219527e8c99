//! `cuebook verify`

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::dialect::skill::{SkillFolder, SkillSignature};
use cuebook::error::{did_you_mean, nearest, printable};
use cuebook::items::{Item, ItemId, ItemType, Located, SpaceKind, Spaces};
use cuebook::limits::FILE_BYTES;
use cuebook::trust::{PUBLISHER_FILE, Power, Trust, Verified};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use serde_json::{Value as Json, json};

use super::skills;
use crate::args::{Options, VerifyArgs};
use crate::output::{Outcome, print_findings, print_json, say};
use crate::progress::Progress;

pub fn run(args: &VerifyArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let verify = |item: &Item| match args.accept_older {
        true => trust.accept_older(item),
        false => trust.verify(item),
    };
    match args.what.as_slice() {
        [] => all(&spaces, &trust, &interpreters(options)?, options),
        [path] => {
            let path = Path::new(path);
            let name = path.to_string_lossy();
            if !path.exists() {
                return Err(files::not_there(path, &name).into());
            }
            let verified = match of_space(&spaces, path) {
                Some(located) => verify(&located.read(FILE_BYTES)?)?,
                None => trust.verify_file(path, &name, &files::read_bytes(path, &name, FILE_BYTES)?)?,
            };
            show(&name, &verified, options)
        }
        [kind, id, ..] if kind == "skill" => {
            let book = options.book_unreviewed()?;
            let skill = skills::named(&book, id)?;
            show_skill(&skill, skill.signature(book.library().trust())?, options)
        }
        [kind, id, ..] => {
            let kind = kind_named(kind)?;
            let id = ItemId::new(id)?;
            let located = spaces.find(kind, &id)?.ok_or_else(|| spaces.not_found(kind, &id))?;
            let item = located.read(FILE_BYTES)?;
            let verified = verify(&item)?;
            show(&item.located.name, &verified, options)
        }
    }
}

/// What is known about the signature of a skill. Exit code 1 unless a trusted key signed it.
fn show_skill(skill: &SkillFolder, signature: SkillSignature, options: &Options) -> Outcome {
    let (code, message, hint, key) = match &signature {
        SkillSignature::Trusted(key, owner) => {
            let owner = owner.as_deref().map(|owner| format!(" ({})", printable(owner))).unwrap_or_default();
            if options.json {
                let fingerprint = key.fingerprint();
                print_json(
                    &json!({"status": "verified", "file": skill.shown(), "fingerprint": fingerprint}),
                )?;
            } else {
                say(format_args!("{}: verified, signed by {}{owner}", skill.shown(), key.fingerprint()));
            }
            return Ok(ExitCode::SUCCESS);
        }
        SkillSignature::Unknown(key) => (
            Code::UntrustedKey,
            "the skill is intact, but you do not trust the key that signed it",
            Hint::run(format!("its key is in {}/{PUBLISHER_FILE}", skill.shown()), "cuebook trust add"),
            key.fingerprint().to_owned(),
        ),
        SkillSignature::Unsigned => (
            Code::Unsigned,
            "the skill is not signed",
            Hint::run("if you trust it, sign it", format!("cuebook sign skill {}", skill.name())),
            String::new(),
        ),
    };
    let diagnostic = Diagnostic::new(code, message).file(skill.shown()).hint(hint);
    Err(Error::new(ErrorKind::Integrity, diagnostic).with("fingerprint", key).into())
}

fn kind_named(name: &str) -> Result<ItemType> {
    ItemType::named(name).ok_or_else(|| {
        let near = did_you_mean(&nearest(name, ItemType::ALL.map(ItemType::as_str)));
        let hint = near.unwrap_or_else(|| "write directive, tool, knowledge or skill".to_owned());
        let diagnostic = Diagnostic::new(Code::BadInput, format!("unknown item type `{name}`"));
        Error::new(ErrorKind::Usage, diagnostic.hint(hint))
    })
}

/// The item that a path leads to, if it lies in the project's or in the user's space.
fn of_space(spaces: &Spaces, path: &Path) -> Option<Located> {
    let path = path.canonicalize().ok()?;
    spaces.all().iter().find_map(|space| {
        let folder = space.folder()?.canonicalize().ok()?;
        let below = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        let kind =
            ItemType::ALL.into_iter().find(|kind| below.starts_with(&format!("{}/", kind.folder())))?;
        let file = below.strip_prefix(kind.folder())?.strip_prefix('/')?;
        let (id, extension) = file.rsplit_once('.')?;
        let located = space.locate(kind, &ItemId::new(id).ok()?).ok()??;
        // Another file may be the item of this id.
        (located.extension == extension).then_some(located)
    })
}

fn document(verified: &Verified) -> Json {
    json!({
        "status": "verified",
        "hash": verified.hash,
        "fingerprint": verified.fingerprint,
        "owner": verified.owner,
        "signed_at": verified.signed_at,
        "narrow": verified.narrow,
    })
}

fn show(name: &str, verified: &Verified, options: &Options) -> Outcome {
    if options.json {
        let mut document = document(verified);
        document["file"] = name.into();
        print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let bold = Style::new().bold();
    let owner = verified.owner.as_deref().map(|owner| format!(" ({})", printable(owner))).unwrap_or_default();
    let name = printable(name);
    let mut out = anstream::stdout().lock();
    match verified.fingerprint.is_empty() {
        true => writeln!(out, "{bold}{name}{bold:#}: verified, part of the program")?,
        false => writeln!(out, "{bold}{name}{bold:#}: verified, signed by {}{owner}", verified.fingerprint)?,
    }
    if verified.narrow {
        writeln!(out, "the signature covers only part of the file; your settings allow this")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The programs of the project that its tools ask for, and whether the user granted them. No signature covers what they do.
fn interpreters(options: &Options) -> Result<Vec<(String, bool)>> {
    let book = options.book_unreviewed()?;
    let grants = book.library().grants()?;
    let requests = book.library().requests()?.into_iter();
    let programs = requests.filter(|request| request.power == Power::Interpreter);
    Ok(programs.map(|request| (request.subject.clone(), grants.has(&request))).collect())
}

/// Everything that the project and the user have.
fn all(spaces: &Spaces, trust: &Trust, programs: &[(String, bool)], options: &Options) -> Outcome {
    let mut items = Vec::new();
    for space in spaces.all().iter().filter(|space| space.kind() != SpaceKind::System) {
        for kind in ItemType::ALL {
            items.extend(spaces.walk(kind, space)?);
        }
    }
    let total = items.len();
    let mut progress = Progress::new("verified");
    let (mut documents, mut findings, mut good) = (Vec::new(), Vec::new(), 0);
    for (done, located) in items.into_iter().enumerate() {
        progress.show(done, total);
        let head = json!({"item_type": located.kind.as_str(), "item_id": located.id.as_str(), "space": located.space.as_str()});
        let result = located.read(FILE_BYTES).and_then(|item| trust.verify(&item));
        let body = match &result {
            Ok(verified) => document(verified),
            Err(error) => error.to_json(),
        };
        if options.json {
            let mut one = head;
            if let (Some(one), Json::Object(body)) = (one.as_object_mut(), body) {
                one.extend(body);
            }
            documents.push(one);
        }
        match result {
            Ok(_) => good += 1,
            Err(error) => findings.extend(error.into_diagnostics()),
        }
    }
    progress.show(total, total);
    let failed = total - good;
    if options.json {
        let programs: Vec<Json> =
            programs.iter().map(|(path, granted)| json!({"path": path, "granted": granted})).collect();
        print_json(
            &json!({"items": documents, "interpreters": programs, "verified": good, "failed": failed}),
        )?;
    } else {
        print_findings(&findings);
        if !findings.is_empty() {
            say("");
        }
        for (path, granted) in programs {
            let state = match granted {
                true => "no signature covers it, and you granted it",
                false => {
                    "no signature covers it, and no tool runs with it unless you grant it: cuebook allow"
                }
            };
            say(format_args!("interpreter `{}` of the project: {state}", printable(path)));
        }
        match total {
            0 => say("no items: the project and your user space have none to verify"),
            _ => say(format_args!("{good} of {total} items: signature valid, signer trusted")),
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
