//! A hook's action whose result is unknown, because the process ended while it ran.

use serde_json::{Value as Json, json};

/// Something that a hook does, and that had begun when the process died.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenHook {
    /// The hook.
    pub hook: String,
    /// Its moment.
    pub event: String,
    /// What it executes.
    pub item_id: String,
    /// How often the model had answered.
    pub turns: u32,
}

impl OpenHook {
    /// What an event says about it.
    #[doc(hidden)]
    pub fn of(payload: &Json) -> OpenHook {
        let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
        let turns = payload["turns"].as_u64().and_then(|turns| u32::try_from(turns).ok()).unwrap_or_default();
        OpenHook { hook: text("hook"), event: text("event"), item_id: text("item_id"), turns }
    }

    #[doc(hidden)]
    pub fn is_same(&self, other: &OpenHook) -> bool {
        (&self.hook, &self.event, &self.item_id) == (&other.hook, &other.event, &other.item_id)
    }

    /// What the log says when the outcome is found out.
    #[doc(hidden)]
    pub fn to_json(&self) -> Json {
        let note =
            "the process died while it ran: it may have run in full or in part, and its result is unknown";
        json!({"hook": self.hook, "event": self.event, "item_id": self.item_id, "note": note})
    }
}
