//! Providers that send too much, or do not stop.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cuebook::Code;
use cuebook::chat::reply::Reply as ModelReply;
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::provider::{Client, HttpProvider};
use serde_json::json;

use crate::{RecordingListener, ask, provider};

#[test]
fn an_answer_that_is_too_large_is_refused_once() {
    for api in Api::ALL {
        for more in ["stream: true\n", "stream: false\n"] {
            let large = Reply::text("word ".repeat((17 << 20) / 5));
            let mock = Mock::start(Script::new().reply(large).forever()).unwrap();
            let (provider, _) = provider(&mock, api, more);
            let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
            let said = &unheard.error.diagnostic().message;
            assert_eq!(unheard.error.code(), Code::NoAnswer, "{api:?} {more}");
            assert!(said.contains("is too large"), "{api:?} {more}: {said}");
            assert_eq!(mock.requests().len(), 1, "{api:?} {more}");
        }
    }
}

#[test]
fn an_answer_with_thousands_of_calls_is_refused() {
    for more in ["stream: true\n", "stream: false\n"] {
        let call = |reply: Reply, n: usize| reply.and_call(format!("c{n}"), "look", json!({}));
        let many = (0..1100).fold(Reply::text(""), call);
        let mock = Mock::start(Script::new().reply(many).forever()).unwrap();
        let (provider, _) = provider(&mock, Api::OpenAiChat, more);
        let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
        let said = &unheard.error.diagnostic().message;
        assert!(said.contains("more than 1024 calls"), "{more}: {said}");
        assert_eq!(mock.requests().len(), 1);
    }
}

#[test]
fn a_server_that_goes_on_behind_its_answer_is_not_listened_to() {
    // A mock says who is asked; the address is that of a server that never ends its reply.
    let mock = Mock::start(Script::new()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 65536]).unwrap();
        let said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
        let counted = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        write!(stream, "{head}{:x}\r\n{said}\r\n", said.len()).unwrap();
        // What was counted comes behind the end, and a moment later.
        std::thread::sleep(Duration::from_millis(50));
        write!(stream, "{:x}\r\n{counted}\r\n0\r\n", counted.len()).unwrap();
        // Trailers without end, often enough to be no timeout.
        for number in 0..600 {
            if write!(stream, "x-{number}: y\r\n").is_err() {
                return;
            }
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let file = mock.provider_yaml(Api::OpenAiChat).replace(&mock.url(), &format!("http://{address}"));
    let provider =
        HttpProvider::new(&Client::new(), crate::chosen_from(&file)).with_environment(crate::environment);
    let answer = ask(&provider, &RecordingListener::default()).unwrap();
    assert_eq!((answer.reply, answer.usage.unwrap().input), (ModelReply::Text("Hi".into()), Some(7)));
    let heard = sent.load(Ordering::SeqCst);
    assert!(heard < 400, "{heard} trailers were read");
    drop(provider);
    server.join().unwrap();
}

#[test]
fn a_date_to_ask_again_counts_only_if_it_is_to_come() {
    let at = |date: &str| Reply::error(429, "no").header("retry-after", date);
    // The clock of these tests begins in 1970.
    let mock = Mock::start(Script::new().times(3, at("Wed, 31 Dec 1969 07:28:00 GMT")).text("yes")).unwrap();
    let (provider, clock) = provider(&mock, Api::OpenAiChat, "");
    ask(&provider, &RecordingListener::default()).unwrap();
    assert!(
        clock.slept().len() == 3 && clock.slept().iter().all(|pause| *pause >= 1.0),
        "{:?}",
        clock.slept()
    );
    mock.play(Script::new().reply(at("Fri, 31 Dec 9999 23:59:59 GMT")).text("yes"));
    let unheard = ask(&provider, &RecordingListener::default()).unwrap_err();
    let said = &unheard.error.diagnostic().message;
    assert!(said.contains("(at 9999-12-3"), "{said}");
    assert!(unheard.error.field("retry_after_seconds").is_some());
}
