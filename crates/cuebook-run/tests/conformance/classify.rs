//! What kind of failure it is, and after which pause to ask again.

use cuebook_run::provider::{Fault, classify};
use serde_json::{Value as Json, json};

use crate::compare;

pub fn run(case: &Json) -> Result<(), String> {
    let input = &case["input"];
    let text = |path: &str| input.pointer(path).and_then(Json::as_str);
    let class = classify(&Fault {
        status: input["status_code"].as_u64().and_then(|status| u16::try_from(status).ok()),
        kind: text("/error/type"),
        code: text("/error/code"),
        message: text("/error/message"),
    });
    let delay = |attempt| class.policy.map_or(0.0, |policy| policy.delay(attempt));
    let found = json!({
        "classification": class.to_json(),
        "delay_attempt_1": delay(1),
        "delay_attempt_5": delay(5),
    });
    compare::equals(&case["expect"], &found)
}
