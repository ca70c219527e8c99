//! What hooks do when a thread has ended: they have a time of their own, can be stopped, and are found when their process dies.

use cuebook_run::store::{Change, Filter, Holder};
use cuebook_run::{Entry, Kind, Status};
use serde_json::json;

use crate::setup::*;

/// A stage whose thread returns a word at once, and whose hook runs a tool then.
fn stage(code: &str) -> Setup {
    let stage = Setup::new(script([returns("a", "x")]));
    stage.tool("slow", code);
    let hook = |id: &str| {
        format!(
            "<hook id=\"{id}\" event=\"after_complete\"><action primary=\"execute\" item_type=\"tool\" item_id=\"demo/slow\"/></hook>"
        )
    };
    stage.worker(&format!("<hooks>{}{}</hooks>", hook("one"), hook("two")));
    stage
}

const SLEEPS: &str = "open(project_path + '/begun', 'a').write('x')\nimport time\ntime.sleep(600)\nreturn {}";

#[test]
fn a_hook_behind_the_end_takes_no_more_time_than_its_thread_may() {
    let stage = stage(SLEEPS);
    let answer = stage.run_within("demo/work", json!({"duration_seconds": 2}));
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let id = id_of(&answer);
    assert_eq!(stage.record(&id).status, Status::Completed);
    let hooks = stage.payloads(&id, Kind::Hook);
    let why = |at: usize| hooks[at]["failed"].as_str().unwrap_or_default().to_owned();
    assert_eq!(why(0), "it was stopped: the hooks of one event share a limit of 2 s", "{hooks:#?}");
    assert!(why(1).starts_with("it did not run: earlier hooks used the shared limit of 2 s"), "{hooks:#?}");
    assert_eq!(stage.payloads(&id, Kind::HookStart).len(), 1);
}

#[test]
fn cancel_stops_the_hooks_of_a_threads_end() {
    let stage = stage(SLEEPS);
    let answer = std::thread::scope(|scope| {
        let running = scope.spawn(|| stage.run("demo/work"));
        let begun = stage.world.project().join("begun");
        while !begun.exists() && !running.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let record = stage.records().remove(0);
        assert_eq!(record.status, Status::Running);
        let last = stage.log(&record.id).pop().unwrap();
        assert_eq!(last.kind, Kind::HookStart);
        let cancelled = stage.world.engine.cancel(None, &record.id, false).unwrap();
        assert_eq!(cancelled.record.status, Status::Completed, "it had come to its end before");
        running.join().unwrap()
    });
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let id = id_of(&answer);
    let hooks = stage.payloads(&id, Kind::Hook);
    assert!(hooks.iter().all(|hook| hook["failed"].is_string()), "{hooks:#?}");
    assert_eq!(stage.payloads(&id, Kind::HookStart).len(), 1, "the second one did not begin");
    assert_eq!(stage.record(&id).result.unwrap()["outputs"], json!({"word": "x"}));
}

#[test]
fn a_crash_in_an_end_hook_names_the_hook() {
    for (kind, status) in [
        (Kind::Completed, Status::Completed),
        (Kind::Failed, Status::Error),
        (Kind::Suspended, Status::Suspended),
    ] {
        let stage = Setup::new(script([call("a", "demo/none", json!({}))]).forever());
        stage.worker("");
        let id = id_of(&stage.run_within("demo/work", json!({"turns": 1})));
        // As a process leaves it that dies while the hook runs.
        let store = stage.store();
        let holder = Holder::of_this_process();
        store.take(&id, &holder, &[Entry::new(Kind::Resumed, json!({}))], &Change::default()).unwrap();
        let begun = json!({"hook": "one", "event": "after_complete", "item_id": "demo/slow", "turns": 1});
        let entries = [Entry::new(kind, json!({})), Entry::new(Kind::HookStart, begun)];
        let result = Some(json!({"outputs": {"word": "x"}}));
        store.append(&id, &holder, &entries, &Change { result, ..Change::default() }).unwrap();
        assert_eq!(store.sweep(&|_, _| false).unwrap(), std::slice::from_ref(&id));
        let record = stage.record(&id);
        assert_eq!((record.status, record.result.unwrap()["outputs"]["word"].as_str()), (status, Some("x")));
        assert!(record.completed_at.is_some());
        let last = stage.log(&id).pop().unwrap();
        assert_eq!((last.kind, &last.payload["hook"]), (Kind::HookUnknown, &json!("one")));
        assert!(
            store.list(&Filter { status: vec![Status::Running], ..Filter::default() }).unwrap().is_empty()
        );
    }
}
