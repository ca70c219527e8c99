//! Recordings.

use std::sync::Arc;

use cuebook::Code;
use cuebook::chat::reply::Reply as ModelReply;
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::provider::{Category, Client, HttpProvider, Recorder, Recording};
use serde_json::json;

use super::{KEY, RecordingListener, Sleepless, ask_for, chosen, environment};

fn recorded(mock: &Mock, api: Api, more: &str, recorder: &Arc<Recorder>) -> HttpProvider {
    HttpProvider::recording(&Client::new(), recorder, chosen(mock, api, more))
        .with_clock(Sleepless::new())
        .with_environment(environment)
}

fn replayed(mock: &Mock, api: Api, more: &str, recording: Recording) -> (HttpProvider, Arc<Recording>) {
    let recording = Arc::new(recording);
    let provider =
        HttpProvider::replaying(recording.clone(), chosen(mock, api, more)).with_environment(|_| None);
    (provider, recording)
}

#[test]
fn a_replay_equals_the_recording_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    for api in Api::ALL {
        for more in ["", "stream: false\n"] {
            let file = folder.path().join(format!("{}-{}.jsonl", api.as_str(), more.len()));
            let script = Script::new()
                .reply(Reply::text("Grüße 🌊").thinking("hm").usage(5, 6).pieces(1))
                .status(429, json!({"error": {"message": "wait"}}))
                .header("retry-after", "3")
                .header("set-cookie", "session=1")
                .reply(Reply::call("c1", "look", json!({"a": 1})))
                .reply(Reply::garbage())
                .reply(Reply::hang_up())
                .text("end");
            let mock = Mock::start(script).unwrap();
            let recorder = Recorder::create(&file).unwrap();
            let provider = recorded(&mock, api, more, &recorder);
            let first: Vec<_> = (0..3)
                .map(|number| {
                    let listener = RecordingListener::default();
                    let answer = ask_for(&provider, &listener, &format!("question {number}"), None).unwrap();
                    (answer, listener.chunks.into_inner().unwrap())
                })
                .collect();
            let asked = mock.requests().len();
            assert_eq!(asked, 6);
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(text.lines().count(), 6);
            assert!(!text.contains(KEY) && !text.contains("session=1"), "{text}");

            let (replay, recording) = replayed(&mock, api, more, Recording::read(&file).unwrap());
            for (number, (answer, chunks)) in first.iter().enumerate() {
                let listener = RecordingListener::default();
                let again = ask_for(&replay, &listener, &format!("question {number}"), None).unwrap();
                assert_eq!(again, *answer, "{api:?}");
                let text = |chunks: &[cuebook::chat::reply::Chunk]| format!("{chunks:?}");
                assert_eq!(text(&listener.chunks.into_inner().unwrap()), text(chunks));
            }
            assert_eq!((recording.left(), mock.requests().len()), (0, asked));
            let unheard = ask_for(&replay, &RecordingListener::default(), "question 3", None).unwrap_err();
            assert_eq!((unheard.error.code(), unheard.category), (Code::ReplayMismatch, Category::Permanent));
            assert!(unheard.error.to_string().contains("no reply left"), "{unheard:?}");
        }
    }
}

#[test]
fn recordings_hold_no_secret_options() {
    let folder = tempfile::tempdir().unwrap();
    let options = |written: &str| {
        format!(
            "options: {{password: {written}, gateway: {{team: 'of ${{env:ORGANISATION}}', token: 'x ${{env:ORGANISATION}}'}}}}\n"
        )
    };
    for api in Api::ALL {
        let file = folder.path().join(format!("{}.jsonl", api.as_str()));
        let mock = Mock::start(Script::new().text("a")).unwrap();
        let recorder = Recorder::create(&file).unwrap();
        let provider = recorded(&mock, api, &options("violet-blue-horse"), &recorder);
        ask_for(&provider, &RecordingListener::default(), "one", None).unwrap();
        assert!(mock.requests()[0].body.to_string().contains("x org-secret-42"));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("violet-blue-horse") && !text.contains("org-secret-42"), "{text}");
        // Neither the variable nor the same secret.
        for written in ["violet-blue-horse", "other-green-horse"] {
            let (replay, _) = replayed(&mock, api, &options(written), Recording::read(&file).unwrap());
            let answer = ask_for(&replay, &RecordingListener::default(), "one", None);
            assert_eq!(answer.unwrap().reply, ModelReply::Text("a".into()), "{api:?}");
        }
    }
}

#[test]
fn a_different_request_is_reported_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let mock = Mock::start(Script::new().text("a")).unwrap();
    let recorder = Recorder::create(&file).unwrap();
    ask_for(&recorded(&mock, Api::OpenAiChat, "", &recorder), &RecordingListener::default(), "one", None)
        .unwrap();

    let (replay, recording) = replayed(&mock, Api::OpenAiChat, "", Recording::read(&file).unwrap());
    let unheard = ask_for(&replay, &RecordingListener::default(), "two", None).unwrap_err();
    let reported = unheard.error.to_string();
    assert_eq!(unheard.error.code(), Code::ReplayMismatch);
    assert!(reported.contains("at /body/messages/1/content: recorded \"one\", sent \"two\""), "{reported}");
    assert_eq!(recording.left(), 1);

    let (replay, _) = replayed(&mock, Api::OpenAiChat, "", Recording::read(&file).unwrap().lenient());
    assert_eq!(
        ask_for(&replay, &RecordingListener::default(), "two", None).unwrap().reply,
        ModelReply::Text("a".into())
    );
}

#[test]
fn threads_that_share_a_recording_find_their_own_replies() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let mock = Mock::start(Script::new().text("a").text("b")).unwrap();
    let recorder = Recorder::create(&file).unwrap();
    let provider = recorded(&mock, Api::Gemini, "", &recorder);
    for question in ["one", "two"] {
        ask_for(&provider, &RecordingListener::default(), question, None).unwrap();
    }
    let (replay, _) = replayed(&mock, Api::Gemini, "", Recording::read(&file).unwrap());
    for (question, answer) in [("two", "b"), ("one", "a")] {
        assert_eq!(
            ask_for(&replay, &RecordingListener::default(), question, None).unwrap().reply,
            ModelReply::Text(answer.into())
        );
    }
}

#[test]
fn a_damaged_recording_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    let mock = Mock::start(Script::new().text("a").text("ü").forever()).unwrap();
    let recorder = Recorder::create(&file).unwrap();
    let provider = recorded(&mock, Api::Anthropic, "", &recorder);
    for question in ["one", "two"] {
        ask_for(&provider, &RecordingListener::default(), question, None).unwrap();
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let refused = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let error = Recording::read(&file).unwrap_err();
        assert_eq!(error.code(), Code::ReplayMismatch);
        (error.diagnostic().place.as_ref().unwrap().line(), error.diagnostic().message.clone())
    };
    let cut = text.trim_end().trim_end_matches('}');
    assert_eq!(refused(cut), (2, "exchange 2 cannot be read: it is cut off".into()));
    // What only lacks the end of its line is whole.
    std::fs::write(&file, text.trim_end()).unwrap();
    assert_eq!(Recording::read(&file).unwrap().left(), 2);
    let (line, message) = refused(&text.replacen("one", "uno", 1));
    assert!(line == 1 && message.contains("was changed"), "{message}");
    assert_eq!(refused("{}\n").0, 1);
    // A recording goes on behind what is there.
    std::fs::write(&file, &text).unwrap();
    let recorder = Recorder::append(&file).unwrap();
    ask_for(&recorded(&mock, Api::Anthropic, "", &recorder), &RecordingListener::default(), "three", None)
        .unwrap();
    assert_eq!(Recording::read(&file).unwrap().left(), 3);
}
