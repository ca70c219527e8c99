//! What an attempt that failed may have cost, and when not to make another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::provider::{Category, Charge, Client, HttpProvider, Listener, RealClock, RetryDecision};
use serde_json::json;

use crate::{RecordingListener, Sleepless, ask, chosen_from, provider};

const LONG: &str = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";

#[test]
fn each_attempt_is_reported_with_its_possible_cost() {
    for api in Api::ALL {
        let script = Script::new()
            .status(503, json!({"error": {"message": "busy"}}))
            .reply(Reply::hang_up())
            .reply(Reply::status(429, json!({"error": {"message": "slow down"}})).truncate(5))
            .text("at last");
        let mock = Mock::start(script).unwrap();
        let (provider, _) = provider(&mock, api, "");
        let listener = RecordingListener::default();
        ask(&provider, &listener).unwrap();
        // What was refused costs nothing, also if the words about it were cut off. What was sent and never answered was read.
        let charges = listener.charges.lock().unwrap().clone();
        assert_eq!(charges, [Charge::Nothing, Charge::Question, Charge::Nothing], "{api:?}");
    }
}

#[test]
fn an_answer_that_breaks_off_costs_what_came_of_it() {
    let broken = Reply::text(LONG).pieces(10).usage(77, 20).close_after(900);
    let mock = Mock::start(Script::new().reply(broken)).unwrap();
    let (provider, _) = provider(&mock, Api::Anthropic, "");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    let Charge::Broken { written, usage } = &unheard.charge else { panic!("{unheard:?}") };
    assert!(written.starts_with("one") && written.len() < LONG.len(), "{written}");
    // Anthropic says at the beginning how much was read.
    assert_eq!(usage.unwrap().input, Some(77));
}

#[test]
fn a_senseless_answer_costs_what_the_provider_says() {
    let call =
        json!({"index": 9, "id": "c", "function": {"arguments": format!("{{\"where\": \"{LONG}\"}}")}});
    let events = [
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}),
    ];
    let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::raw(200, "text/event-stream", text + "data: [DONE]\n\n");
    let mock = Mock::start(Script::new().reply(reply)).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "retry: {attempts: 1}\n");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    let reported = &unheard.error.diagnostic().message;
    assert!(
        reported.contains("sent an invalid answer: tool call") && reported.contains("has no name"),
        "{reported}"
    );
    let Charge::Broken { written, usage } = &unheard.charge else { panic!("{unheard:?}") };
    let usage = usage.unwrap();
    assert_eq!(
        (written.as_str(), usage.input, usage.output),
        ("", Some(100), Some(10)),
        "nothing is guessed"
    );
}

#[test]
fn half_a_call_was_written_too() {
    let call = Reply::call("a", "look", json!({"where": LONG})).pieces(10).close_after(1100);
    let mock = Mock::start(Script::new().reply(call).text("x")).unwrap();
    let (provider, _) = provider(&mock, Api::Anthropic, "retry: {attempts: 1}\n");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    let Charge::Broken { written, .. } = &unheard.charge else { panic!("{unheard:?}") };
    assert!(written.starts_with("look") && written.contains("one two"), "{written}");
}

#[test]
fn unsent_requests_cost_nothing() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text =
        format!("name: mock\napi: gemini\nbase_url: http://127.0.0.1:{port}\nretry: {{attempts: 2}}\n");
    let provider = HttpProvider::new(&Client::new(), chosen_from(&text)).with_clock(Sleepless::new());
    let listener = RecordingListener::default();
    let unheard = ask(&provider, &listener).unwrap_err();
    assert_eq!((&unheard.charge, unheard.indeterminate), (&Charge::Nothing, false));
    assert!(listener.charges.lock().unwrap().is_empty(), "it is not sent again");
    // An unanswered handshake is no request.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let text = format!(
        "name: mock\napi: gemini\nbase_url: https://{address}\nretry: {{attempts: 1}}\ntimeouts: {{first_byte: 0.05}}\n"
    );
    let provider = HttpProvider::new(&Client::new(), chosen_from(&text));
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!((&unheard.charge, unheard.indeterminate), (&Charge::Nothing, false), "{unheard:?}");
}

#[test]
fn a_stop_in_a_pause_costs_nothing() {
    let mock = Mock::start(Script::new().reply(Reply::error(429, "no")).forever()).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "");
    struct Impatient(Arc<AtomicBool>);
    impl Listener for Impatient {
        fn retry(&self, _: &cuebook_run::provider::RetryNotice<'_>) -> RetryDecision {
            self.0.store(true, Ordering::SeqCst);
            RetryDecision::Same
        }
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }
    let provider = provider.with_clock(Arc::new(RealClock));
    let unheard = ask(&provider, &Impatient(Arc::default())).unwrap_err();
    assert_eq!((unheard.category, &unheard.charge), (Category::Cancelled, &Charge::Nothing));
}

#[test]
fn a_listener_may_want_no_further_attempt_or_a_shorter_answer() {
    let mock = Mock::start(Script::new().reply(Reply::hang_up()).text("x").forever()).unwrap();
    let (provider, clock) = provider(&mock, Api::Anthropic, "");
    let unheard = ask(
        &provider,
        &RecordingListener { next: Some(RetryDecision::Stop), ..RecordingListener::default() },
    )
    .unwrap_err();
    // The listener knows what the attempt cost: it is not reported twice.
    assert_eq!((&unheard.charge, mock.requests().len()), (&Charge::Nothing, 1));
    assert!(clock.slept().is_empty());
    mock.play(Script::new().reply(Reply::hang_up()).text("x"));
    ask(
        &provider,
        &RecordingListener { next: Some(RetryDecision::Shorter(9)), ..RecordingListener::default() },
    )
    .unwrap();
    let requests = mock.requests();
    assert_eq!(requests.last().unwrap().body["max_tokens"], 9);
    assert_ne!(requests[requests.len() - 2].body["max_tokens"], 9);
}

#[test]
fn a_server_with_a_long_pause_is_not_retried() {
    for (more, most) in [("", 60), ("retry: {max: 5}\n", 5), ("retry: {attempts: 1, max: 5}\n", 5)] {
        let reply = Reply::error(429, "no").header("retry-after", "3600");
        let mock = Mock::start(Script::new().reply(reply).text("yes")).unwrap();
        let (provider, clock) = provider(&mock, Api::OpenAiResponses, more);
        let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
        assert_eq!((mock.requests().len(), clock.slept().len()), (1, 0), "{more}");
        assert_eq!(unheard.category, Category::RateLimited);
        assert_eq!(unheard.error.field("retry_after_seconds"), Some(&json!(3600.0)));
        let reported = unheard.error.diagnostic();
        let wanted =
            format!("the server asks for a retry after 3600 seconds, but the longest pause is {most}");
        assert!(reported.message.contains(&wanted), "{}", reported.message);
        assert!(reported.hint.as_deref().unwrap().contains("`retry.max` in mock.yaml"), "{reported:?}");
    }
    // As long as the longest pause is not too long.
    let reply = Reply::error(503, "no").header("retry-after", "60");
    let mock = Mock::start(Script::new().reply(reply).text("yes")).unwrap();
    let (provider, clock) = provider(&mock, Api::OpenAiResponses, "");
    ask(&provider, &RecordingListener::default()).unwrap();
    assert_eq!(clock.slept(), [60.0]);
}

#[test]
fn a_dead_port_is_reported_without_a_pause() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = format!(
        "name: mock\napi: openai-chat\nbase_url: http://127.0.0.1:{port}/v1\nretry: {{attempts: 5}}\n"
    );
    let clock = Sleepless::new();
    let provider = HttpProvider::new(&Client::new(), chosen_from(&file)).with_clock(clock.clone());
    let listener = RecordingListener::default();
    let failure = ask(&provider, &listener).unwrap_err();
    assert!(failure.error.diagnostic().message.contains("nothing listens at"), "{}", failure.error);
    assert_eq!((clock.slept(), listener.retries.lock().unwrap().len()), (Vec::new(), 0));
}

#[test]
fn an_unknown_name_is_reported_with_its_file() {
    // `.invalid` is reserved for names that never exist; where no name server can be reached it may exist for all that is known.
    let text = "name: mock\napi: gemini\nbase_url: http://nobody.invalid/v1\nretry: {attempts: 2}\n";
    let clock = Sleepless::new();
    let provider = HttpProvider::new(&Client::new(), chosen_from(text)).with_clock(clock.clone());
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    let reported = unheard.error.diagnostic();
    assert!(reported.message.contains("nobody.invalid"), "{}", reported.message);
    assert!(reported.hint.as_deref().unwrap().contains("`base_url` in mock.yaml"), "{reported:?}");
    match reported.message.contains("unknown host nobody.invalid") {
        true => assert_eq!((unheard.category, clock.slept().len()), (Category::Permanent, 0)),
        false => assert_eq!((unheard.category, clock.slept().len()), (Category::Transient, 1)),
    }
    assert_eq!(unheard.charge, Charge::Nothing);
}
