//! How much of the stack is in use, so that nested text ends in an error and not in a crash.

/// What reading a template may take, and a render unless its limits say otherwise. A thread of Rust has 2 MB.
pub(crate) const MAX: usize = 640 * 1024;

/// Where the stack was when something began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack(usize);

impl Stack {
    #[inline(always)]
    pub fn here() -> Stack {
        let marker = 0u8;
        Stack(std::ptr::from_ref(&marker) as usize)
    }

    /// How many bytes have been taken since.
    #[inline(always)]
    pub fn used(self) -> usize {
        Stack::here().0.abs_diff(self.0)
    }
}
