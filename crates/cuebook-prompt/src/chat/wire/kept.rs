//! What a body says of tools, kept in the words of every interface: the schemas of twenty tools are more work than a whole
//! conversation, and never change.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Api;
use super::draft::Draft;
use super::piece::Piece;
use crate::error::{Diagnostic, Result};
use crate::prompt::MOST_INTERFACES;

/// Tools as they were written, and what was to be noted on them.
#[derive(Debug)]
pub(super) struct Kept {
    pub json: Json,
    pub bytes: Vec<u8>,
    notes: Vec<Diagnostic>,
}

const _: () = assert!(Api::ALL.len() <= MOST_INTERFACES);

impl<'r> Draft<'r> {
    /// The tools, as they were said before or as `say` says them; nothing if there are none.
    pub fn tools(
        &mut self,
        say: impl FnOnce(&mut Draft<'r>) -> Result<Vec<Json>>,
    ) -> Result<Option<Piece<'r>>> {
        let tools = self.request.tools;
        if tools.is_empty() {
            return Ok(None);
        }
        let slot = tools.written().at(self.api as usize);
        let kept = match slot.get().and_then(|kept| Arc::clone(kept).downcast::<Kept>().ok()) {
            Some(kept) => kept,
            None => {
                let before = std::mem::take(&mut self.notes);
                let said = say(self);
                let notes = std::mem::replace(&mut self.notes, before);
                let json = Json::Array(said?);
                let bytes = json.to_string().into_bytes();
                let kept = Arc::new(Kept { json, bytes, notes });
                slot.get_or_init(|| Arc::clone(&kept) as Arc<dyn Any + Send + Sync>);
                kept
            }
        };
        for note in &kept.notes {
            self.note(note.clone());
        }
        let none = kept.json.as_array().is_none_or(Vec::is_empty);
        Ok((!none).then_some(Piece::Kept(kept)))
    }
}
