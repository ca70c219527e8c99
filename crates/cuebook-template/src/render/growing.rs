//! Text that is put together from many parts.

use super::Render;
use crate::error::Result;

/// A text that grows. Every part is paid for before it is added, so that no text gets longer than its limit.
pub(crate) struct Growing<'a, 'r> {
    pub render: &'a Render<'r>,
    text: String,
    paid: usize,
}

impl<'a, 'r> Growing<'a, 'r> {
    pub fn new(render: &'a Render<'r>) -> Growing<'a, 'r> {
        Growing { render, text: String::new(), paid: 0 }
    }

    pub fn push(&mut self, part: &str) -> Result<()> {
        self.render.spend_growth(&mut self.paid, self.text.len() + part.len())?;
        self.text.push_str(part);
        Ok(())
    }

    /// Adds a part several times.
    pub fn repeat(&mut self, part: &str, times: usize) -> Result<()> {
        let more = part.len().saturating_mul(times);
        self.render.spend_growth(&mut self.paid, self.text.len().saturating_add(more))?;
        self.text.extend(std::iter::repeat_n(part, times));
        Ok(())
    }

    pub fn finish(self) -> String {
        self.text
    }
}
