//! Tools that tools of packs replace. A pack proposes it, the user accepts it when they install the pack, and the acceptance is
//! a grant in their own space: a `resolution.json` that comes with a project redirects nothing.

use super::Library;
use super::resolution::Resolution;
use crate::error::Result;
use crate::items::{ItemId, ItemType, Located, Space};
use crate::trust::{Power, Request};

/// A tool of a pack that replaces another tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReplacedTool {
    /// The pack.
    pub pack: String,
    /// The tool of the pack; none if the pack no longer has it.
    pub located: Option<Located>,
    /// What the user must have granted.
    pub request: Request,
}

/// What begins the key of a recorded choice between tools.
const TOOL: &str = "tool.";

impl Library {
    /// The tool that replaces another one, as `resolution.json` records it. It counts only if the user granted the request.
    #[doc(hidden)]
    pub fn replaced_tool(&self, id: &ItemId) -> Result<Option<ReplacedTool>> {
        let choice = self.resolutions()?.get(&format!("{TOOL}{id}"));
        choice.map_or(Ok(None), |choice| self.replacement(id.as_str(), &choice))
    }

    /// The requests of all recorded replacements of tools.
    pub(super) fn tool_replacements(&self) -> Result<Vec<Request>> {
        let resolutions = self.resolutions()?;
        let mut requests = Vec::new();
        for key in resolutions.ids() {
            if let (Some(id), Some(choice)) = (key.strip_prefix(TOOL), resolutions.get(key)) {
                requests.extend(self.replacement(id, &choice)?.map(|replaced| replaced.request));
            }
        }
        Ok(requests)
    }

    fn replacement(&self, id: &str, choice: &Resolution) -> Result<Option<ReplacedTool>> {
        let Some(pack) = choice.replaced_by.clone() else { return Ok(None) };
        let folder = self.packs_folder().join(&pack);
        let prefix = format!("{}/tools/", self.name(&folder));
        let Some(new) = choice.source.strip_prefix(&prefix).and_then(|new| ItemId::new(new).ok()) else {
            return Ok(None);
        };
        let located = Space::of_pack(&folder, self.name(&folder)).locate(ItemType::Tool, &new)?;
        Ok(Some(ReplacedTool { request: replacement_request(id, new.as_str(), &pack), pack, located }))
    }
}

/// The request that a pack's tool may replace another one.
pub(super) fn replacement_request(old: &str, new: &str, pack: &str) -> Request {
    let shown = format!("the tool `{new}` of the pack `{pack}` runs wherever `{old}` is called");
    Request::new(Power::Replacement, format!("{TOOL}{old}"), shown)
}
