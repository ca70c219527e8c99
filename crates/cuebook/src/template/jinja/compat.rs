//! Makes the engine behave like Jinja2.
use minijinja::{Environment, Error, ErrorKind, Value};
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueLimits {
    pub string_bytes: usize,
    pub items: usize,
}
#[derive(Debug)]
pub(crate) struct ValueTooLarge {
    pub what: &'static str,
    pub limit: usize,
}
impl std::fmt::Display for ValueTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a {} grew beyond {}", self.what, self.limit)
    }
}
impl std::error::Error for ValueTooLarge {}
pub(crate) const FILTERS: &[&str] = &["upper", "lower"];
pub(crate) const TESTS: &[&str] = &["defined"];
pub(crate) fn configure(env: &mut Environment<'_>, limits: ValueLimits) {
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    minijinja_contrib::add_to_environment(env);
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.add_filter("__cue_cap", move |v: Value| -> Result<Value, Error> {
        if v.as_str().is_some_and(|s| s.len() > limits.string_bytes)
            || v.len().is_some_and(|n| n > limits.items)
        {
            return Err(Error::new(ErrorKind::InvalidOperation, "too large")
                .with_source(ValueTooLarge { what: "string", limit: limits.string_bytes }));
        }
        Ok(v)
    });
}
