//! A dry run of a thread: all that would keep it from beginning is reported, and nothing begins.

use cuebook_mock::Script;

use crate::greeting::{GREET, THREADED};
use crate::setup::{Setup, err, out};

#[test]
fn a_dry_run_reports_errors_and_starts_no_thread() {
    let permitted = GREET.find("<permissions>").unwrap()..GREET.find("</permissions>").unwrap();
    let mut wide = GREET.to_owned();
    wide.replace_range(permitted, "<permissions>*");
    let wide = wide.replace("name=\"greet\"", "name=\"wide\"");
    let files = [(".ai/directives/demo/greet.md", GREET), (".ai/directives/demo/wide.md", &wide)];
    let stage = Setup::new(Script::new(), &files.map(|(path, text)| (path, text)));
    let dry = |item: &str, more: &[&str], has_key: bool| {
        let mut args = THREADED.to_vec();
        args[2] = item;
        args.extend(more);
        let mut command = stage.command(&[&args[..], &["--dry-run"]].concat());
        if !has_key {
            command.env_remove("MOCK_KEY");
        }
        command.output().unwrap()
    };
    for (item, more, has_key, code) in [
        ("demo/greet", &["--model", "nope"][..], true, "CB720"),
        ("demo/greet", &["--limit", "bogus=1"], true, "CB715"),
        ("demo/greet", &["--replay", "nofile"], true, "CB110"),
        ("demo/greet", &["--model", "mock-model"], false, "CB721"),
        ("demo/wide", &[], true, "CB717"),
    ] {
        let output = dry(item, more, has_key);
        assert!(
            !output.status.success() && err(&output).contains(code),
            "{code}: {}{}",
            out(&output),
            err(&output)
        );
    }
    let output = dry("demo/greet", &[], true);
    assert!(output.status.success(), "{}", err(&output));
    assert!(stage.mock.requests().is_empty(), "nobody was asked");
    assert!(!stage.project.path().join(".ai/state/threads.db").exists(), "no store was made");
}
