//! The fence, tried from within: each test runs a small program in the real launcher and looks at what it could do.

#![cfg(target_os = "linux")]

mod fenced;

use std::time::Duration;

use cuebook_hooks::sandbox::Ending;
use fenced::Fenced;

#[test]
fn a_program_finds_its_requests_and_replies_and_what_it_prints_arrives_apart() {
    let Some(test) = Fenced::python(
        "import os
print('hello')
os.write(2, b'there')
request = os.read(3, 100)
os.write(4, b'got ' + request)
raise SystemExit(3)",
    ) else {
        return;
    };
    let ran = test.request("a request").run();
    assert_eq!(ran.replied, "got a request");
    assert!(ran.printed.contains("hello") && ran.printed.contains("there"), "{}", ran.printed);
    assert_eq!(ran.ending, Ending::Exited(3));
}

#[test]
fn how_a_program_ended_is_known() {
    let Some(test) = Fenced::python("import ctypes; ctypes.string_at(0)") else { return };
    assert_eq!(test.run().ending, Ending::Signal(11));
    let Some(test) = Fenced::python("raise SystemExit(137)") else { return };
    assert_eq!(test.run().ending, Ending::Exited(137));
    let Some(test) = Fenced::python("import time; time.sleep(60)") else { return };
    let mut running = test.start();
    assert_eq!(running.wait(Duration::from_millis(20)), None);
    assert_eq!(running.kill(), Ending::Signal(9));
}

#[test]
fn a_program_that_is_not_there_is_an_error_that_says_so() {
    let error = Fenced::program("/nowhere/at/all").try_start().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(error.to_string(), "cannot start /nowhere/at/all: No such file or directory");
}
