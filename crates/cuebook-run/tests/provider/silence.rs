//! Replies that say nothing, or nothing that can be understood.

use cuebook::Code;
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::provider::{Category, Charge};
use serde_json::json;

use crate::{KEY, RecordingListener, ask, provider};

#[test]
fn an_empty_answer_is_retried_then_fails_on_every_interface() {
    for api in Api::ALL {
        for more in ["stream: true\n", "stream: false\n"] {
            let script = Script::new().reply(Reply::text("").usage(30, 0)).text("at last");
            let mock = Mock::start(script).unwrap();
            let (provider, clock) = provider(&mock, api, &format!("{more}retry: {{attempts: 2}}\n"));
            let listener = RecordingListener::default();
            ask(&provider, &listener).unwrap();
            assert_eq!((listener.text().as_str(), clock.slept().len()), ("at last", 1), "{api:?} {more}");
            let charges = listener.charges.lock().unwrap();
            let Charge::Broken { usage, .. } = &charges[0] else { panic!("{api:?}: {charges:?}") };
            assert_eq!(usage.unwrap().input, Some(30), "{api:?}");
            mock.play(Script::new().reply(Reply::text("")).forever());
            let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
            assert_eq!((unheard.error.code(), unheard.category), (Code::NoAnswer, Category::Transient));
            let reported = unheard.error.diagnostic();
            assert!(reported.message.contains("no text and no calls"), "{}", reported.message);
            assert!(reported.hint.as_deref().unwrap().contains("mock.yaml"), "{reported:?}");
        }
    }
    let mock = Mock::start(Script::new().status(200, json!({"choices": [{"message": {}}]}))).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "retry: {attempts: 1}\n");
    assert_eq!(ask(&provider, &RecordingListener::default()).unwrap_err().error.code(), Code::NoAnswer);
}

#[test]
fn an_event_without_json_is_shown_without_keys() {
    let bad = format!("data: {{not json {KEY} {}\n\n", "x".repeat(500));
    let mock = Mock::start(Script::new().reply(Reply::raw(200, "text/event-stream", bad)).forever()).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "retry: {attempts: 2}\n");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    let reported = unheard.error.diagnostic();
    assert_eq!((reported.code, mock.requests().len()), (Code::NoAnswer, 2));
    assert!(
        reported.message.contains("invalid answer") && reported.message.contains("{not json"),
        "{reported:?}"
    );
    assert!(!reported.message.contains("broke") && reported.message.len() < 400, "{}", reported.message);
    let hint = reported.hint.as_deref().unwrap();
    assert!(hint.contains("`base_url` and `api` in mock.yaml") && hint.contains("`stream: false`"), "{hint}");
    assert!(unheard.indeterminate && unheard.error.field("provider").is_some());
}

#[test]
fn invalid_pauses_are_ignored_and_huge_ones_too_long() {
    let reply = Reply::error(429, "no").header("retry-after", "99999999999999999999999");
    let mock = Mock::start(Script::new().reply(reply).text("yes")).unwrap();
    let (provider, clock) = provider(&mock, Api::OpenAiChat, "");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!((mock.requests().len(), clock.slept().len()), (1, 0));
    assert!(unheard.error.field("retry_after_seconds").is_some(), "{unheard:?}");
    mock.play(Script::new().reply(Reply::error(429, "no").header("retry-after", "-5")).text("yes"));
    ask(&provider, &RecordingListener::default()).unwrap();
    assert!(clock.slept()[0] >= 1.0, "{:?}", clock.slept());
}

#[test]
fn a_refusal_of_a_server_is_reported_with_a_hint() {
    for status in [400, 422] {
        let mock = Mock::start(Script::new().reply(Reply::error(status, "no such thing"))).unwrap();
        let (provider, _) = provider(&mock, Api::OpenAiChat, "");
        let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
        assert!(unheard.error.diagnostic().hint.as_deref().unwrap().contains("mock.yaml"), "{unheard:?}");
    }
    for more in ["stream: true\n", "stream: false\n"] {
        let reply = Reply::text("").finish("MALFORMED_FUNCTION_CALL");
        let mock = Mock::start(Script::new().reply(reply)).unwrap();
        let (provider, _) = provider(&mock, Api::Gemini, more);
        let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
        assert_eq!(unheard.error.code(), Code::ProviderFailed);
        let hint = unheard.error.diagnostic().hint.as_deref().unwrap();
        assert!(hint.contains("cuebook thread resume"), "{hint}");
    }
}
