//! Messages to the body of a request.

#[path = "../../support/prompty.rs"]
mod spoken;

use cuebook::chat::wire::Api;

use super::Case;
use crate::compare::includes;

pub fn to_request(case: &Case<'_>) -> Result<(), String> {
    let input = case.input();
    let made = Api::choose(input["provider"].as_str().unwrap(), input["apiType"].as_str())
        .and_then(|api| spoken::SentMessages::read(input).body(api));
    let expected = case.expected();
    match (expected.get("error"), made) {
        (None, Ok(wire)) => includes(&expected["request_body"], &wire.body),
        (None, Err(error)) => Err(error.to_string()),
        (Some(_), Err(_)) => Ok(()),
        (Some(error), Ok(wire)) => Err(format!("expected the error {error}, got {}", wire.body)),
    }
}
