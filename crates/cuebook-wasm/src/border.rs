//! What JavaScript calls, and the memory that texts cross in.

#![allow(unsafe_code, reason = "a function with a fixed name counts as unsafe")]

use std::cell::RefCell;
use std::panic;

use crate::calls::{Answer, Module};

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static MODULE: RefCell<Module> = RefCell::default();
}

/// A buffer of this many bytes or fewer is kept for the next call.
const KEPT_BYTES: usize = 1 << 20;

/// Makes room for the text of a call, and returns where it is.
#[unsafe(no_mangle)]
pub extern "C" fn cuebook_input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        if input.capacity() > KEPT_BYTES && bytes <= KEPT_BYTES {
            *input = Vec::new();
        }
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Answers the call whose text is in the first bytes of the input. It returns 0 for a result, 1 for an error, and 2 for a render that is
/// not kept any more.
#[unsafe(no_mangle)]
pub extern "C" fn cuebook_call(bytes: usize) -> u32 {
    let answer = INPUT.with_borrow(|input| {
        let call = input.get(..bytes).and_then(|call| std::str::from_utf8(call).ok()).unwrap_or_default();
        MODULE.with_borrow_mut(|module| module.answer(call))
    });
    let (status, text) = match answer {
        Answer::Done(text) => (0, text),
        Answer::Failed(text) => (1, text),
        Answer::Gone => (2, String::new()),
    };
    OUTPUT.with_borrow_mut(|output| *output = text.into_bytes());
    status
}

/// Where the answer of the last call is.
#[unsafe(no_mangle)]
pub extern "C" fn cuebook_output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

/// The bytes of the answer of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn cuebook_output_bytes() -> usize {
    OUTPUT.with_borrow(Vec::len)
}

/// Makes the words of a panic the output. JavaScript calls it once: the trap that follows a panic says nothing.
#[unsafe(no_mangle)]
pub extern "C" fn cuebook_start() {
    panic::set_hook(Box::new(|why| {
        let words = why.to_string();
        let _ =
            OUTPUT.try_with(|output| output.try_borrow_mut().map(|mut output| *output = words.into_bytes()));
    }));
}
