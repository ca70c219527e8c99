//! A caller that wants to stop stops, in the middle of an answer or of a pause.

use super::*;

#[test]
fn a_caller_can_stop() {
    for api in Api::ALL {
        let forever = Duration::from_secs(3600);
        let mock =
            Mock::start(Script::new().reply(Reply::text("x").first_byte_after(forever)).forever()).unwrap();
        let (provider, _) = provider(&mock, api, "");
        // One listener offers a flag, the other one has to be asked.
        for (number, flag) in [true, false].into_iter().enumerate() {
            let stop = Arc::new(AtomicBool::new(false));
            let asked = std::thread::scope(|scope| {
                let asking = scope.spawn(|| {
                    if flag {
                        ask(
                            &provider,
                            &RecordingListener { stop: Some(stop.clone()), ..RecordingListener::default() },
                        )
                    } else {
                        ask(&provider, &RequestNotice(stop.clone()))
                    }
                });
                assert!(mock.wait_for_requests(number + 1, Duration::from_secs(60)));
                stop.store(true, Ordering::SeqCst);
                asking.join().unwrap()
            });
            let unheard = asked.unwrap_err();
            assert_eq!(unheard.category, Category::Cancelled, "{api:?} {unheard:?}");
            assert_eq!(unheard.error.code(), Code::ThreadCancelled);
            assert!(unheard.indeterminate);
        }
    }
}

#[test]
fn text_before_a_stop_is_kept() {
    let reply = Reply::text("one two three four five six seven eight")
        .pieces(20)
        .stall_after(1200, Duration::from_secs(3600));
    let mock = Mock::start(Script::new().reply(reply)).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "");
    let unheard =
        ask(&provider, &RecordingListener { enough: Some(4), ..RecordingListener::default() }).unwrap_err();
    assert_eq!(unheard.category, Category::Cancelled);
    assert!(unheard.partial_text.starts_with("one "), "{unheard:?}");
    // The request did not wait for the rest of the reply.
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_stop_ends_a_pause() {
    let mock = Mock::start(Script::new().reply(Reply::error(503, "no")).forever()).unwrap();
    let (provider, _) = provider(&mock, Api::OpenAiChat, "");
    struct Impatient(AtomicBool);
    impl Listener for Impatient {
        fn retry(&self, _: &RetryNotice<'_>) -> RetryDecision {
            self.0.store(true, Ordering::SeqCst);
            RetryDecision::Same
        }
        fn cancelled(&self) -> bool {
            self.0.load(Ordering::SeqCst)
        }
    }
    let provider = provider.with_clock(Arc::new(cuebook_run::provider::RealClock));
    let unheard = ask(&provider, &Impatient(AtomicBool::new(false))).unwrap_err();
    assert_eq!(unheard.category, Category::Cancelled);
    assert_eq!(mock.requests().len(), 1);
}
