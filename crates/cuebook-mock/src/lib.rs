//! A server that answers like a provider of models, from a script.
//!
//! It speaks the interfaces of OpenAI (chat and responses), Anthropic and Gemini, whole, as a stream and as jobs of many requests, and does what real
//! servers do on bad days: errors, slow and broken replies, garbage. `cuebook mock`, tests and benchmarks use it: threads and sockets
//! of the standard library, a port of this machine that the system picks, every request remembered.
//!
//! ```
//! use cuebook_mock::{Mock, Reply, Script};
//! use serde_json::json;
//!
//! let script = Script::new()
//!     .call("c1", "rye_execute", json!({"item_id": "a/b"}))
//!     .usage(100, 21)
//!     .status(429, json!({"error": {"message": "slow down"}}))
//!     .header("retry-after", "2")
//!     .reply(Reply::text("Done.").pieces(3).close_after(200));
//! let mock = Mock::start(script)?;
//! assert!(mock.url().starts_with("http://127.0.0.1:"));
//! assert!(mock.requests().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A script is a list: `text`, `call`, `status` and `reply` begin the next reply, `usage`, `header` and the like belong to the
//! one before them. One reply answers one request, whatever its interface; which one that is, the path of the request tells. When
//! the script is at its end, the server answers with 400 and says so, unless it [repeats](Script::forever).

mod api;
mod http;
mod jobs;
mod reply;
mod request;
mod script;
mod server;
mod wire;

pub use api::Api;
pub use reply::{Call, Reply};
pub use request::Request;
pub use script::Script;
pub use server::Mock;
