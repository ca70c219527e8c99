//! The cases of `crates/cuebook/tests/forgery`, chosen by a fuzzer that sees which code they reach.
#![no_main]

#[path = "../../crates/cuebook/tests/forgery/driver.rs"]
#[allow(dead_code)]
mod driver;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| driver::run(bytes));
