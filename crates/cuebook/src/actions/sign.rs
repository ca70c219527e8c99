//! Sign: an item is checked, signed with the user's key, and written; or all items that a pattern finds.
//!
//! Only what would work is signed: the file must be readable as what it is, say what its type must say, and lie where it
//! says that it does. A file keeps its permissions, and is written whole or not at all.

#[cfg(test)]
mod tests;
mod validate;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use globset::GlobBuilder;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::load::item_type;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
use crate::files;
use crate::items::{FOLDER, ItemId, ItemType, Located, SpaceKind, Spaces};
use crate::limits::FILE_BYTES;
use crate::trust::{Purpose, SigningKey, Trust, message_with_path, sign_for, signature_of};
pub use validate::{is_directive_name, is_version};

/// Folders that hold the work of others.
const EXCLUDED: [&str; 8] =
    ["__pycache__", "node_modules", "dist", "build", "venv", "site-packages", "target", "egg-info"];

/// Files that only look like tools.
const NOT_TOOLS: [&str; 4] = ["package.json", "package-lock.json", "tsconfig.json", "pyproject.toml"];

/// What is to be signed.
///
/// ```
/// use cuebook::actions::sign::SignRequest;
/// use cuebook::items::ItemType;
///
/// assert!(!SignRequest::new(ItemType::Tool, "desk/order").is_pattern());
/// assert!(SignRequest::new(ItemType::Tool, "desk/*").is_pattern());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignRequest {
    /// The type of the items.
    pub item_type: ItemType,
    /// The id of one, or a pattern with `*` or `?`.
    pub item_id: String,
    /// The space that they are in: the project's or the user's.
    pub space: SpaceKind,
}

impl SignRequest {
    /// Signs one item of the project, or all that a pattern with `*` or `?` matches.
    pub fn new(item_type: ItemType, item_id: impl Into<String>) -> SignRequest {
        SignRequest { item_type, item_id: item_id.into(), space: SpaceKind::Project }
    }

    /// The same in another space.
    pub fn in_space(mut self, space: SpaceKind) -> SignRequest {
        self.space = space;
        self
    }

    /// Whether it is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.item_id.contains(['*', '?'])
    }

    /// Reads a request as `rye_sign` takes it.
    ///
    /// # Errors
    ///
    /// `CB407` for an unknown type or space.
    pub fn from_json(json: &Json) -> Result<SignRequest> {
        let text = |name: &str| json[name].as_str().unwrap_or_default();
        let kind = item_type(text("item_type"))?;
        let space = match json["source"].as_str() {
            None => SpaceKind::Project,
            Some(name) => SpaceKind::named(name).ok_or_else(|| {
                let diagnostic = Diagnostic::new(Code::BadInput, format!("Unknown source: {name}"));
                Error::new(ErrorKind::Usage, diagnostic.hint("use project or user"))
            })?,
        };
        Ok(SignRequest::new(kind, text("item_id")).in_space(space))
    }
}

/// What was signed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signed {
    /// The item with the id of the request.
    Item(SignedItem),
    /// The items that the pattern of the request matches.
    Items(SignedItems),
}

/// An item that was signed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SignedItem {
    /// Its type.
    pub item_type: ItemType,
    /// Its id.
    pub item_id: ItemId,
    /// Its file.
    pub path: PathBuf,
    /// Its space.
    pub space: SpaceKind,
    /// SHA-256 of what was signed, in hexadecimal digits.
    pub hash: String,
    /// The fingerprint of the key.
    pub fingerprint: String,
    /// When it was signed.
    pub signed_at: String,
    /// What to know about it: the key is not trusted, or the signing time was not recorded.
    pub warnings: Vec<String>,
    signature: Json,
}

impl SignedItem {
    /// The answer of `rye_sign`.
    pub fn to_json(&self) -> Json {
        let what = match self.item_type {
            ItemType::Directive => "Directive",
            ItemType::Tool => "Tool",
            ItemType::Knowledge => "Knowledge entry",
        };
        json!({
            "status": "signed",
            "item_id": self.item_id.as_str(),
            "path": self.path.display().to_string(),
            "location": self.space.as_str(),
            "signature": self.signature,
            "warnings": self.warnings,
            "message": format!("{what} validated and signed."),
        })
    }
}

/// The items that a pattern matches.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SignedItems {
    /// Those that were signed.
    pub signed: Vec<ItemId>,
    /// Those that were not, and why.
    pub failed: Vec<(ItemId, Error)>,
    /// What to know about them: the signing times were not recorded.
    pub warnings: Vec<String>,
    /// What the answer says of those that were not signed.
    refused: Vec<Json>,
}

impl SignedItems {
    /// How many items the pattern matches.
    pub fn total(&self) -> usize {
        self.signed.len() + self.failed.len()
    }

    /// The answer of `rye_sign`.
    pub fn to_json(&self) -> Json {
        let signed: Vec<&str> = self.signed.iter().map(ItemId::as_str).collect();
        let more =
            if self.failed.is_empty() { String::new() } else { format!(", {} failed", self.failed.len()) };
        let total = self.total();
        let mut answer = json!({
            "signed": signed,
            "failed": self.refused,
            "total": total,
            "summary": format!("Signed {}/{total} items{more}", signed.len()),
            "status": "completed",
        });
        if !self.warnings.is_empty() {
            answer["warnings"] = json!(self.warnings);
        }
        answer
    }
}

impl Signed {
    /// The answer of `rye_sign`.
    pub fn to_json(&self) -> Json {
        match self {
            Signed::Item(item) => item.to_json(),
            Signed::Items(items) => items.to_json(),
        }
    }

    /// The warnings of one item or of all together.
    pub fn warnings(&self) -> &[String] {
        match self {
            Signed::Item(item) => &item.warnings,
            Signed::Items(items) => &items.warnings,
        }
    }
}

/// Signs one item, or all that a pattern matches. It reports how many are done, and of how many. Items of a pattern that cannot be
/// signed are in [`SignedItems::failed`].
///
/// # Errors
///
/// `CB116` if there is no such item or none matches, `CB227` without a key, and what is wrong with the item.
pub fn sign(
    spaces: &Spaces,
    trust: &Trust,
    request: &SignRequest,
    now: Timestamp,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Signed> {
    attempt(spaces, trust, request, now, progress).map_err(|refused| refused.error)
}

/// The answer of `rye_sign` to the arguments of a call, also if it fails.
pub fn answer(
    spaces: &Spaces,
    trust: &Trust,
    arguments: &Json,
    now: Timestamp,
    progress: &mut dyn FnMut(usize, usize),
) -> Json {
    let request = SignRequest::from_json(arguments).map_err(SignError::new);
    match request.and_then(|request| attempt(spaces, trust, &request, now, progress)) {
        Ok(signed) => signed.to_json(),
        Err(refused) => refused.answer,
    }
}

/// What keeps a tool or a knowledge item from being signed, with the places of syntax errors. A file without any metadata, such as a
/// module that a tool loads, is no item.
#[doc(hidden)]
pub fn findings(located: &Located) -> Vec<Diagnostic> {
    let Some(path) = located.path().filter(|_| !is_excluded(located)) else { return Vec::new() };
    let item = match located.clone().read(FILE_BYTES).and_then(|item| Ok((item.source()?, item))) {
        Ok((source, item)) => validate::has_metadata(located, &source).map(|has| has.then_some(item)),
        Err(error) => Err(error),
    };
    let answer = match item {
        Err(error) => return error.into_diagnostics(),
        Ok(None) => return Vec::new(),
        Ok(Some(item)) => validate::validate(located, &item.bytes).err(),
    };
    let found = answer.map(|answer| SignError::invalid(located, path, answer).error.into_diagnostics());
    found.into_iter().flatten().map(|finding| finding.severity(Severity::Warning)).collect()
}

/// Why nothing was signed: for programs, and as `rye_sign` answers.
struct SignError {
    error: Error,
    answer: Json,
}

impl SignError {
    fn new(error: Error) -> Box<SignError> {
        let answer = json!({"status": "error", "error": error.diagnostic().message});
        Box::new(SignError { error, answer })
    }

    /// The same, and the answer has the error's hint.
    fn with_hint(error: Error) -> Box<SignError> {
        let mut refused = SignError::new(error);
        if let (Some(hint), Json::Object(answer)) = (&refused.error.diagnostic().hint, &mut refused.answer) {
            hint.add_to(answer);
        }
        refused
    }

    fn and(mut self: Box<SignError>, name: &str, value: Json) -> Box<SignError> {
        self.answer[name] = value;
        self
    }

    /// A file that cannot be read, signed or written.
    fn of_file(path: &Path, error: Error) -> Box<SignError> {
        let message = message_with_path(&error);
        let mut refused = SignError::with_hint(error).and("path", path.display().to_string().into());
        refused.answer["error"] = message.into();
        refused
    }

    /// A file that does not say what its type must say. Each issue is a finding.
    fn invalid(located: &Located, path: &Path, mut answer: Json) -> Box<SignError> {
        let code = match located.kind {
            ItemType::Directive => Code::BadDirective,
            ItemType::Tool => Code::BadTool,
            ItemType::Knowledge => Code::BadKnowledge,
        };
        let what = answer["error"].as_str().unwrap_or_default();
        let issues = ["issues", "details"].iter().find_map(|field| answer[field].as_array());
        let mut messages: Vec<String> = issues
            .into_iter()
            .flatten()
            .filter_map(|issue| Some(format!("{what}: {}", issue.as_str()?)))
            .collect();
        if messages.is_empty() {
            messages.push(what.to_owned());
        }
        let hint = answer["hint"].as_str().unwrap_or("fix it, then sign the file");
        let finding = |message| Diagnostic::new(code, message).file(&located.name);
        let mut findings: Vec<Diagnostic> = messages.into_iter().map(finding).collect();
        // The hint is about all of them, so only the last one shows it.
        if let Some(last) = findings.pop() {
            findings.push(last.hint(hint));
        }
        let error = Error::all(ErrorKind::PromptRead, findings);
        answer["status"] = "error".into();
        answer["path"] = path.display().to_string().into();
        Box::new(SignError { error, answer })
    }
}

fn usage(message: &str, hint: impl Into<Hint>) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
}

/// Items that are part of the program.
fn read_only() -> Error {
    let hint = Hint::run("copy it to the project or to your own space first", "cuebook load");
    usage("Items of the system space cannot be signed", hint)
}

fn attempt(
    spaces: &Spaces,
    trust: &Trust,
    request: &SignRequest,
    now: Timestamp,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Signed, Box<SignError>> {
    let kind = request.item_type;
    if request.space == SpaceKind::System {
        return Err(SignError::with_hint(read_only()));
    }
    // A project that is the user's own folder has one space.
    let own = || spaces.space(SpaceKind::Project).filter(|_| spaces.user_folder().is_some());
    let found = spaces.space(request.space).or_else(own).and_then(|space| Some((space, space.folder()?)));
    let Some((space, folder)) = found else {
        return Err(SignError::new(usage("there is no user space: set USER_SPACE", "set it to a folder")));
    };
    let signer = Signer { spaces, trust, folder, now, made: RefCell::default() };
    if request.is_pattern() {
        let mut items = signer.batch(kind, space, &request.item_id, progress)?;
        items.warnings.extend(signer.record(space.kind()));
        return Ok(Signed::Items(items));
    }
    let id = ItemId::new(&request.item_id).map_err(SignError::new)?;
    let Some(located) = space.locate(kind, &id).map_err(SignError::new)? else {
        return Err(missing(spaces, kind, &id));
    };
    let key = SigningKey::load(spaces).map_err(SignError::with_hint)?;
    let mut item = signer.one(&located, &key)?;
    item.warnings.extend(signer.record(space.kind()));
    Ok(Signed::Item(item))
}

/// An item that the space does not have.
fn missing(spaces: &Spaces, kind: ItemType, id: &ItemId) -> Box<SignError> {
    let error = spaces.not_found(kind, id);
    let file = format!("{FOLDER}/{}/{id}.{}", kind.folder(), kind.extensions()[0]);
    let near = error.diagnostic().hint.clone().filter(|hint| hint.starts_with("did you mean"));
    let refused = SignError::new(error).and("hint", format!("Create file at {file}").into());
    match near {
        Some(near) => refused.and("did_you_mean", near.text.into()),
        None => refused,
    }
}

struct Signer<'s> {
    spaces: &'s Spaces,
    trust: &'s Trust,
    folder: &'s Path,
    now: Timestamp,
    /// The signatures that were made, with their times.
    made: RefCell<Vec<(Purpose, String)>>,
}

impl Signer<'_> {
    /// Records the signatures that were made, all at once. One that is not recorded is valid all the same: the warning says so.
    fn record(&self, space: SpaceKind) -> Option<String> {
        let error = self.trust.record_signed(space, &self.made.borrow()).err()?;
        Some(format!("Cuebook could not record the signing time: {}", error.diagnostic().message))
    }

    /// Signs one item.
    fn one(&self, located: &Located, key: &SigningKey) -> Result<SignedItem, Box<SignError>> {
        let Some(path) = located.path() else {
            return Err(SignError::new(read_only()));
        };
        let fail = |error: Error| SignError::of_file(path, error);
        let bytes = files::read_bytes(path, &located.name, FILE_BYTES).map_err(fail)?;
        let said = validate::validate(located, &bytes)
            .map_err(|answer| SignError::invalid(located, path, answer))?;
        let purpose = Purpose::of(located);
        let signed = sign_for(&purpose, located.extension, &bytes, key, self.now).map_err(fail)?;
        self.write(path, &located.name, &bytes, &signed).map_err(fail)?;
        let mut warnings = Vec::new();
        let signature = signature_of(located.extension, &signed);
        let text = |name: &str| signature[name].as_str().unwrap_or_default().to_owned();
        self.made.borrow_mut().push((purpose, text("timestamp")));
        if self.trust.trusts(key.fingerprint()).is_ok_and(|key| key.is_none()) {
            warnings.push(format!(
                "your key {} is not in your trust store: cuebook trust add",
                key.fingerprint()
            ));
        }
        if let (ItemType::Tool, Some(version)) = (located.kind, said.version) {
            self.drop_lockfile(located.id.as_str(), &version);
        }
        Ok(SignedItem {
            item_type: located.kind,
            item_id: located.id.clone(),
            path: path.to_owned(),
            space: located.space,
            hash: text("hash"),
            fingerprint: text("pubkey_fp"),
            signed_at: text("timestamp"),
            warnings,
            signature,
        })
    }

    /// Writes the file with its permissions, unless it changed meanwhile.
    fn write(&self, path: &Path, name: &str, old: &[u8], new: &[u8]) -> Result<()> {
        let io = |error: std::io::Error| files::write_error(name, &error);
        // A link stays one; what it leads to must be of this space.
        let target = path.canonicalize().map_err(io)?;
        let folder = self.folder.canonicalize().map_err(io)?;
        if !target.starts_with(&folder) {
            let error = std::io::Error::other("it is a link that leads out of the space");
            return Err(files::write_error(name, &error));
        }
        let permissions = fs::metadata(&target).map_err(io)?.permissions();
        if files::read_bytes(&target, name, FILE_BYTES)? != old {
            let error = std::io::Error::other("the file changed while Cuebook signed it; try again");
            return Err(files::write_error(name, &error));
        }
        files::write_atomic(&target, name, new)?;
        fs::set_permissions(&target, permissions).map_err(io)
    }

    /// A tool that was signed again is another one than its lockfile pins.
    fn drop_lockfile(&self, id: &str, version: &str) {
        let file = format!("lockfiles/{id}@{version}.lock.json");
        let spaces = [SpaceKind::Project, SpaceKind::User];
        let mut places = spaces.iter().filter_map(|space| self.spaces.space(*space)?.folder());
        let is_plain = !version.contains(['/', '\\']);
        if let Some(path) =
            places.find_map(|folder| Some(folder.join(&file)).filter(|path| is_plain && path.is_file()))
        {
            // One that stays is noticed when the tool runs, and the error says what to do.
            let _ = fs::remove_file(path);
        }
    }

    /// Signs everything that a pattern finds.
    fn batch(
        &self,
        kind: ItemType,
        space: &crate::items::Space,
        pattern: &str,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<SignedItems, Box<SignError>> {
        // A pattern without a folder means items anywhere.
        let whole = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build().map_err(|error| {
            let message = format!("invalid pattern `{pattern}`: {}", error.kind());
            SignError::new(usage(&message, "`*` matches a part of a name, and `**` matches folders"))
        })?;
        let glob = glob.compile_matcher();
        let all = self.spaces.walk(kind, space).map_err(SignError::new)?;
        let found: Vec<Located> =
            all.into_iter().filter(|item| !is_excluded(item) && glob.is_match(item.id.as_str())).collect();
        if found.is_empty() {
            let searched = self.folder.join(kind.folder()).display().to_string();
            let hint = Hint::run(
                format!("the items are in {searched}; list them"),
                format!("cuebook search '' --scope {kind}"),
            );
            let message = format!("No {kind} items match: {pattern}");
            let diagnostic = Diagnostic::new(Code::ItemNotFound, message).hint(hint);
            let error = Error::new(ErrorKind::ItemNotFound, diagnostic);
            return Err(SignError::new(error).and("searched_in", searched.into()));
        }
        let key = SigningKey::load(self.spaces).map_err(SignError::new)?;
        let total = found.len();
        let mut items = SignedItems::default();
        for (done, item) in found.iter().enumerate() {
            progress(done, total);
            match self.one(item, &key) {
                Ok(signed) => items.signed.push(signed.item_id),
                Err(refused) => items.refuse(&item.id, *refused),
            }
        }
        progress(total, total);
        Ok(items)
    }
}

impl SignedItems {
    fn refuse(&mut self, id: &ItemId, SignError { error, mut answer }: SignError) {
        let mut one = json!({"item": id.as_str(), "error": answer["error"].take()});
        let details = ["issues", "details"].iter().find_map(|name| answer[name].as_array().cloned());
        if let Some(mut details) = details {
            details.truncate(2);
            one["details"] = details.into();
        }
        self.refused.push(one);
        self.failed.push((id.clone(), error));
    }
}

fn is_excluded(item: &Located) -> bool {
    let file = format!("{}.{}", item.id.name(), item.extension);
    let mut folders = item.id.category().split('/');
    NOT_TOOLS.contains(&file.as_str()) || folders.any(|folder| EXCLUDED.contains(&folder))
}
