//! Sign: an item is checked, signed with the user's key, and written; or all items that a pattern finds.
//!
//! Only what would work is signed: the file must be readable as what it is, say what its type must say, and lie where it
//! says that it does. A file keeps its permissions, and is written whole or not at all.

#[cfg(test)]
mod tests;
mod validate;

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use globset::GlobBuilder;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::load::{MOST, item_type};
use crate::error::Result;
use crate::files;
use crate::items::{FOLDER, ItemId, ItemType, Located, SpaceKind, Spaces};
use crate::trust::{Purpose, SigningKey, Trust, sign_for, signature_of, told_with_path};
pub use validate::{is_directive_name, is_version};

/// Folders that hold the work of others.
const EXCLUDED: [&str; 8] =
    ["__pycache__", "node_modules", "dist", "build", "venv", "site-packages", "target", "egg-info"];

/// Files that only look like tools.
const NOT_TOOLS: [&str; 4] = ["package.json", "package-lock.json", "tsconfig.json", "pyproject.toml"];

/// What is to be signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignRequest {
    /// The type of the items.
    pub item_type: String,
    /// The id of one, or a pattern with `*` or `?`.
    pub item_id: String,
    /// The space that they are in: `project` or `user`.
    pub source: Option<String>,
}

impl SignRequest {
    /// Reads a request as `rye_sign` takes it.
    pub fn from_json(json: &Json) -> SignRequest {
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        SignRequest {
            item_type: text("item_type").unwrap_or_default(),
            item_id: text("item_id").unwrap_or_default(),
            source: text("source"),
        }
    }

    /// Whether it is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.item_id.contains(['*', '?'])
    }
}

/// Signs one item or many, and answers as `rye_sign` does. Of many it tells how many are done, and of how many.
pub fn sign(
    spaces: &Spaces,
    trust: &Trust,
    request: &SignRequest,
    now: Timestamp,
    progress: &mut dyn FnMut(usize, usize),
) -> Json {
    let kind = match item_type(&request.item_type) {
        Ok(kind) => kind,
        Err(error) => return failed(error.diagnostic().message.clone()),
    };
    let space = match request.source.as_deref() {
        None | Some("project") => SpaceKind::Project,
        Some("user") => SpaceKind::User,
        Some("system") => {
            let mut answer = failed("Items of the system space cannot be signed".to_owned());
            answer["hint"] = "copy it to the project or to your own space first: cuebook load".into();
            return answer;
        }
        Some(other) => return failed(format!("Unknown source: {other}")),
    };
    // A project that is the user's own folder has one space.
    let own = || spaces.space(SpaceKind::Project).filter(|_| spaces.user_folder().is_some());
    let found = spaces.space(space).or_else(own).and_then(|space| Some((space, space.folder()?)));
    let Some((space, folder)) = found else {
        return failed("there is no user space: set USER_SPACE".to_owned());
    };
    let signer = Signer { spaces, trust, folder, now, made: RefCell::default() };
    if request.is_pattern() {
        let mut answer = signer.batch(kind, space, &request.item_id, progress);
        signer.record(space.kind(), &mut answer);
        return answer;
    }
    let id = match ItemId::new(&request.item_id) {
        Ok(id) => id,
        Err(error) => return failed(error.diagnostic().message.clone()),
    };
    let located = match space.locate(kind, &id) {
        Ok(Some(located)) => located,
        Ok(None) => {
            let missing = spaces.not_found(kind, &id);
            let file = format!("{FOLDER}/{}/{id}.{}", kind.folder(), kind.extensions()[0]);
            let mut answer = failed(missing.diagnostic().message.clone());
            answer["hint"] = format!("Create file at {file}").into();
            let near = missing.diagnostic().hint.as_deref().filter(|hint| hint.starts_with("did you mean"));
            if let Some(near) = near {
                answer["did_you_mean"] = near.into();
            }
            return answer;
        }
        Err(error) => return failed(error.diagnostic().message.clone()),
    };
    match SigningKey::load(spaces) {
        Ok(key) => {
            let mut answer = signer.one(&located, &key);
            signer.record(space.kind(), &mut answer);
            answer
        }
        Err(error) => {
            let mut answer = failed(error.diagnostic().message.clone());
            answer["hint"] = error.diagnostic().hint.clone().into();
            answer
        }
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
    /// Records the signatures that were made, all at once. One that is not recorded is valid all the same.
    fn record(&self, space: SpaceKind, answer: &mut Json) {
        if let Err(error) = self.trust.record_signed(space, &self.made.borrow()) {
            let warning =
                format!("Cuebook could not record the signing time: {}", error.diagnostic().message);
            match answer["warnings"].as_array_mut() {
                Some(warnings) => warnings.push(warning.into()),
                None => answer["warnings"] = json!([warning]),
            }
        }
    }

    /// Signs one item and says how it went.
    fn one(&self, located: &Located, key: &SigningKey) -> Json {
        let Some(path) = located.path() else {
            return failed("Items of the system space cannot be signed".into());
        };
        let shown = path.display().to_string();
        let refused = |mut answer: Json| {
            answer["status"] = "error".into();
            answer["path"] = shown.clone().into();
            answer
        };
        let told = |error: &crate::Error| {
            let mut answer = json!({"status": "error", "error": told_with_path(error)});
            if let Some(hint) = &error.diagnostic().hint {
                answer["hint"] = hint.clone().into();
            }
            refused(answer)
        };
        let bytes = match files::read_bytes(path, &located.name, MOST) {
            Ok(bytes) => bytes,
            Err(error) => return told(&error),
        };
        let said = match validate::validate(located, &bytes) {
            Ok(said) => said,
            Err(refusal) => return refused(refusal),
        };
        let purpose = Purpose::of(located);
        let signed = match sign_for(&purpose, located.extension, &bytes, key, self.now) {
            Ok(signed) => signed,
            Err(error) => return told(&error),
        };
        if let Err(error) = self.write(path, &located.name, &bytes, &signed) {
            return told(&error);
        }
        let mut warnings = Vec::new();
        let signature = signature_of(located.extension, &signed);
        let signed_at = signature["timestamp"].as_str().unwrap_or_default().to_owned();
        self.made.borrow_mut().push((purpose, signed_at));
        if self.trust.trusts(key.fingerprint()).is_ok_and(|key| key.is_none()) {
            warnings.push(format!(
                "your key {} is not in your trust store: cuebook trust add",
                key.fingerprint()
            ));
        }
        if let (ItemType::Tool, Some(version)) = (located.kind, said.version) {
            self.drop_lockfile(located.id.as_str(), &version);
        }
        let what = match located.kind {
            ItemType::Directive => "Directive",
            ItemType::Tool => "Tool",
            ItemType::Knowledge => "Knowledge entry",
        };
        json!({
            "status": "signed",
            "item_id": located.id.as_str(),
            "path": shown,
            "location": located.space.as_str(),
            "signature": signature,
            "warnings": warnings,
            "message": format!("{what} validated and signed."),
        })
    }

    /// Writes the file with its permissions, unless somebody changed it meanwhile.
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
        if files::read_bytes(&target, name, MOST)? != old {
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
    ) -> Json {
        // A pattern without a folder means items anywhere.
        let whole = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let glob = match GlobBuilder::new(&whole).literal_separator(true).build() {
            Ok(glob) => glob.compile_matcher(),
            Err(error) => return failed(format!("invalid pattern `{pattern}`: {}", error.kind())),
        };
        let all = match self.spaces.walk(kind, space) {
            Ok(all) => all,
            Err(error) => return failed(error.diagnostic().message.clone()),
        };
        let found: Vec<Located> =
            all.into_iter().filter(|item| !is_excluded(item) && glob.is_match(item.id.as_str())).collect();
        if found.is_empty() {
            let mut answer = failed(format!("No {kind} items match: {pattern}"));
            answer["searched_in"] = self.folder.join(kind.folder()).display().to_string().into();
            return answer;
        }
        let key = match SigningKey::load(self.spaces) {
            Ok(key) => key,
            Err(error) => return failed(error.diagnostic().message.clone()),
        };
        let total = found.len();
        let (mut signed, mut refused) = (Vec::new(), Vec::new());
        for (done, item) in found.iter().enumerate() {
            progress(done, total);
            let mut answer = self.one(item, &key);
            if answer["status"] == "signed" {
                signed.push(item.id.as_str().to_owned());
                continue;
            }
            let mut one = json!({"item": item.id.as_str(), "error": answer["error"].take()});
            let details = ["issues", "details"].iter().find_map(|name| answer[name].as_array().cloned());
            if let Some(mut details) = details {
                details.truncate(2);
                one["details"] = details.into();
            }
            refused.push(one);
        }
        progress(total, total);
        let more = if refused.is_empty() { String::new() } else { format!(", {} failed", refused.len()) };
        let summary = format!("Signed {}/{total} items{more}", signed.len());
        json!({"signed": signed, "failed": refused, "total": total, "summary": summary, "status": "completed"})
    }
}

fn is_excluded(item: &Located) -> bool {
    let file = format!("{}.{}", item.id.name(), item.extension);
    let mut folders = item.id.category().split('/');
    NOT_TOOLS.contains(&file.as_str()) || folders.any(|folder| EXCLUDED.contains(&folder))
}

fn failed(message: String) -> Json {
    json!({"status": "error", "error": message})
}
