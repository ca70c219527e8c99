//! Names that cannot be looked up: temporarily, because no server answers, or permanently.

use cuebook_run::provider::{Category, Charge, Client, HttpProvider, ProviderFailure};

use crate::{RecordingListener, Sleepless, ask, chosen_from};

/// Set where there is no network.
const ALONE: &str = "CUEBOOK_TEST_WITHOUT_NETWORK";

/// Asks a host three times at most, and says how often there was a pause.
fn asked(host: &str) -> (Box<ProviderFailure>, usize) {
    let text = format!("name: mock\napi: gemini\nbase_url: http://{host}/v1\nretry: {{attempts: 3}}\n");
    let clock = Sleepless::new();
    let provider = HttpProvider::new(&Client::new(), chosen_from(&text)).with_clock(clock.clone());
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!(unheard.charge, Charge::Nothing, "{unheard:?}");
    assert!(!unheard.indeterminate && unheard.partial_text.is_empty(), "{unheard:?}");
    (unheard, clock.slept().len())
}

/// Not a test: what the process of one does that has no network.
#[test]
fn helper() {
    if std::env::var_os(ALONE).is_none() {
        return;
    }
    let (unheard, pauses) = asked("models.example");
    let said = unheard.error.to_string();
    assert!(said.contains("cannot look up the host models.example now"), "{said}");
    assert_eq!((unheard.category, pauses), (Category::Transient, 2), "{said}");
    let hint = unheard.error.diagnostic().hint.clone().unwrap();
    assert!(hint.contains("and the network"), "{hint}");
    // No label is as long, so no one has to be asked to know that there is no such name.
    let (unheard, pauses) = asked(&format!("{}.example", "a".repeat(64)));
    let said = unheard.error.to_string();
    assert!(said.contains("unknown host"), "{said}");
    assert_eq!((unheard.category, pauses), (Category::Permanent, 0), "{said}");
}

/// The system itself says it (`EAI_AGAIN`), in a process whose network has neither a name server nor anything else.
#[cfg(target_os = "linux")]
#[test]
fn name_lookup_is_retried_unless_the_name_is_invalid() {
    use std::process::{Command, Stdio};
    let alone = |program: &std::path::Path, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--"]).arg(program).args(args).env(ALONE, "1");
        for proxy in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        command.stdin(Stdio::null()).output()
    };
    if !alone("true".as_ref(), &[]).is_ok_and(|output| output.status.success()) {
        eprintln!("left out: nobody may have a network of their own here");
        return;
    }
    let output = alone(&std::env::current_exe().unwrap(), &["--exact", "names::helper"]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
