//! Jinja templates, as Jinja2 3.1.6 runs them in its sandbox.

#[cfg_attr(not(test), allow(dead_code, unused_imports, reason = "the engine calls what it offers"))]
pub(crate) mod compat;
