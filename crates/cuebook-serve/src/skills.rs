//! Skills of the library over the protocol: the extension `io.modelcontextprotocol/skills`.
//!
//! A skill is `skill://NAME/SKILL.md`, and its other files lie beside it. Only a skill of the library that clients may see as a
//! prompt is served, and only files in its folder: an address is looked up in the list of its files, so it cannot lead out of it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuebook::dialect::skill::{SKILL_FILE, SkillFile, SkillFolder};
use cuebook::error::{Diagnostic, Hint, nearest};
use cuebook::prompt::SKILL;
use cuebook::{Book, Code, Error, ErrorKind, Result};
use rmcp::model::{
    ErrorData, ExtensionCapabilities, JsonObject, PaginatedRequestParams, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::{Value as Json, json};

use crate::faults::{fault, invalid};
use crate::{prompts, uri};

/// The name of the extension.
const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// What the address of a file of a skill begins with.
const SCHEME: &str = "skill://";
/// The addresses of all of them.
const TEMPLATE: &str = "skill://{+path}";

/// What the server says about the extension.
pub(crate) fn capability() -> ExtensionCapabilities {
    ExtensionCapabilities::from_iter([(EXTENSION.to_owned(), JsonObject::new())])
}

/// Whether an address is one of a skill.
pub(crate) fn is_address(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// The addresses of the skills that can be served, in order.
pub(crate) fn all(book: &Book) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for listing in book.list_prompts(None, None)? {
        let is_skill = listing.dialect == Some(&SKILL) && listing.problem.is_none();
        if is_skill && open(book, &listing.id).is_ok() {
            found.push(address(&listing.id, SKILL_FILE));
        }
    }
    found.sort();
    Ok(found)
}

/// A skill as the list of resources shows it.
pub(crate) fn listed(book: &Book, uri: &str) -> Option<Resource> {
    let (skill, _) = find(book, uri).ok()?;
    let resource = Resource::new(uri, skill.name()).with_mime_type("text/markdown");
    Some(resource.with_description(skill.description()))
}

/// The addresses of all files of all skills.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new(TEMPLATE, "skill")
        .with_title("Skills")
        .with_description("A file of a skill: its name, a slash, and the path below its folder.")
}

/// The answer to `skills/list`: a part of the list, cut by the caller.
pub(crate) fn list(
    book: &Book,
    params: Option<Json>,
    page: impl FnOnce(
        Vec<String>,
        Option<PaginatedRequestParams>,
    ) -> std::result::Result<(Vec<String>, Option<String>), ErrorData>,
) -> std::result::Result<Json, ErrorData> {
    let request = match params {
        None => None,
        Some(params) => Some(serde_json::from_value(params).map_err(|_| {
            invalid("invalid parameters of skills/list", "see the protocol's schema of this request")
        })?),
    };
    let (uris, next) = page(all(book).map_err(|error| fault(&error))?, request)?;
    // A skill that changed in between is left out; `skills/get` gives the reason.
    let skills: Vec<Json> = uris.iter().filter_map(|uri| entry(book, uri).ok()).collect();
    let mut result = answer("skills", json!(skills));
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    Ok(result)
}

/// The answer to `skills/get`.
pub(crate) fn get(book: &Book, params: Option<&Json>) -> std::result::Result<Json, ErrorData> {
    let Some(uri) = params.and_then(|params| params["uri"].as_str()) else {
        return Err(invalid(
            "skills/get needs `uri`",
            "name the address of a SKILL.md: skill://NAME/SKILL.md",
        ));
    };
    let entry = entry(book, uri).map_err(|error| {
        let fault = fault(&error);
        ErrorData::invalid_params(fault.message, fault.data)
    })?;
    Ok(answer("skill", entry))
}

/// The file at an address.
pub(crate) fn read(book: &Book, uri: &str) -> Result<ResourceContents> {
    let (skill, path) = find(book, uri)?;
    let Some(bytes) = skill.read(&path)? else {
        let paths = skill.paths()?;
        let near = nearest(&path, paths.iter().map(String::as_str));
        let hint = match near.first() {
            Some(near) => format!("did you mean {}?", address(skill.name(), near)),
            None => "skills/get lists the files of a skill".to_owned(),
        };
        return Err(missing(format!("the skill `{}` has no file {path:?}", skill.name()), hint));
    };
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri),
    };
    Ok(contents.with_mime_type(media_type(&path)))
}

/// What both methods answer: nothing is to be kept without asking again, because files change at any time.
fn answer(key: &str, value: Json) -> Json {
    let mut result = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    result[key] = value;
    result
}

/// The entry of a skill.
fn entry(book: &Book, uri: &str) -> Result<Json> {
    let (skill, path) = find(book, uri)?;
    if path != SKILL_FILE {
        let message = format!("{uri} is a file of a skill, and not its {SKILL_FILE}");
        return Err(missing(message, format!("name {}", address(skill.name(), SKILL_FILE))));
    }
    let resource = |(path, file): (String, SkillFile)| {
        let digest = format!("sha256:{}", file.sha256);
        json!({"uri": address(skill.name(), &path), "digest": digest, "size": file.size})
    };
    let resources: Vec<Json> = skill.files()?.into_iter().map(resource).collect();
    Ok(json!({"uri": uri, "frontmatter": skill.front_matter(), "resources": resources}))
}

/// The skill that an address names, and the path below its folder.
fn find(book: &Book, uri: &str) -> Result<(SkillFolder, String)> {
    let decoded = uri.strip_prefix(SCHEME).and_then(uri::decode);
    let Some((name, path)) = decoded.as_deref().and_then(|text| text.split_once('/')) else {
        let hint = "addresses look like skill://NAME/SKILL.md; skills/list lists all of them";
        return Err(missing(format!("{uri:?} is not the address of a skill"), hint));
    };
    // There is one address for each file.
    if address(name, path) != uri {
        return Err(missing(
            format!("{uri:?} is not the address of a skill"),
            format!("write {}", address(name, path)),
        ));
    }
    Ok((open(book, name)?, path.to_owned()))
}

/// A skill that clients may see.
fn open(book: &Book, id: &str) -> Result<SkillFolder> {
    // An id has one spelling here, and is never a path.
    let known = book.library().resolve_id(id).is_ok_and(|(known, _)| known == id);
    let found = if known { Some(prompts::prepare(book, id)?.found().candidate.clone()) } else { None };
    let limit = book.library().file_limit()?;
    let skill = found.map(|candidate| SkillFolder::of(&candidate, limit)).transpose()?.flatten();
    let Some(skill) = skill else {
        let hint = "skills/list lists all skills".to_owned();
        return Err(missing(format!("no skill is served at {}", address(id, SKILL_FILE)), hint));
    };
    skill.check()?;
    Ok(skill)
}

fn missing(message: String, hint: impl Into<Hint>) -> Error {
    Error::new(ErrorKind::ItemNotFound, Diagnostic::new(Code::ItemNotFound, message).hint(hint.into()))
}

fn address(name: &str, path: &str) -> String {
    format!("{SCHEME}{}/{}", uri::encode(name), uri::encode(path))
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).as_deref() {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some("toml") => "application/toml",
        Some("html" | "htm") => "text/html",
        Some("css") => "text/css",
        Some("csv") => "text/csv",
        Some("xml") => "application/xml",
        Some("js" | "mjs" | "cjs") => "text/javascript",
        Some("py") => "text/x-python",
        Some("sh") => "application/x-sh",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("svg") => "image/svg+xml",
        Some("pdf") => "application/pdf",
        Some("txt") | None => "text/plain",
        Some(_) => "application/octet-stream",
    }
}
