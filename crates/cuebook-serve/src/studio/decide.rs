//! Decisions that the page asks for: conflicts, packs and grants. Each names the content that the user saw, and content that has
//! changed since then is refused.

use std::collections::BTreeSet;
use std::path::Path;

use cuebook::error::ErrorKind;
use cuebook::library::{FileChange, PROVIDER, PackCode, Proposal};
use cuebook::sha256::hex;
use cuebook::trust::{Granted, Request};
use cuebook::{Book, Code, Context, Diagnostic, Error, Result, Variables};
use cuebook_lab::service::with_placeholders;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{invalid, text};

/// The candidates for an id, each with what it renders.
pub(super) fn candidates(book: &Book, arguments: &Json) -> Result<Json> {
    let id = text(arguments, "id")?;
    let candidates = book.list_candidates(id)?;
    let described = candidates.iter().map(|candidate| {
        let mut described = candidate.to_json();
        match rendered(book, &candidate.source) {
            Ok(text) => described["text"] = Json::from(text),
            Err(error) => described["error"] = error.to_json()["error"].take(),
        }
        described
    });
    Ok(json!({"id": id, "candidates": described.collect::<Vec<_>>()}))
}

/// What a candidate renders without hooks, with placeholders for its variables.
fn rendered(book: &Book, source: &str) -> Result<String> {
    let context = book.complete(&Context { without_hooks: true, ..Context::default() })?;
    let prepared = book.prepare_path(&book.library().root().join(Path::new(source)), &context)?;
    let (values, _) = with_placeholders(&prepared, &Variables::new(), &context);
    Ok(prepared.render(&values, &context)?.text().to_owned())
}

/// Records a choice between candidates.
pub(super) fn resolve(book: &Book, arguments: &Json) -> Result<Json> {
    let resolution = book.set_resolution(text(arguments, "id")?, text(arguments, "source")?)?;
    Ok(json!({"source": resolution.source}))
}

/// What the project requests, and what was granted.
pub(super) fn requests(book: &Book) -> Result<Json> {
    let grants = book.library().grants()?;
    let requests = book.library().requests()?;
    let described = requests.iter().map(|request| {
        let state = match grants.state(request) {
            Granted::Yes => "granted",
            Granted::Changed => "changed",
            Granted::No => "new",
        };
        json!({"power": request.power.as_str(), "subject": request.subject, "shown": request.shown, "state": state})
    });
    Ok(json!({"requests": described.collect::<Vec<_>>(), "grants": grants.list().collect::<Vec<_>>()}))
}

/// Grants a request as it was shown.
pub(super) fn grant(book: &Book, arguments: &Json) -> Result<Json> {
    let (power, subject, shown) =
        (text(arguments, "power")?, text(arguments, "subject")?, text(arguments, "shown")?);
    let is_shown = |request: &Request| {
        request.power.as_str() == power && request.subject == subject && request.shown == shown
    };
    let Some(request) = book.library().requests()?.into_iter().find(is_shown) else {
        return Err(changed_since(subject));
    };
    book.library().grants()?.allow(&[request], Timestamp::now())?;
    requests(book)
}

/// Takes a grant back.
pub(super) fn revoke(book: &Book, arguments: &Json) -> Result<Json> {
    book.library().grants()?.revoke(Some(text(arguments, "subject")?))?;
    requests(book)
}

/// The installed packs.
pub(super) fn packs(book: &Book) -> Result<Json> {
    let packs = book.library().packs()?;
    Ok(packs
        .iter()
        .map(|(id, pack)| match pack {
            Err(error) => json!({"pack_id": id, "problem": error.diagnostic().message}),
            Ok(pack) => json!({
                "pack_id": id,
                "name": pack.manifest.name,
                "version": pack.manifest.version,
                "description": pack.manifest.description,
                "prompts": pack.manifest.prompts,
                "replaces": pack.manifest.to_json()["replaces"],
                "approval": pack.approval.as_str(),
            }),
        })
        .collect())
}

/// The code of a pack: all of it, and what changed since it was approved.
pub(super) fn code(book: &Book, arguments: &Json) -> Result<Json> {
    let id = text(arguments, "id")?;
    let (code, content) = book.library().pack_code(id)?;
    let changes = book.library().changes_since_approval(id, &content)?;
    let files = code.iter().map(|file| {
        json!({"path": file.path, "role": file.role, "permissions": file.permissions.granted(), "text": file.text})
    });
    let changes: Vec<Json> = changes
        .iter()
        .map(|FileChange { path, change, before, after }| {
            json!({"path": path, "change": change, "before": before, "after": after})
        })
        .collect();
    Ok(json!({
        "pack_id": id,
        "approval": book.library().approval_of(id, &content)?.as_str(),
        "files": files.collect::<Vec<_>>(),
        "changes": changes,
        "digest": digest(&code),
    }))
}

/// Approves the code of a pack as it was shown.
pub(super) fn approve(book: &Book, arguments: &Json) -> Result<Json> {
    let id = text(arguments, "id")?;
    let (shown, content) = book.library().pack_code(id)?;
    if digest(&shown) != text(arguments, "digest")? {
        return Err(changed_since(id));
    }
    book.library().approve_pack(id, &content)?;
    code(book, arguments)
}

/// Shows a pack in a folder or an archive of this machine, or installs it as it was shown. Of its replacements, those that the user
/// named are accepted.
pub(super) fn install(book: &Book, arguments: &Json) -> Result<Json> {
    let path = Path::new(text(arguments, "path")?);
    if !path.is_absolute() {
        return Err(invalid("the path of a pack is absolute here, as in /home/ada/coding_pro"));
    }
    let installation = book.library().stage_pack(path)?;
    let proposals = installation.proposals();
    let (held, changed) = (installation.held()?, installation.changed_replacements()?);
    let open = proposals.iter().filter(|one| !held.contains(one) || changed.contains(one));
    let open: Vec<Json> = open
        .map(|one| {
            let mut proposal = one.to_json();
            proposal["again"] = changed.contains(one).into();
            proposal
        })
        .collect();
    let (files, bytes) = installation.size();
    let mut shown = json!({
        "pack_id": installation.manifest().pack_id,
        "manifest": installation.manifest().to_json(),
        "installed": installation.installed_version(),
        "files": files,
        "bytes": bytes,
        "skipped": installation.skipped(),
        "proposals": open,
        "findings": installation.findings().iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
    });
    let digest = hex(&Sha256::digest(shown.to_string()));
    let Some(seen) = arguments["digest"].as_str() else {
        shown["digest"] = digest.into();
        return Ok(shown);
    };
    if seen != digest {
        return Err(changed_since(&installation.manifest().pack_id));
    }
    let is_accepted = |one: &&Proposal| {
        let asked = |given: &Json| given["kind"] == one.kind && given["target"] == one.target.as_str();
        arguments["accept"].as_array().into_iter().flatten().any(asked)
    };
    let accepted: Vec<Proposal> = proposals.iter().filter(is_accepted).cloned().collect();
    let upgrade = installation.installed_version().is_some();
    installation.commit(upgrade, &accepted)?;
    packs(book)
}

/// Providers that several packs offer for one namespace, each with its source.
pub(super) fn providers(book: &Book) -> Result<Json> {
    let packs = book.library().packs()?;
    let manifests = packs.iter().filter_map(|(_, pack)| pack.as_ref().ok()).map(|pack| &pack.manifest);
    let names: BTreeSet<String> =
        manifests.flat_map(|one| &one.variable_providers).map(|one| one.namespace.clone()).collect();
    let mut open = Vec::new();
    for name in names {
        let sources = book.library().provider_sources(&name)?;
        if sources.len() > 1 {
            let id = format!("{PROVIDER}{name}");
            let chosen = book.library().resolutions()?.get(&id).map(|choice| choice.source);
            let sources: Vec<Json> =
                sources.iter().map(|(pack, source)| json!({"pack_id": pack, "source": source})).collect();
            open.push(json!({"id": id, "sources": sources, "chosen": chosen}));
        }
    }
    Ok(Json::from(open))
}

fn digest(code: &[PackCode]) -> String {
    let mut hash = Sha256::new();
    for file in code {
        for part in [file.path.as_str(), file.role, &file.permissions.granted().join(","), &file.text] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
    }
    hex(&hash.finalize())
}

fn changed_since(what: &str) -> Error {
    let message = format!("`{what}` has changed since it was shown");
    let hint = "look at it again, then decide";
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::GrantNeeded, message).hint(hint))
}
