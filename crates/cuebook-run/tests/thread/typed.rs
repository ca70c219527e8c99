//! The typed operations of an engine, and threads in the background of a program.

use std::pin::Pin;
use std::sync::Arc;

use cuebook::actions::load::LoadRequest;
use cuebook::actions::search::SearchRequest;
use cuebook::actions::sign::{SignRequest, Signed};
use cuebook::items::{ItemType, SpaceKind, Spaces};
use cuebook::trust::SigningKey;
use cuebook::{Book, Code, ErrorKind};
use cuebook_run::{Engine, ExecuteRequest, Executed, Kind, RunRequest, Status, ThreadId, Update, Updates};
use futures_core::Stream as _;
use serde_json::json;

use crate::prompts::FORM;
use crate::setup::*;

/// An engine and a book that threads share, in the project of a stage.
fn shared(stage: &Setup) -> (Arc<Engine>, Arc<Book>) {
    let spaces = Spaces::new(&stage.world.project(), Some(&stage.world.user()));
    let engine = Engine::new(spaces.clone()).with_settings(stage.world.engine.settings().clone());
    (Arc::new(engine), Arc::new(Book::open(stage.world.project()).with_spaces(spaces)))
}

fn form() -> RunRequest {
    RunRequest::new("form").model("mock-model")
}

#[test]
fn a_thread_reports_events_and_joins_with_typed_outputs() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct City {
        city: String,
        people: u64,
    }
    let stage = Setup::new(script([says("{\"city\": \"Dunedin\", \"people\": 130000}")]));
    stage.world.plain("prompts/form.prompty", FORM);
    let (engine, book) = shared(&stage);
    let thread = engine.start(&book, form()).unwrap();
    let id = thread.id().clone();
    assert!(id.as_str().starts_with("form/form-"), "{id}");
    let updates: Vec<_> = thread.updates().collect();
    assert!(updates.iter().all(|update| update.thread == id));
    let kinds: Vec<Kind> = updates
        .iter()
        .filter_map(|update| match &update.update {
            Update::Event(event) => Some(event.kind),
            _ => None,
        })
        .collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&Kind::Started), Some(&Kind::Completed)), "{kinds:?}");
    let finished = thread.join().unwrap().completed().unwrap();
    assert_eq!((&finished.id, finished.status), (&id, Status::Completed));
    let city: City = finished.outputs_as().unwrap();
    assert_eq!(city, City { city: "Dunedin".into(), people: 130_000 });
    let wrong = finished.outputs_as::<Vec<u8>>().unwrap_err();
    assert_eq!((wrong.kind(), wrong.code()), (ErrorKind::OutputParse, Code::OutputMismatch));
    assert!(std::error::Error::source(&wrong).is_some());
}

#[test]
fn a_thread_that_cannot_begin_is_an_error_of_start() {
    let stage = Setup::new(script([]));
    stage.world.plain("prompts/form.prompty", FORM);
    let (engine, book) = shared(&stage);
    let missing = engine.start(&book, RunRequest::new("from")).unwrap_err();
    assert_eq!(missing.code(), Code::PromptNotFound);
    let model = engine.start(&book, RunRequest::new("form").model("nobody-has-this")).unwrap_err();
    assert_eq!(model.code(), Code::NoModel, "{model:?}");
    let unknown = engine.resume(&ThreadId::known("form/form-1")).start().unwrap_err();
    assert_eq!(unknown.code(), Code::ThreadNotFound, "{unknown:?}");
    assert_eq!(stage.mock.requests().len(), 0);
}

#[test]
fn a_thread_that_reached_a_limit_is_resumed_with_another() {
    let stage = Setup::new(script([says("no"), says("{\"city\": \"Rome\", \"people\": 1}")]));
    stage.world.plain("prompts/form.prompty", FORM);
    let (engine, book) = shared(&stage);
    let thread = engine.start(&book, form().limit("turns", 1)).unwrap();
    let id = thread.id().clone();
    let suspended = thread.join().unwrap();
    assert_eq!(suspended.status, Status::Suspended);
    let error = suspended.completed().unwrap_err();
    assert_eq!(error.field("thread_id"), Some(&json!(id.as_str())));
    assert_eq!(error.field("thread_status"), Some(&json!("suspended")));
    let thread = engine.resume(&id).book(&book).limit("turns", 5).start().unwrap();
    assert_eq!(thread.id(), &id);
    let kinds: Vec<Kind> = thread.events().map(|event| event.kind).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&Kind::Resumed), Some(&Kind::Completed)), "{kinds:?}");
    assert_eq!(thread.join().unwrap().outputs, Some(json!({"city": "Rome", "people": 1})));
}

#[test]
fn a_cancelled_thread_stops_its_tool() {
    let stage = Setup::new(script([call("c1", "demo/sleep", json!({}))]).forever());
    stage.worker("").tool("sleep", "import time\ntime.sleep(600)");
    let (engine, book) = shared(&stage);
    let thread = engine.start(&book, RunRequest::new("demo/work")).unwrap();
    for event in thread.events() {
        if event.kind == Kind::ToolStart {
            thread.cancel();
        }
    }
    let finished = thread.join().unwrap();
    assert_eq!(finished.status, Status::Cancelled, "{finished:?}");
    assert_eq!(finished.completed().unwrap_err().code(), Code::ThreadCancelled);
}

#[test]
fn updates_are_a_stream() {
    let stage = Setup::new(script([says("{\"city\": \"Rome\", \"people\": 1}")]));
    stage.world.plain("prompts/form.prompty", FORM);
    let (engine, book) = shared(&stage);
    let thread = engine.start(&book, form()).unwrap();
    let mut updates: Updates = thread.updates();
    let count = futures_executor::block_on(async {
        let mut count = 0;
        while let Some(_update) =
            std::future::poll_fn(|context| Pin::new(&mut updates).poll_next(context)).await
        {
            count += 1;
        }
        count
    });
    assert!(count > 3, "{count}");
    assert_eq!(thread.join().unwrap().status, Status::Completed);
}

#[test]
fn items_are_signed_verified_found_loaded_and_executed() {
    let stage = Setup::new(script([]));
    let (engine, _) = shared(&stage);
    let spaces = Spaces::new(&stage.world.project(), Some(&stage.world.user()));
    SigningKey::from_seed(&std::array::from_fn(|at| at as u8)).unwrap().save(&spaces, false).unwrap();
    let text = "```yaml\nname: NAME\ntitle: Tea\nversion: 1.0.0\nentry_type: note\ncategory: demo\n```\n\nFour minutes.\n";
    stage.world.plain(".ai/knowledge/demo/tea.md", &text.replace("NAME", "tea"));
    stage.world.plain(".ai/knowledge/demo/bad.md", &text.replace("NAME", "wrong"));

    let unsigned = engine.verify(ItemType::Knowledge, "demo/tea").unwrap_err();
    assert_eq!((unsigned.kind(), unsigned.code()), (ErrorKind::Integrity, Code::Unsigned));
    let Signed::Item(signed) = engine.sign(&SignRequest::new(ItemType::Knowledge, "demo/tea")).unwrap()
    else {
        panic!("one item")
    };
    let verified = engine.verify(ItemType::Knowledge, "demo/tea").unwrap();
    assert_eq!((&verified.hash, &verified.fingerprint), (&signed.hash, &signed.fingerprint));
    assert_eq!(verified.owner.as_deref(), Some("tests"));
    let invalid = engine.sign(&SignRequest::new(ItemType::Knowledge, "demo/bad")).unwrap_err();
    assert_eq!(invalid.code(), Code::BadKnowledge);
    let message = "Validation failed: Field 'name' value 'wrong' must match filename 'bad'";
    assert_eq!(invalid.diagnostic().message, message);

    let found = engine.search(&SearchRequest::new("knowledge", "tea")).unwrap();
    let first = &found.items[0];
    assert_eq!(
        (first.id.as_str(), first.space, first.integrity.is_some()),
        ("demo/tea", SpaceKind::Project, true)
    );
    let wrong = engine.search(&SearchRequest::new("banana", "")).unwrap_err();
    assert_eq!((wrong.kind(), wrong.code()), (ErrorKind::Usage, Code::BadInput));
    let copy = LoadRequest::new(ItemType::Knowledge, "demo/tea").copy_to(SpaceKind::User);
    let (space, path) = engine.load(&copy).unwrap().copy.unwrap();
    assert!(space == SpaceKind::User && path.starts_with(stage.world.user()));

    match engine.execute(&ExecuteRequest::knowledge("demo/tea")).unwrap() {
        Executed::Knowledge(id, tea) => {
            assert_eq!((id.as_str(), tea.body().trim()), ("demo/tea", "Four minutes."))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tool_returns_data_and_its_failure_is_an_error_with_it() {
    let stage = Setup::new(script([]));
    stage.tool("double", "return {'twice': 2 * params['n']}").tool("fail", "raise ValueError('no tea')");
    let (engine, _) = shared(&stage);
    let request = ExecuteRequest::tool("demo/double").parameter("n", 21);
    match engine.execute(&request).unwrap() {
        Executed::Tool(tool) => {
            assert_eq!(tool.data, json!({"twice": 42}));
            assert_eq!((tool.chain.len(), tool.chain[0].item_id.as_str()), (3, "demo/double"));
        }
        other => panic!("{other:?}"),
    }
    match engine.execute(&request.clone().dry_run()).unwrap() {
        Executed::Checked(checked) => assert!(checked.program.is_some() && checked.chain.len() == 3),
        other => panic!("{other:?}"),
    }
    let failed = engine.execute(&ExecuteRequest::tool("demo/fail")).unwrap_err();
    assert_eq!((failed.kind(), failed.code()), (ErrorKind::Execute, Code::ToolFailed));
    assert!(failed.field("data").is_some(), "{}", failed.to_json());
    let missing = engine.execute(&ExecuteRequest::tool("demo/duble")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::ItemNotFound);
    // The seeds' answer is the same result in JSON.
    let answer = engine.answer(&request, &cuebook_run::Ignore).json;
    assert_eq!((&answer["status"], &answer["data"]), (&json!("success"), &json!({"twice": 42})));
}
