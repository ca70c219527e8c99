//! Providers, against a scripted server.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "provider/caps.rs"]
mod caps;
#[path = "provider/charges.rs"]
mod charges;
#[path = "provider/files.rs"]
mod files;
#[path = "provider/keys.rs"]
mod keys;
#[path = "provider/names.rs"]
mod names;
#[path = "provider/replay.rs"]
mod replay;
#[path = "provider/silence.rs"]
mod silence;
#[path = "provider/stops.rs"]
mod stops;
#[path = "provider/tls.rs"]
mod tls;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cuebook::Code;
use cuebook::chat::reply::{Answer, Chunk, Reply as ModelReply};
use cuebook::chat::{Message, Role};
use cuebook::prompt::{Model, Property, Tools};
use cuebook::source::Source;
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::Money;
use cuebook_run::provider::{
    Category, Charge, Chosen, Client, Clock, HttpProvider, Listener, Provider, ProviderFailure, ProviderFile,
    ProviderRequest, RetryDecision, RetryNotice, Stop,
};
use serde_json::{Value as Json, json};

pub const KEY: &str = "violet-key-0123456789";

pub fn environment(name: &str) -> Option<String> {
    match name {
        "MOCK_KEY" => Some(KEY.to_owned()),
        "ORGANISATION" => Some("org-secret-42".to_owned()),
        _ => None,
    }
}

/// Never sleeps, and records every requested pause.
#[derive(Debug)]
pub struct Sleepless {
    start: Instant,
    slept: Mutex<Vec<f64>>,
}

impl Sleepless {
    pub fn new() -> Arc<Sleepless> {
        Arc::new(Sleepless { start: Instant::now(), slept: Mutex::default() })
    }

    pub fn slept(&self) -> Vec<f64> {
        self.slept.lock().unwrap().clone()
    }
}

impl Clock for Sleepless {
    fn now(&self) -> Instant {
        self.start
    }

    fn today(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn sleep(&self, time: Duration, stop: &Stop) -> bool {
        self.slept.lock().unwrap().push(time.as_secs_f64());
        !stop.is_set()
    }

    fn chance(&self) -> f64 {
        0.0
    }
}

/// Hears everything.
#[derive(Default)]
pub struct RecordingListener {
    pub chunks: Mutex<Vec<Chunk>>,
    pub retries: Mutex<Vec<(u32, f64, String)>>,
    pub charges: Mutex<Vec<Charge>>,
    /// What it says of another attempt.
    pub next: Option<RetryDecision>,
    pub stop: Option<Arc<AtomicBool>>,
    /// Stops as soon as it hears this much text.
    pub enough: Option<usize>,
    pub enough_heard: AtomicBool,
}

impl RecordingListener {
    pub fn text(&self) -> String {
        let chunks = self.chunks.lock().unwrap();
        chunks
            .iter()
            .filter_map(|chunk| if let Chunk::Text(text) = chunk { Some(text.as_str()) } else { None })
            .collect()
    }
}

impl Listener for RecordingListener {
    fn chunk(&self, chunk: &Chunk) {
        self.chunks.lock().unwrap().push(chunk.clone());
        if self.enough.is_some_and(|enough| self.text().len() >= enough) {
            self.enough_heard.store(true, Ordering::SeqCst);
        }
    }

    fn retry(&self, again: &RetryNotice<'_>) -> RetryDecision {
        let reported = (again.attempt, again.pause.as_secs_f64(), again.why.to_string());
        self.retries.lock().unwrap().push(reported);
        self.charges.lock().unwrap().push(again.charge.clone());
        self.next.unwrap_or(RetryDecision::Same)
    }

    fn cancelled(&self) -> bool {
        self.enough_heard.load(Ordering::SeqCst)
            || self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::SeqCst))
    }

    fn stop(&self) -> Option<Stop> {
        self.stop.clone().map(Stop::flag)
    }
}

/// A file of the mock server, with more lines in it.
pub fn chosen(mock: &Mock, api: Api, more: &str) -> Chosen {
    chosen_from(&format!("{}{more}", mock.provider_yaml(api)))
}

pub fn chosen_from(text: &str) -> Chosen {
    let file = ProviderFile::read(&Source::new("mock.yaml", text), "mock").unwrap();
    let profile = file.profile("mock-model");
    Chosen {
        provider: Arc::new(file),
        model: "mock-model".into(),
        price: profile.price,
        context_window: profile.context_window,
        max_output: profile.max_output,
        profile,
        why: String::new(),
    }
}

pub fn provider(mock: &Mock, api: Api, more: &str) -> (HttpProvider, Arc<Sleepless>) {
    let clock = Sleepless::new();
    let provider = HttpProvider::new(&Client::new(), chosen(mock, api, more));
    (provider.with_clock(clock.clone()).with_environment(environment), clock)
}

pub fn ask(provider: &HttpProvider, listener: &dyn Listener) -> Result<Answer, Box<ProviderFailure>> {
    ask_for(provider, listener, "Hello?", None)
}

pub fn ask_for(
    provider: &HttpProvider,
    listener: &dyn Listener,
    question: &str,
    deadline: Option<Instant>,
) -> Result<Answer, Box<ProviderFailure>> {
    let messages = [Message::text(Role::System, "Be brief."), Message::text(Role::User, question)];
    let model = Model::default();
    let outputs: [Property; 0] = [];
    let ask = ProviderRequest {
        model: &model,
        messages: &messages,
        tools: &Tools::default(),
        outputs: &outputs,
        most_tokens: Some(500),
        deadline,
    };
    let answer = provider.ask(&ask, listener);
    // Whatever is reported, the key is not.
    let reported = match &answer {
        Ok(answer) => format!("{answer:?}"),
        Err(unheard) => format!("{unheard:?} {unheard:#?} {} {}", unheard.error, unheard.error.to_json()),
    };
    let reported = format!("{reported} {provider:?} {:?}", provider.chosen());
    for secret in [KEY, "org-secret-42"] {
        assert!(!reported.contains(secret), "{reported}");
    }
    answer
}

const STREAMED: &str = "stream: true\n";
const WHOLE: &str = "stream: false\n";

#[test]
fn every_interface_answers_whole_and_as_a_stream() {
    for api in Api::ALL {
        for more in [STREAMED, WHOLE] {
            // Pieces of three bytes cut the letters of this text.
            let reply =
                Reply::text("Grüße aus Çeşme 🌊").thinking("hm, ja").usage_cached(100, 21, 40).pieces(3);
            let mock = Mock::start(Script::new().reply(reply)).unwrap();
            let (provider, _) = provider(&mock, api, more);
            let listener = RecordingListener::default();
            let answer = ask(&provider, &listener).unwrap();
            assert_eq!(answer.reply, ModelReply::Text("Grüße aus Çeşme 🌊".into()), "{api:?}");
            assert_eq!(listener.text(), "Grüße aus Çeşme 🌊");
            assert_eq!(answer.thinking.as_deref(), Some("hm, ja"), "{api:?}");
            let usage = answer.usage.unwrap();
            assert_eq!(
                (usage.input, usage.output, usage.cached),
                (Some(100), Some(21), Some(40)),
                "{api:?} {more}"
            );
            let request = &mock.requests()[0];
            assert_eq!((request.api, request.stream), (Some(api), more == STREAMED));
            assert_eq!(request.model(), Some("mock-model"));
            let most = [
                "/max_completion_tokens",
                "/max_output_tokens",
                "/max_tokens",
                "/generationConfig/maxOutputTokens",
            ];
            assert!(
                most.iter().any(|most| request.body.pointer(most) == Some(&json!(500))),
                "{}",
                request.body
            );
            let header = match api {
                Api::Anthropic => "x-api-key",
                Api::Gemini => "x-goog-api-key",
                _ => "authorization",
            };
            assert!(request.header(header).unwrap().ends_with(KEY));
            assert!(!request.path.contains(KEY) && !request.body.to_string().contains(KEY));
        }
    }
}

#[test]
fn calls_of_tools_come_whole_and_in_order() {
    for api in Api::ALL {
        for more in [STREAMED, WHOLE] {
            let script = Script::new()
                .call("c1", "rye_execute", json!({"item_id": "a/b", "n": 1.5}))
                .and_call("c2", "rye_search", json!({"query": "ö"}))
                .usage(7, 8);
            let mock = Mock::start(script).unwrap();
            let (provider, _) = provider(&mock, api, more);
            let listener = RecordingListener::default();
            let ModelReply::ToolCalls { calls, text } = ask(&provider, &listener).unwrap().reply else {
                panic!("{api:?}")
            };
            assert_eq!(text, None);
            let calls: Vec<_> = calls
                .iter()
                .map(|call| {
                    (
                        call.id.as_str(),
                        call.name.as_str(),
                        serde_json::from_str::<Json>(&call.arguments).unwrap(),
                    )
                })
                .collect();
            assert_eq!(
                calls,
                [
                    ("c1", "rye_execute", json!({"item_id": "a/b", "n": 1.5})),
                    ("c2", "rye_search", json!({"query": "ö"}))
                ],
                "{api:?}"
            );
            let heard = listener.chunks.lock().unwrap();
            assert_eq!(heard.iter().filter(|chunk| matches!(chunk, Chunk::Tool(_))).count(), 2);
        }
    }
}

#[test]
fn provider_state_goes_back_with_the_next_request() {
    for (api, at, wanted) in [
        (
            Api::Anthropic,
            "/messages/1/content/0",
            json!({"type": "thinking", "thinking": "let me see", "signature": "bW9jay1zaWduYXR1cmU="}),
        ),
        (Api::Gemini, "/contents/1/parts/0/thoughtSignature", json!("bW9jay1zaWduYXR1cmU=")),
    ] {
        for more in [STREAMED, WHOLE] {
            let script =
                Script::new().call("c1", "look", json!({"a": 1})).thinking("let me see").text("done");
            let mock = Mock::start(script).unwrap();
            let (provider, _) = provider(&mock, api, more);
            let answer = ask(&provider, &RecordingListener::default()).unwrap();
            // A thread may give calls other ids.
            let mut said = cuebook_run::turn::assistant_message(&answer.reply);
            said.metadata["tool_calls"][0]["id"] = json!("t1-c1");
            answer.carry_into(&mut said);
            let mut result = Message::text(Role::Tool, "found");
            result.metadata.insert("tool_call_id".into(), json!("t1-c1"));
            let messages = [Message::text(Role::User, "Look!"), said, result];
            let (model, outputs): (_, [Property; 0]) = (Model::default(), []);
            let ask = ProviderRequest {
                model: &model,
                messages: &messages,
                tools: &Tools::default(),
                outputs: &outputs,
                most_tokens: None,
                deadline: None,
            };
            assert_eq!(
                provider.ask(&ask, &RecordingListener::default()).unwrap().reply,
                ModelReply::Text("done".into())
            );
            let body = &mock.requests()[1].body;
            assert_eq!(body.pointer(at), Some(&wanted), "{api:?} {more} {body}");
        }
    }
}

#[test]
fn prices_come_from_the_file() {
    let mock = Mock::start(Script::new()).unwrap();
    let price = chosen(&mock, Api::OpenAiChat, "").price.unwrap();
    assert_eq!((price.input, price.output), (Money::from_units(1.0), Money::from_units(10.0)));
}

#[test]
fn temporary_failures_are_retried_with_pauses() {
    for api in Api::ALL {
        let script = Script::new()
            .status(503, json!({"error": {"message": "busy"}}))
            .status(429, json!({"error": {"message": "slow down"}}))
            .header("retry-after", "7")
            .reply(Reply::hang_up())
            .text("at last");
        let mock = Mock::start(script).unwrap();
        let (provider, clock) = provider(&mock, api, "");
        let listener = RecordingListener::default();
        assert_eq!(ask(&provider, &listener).unwrap().reply, ModelReply::Text("at last".into()));
        // Half of 2 seconds, since chance is nothing here; what the server asks for; half of 3 · 2².
        assert_eq!(clock.slept(), [1.0, 7.0, 6.0], "{api:?}");
        let retries = listener.retries.lock().unwrap();
        assert_eq!(retries.iter().map(|(attempt, ..)| *attempt).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(retries[0].2.contains("status 503: busy"), "{retries:?}");
        assert_eq!(mock.requests().len(), 4);
    }
}

#[test]
fn the_file_says_how_often_and_how_long() {
    let mock = Mock::start(Script::new().reply(Reply::error(500, "no")).forever()).unwrap();
    let (provider, clock) = provider(&mock, Api::Anthropic, "retry: {attempts: 3, base: 10, max: 12}\n");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!(clock.slept(), [5.0, 6.0]);
    assert_eq!((unheard.category, unheard.indeterminate), (Category::Transient, false));
    assert_eq!(unheard.error.code(), Code::NoAnswer);
    assert_eq!(unheard.error.field("attempts"), Some(&json!(3)));
    assert_eq!(unheard.error.field("status"), Some(&json!(500)));
    assert_eq!(mock.requests().len(), 3);
}

#[test]
fn a_pause_beyond_the_deadline_is_not_made() {
    let reply = Reply::error(429, "no").header("retry-after", "50");
    let mock = Mock::start(Script::new().reply(reply).forever()).unwrap();
    let (provider, clock) = provider(&mock, Api::OpenAiChat, "");
    let deadline = clock.now() + Duration::from_secs(40);
    let unheard = ask_for(&provider, &RecordingListener::default(), "?", Some(deadline)).unwrap_err();
    assert_eq!(unheard.category, Category::RateLimited);
    assert!(clock.slept().is_empty());
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn permanent_failures_are_not_retried() {
    for (status, body) in [
        (400, json!({"error": {"message": "bad request"}})),
        (401, json!({"error": {"message": "no such key"}})),
        (403, json!({"error": "forbidden"})),
        (404, json!({"detail": "no such model"})),
        (422, json!([{"error": {"message": "wrong"}}])),
        (429, json!({"error": {"message": "pay", "code": "insufficient_quota"}})),
        (302, json!({})),
    ] {
        let mock = Mock::start(Script::new().status(status, body).header("location", "/elsewhere")).unwrap();
        let (provider, clock) = provider(&mock, Api::OpenAiChat, "");
        let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
        assert_eq!(unheard.category, Category::Permanent, "{status}");
        assert_eq!(unheard.error.field("status"), Some(&json!(status)));
        assert_eq!((mock.requests().len(), clock.slept().len()), (1, 0), "{status}");
    }
}

#[test]
fn a_failure_inside_of_a_stream_is_classified_by_its_name() {
    let failing = |kind: &str| {
        let event = json!({"type": "error", "error": {"type": kind, "message": "trouble"}});
        Reply::raw(200, "text/event-stream", format!("event: error\ndata: {event}\n\n"))
    };
    let script = Script::new().reply(failing("overloaded_error")).reply(failing("invalid_request_error"));
    let mock = Mock::start(script).unwrap();
    let (provider, clock) = provider(&mock, Api::Anthropic, "");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!((unheard.category, unheard.indeterminate), (Category::Permanent, false));
    assert_eq!(unheard.error.field("provider_type"), Some(&json!("invalid_request_error")));
    assert_eq!(clock.slept(), [1.0]);
}

#[test]
fn text_before_a_break_is_kept_and_not_requested_again() {
    for api in Api::ALL {
        let reply =
            Reply::text("one two three four five six seven eight nine ten").pieces(50).close_after(1200);
        let mock = Mock::start(Script::new().reply(reply).text("again")).unwrap();
        let (provider, clock) = provider(&mock, api, "");
        let listener = RecordingListener::default();
        let unheard = ask(&provider, &listener).unwrap_err();
        assert!(unheard.partial_text.starts_with("one "), "{api:?} {unheard:?}");
        assert_eq!(unheard.partial_text, listener.text());
        assert!(unheard.indeterminate);
        assert_eq!(unheard.category, Category::Transient);
        assert_eq!((mock.requests().len(), clock.slept().len()), (1, 0));
    }
}

#[test]
fn a_file_can_ask_for_another_attempt_after_text() {
    let reply = Reply::text("one two three four five six seven eight nine ten").close_after(1200);
    let mock = Mock::start(Script::new().reply(reply).text("again")).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "retry: {after_text: true}\n");
    assert_eq!(
        ask(&provider, &RecordingListener::default()).unwrap().reply,
        ModelReply::Text("again".into())
    );
}

#[test]
fn a_break_before_the_first_text_is_retried() {
    for api in Api::ALL {
        for more in [STREAMED, WHOLE] {
            let script = Script::new().reply(Reply::text("never heard").close_after(10)).text("heard");
            let mock = Mock::start(script).unwrap();
            let (provider, clock) = provider(&mock, api, more);
            assert_eq!(
                ask(&provider, &RecordingListener::default()).unwrap().reply,
                ModelReply::Text("heard".into()),
                "{api:?} {more}"
            );
            assert_eq!(clock.slept(), [1.5]);
        }
    }
}

#[test]
fn nonsense_is_an_error_and_no_answer() {
    let replies = [
        Reply::garbage(),
        Reply::raw(200, "text/html", "<html>Please log in</html>"),
        Reply::text("cut").truncate(30),
        Reply::raw(200, "text/event-stream", "data: {\"choices\n\n"),
        Reply::raw(200, "text/event-stream", ""),
        Reply::raw(200, "application/json", ""),
    ];
    for reply in replies {
        let shown = format!("{reply:?}");
        let mock = Mock::start(Script::new().reply(reply).forever()).unwrap();
        let (provider, _) = provider(&mock, Api::OpenAiChat, "stream: false\nretry: {attempts: 2}\n");
        let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
        assert_eq!(unheard.error.code(), Code::NoAnswer, "{shown}");
        assert!(unheard.indeterminate, "{shown}");
        assert_eq!(mock.requests().len(), 2, "{shown}");
    }
    // The answer of another interface does not become another one by asking again.
    let mock = Mock::start(Script::new().status(200, json!({"content": [], "stop_reason": "x"}))).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, WHOLE);
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!((unheard.category, unheard.error.code()), (Category::Permanent, Code::BadReply));
}

#[test]
fn a_huge_body_is_refused() {
    let mock =
        Mock::start(Script::new().reply(Reply::raw(200, "application/json", vec![b' '; 65 << 20]))).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "retry: {attempts: 1}\n");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert_eq!(unheard.error.code(), Code::NoAnswer);
    let mock = Mock::start(Script::new().reply(Reply::raw(400, "text/plain", vec![b'x'; 8 << 20]))).unwrap();
    let (provider, _) = crate::provider(&mock, Api::OpenAiChat, "");
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert!(unheard.error.to_string().len() < 5000);
}

/// A listener that has to be asked.
struct RequestNotice(Arc<AtomicBool>);

impl Listener for RequestNotice {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn silence_and_a_timeout_are_distinguished() {
    let forever = Duration::from_secs(3600);
    let script = || Script::new().reply(Reply::text("x").first_byte_after(forever)).forever();
    let mock = Mock::start(script()).unwrap();
    let (silent, _) = provider(&mock, Api::Anthropic, "timeouts: {first_byte: 0.05}\nretry: {attempts: 2}\n");
    let unheard = ask(&silent, &RecordingListener::default()).unwrap_err();
    assert!(unheard.error.to_string().contains("sent nothing for too long"), "{unheard:?}");
    assert_eq!((unheard.category, mock.requests().len()), (Category::Transient, 2));
    let (late, _) = provider(&mock, Api::Anthropic, "timeouts: {total: 0.05}\nretry: {attempts: 1}\n");
    let unheard = ask(&late, &RecordingListener::default()).unwrap_err();
    assert!(unheard.error.to_string().contains("did not answer in time"), "{unheard:?}");
    mock.play(
        Script::new()
            .reply(Reply::text("one two three four five six seven").pieces(20).stall_after(900, forever)),
    );
    let (idle, _) = provider(&mock, Api::Anthropic, "timeouts: {idle: 0.05}\n");
    let unheard = ask(&idle, &RecordingListener::default()).unwrap_err();
    assert!(unheard.error.to_string().contains("sent nothing for too long"), "{unheard:?}");
    assert!(unheard.indeterminate);
}

#[test]
fn a_server_that_is_not_there_was_certainly_not_asked() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text =
        format!("name: mock\napi: gemini\nbase_url: http://127.0.0.1:{port}\nretry: {{attempts: 2}}\n");
    let clock = Sleepless::new();
    let provider = HttpProvider::new(&Client::new(), chosen_from(&text)).with_clock(clock.clone());
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    assert!(unheard.error.to_string().contains("cannot be reached"), "{unheard:?}");
    assert_eq!((unheard.category, unheard.indeterminate), (Category::Transient, false));
    // Nothing listens there, so a pause does not help.
    assert!(clock.slept().is_empty() && unheard.error.field("attempts").is_none(), "{unheard:?}");
}

#[test]
fn a_server_without_tls_is_an_error() {
    let mock = Mock::start(Script::new().text("x")).unwrap();
    let secure = |address: &str, more: &str| {
        let text = format!("name: mock\napi: anthropic\nbase_url: https://{address}\nkey: MOCK_KEY\n{more}");
        HttpProvider::new(&Client::new(), chosen_from(&text)).with_environment(environment)
    };
    let address = mock.url().replace("http://", "");
    let unheard = ask(
        &secure(&address, "retry: {attempts: 1}\ntimeouts: {first_byte: 0.3}\n"),
        &RecordingListener::default(),
    )
    .unwrap_err();
    assert_eq!(unheard.error.code(), Code::NoAnswer, "{unheard:?}");
    assert!(mock.requests().is_empty());
    // It accepts, since the system does that for it, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let provider = secure(&silent.local_addr().unwrap().to_string(), "");
    let asked = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            ask(&provider, &RecordingListener { stop: Some(stop.clone()), ..RecordingListener::default() })
        });
        // Connected: the handshake has begun, and gets no answer.
        let connection = silent.accept().unwrap();
        stop.store(true, Ordering::SeqCst);
        let asked = asking.join().unwrap();
        drop(connection);
        asked
    });
    let category = asked.unwrap_err().category;
    assert!(matches!(category, Category::Cancelled), "{category:?}");
}

#[test]
fn a_refusal_is_an_answer_with_its_usage() {
    for more in [STREAMED, WHOLE] {
        let script = Script::new().reply(Reply::text("I will not.").finish("refusal").usage(9, 4));
        let mock = Mock::start(script).unwrap();
        let (provider, _) = provider(&mock, Api::Anthropic, more);
        let answer = ask(&provider, &RecordingListener::default()).unwrap();
        assert!(matches!(answer.reply, ModelReply::Refusal(_)), "{answer:?}");
        assert_eq!(answer.usage.unwrap().output, Some(4));
    }
}

#[test]
fn a_connection_serves_several_answers() {
    for api in Api::ALL {
        let mock = Mock::start(Script::new().text("a").text("b").text("c")).unwrap();
        let (provider, _) = provider(&mock, api, "");
        for text in ["a", "b", "c"] {
            assert_eq!(
                ask(&provider, &RecordingListener::default()).unwrap().reply,
                ModelReply::Text(text.into())
            );
        }
        assert_eq!(mock.connections(), 1, "{api:?}");
    }
}

#[test]
fn options_of_the_file_reach_the_body() {
    let mock = Mock::start(Script::new().text("a").text("b")).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "options: {service_tier: flex}\n");
    ask(&provider, &RecordingListener::default()).unwrap();
    let body = mock.requests()[0].body.clone();
    assert_eq!((&body["service_tier"], &body["stream"]), (&json!("flex"), &json!(true)));
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
}

#[test]
fn many_requests_wait_at_once() {
    let mock = Mock::start(Script::answer(|request| {
        Reply::text(request.body["messages"][1]["content"].as_str().unwrap())
    }))
    .unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "");
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..32)
            .map(|number| {
                let provider = &provider;
                scope.spawn(move || {
                    let stop = Some(Arc::new(AtomicBool::new(false)));
                    ask_for(
                        provider,
                        &RecordingListener { stop, ..RecordingListener::default() },
                        &format!("number {number}"),
                        None,
                    )
                    .unwrap()
                })
            })
            .collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.reply, ModelReply::Text(format!("number {number}")));
    }
}
