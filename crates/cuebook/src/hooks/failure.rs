//! What a hook of a Rust program returns when it fails: any error.

use std::fmt;

use super::{HookContext, Refusal};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, catch_panic};

/// Any error of a hook. `?` makes it from every error type, and `.into()` from a text.
///
/// ```
/// use cuebook::hooks::HookError;
///
/// fn port(text: &str) -> Result<u16, HookError> {
///     if text.is_empty() {
///         return Err("the port is empty".into());
///     }
///     Ok(text.parse()?)
/// }
/// assert_eq!(port("80").unwrap(), 80);
/// assert_eq!(port("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub struct HookError(Box<dyn std::error::Error + Send + Sync>);

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for HookError {
    fn from(error: E) -> HookError {
        HookError(error.into())
    }
}

impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl HookError {
    /// The error of the render. An error of Cuebook keeps its code and place; any other becomes its `source()`.
    fn into_error(self, function: &str, context: &HookContext<'_>) -> Error {
        let error = match self.0.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => {
                failed(format!("`{function}` of {} failed: {other}", context.subject)).caused_by(other)
            }
        };
        error.with("hook", function).with("of", context.subject.to_string())
    }
}

/// Calls a hook. What it returns as an error, and a panic, becomes an error that names the hook and whose it is.
pub(crate) fn called<T>(
    function: &str,
    context: &HookContext<'_>,
    hook: impl FnOnce() -> Result<T, HookError>,
) -> Result<T> {
    match catch_panic(hook) {
        Ok(returned) => returned.map_err(|error| error.into_error(function, context)),
        Err(panic) => {
            let error = failed(format!("`{function}` of {} panicked: {panic}", context.subject));
            Err(error.with("hook", function).with("of", context.subject.to_string()))
        }
    }
}

fn failed(message: String) -> Error {
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookFailed, message))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
