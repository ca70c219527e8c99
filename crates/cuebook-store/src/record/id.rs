//! The name of a thread: `<id of the prompt>/<its last part>-<milliseconds>`, with a number behind it if that is taken.

use std::fmt;

/// The name of a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(String);

impl ThreadId {
    /// The name of a thread of a prompt that begins at a moment; `again` counts the ones that were taken.
    ///
    /// ```
    /// use cuebook_store::record::ThreadId;
    ///
    /// assert_eq!(ThreadId::new("web/build", 1_739_820_456_123, 0).as_str(), "web/build/build-1739820456123");
    /// assert_eq!(ThreadId::new("web/build", 1_739_820_456_123, 2).as_str(), "web/build/build-1739820456123-2");
    /// ```
    pub fn new(prompt: &str, milliseconds: i64, again: u32) -> ThreadId {
        let last = prompt.rsplit('/').next().unwrap_or(prompt);
        let id = format!("{prompt}/{last}-{milliseconds}");
        ThreadId(if again == 0 { id } else { format!("{id}-{again}") })
    }

    /// A name that another program made or wrote.
    pub fn known(id: impl Into<String>) -> ThreadId {
        ThreadId(id.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_millisecond_get_different_names() {
        let name = |again| ThreadId::new("web/build", 1_739_820_456_123, again).to_string();
        assert_eq!(name(0), "web/build/build-1739820456123");
        assert_eq!(name(1), "web/build/build-1739820456123-1");
    }
}
