//! What JavaScript asks of a render.

use cuebook::Result;
use cuebook_bindings::reads::tools;
pub use cuebook_bindings::reads::{api, read, read_reply};
use cuebook_bindings::tokens::count_tokens;
use cuebook_lab::explain::Explanation;
use cuebook_lab::ledger::Ledger;
use serde_json::Value as Json;

/// The tokens, counted for a model. The first count of a vocabulary takes a while.
pub fn tokens(explanation: &Explanation, model: Option<&str>) -> Result<Json> {
    let rendered = explanation.rendered();
    let Some(model) = model else { return Ledger::of(rendered).map(|ledger| ledger.to_json()) };
    Ok(count_tokens(model, &rendered.messages()?, &tools(rendered)))
}
