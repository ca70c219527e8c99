//! Errors as the JSON texts that `package/errors.ts` makes exceptions from.

use std::cell::Cell;

use cuebook::Error;
use cuebook::error::report;
use serde_json::{Value as Json, json};

thread_local! {
    /// The number of the exception that a function of JavaScript threw, for the error that it leads to. The exception itself stays in
    /// JavaScript.
    static CAUSE: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Keeps the number of an exception for the error that it leads to.
pub fn keep_cause(number: Option<u32>) {
    CAUSE.set(number);
}

/// The exception that a function threw in this thread, once.
pub fn take_cause() -> Option<u32> {
    CAUSE.take()
}

/// An error as an object.
pub fn document(error: &Error) -> Json {
    let mut document = error.to_json();
    let report = report(error.diagnostics(), false);
    json!({"error": document["error"].take(), "report": report, "cause": take_cause()})
}

/// An error as the exception that the TypeScript half turns into one of its classes.
pub fn thrown(error: &Error) -> napi::Error {
    napi::Error::from_reason(document(error).to_string())
}
