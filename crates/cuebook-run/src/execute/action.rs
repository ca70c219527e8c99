//! The four actions and `verify`, as typed operations and as the answers of the seeds.

use cuebook::Result;
use cuebook::actions::load::{self, LoadRequest, Loaded};
use cuebook::actions::search::{SearchRequest, SearchResults};
use cuebook::actions::sign::{self, SignRequest, Signed};
use cuebook::items::{ItemId, ItemType, SpaceKind};
use cuebook::limits::FILE_BYTES;
use cuebook::trust::SigningKey;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use crate::actions::Action;
use crate::engine::Engine;
use crate::watch::Watch;

/// An item whose signature is valid, and whose signer is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedItem {
    /// Its type.
    pub item_type: ItemType,
    /// Its id.
    pub item_id: ItemId,
    /// Its file.
    pub file: String,
    /// SHA-256 of what was signed, in hexadecimal digits.
    pub hash: String,
    /// The fingerprint of the key; empty for an item that is part of the program.
    pub fingerprint: String,
    /// The owner of the key, if the trust store names one.
    pub owner: Option<String>,
    /// When it was signed, by the signer's clock.
    pub signed_at: String,
}

impl VerifiedItem {
    /// The item as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "status": "verified",
            "file": self.file,
            "hash": self.hash,
            "fingerprint": self.fingerprint,
            "owner": self.owner,
            "signed_at": self.signed_at,
        })
    }
}

impl Engine {
    /// Finds items of the engine's project.
    ///
    /// # Errors
    ///
    /// `CB407` if the scope names no type, or the query is too long or has no word.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchResults> {
        let project = self.project(None)?;
        project.searcher().search(request, project.trust())
    }

    /// Loads an item of the engine's project, verified, and copies it if the request says so.
    ///
    /// # Errors
    ///
    /// `CB116` if no space has the item, the errors of its signature, and `CB114` if the copy cannot be written.
    pub fn load(&self, request: &LoadRequest) -> Result<Loaded> {
        let destination = request.destination.map(|space| space.as_str());
        self.permit(Action::Load, json!({"destination": destination}))?;
        let project = self.project(None)?;
        load::load(&project.spaces, project.trust(), request)
    }

    /// Signs an item of the engine's project, or all that a pattern matches, with the user's key.
    ///
    /// # Errors
    ///
    /// `CB116` if there is no such item or none matches, `CB227` without a key, and what is wrong with the item.
    pub fn sign(&self, request: &SignRequest) -> Result<Signed> {
        self.permit(Action::Sign, json!({}))?;
        let project = self.project(None)?;
        sign::sign(&project.spaces, project.trust(), request, Timestamp::now(), &mut |_, _| {})
    }

    /// Verifies the signature of an item.
    ///
    /// # Errors
    ///
    /// `CB116` if no space has the item, `CB220` to `CB238` if its signature is missing, invalid or not trusted.
    pub fn verify(&self, item_type: ItemType, item_id: &str) -> Result<VerifiedItem> {
        let (project, id) = (self.project(None)?, ItemId::new(item_id)?);
        let spaces = &project.spaces;
        let located = spaces.find(item_type, &id)?.ok_or_else(|| spaces.not_found(item_type, &id))?;
        let file = located.name.clone();
        let verified = project.trust().verify(&located.read(FILE_BYTES)?)?;
        Ok(VerifiedItem {
            item_type,
            item_id: id,
            file,
            hash: verified.hash,
            fingerprint: verified.fingerprint,
            owner: verified.owner,
            signed_at: verified.signed_at,
        })
    }

    /// Makes the user's key, saves it, and trusts it in the owner's name. Returns its fingerprint.
    ///
    /// # Errors
    ///
    /// `CB227` if the user has a key already.
    pub fn generate_key(&self, owner: &str) -> Result<String> {
        let (project, key) = (self.project(None)?, SigningKey::generate()?);
        key.save(&project.spaces, false)?;
        project.trust().add(SpaceKind::User, key.public(), owner, Some(&key), Timestamp::now())?;
        Ok(key.fingerprint().to_owned())
    }

    /// Refuses what the clients of the engine may not do.
    fn permit(&self, action: Action, arguments: Json) -> Result<()> {
        match (&self.settings().allowance, arguments) {
            (Some(allowance), Json::Object(arguments)) => allowance.check(action, &arguments),
            _ => Ok(()),
        }
    }
}

impl Action {
    /// Does what the arguments of a call ask for, and answers as the seeds do: whatever goes wrong is part of the answer.
    pub fn run(self, engine: &Engine, arguments: &Map<String, Json>, watch: &dyn Watch) -> Json {
        let request = Json::Object(arguments.clone());
        if self == Action::Execute {
            return engine.execute_json(&request, watch);
        }
        let allowed = engine.permit(self, request.clone());
        let project =
            allowed.and_then(|()| engine.project_of(arguments.get("project_path").and_then(Json::as_str)));
        let project = match project {
            Ok(project) => project,
            Err(error) => return Action::refusal(&error),
        };
        let (spaces, trust) = (&project.spaces, project.trust());
        match self {
            Action::Search => project.searcher().answer(&SearchRequest::from_json(&request), trust),
            Action::Load => load::answer(spaces, trust, &request),
            Action::Sign | Action::Execute => {
                let mut progress =
                    |done: usize, all: usize| watch.progress(&format!("signed {done} of {all}"));
                sign::answer(spaces, trust, &request, Timestamp::now(), &mut progress)
            }
        }
    }
}
