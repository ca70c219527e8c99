//! How much of the stack is in use, so that nested text ends in an error and not in a crash.

/// What reading a template may take, and a render unless its limits say otherwise. A thread of Rust has 2 MB. A module of WebAssembly
/// has a part of its stack in its memory, which is all that can be measured, and JavaScript has the rest of about 1 MB.
pub(crate) const MAX: usize = if cfg!(target_family = "wasm") { 512 << 10 } else { 640 << 10 };

/// Whether the stack can be continued elsewhere.
pub(crate) const CAN_GROW: bool = cfg!(not(target_family = "wasm"));

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
