//! What a body says of tools, kept in the words of every interface: the schemas of twenty tools are more work than a whole
//! conversation, and never change.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Api;
use super::draft::Draft;
use super::piece::Piece;
use crate::error::{Diagnostic, Result};
use crate::prompt::MAX_INTERFACES;

/// Tools as they were written, and what was to be noted on them.
#[derive(Debug)]
pub(super) struct CachedTools {
    pub json: Json,
    pub bytes: Vec<u8>,
    notes: Vec<Diagnostic>,
}

const _: () = assert!(Api::ALL.len() <= MAX_INTERFACES);

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
        let cached_tools =
            match slot.get().and_then(|cached_tools| Arc::clone(cached_tools).downcast::<CachedTools>().ok())
            {
                Some(cached_tools) => cached_tools,
                None => {
                    let before = std::mem::take(&mut self.notes);
                    let said = say(self);
                    let notes = std::mem::replace(&mut self.notes, before);
                    let json = Json::Array(said?);
                    let bytes = json.to_string().into_bytes();
                    let cached_tools = Arc::new(CachedTools { json, bytes, notes });
                    slot.get_or_init(|| Arc::clone(&cached_tools) as Arc<dyn Any + Send + Sync>);
                    cached_tools
                }
            };
        for note in &cached_tools.notes {
            self.note(note.clone());
        }
        let none = cached_tools.json.as_array().is_none_or(Vec::is_empty);
        Ok((!none).then_some(Piece::Kept(cached_tools)))
    }
}
