//! The list of threads, and the events of one as they are written. What changes a thread goes through the command line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::Result;
use cuebook::items::Spaces;
use cuebook_run::store::{Filter, Store};
use cuebook_run::{Engine, Settings, ThreadId};
use serde_json::{Value as Json, json};

use super::text;

/// The most threads that the page lists, the newest first.
const MAX_LISTED: usize = 1000;
/// The most events of one answer.
const MAX_EVENTS: usize = 2000;
/// How long the page waits for an event before it asks again.
const WAIT: Duration = Duration::from_secs(2);
/// How often the server looks for an event meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// Where the threads of the project are.
pub(super) struct Threads {
    engine: Engine,
}

impl Threads {
    pub(super) fn new(spaces: Spaces, store: Option<String>) -> Threads {
        Threads { engine: Engine::new(spaces).with_settings(Settings { store, ..Settings::default() }) }
    }

    fn store(&self) -> Result<Arc<dyn Store>> {
        self.engine.threads_so_far(None)
    }

    /// The threads, the newest first.
    pub(super) fn list(&self) -> Result<Json> {
        let filter = Filter { most: Some(MAX_LISTED), ..Filter::default() };
        let threads = self.store()?.list_accounts(&filter)?;
        Ok(threads.iter().map(|(record, _)| record.to_json()).collect())
    }

    /// The events of a thread behind one that the page has, and the thread's row. With `wait`, an answer without a new event waits
    /// for one while the thread runs.
    pub(super) fn events(&self, arguments: &Json) -> Result<Json> {
        let id = ThreadId::known(text(arguments, "thread")?);
        let after = arguments["after"].as_u64().unwrap_or(0);
        let store = self.store()?;
        let began = Instant::now();
        loop {
            let Some(record) = store.record(&id)? else {
                return Ok(json!({"thread": null, "events": [], "more": false}));
            };
            let events = store.events(&id, after, MAX_EVENTS)?;
            let waits = arguments["wait"] == true && !record.status.is_at_rest() && began.elapsed() < WAIT;
            if !events.is_empty() || !waits {
                let more = events.len() == MAX_EVENTS;
                let events: Vec<Json> = events.iter().map(|event| event.to_json(&id)).collect();
                return Ok(json!({"thread": record.to_json(), "events": events, "more": more}));
            }
            std::thread::sleep(LOOK);
            // A thread whose process died does not come to rest without this.
            cuebook_run::sweep(&*store)?;
        }
    }
}
