//! What a body says of tools, kept in the words of every interface: the schemas of twenty tools are more work than a whole
//! conversation, and never change.

use std::sync::{Arc, OnceLock};

use serde_json::Value as Json;

use super::Api;
use super::draft::Draft;
use super::piece::Piece;
use crate::error::{Diagnostic, Result};

/// Tools as they were written, and what was to be noted on them.
#[derive(Debug)]
pub(super) struct Kept {
    pub json: Json,
    pub bytes: Vec<u8>,
    notes: Vec<Diagnostic>,
}

/// What is kept of one list of tools, for every interface.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written([OnceLock<Arc<Kept>>; Api::ALL.len()]);

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
        let slot = &tools.written().0[self.api as usize];
        let kept = match slot.get() {
            Some(kept) => Arc::clone(kept),
            None => {
                let before = std::mem::take(&mut self.notes);
                let said = say(self);
                let notes = std::mem::replace(&mut self.notes, before);
                let json = Json::Array(said?);
                let bytes = json.to_string().into_bytes();
                Arc::clone(slot.get_or_init(|| Arc::new(Kept { json, bytes, notes })))
            }
        };
        for note in &kept.notes {
            self.note(note.clone());
        }
        let none = kept.json.as_array().is_none_or(Vec::is_empty);
        Ok((!none).then_some(Piece::Kept(kept)))
    }
}
