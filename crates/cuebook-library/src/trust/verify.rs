//! Verification: whether a trusted key signed an item, as this item and no other, and whether a newer version was seen.
//!
//! What was verified once is remembered with its bytes and with the files of the trust store that vouched for it, so that
//! asking again costs a comparison and a look at those files; whatever changes in either is seen.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::declared::{PlaceMatch, declared};
use super::hashed;
use super::key::{PublicKey, SigningKey};
use super::line::{SignatureLine, Split, Style};
use super::purpose::Purpose;
use super::seen::SeenItems;
use super::settings::NarrowSignatures;
use super::sign::style;
use super::store::{Found, Stores, TrustEntry, TrustedKey};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, shell_word};
use crate::files::Stamp;
use crate::items::{Item, ItemId, ItemType, SpaceKind, Spaces, Verifier};
use crate::sha256::{Sha256, hex};
use crate::source::Source;

/// Bytes of verified items that are remembered at most.
const MAX_REMEMBERED: usize = 64 << 20;

/// What is known of an item that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// SHA-256 of the file without its signature line, in hexadecimal digits. If the signature is narrow, of what it
    /// covers.
    pub hash: String,
    /// The key that signed it; empty for an item that is trusted because it is part of the program.
    pub fingerprint: String,
    /// When it was signed, by the signer's clock.
    pub signed_at: String,
    /// Whose key it is, if the trust store says so.
    pub owner: Option<String>,
    /// Whether the signature covers only a part of the file, which the user's settings allow.
    pub narrow: bool,
    /// What the signature is for, if it says so: then it covers the signing time too.
    pub purpose: Option<Purpose>,
    /// Whether no version of this item that was signed as late was recorded: [`Trust::record`] records it.
    pub is_new: bool,
}

/// Verifies the items of a project.
#[derive(Debug)]
pub struct Trust {
    stores: Stores,
    memo: Mutex<Memo>,
}

#[derive(Debug, Default)]
struct Memo {
    items: HashMap<PathBuf, CachedVerification>,
    keys: HashMap<String, (TrustedKey, Dependencies)>,
    /// Records of signing times, by their files.
    seen: HashMap<PathBuf, (Option<Stamp>, Arc<SeenItems>)>,
    bytes: usize,
}

type Dependencies = Vec<(PathBuf, Option<Stamp>)>;

#[derive(Debug)]
struct CachedVerification {
    bytes: Vec<u8>,
    verified: Verified,
    depends: Dependencies,
}

/// What is to be verified: a file, and what is known of where it lies.
struct Subject<'i> {
    bytes: &'i [u8],
    /// The name of the file as people see it.
    name: &'i str,
    extension: &'i str,
    kind: Option<ItemType>,
    id: Option<&'i ItemId>,
    path: Option<&'i Path>,
    /// What its signature must be for; none if any purpose will do.
    purpose: Option<Purpose>,
    /// The `.ai` folder whose record of signing times counts.
    folder: Option<PathBuf>,
    /// Whether only the program's own keys count.
    system: bool,
}

impl Trust {
    /// What these spaces trust. Nothing is read before it is needed.
    pub fn new(spaces: &Spaces) -> Trust {
        Trust { stores: Stores::new(spaces), memo: Mutex::default() }
    }

    /// Verifies an item.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Integrity`] with the codes `CB220` to `CB226`, `CB237` or `CB238`, or `CB228` if the trust store itself cannot be used.
    pub fn verify(&self, item: &Item) -> Result<Verified> {
        let located = &item.located;
        let subject = Subject {
            bytes: &item.bytes,
            name: &located.name,
            extension: located.extension,
            kind: Some(located.kind),
            id: Some(&located.id),
            path: located.path(),
            purpose: Some(Purpose::of(located)),
            folder: self.stores.folder_of(located.space),
            system: located.space == SpaceKind::System,
        };
        let place = located.path().unwrap_or_else(|| Path::new(&located.name));
        if let Some(known) = self.remembered(place, &item.bytes) {
            return Ok(known);
        }
        let (verified, depends) = match subject.system && !Stores::has_system_keys() {
            // It came with the program, and changing it means changing the program.
            true => {
                let verified = Verified {
                    hash: whole_hash(&subject),
                    fingerprint: String::new(),
                    signed_at: String::new(),
                    owner: Some("cuebook".to_owned()),
                    narrow: false,
                    purpose: None,
                    is_new: false,
                };
                (verified, Dependencies::new())
            }
            false => self.examine(&subject)?,
        };
        self.remember(place, &item.bytes, &verified, depends);
        Ok(verified)
    }

    /// Verifies a settings file of a project, by its path below `.ai/config`: its signature must be for this file.
    pub fn verify_config(&self, below: &str, name: &str, bytes: &[u8]) -> Result<Verified> {
        let subject = Subject {
            bytes,
            name,
            extension: below.rsplit_once('.').map_or("", |(_, extension)| extension),
            kind: None,
            id: None,
            path: None,
            purpose: Some(Purpose::config(below)),
            folder: None,
            system: false,
        };
        self.examine(&subject).map(|(verified, _)| verified)
    }

    /// Verifies a file that lies in no space: its content and its signature, not its location. What it is is taken from
    /// its extension, and if that says nothing from how it begins.
    pub fn verify_file(&self, path: &Path, name: &str, bytes: &[u8]) -> Result<Verified> {
        let given = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let known = given == "json" || Style::of(given).is_some();
        let guessed = match bytes {
            [b'<', ..] => "md",
            [b'/', ..] => "js",
            _ => "yaml",
        };
        let extension = if known { given } else { guessed };
        let kind = match extension {
            "md" if memchr::memmem::find(bytes, b"<directive").is_some() => ItemType::Directive,
            "md" => ItemType::Knowledge,
            _ => ItemType::Tool,
        };
        let subject = Subject {
            bytes,
            name,
            extension,
            kind: Some(kind),
            id: None,
            path: Some(path),
            purpose: None,
            folder: None,
            system: false,
        };
        self.examine(&subject).map(|(verified, _)| verified)
    }

    /// Records that versions of items were used: from now on older ones of them are refused. Items that are no news cost
    /// nothing.
    pub fn record(&self, space: SpaceKind, items: &[&Verified]) -> Result<()> {
        let news: Vec<(Purpose, String)> =
            items.iter().filter(|item| item.is_new).filter_map(|item| timed(item)).collect();
        match news.is_empty() {
            true => Ok(()),
            false => self.change(space, |seen| seen.store(&news)),
        }
    }

    /// Verifies an item and takes it although a newer version was seen: the user wants this one.
    pub fn accept_older(&self, item: &Item) -> Result<Verified> {
        match self.verify(item) {
            // The age is looked at last, so everything else about the item is right.
            Err(error) if error.code() == Code::OlderVersion => {}
            result => return result,
        }
        self.change(item.located.space, |seen| seen.forget(&Purpose::of(&item.located)))?;
        let verified = self.verify(item)?;
        self.record(item.located.space, &[&verified])?;
        Ok(verified)
    }

    /// Records versions that the user signed: they count even if the clock of an earlier signer was ahead.
    #[doc(hidden)]
    pub fn record_signed(&self, space: SpaceKind, items: &[(Purpose, String)]) -> Result<()> {
        match items.is_empty() {
            true => Ok(()),
            false => self.change(space, |seen| seen.replace(items)),
        }
    }

    fn change(&self, space: SpaceKind, change: impl FnOnce(&mut SeenItems) -> Result<()>) -> Result<()> {
        match (self.stores.user(), self.stores.folder_of(space)) {
            (Some(user), Some(folder)) => change(&mut SeenItems::read(user, &folder)?),
            _ => Ok(()),
        }
    }

    /// Every file of every trust store, and whether it counts.
    pub fn list(&self) -> Result<Vec<TrustEntry>> {
        self.stores.list()
    }

    /// Whether the user trusts a key.
    pub fn trusts(&self, fingerprint: &str) -> Result<Option<TrustedKey>> {
        self.stores.find(fingerprint).map(|found| found.key)
    }

    /// Adds a key to the store of a user or of a project, signed with the given key if that is trusted itself: a signature
    /// of a stranger would make the file worth nothing. In a project it needs one, because nothing else makes it count.
    pub fn add(
        &self,
        space: SpaceKind,
        key: &PublicKey,
        owner: &str,
        signer: Option<&SigningKey>,
        now: jiff::Timestamp,
    ) -> Result<TrustedKey> {
        let counts = |signer: &&SigningKey| {
            let own = signer.fingerprint() == key.fingerprint() && space == SpaceKind::User;
            own || self.stores.find(signer.fingerprint()).is_ok_and(|found| found.key.is_some())
        };
        let counting = signer.filter(counts);
        if space == SpaceKind::Project && counting.is_none() {
            let message = "Cuebook uses a key in a project only if a key that you trust signed it";
            let hint = Hint::run("trust your own key first", "cuebook keys export | cuebook trust add -");
            return Err(Error::new(ErrorKind::Integrity, Diagnostic::new(Code::BadKey, message).hint(hint)));
        }
        self.stores.add(space, key, owner, counting, now)
    }

    /// Takes a key out of a store, by its fingerprint or the beginning of it, and gives the fingerprint.
    pub fn remove(&self, space: SpaceKind, fingerprint: &str) -> Result<String> {
        self.stores.remove(space, fingerprint)
    }

    fn examine(&self, subject: &Subject<'_>) -> Result<(Verified, Dependencies)> {
        if !cfg!(feature = "items") {
            return Err(Error::missing_feature(ErrorKind::Integrity, "check signatures", "items"));
        }
        let style = style(subject.extension).map_err(|error| {
            let hint = error.diagnostic().hint.clone();
            let diagnostic = Diagnostic::new(Code::Unsigned, format!("Unsigned item: {}", subject.name));
            subject.error(diagnostic.hint_opt(hint))
        })?;
        let split = Split::of(subject.bytes, style).map_err(|malformed| {
            let message = format!("invalid signature: {}", malformed.what);
            let text = String::from_utf8_lossy(subject.bytes).into_owned();
            let source = Source::verbatim(subject.name, text);
            let range = malformed.range.start..malformed.range.end.min(malformed.range.start + 40);
            let diagnostic = Diagnostic::new(Code::BadSignature, message).at(source.place(range));
            subject.error(diagnostic.hint(malformed.hint))
        })?;
        let Some(line) = &split.signature else {
            let diagnostic = Diagnostic::new(Code::Unsigned, format!("Unsigned item: {}", subject.name));
            let hint = format!("if you trust it, sign it: {}", subject.sign_command());
            return Err(subject.error(diagnostic.hint(hint)));
        };
        let mut found = Found::default();
        let narrow = self.check_hash(subject, &split, line, &mut found)?;
        let key = self.key(subject, line, &mut found)?;
        if !line.is_made_by(&key.key) {
            let message = format!("Ed25519 signature verification failed: {}", subject.name);
            let hint = format!(
                "the key of {}, which the line names, did not make this signature: review the file before you \
                     use it",
                key.owner.as_deref().unwrap_or(&line.fingerprint)
            );
            let diagnostic = Diagnostic::new(Code::ForgedSignature, message).hint(hint);
            return Err(subject.error(diagnostic).with("fingerprint", &line.fingerprint));
        }
        subject.check_purpose(line, narrow)?;
        let is_new = self.check_age(subject, line, &mut found)?;
        let verified = Verified {
            hash: line.hash.clone(),
            fingerprint: line.fingerprint.clone(),
            signed_at: line.signed_at.clone(),
            owner: key.owner,
            narrow,
            purpose: line.purpose.clone(),
            is_new,
        };
        Ok((verified, found.depends))
    }

    /// What was seen of the items of a folder. It is read again only if its file changed, so that verifying many items reads
    /// it once.
    fn seen(&self, user: &Path, folder: &Path, file: &Path) -> Result<Arc<SeenItems>> {
        let stamp = Stamp::of(file);
        if let Some((earlier, seen)) = self.memo().seen.get(file)
            && Stamp::proves_unchanged(&stamp, earlier)
        {
            return Ok(seen.clone());
        }
        let seen = Arc::new(SeenItems::read(user, folder)?);
        self.memo().seen.insert(file.to_owned(), (stamp, seen.clone()));
        Ok(seen)
    }

    /// Refuses a version of an item if a newer one was seen. Says whether this one is newer than all that were recorded.
    fn check_age(&self, subject: &Subject<'_>, line: &SignatureLine, found: &mut Found) -> Result<bool> {
        let (Some(user), Some(folder), Some(purpose)) =
            (self.stores.user(), &subject.folder, &subject.purpose)
        else {
            return Ok(false);
        };
        let file = SeenItems::file(user, folder);
        super::store::note(found, &file);
        let seen = self.seen(user, folder, &file)?;
        let Some(newest) = seen.newest(purpose) else { return Ok(line.purpose.is_some()) };
        // A line of Rye's has a time that anybody can change, so it never counts as the newer one.
        if line.purpose.is_some() && *line.signed_at >= *newest {
            return Ok(*line.signed_at > *newest);
        }
        let message = format!("{} is older than a version that you used before", subject.name);
        let hint = Hint::run(
            format!("get the version signed at {newest}, or accept this one"),
            format!("{} --accept-older", subject.verify_command()),
        );
        let diagnostic = Diagnostic::new(Code::OlderVersion, message).hint(hint);
        Err(subject.error(diagnostic).with("signed_at", &line.signed_at).with("newest", newest))
    }

    /// Whether the content is what was signed. Says whether the signature is a narrow one, which the user allows.
    fn check_hash(
        &self,
        subject: &Subject<'_>,
        split: &Split<'_>,
        line: &SignatureLine,
        found: &mut Found,
    ) -> Result<bool> {
        let hash = split.hash();
        if hash == line.hash {
            return Ok(false);
        }
        let content = split.content();
        if subject.kind.and_then(|kind| hashed::narrow(kind, &content)).as_ref() == Some(&line.hash) {
            if self.stores.settings(found)?.narrow_signatures == NarrowSignatures::Allow {
                return Ok(true);
            }
            let message = format!("the signature of {} covers only a part of it", subject.name);
            let hint = Hint::run("review the file, then sign it", subject.sign_command())
                .or(Hint::run("or accept such signatures", "cuebook help CB226"));
            let diagnostic = Diagnostic::new(Code::NarrowSignature, message).hint(hint);
            return Err(subject.error(diagnostic).with("fingerprint", &line.fingerprint));
        }
        let message = format!(
            "Integrity failed: {} (expected {}…, got {}…)",
            subject.name,
            &line.hash[..16],
            &hash[..16]
        );
        let hint = match hashed::with_plain_line_ends(&content) {
            Some(plain) if plain == line.hash => {
                "only its line endings changed, from \\n to \\r\\n: change them back".to_owned()
            }
            _ => format!("if you made the change, sign it again: {}", subject.sign_command()),
        };
        let diagnostic = Diagnostic::new(Code::ContentChanged, message).hint(hint);
        Err(subject.error(diagnostic).with("expected", &line.hash).with("actual", hash))
    }

    /// The key that a signature names, if it is trusted.
    fn key(&self, subject: &Subject<'_>, line: &SignatureLine, found: &mut Found) -> Result<TrustedKey> {
        let problem = if subject.system {
            if let Some(key) = self.stores.find_system(&line.fingerprint)? {
                return Ok(key);
            }
            None
        } else {
            if let Some((key, depends)) = self.known_key(&line.fingerprint) {
                found.depends.extend(depends);
                return Ok(key);
            }
            let mut other = self.stores.find(&line.fingerprint)?;
            if let Some(key) = other.key {
                let known = (key.clone(), other.depends.clone());
                self.memo().keys.insert(line.fingerprint.clone(), known);
                found.depends.append(&mut other.depends);
                return Ok(key);
            }
            other.problem
        };
        let message = format!("Untrusted key {} for {}", line.fingerprint, subject.name);
        let hint = match &problem {
            Some(problem) => {
                let diagnostic = problem.diagnostic();
                let file = diagnostic.file_name().unwrap_or_default();
                format!(
                    "the content is unchanged since it was signed; Cuebook ignores the key in {file}: {}",
                    diagnostic.message
                )
                .into()
            }
            None => Hint::from("the content is unchanged since it was signed").or(Hint::run(
                "if you know the owner of the key",
                "cuebook trust add KEY.pem",
            )
            .for_programs("if you know the owner of the key, trust it")),
        };
        let diagnostic = Diagnostic::new(Code::UntrustedKey, message).hint(hint);
        Err(subject.error(diagnostic).with("fingerprint", &line.fingerprint).with("intact", true))
    }

    fn memo(&self) -> std::sync::MutexGuard<'_, Memo> {
        // What is remembered is whole at every moment, also if another thread panicked.
        self.memo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_key(&self, fingerprint: &str) -> Option<(TrustedKey, Dependencies)> {
        let known = self.memo().keys.get(fingerprint).cloned()?;
        is_fresh(&known.1).then_some(known)
    }

    fn remembered(&self, path: &Path, bytes: &[u8]) -> Option<Verified> {
        let memo = self.memo();
        let known = memo.items.get(path).filter(|known| known.bytes == bytes)?;
        is_fresh(&known.depends).then(|| known.verified.clone())
    }

    /// The files of the trust store that the verification of a remembered item depends on.
    #[doc(hidden)]
    pub fn trust_files(&self, item: &Item) -> Option<Vec<PathBuf>> {
        let place = item.located.path()?;
        let memo = self.memo();
        let known = memo.items.get(place).filter(|known| known.bytes == item.bytes)?;
        Some(known.depends.iter().map(|(path, _)| path.clone()).collect())
    }

    fn remember(&self, path: &Path, bytes: &[u8], verified: &Verified, depends: Dependencies) {
        let mut memo = self.memo();
        if memo.bytes + bytes.len() > MAX_REMEMBERED {
            memo.items.clear();
            memo.bytes = 0;
        }
        let new = CachedVerification { bytes: bytes.to_vec(), verified: verified.clone(), depends };
        memo.bytes += bytes.len();
        if let Some(old) = memo.items.insert(path.to_owned(), new) {
            memo.bytes -= old.bytes.len();
        }
    }
}

fn is_fresh(depends: &Dependencies) -> bool {
    depends.iter().all(|(path, stamp)| Stamp::holds(path, stamp))
}

fn whole_hash(subject: &Subject<'_>) -> String {
    let split = style(subject.extension).ok().and_then(|style| Split::of(subject.bytes, style).ok());
    split.map_or_else(|| hex(&Sha256::digest(subject.bytes)), |split| split.hash())
}

impl Subject<'_> {
    /// An error that says which item it is about, for scripts.
    fn error(&self, diagnostic: Diagnostic) -> Error {
        // The message names the file, so the report need not.
        let mut error = Error::new(ErrorKind::Integrity, diagnostic).with("file", self.name);
        if let (Some(kind), Some(id)) = (self.kind, self.id) {
            error = error.with("item_type", kind.as_str()).with("item_id", id.as_str());
        }
        if let Some(path) = self.path {
            error = error.with("path", path.display().to_string());
        }
        error
    }

    fn sign_command(&self) -> String {
        match (self.kind, self.id) {
            (Some(kind), Some(id)) => format!("cuebook sign {kind} {}", shell_word(id.as_str())),
            // Settings of threads are no items, and are signed by their paths.
            _ if self.name.contains(".ai/config/") => {
                format!("cuebook sign config {}", shell_word(self.name))
            }
            _ => "cuebook sign TYPE ID".to_owned(),
        }
    }

    fn verify_command(&self) -> String {
        match (self.kind, self.id) {
            (Some(kind), Some(id)) => format!("cuebook verify {kind} {}", shell_word(id.as_str())),
            _ => "cuebook verify TYPE ID".to_owned(),
        }
    }

    /// Whether the signature is for this file.
    fn check_purpose(&self, line: &SignatureLine, narrow: bool) -> Result<()> {
        let Some(wanted) = &self.purpose else { return Ok(()) };
        let what = match &line.purpose {
            Some(purpose) if purpose == wanted => return Ok(()),
            Some(purpose) => format!("it was signed as {purpose}"),
            None => match self.declared(narrow) {
                PlaceMatch::Here => return Ok(()),
                PlaceMatch::Elsewhere(what) => what,
                PlaceMatch::Open => return Err(self.unbound(line)),
            },
        };
        let message = format!("{} was moved or renamed: {what}", self.name);
        let hint = format!("move it back, or sign it again for its new location: {}", self.sign_command());
        let diagnostic = Diagnostic::new(Code::ItemMoved, message).hint(hint);
        Err(self.error(diagnostic).with("fingerprint", &line.fingerprint))
    }

    /// What the file declares, as far as its signature covers it.
    fn declared(&self, narrow: bool) -> PlaceMatch {
        match (self.kind, self.id) {
            // Such a signature leaves out the front matter, which is where knowledge declares its place.
            (Some(ItemType::Knowledge), _) if narrow => PlaceMatch::Open,
            (Some(kind), Some(id)) => declared(kind, self.extension, self.name, self.bytes).fit(id),
            _ => PlaceMatch::Open,
        }
    }

    fn unbound(&self, line: &SignatureLine) -> Error {
        let message = format!("the signature of {} does not say what it is for", self.name);
        let hint = format!("if you trust it, sign it again: {}", self.sign_command());
        let diagnostic = Diagnostic::new(Code::UnboundSignature, message).hint(hint);
        self.error(diagnostic).with("fingerprint", &line.fingerprint)
    }
}

/// What is recorded of an item: the purpose of its signature and its time, if the signature covers it.
fn timed(item: &Verified) -> Option<(Purpose, String)> {
    item.purpose.clone().map(|purpose| (purpose, item.signed_at.clone()))
}

/// What an integrity error says with the whole path of the file, as Rye's answers have it.
pub fn message_with_path(error: &Error) -> String {
    let message = &error.diagnostic().message;
    let field = |name: &str| error.field(name).and_then(|value| value.as_str());
    match (field("file"), field("path")) {
        (Some(name), Some(path)) => message.replacen(name, path, 1),
        _ => message.clone(),
    }
}

impl Verifier for Trust {
    fn verify_item(&self, item: &Item) -> Result<()> {
        self.verify(item).map(drop)
    }
}
