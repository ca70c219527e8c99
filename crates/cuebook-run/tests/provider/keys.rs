//! Keys are there before anything is sent, and shown nowhere.

use super::*;

#[test]
fn a_missing_key_is_reported_before_anything_is_sent() {
    let mock = Mock::start(Script::new().text("x")).unwrap();
    let provider =
        HttpProvider::new(&Client::new(), chosen(&mock, Api::Anthropic, "")).with_environment(|_| None);
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!((unheard.error.code(), unheard.category), (Code::KeyMissing, Category::Permanent));
    assert!(unheard.error.to_string().contains("MOCK_KEY"), "{unheard:?}");
    assert!(!unheard.indeterminate && mock.requests().is_empty());
    let provider = provider.with_environment(|_| Some(format!("{KEY}\nnext")));
    assert_eq!(ask(&provider, &RecordingListener::default()).unwrap_err().error.code(), Code::KeyMissing);
    assert!(mock.requests().is_empty());
}

#[test]
fn a_key_that_a_server_repeats_is_taken_out() {
    let echo = |request: &cuebook_mock::Request| {
        let headers = format!("{:?}", request.headers);
        Reply::status(400, json!({"error": {"message": headers, "type": KEY, "code": format!("x {KEY}")}}))
    };
    for api in Api::ALL {
        let mock = Mock::start(Script::answer(echo)).unwrap();
        let (provider, _) =
            provider(&mock, api, "headers: {X-Team: '${env:ORGANISATION}', x-plain: shown}\n");
        let listener = RecordingListener::default();
        let unheard = ask(&provider, &listener).unwrap_err();
        let reported = unheard.error.to_string();
        assert!(reported.contains("[REDACTED]") && reported.contains("shown"), "{reported}");
        assert_eq!(mock.requests()[0].header("x-team"), Some("org-secret-42"));
    }
    // Also what is reported to the listener between two attempts, and what was said before a break.
    let words = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": KEY}}]}));
    let mock = Mock::start(Script::new().reply(Reply::error(503, KEY)).reply(Reply::raw(
        200,
        "text/event-stream",
        words,
    )))
    .unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "");
    let listener = RecordingListener::default();
    let unheard = ask(&provider, &listener).unwrap_err();
    assert_eq!(unheard.partial_text, "[REDACTED]");
    assert!(!format!("{:?}", listener.retries.lock().unwrap()).contains(KEY));
}

#[test]
fn a_secret_among_the_options_is_kept_like_a_key() {
    const WRITTEN: &str = "violet-blue-horse";
    let echo = |request: &cuebook_mock::Request| {
        Reply::status(400, json!({"error": {"message": request.body.to_string(), "type": WRITTEN}}))
    };
    let options = format!(
        "options: {{gateway: {{password: {WRITTEN}, team: 'of ${{env:ORGANISATION}}', plain: shown}}, tier: flex}}\n"
    );
    for api in Api::ALL {
        let mock = Mock::start(Script::answer(echo)).unwrap();
        let (provider, _) = provider(&mock, api, &options);
        let reported = format!("{:?}", ask(&provider, &RecordingListener::default()).unwrap_err());
        let sent = mock.requests()[0].body.to_string();
        assert!(sent.contains(WRITTEN) && sent.contains("of org-secret-42"), "{sent}");
        assert!(
            reported.contains("[REDACTED]") && reported.contains("shown") && reported.contains("flex"),
            "{reported}"
        );
        assert!(!reported.contains(WRITTEN) && !reported.contains("org-secret-42"), "{reported}");
        assert!(!format!("{provider:?}").contains(WRITTEN), "{provider:?}");
    }
    let mock = Mock::start(Script::new().text("x")).unwrap();
    let provider = HttpProvider::new(&Client::new(), chosen(&mock, Api::OpenAiChat, &options))
        .with_environment(|name| environment(name).filter(|_| name != "ORGANISATION"));
    assert_eq!(provider.check().unwrap_err().code(), Code::KeyMissing);
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert!(unheard.error.to_string().contains("ORGANISATION"), "{unheard:?}");
    assert!(mock.requests().is_empty());
}
