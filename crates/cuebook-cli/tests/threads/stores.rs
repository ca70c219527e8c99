//! Where threads are kept, and what is recorded of them.

use std::path::Path;

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::{THREADED, stage};
use crate::setup::{err, out, returned, search};

#[test]
fn recordings_play_back_offline_byte_for_byte() {
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "echo hi"}});
    let stage = stage(
        Script::new().reply(Reply::call("c1", "rye_execute", call).usage(9, 2)).reply(returned("Hi ✓")),
    );
    let recorded = stage.threaded(&["--record", "replies.jsonl"]);
    assert!(recorded.status.success(), "{}", err(&recorded));
    assert_eq!(stage.mock.requests().len(), 2);
    let first = stage.id();
    // No key, and no terminal to ask on.
    let args = [&THREADED[..], &["--replay", "replies.jsonl"]].concat();
    let played = stage.command(&args).env_remove("MOCK_KEY").output().unwrap();
    assert!(played.status.success(), "{}", err(&played));
    assert_eq!(stage.mock.requests().len(), 2, "nobody was asked");
    assert_eq!(out(&played), out(&recorded));
    let answers = |id: &str| -> Vec<Json> {
        let said = stage.events(id).into_iter().filter(|event| event["event_type"] == "cognition_out");
        said.map(|event| event["payload"]["message"].clone()).collect()
    };
    assert_eq!(answers(&first), answers(&stage.id()));
    let args = [
        "execute",
        "directive",
        "demo/greet",
        "--param",
        "user=Bob",
        "--thread",
        "--replay",
        "replies.jsonl",
    ];
    let other = stage.run(&args);
    assert_eq!(other.status.code(), Some(1));
    let said = err(&other);
    assert!(said.contains("[CB723]") && said.contains("Ann") && said.contains("Bob"), "{said}");
    stage.project.write("replies.jsonl", "{}\n");
    assert!(err(&stage.threaded(&["--replay", "replies.jsonl"])).contains("[CB723]"));
}

#[cfg(unix)]
#[test]
fn no_link_of_a_project_leads_its_store_elsewhere() {
    for link in [".ai/state", ".ai/state/threads.db", ".ai/state/threads.db-wal"] {
        for target in ["elsewhere", "elsewhere/new.db"] {
            let stage = stage(Script::new().reply(returned("Hi")));
            let outside = stage.project.home().join("elsewhere");
            std::fs::create_dir_all(&outside).unwrap();
            stage.project.link(link, stage.project.home().join(target).to_str().unwrap());
            let output = stage.threaded(&[]);
            assert!(!output.status.success(), "{link}");
            assert!(err(&output).contains("leads out of the project"), "{link}: {}", err(&output));
            assert_eq!(std::fs::read_dir(outside).unwrap().count(), 0, "{link}");
            assert!(stage.mock.requests().is_empty(), "{link}");
        }
    }
}

#[test]
fn a_recording_is_never_written_over() {
    let stage = stage(Script::new().reply(Reply::text("Hm.").usage(9, 2)).reply(returned("Hi")));
    // What cannot be written is reported before anything begins.
    for place in ["no/such/folder/r.jsonl", "home"] {
        let output = stage.threaded(&["--record", place]);
        assert!(!output.status.success(), "{}", out(&output));
        assert!(err(&output).contains(place), "{}", err(&output));
    }
    assert_eq!(stage.json(&["thread", "list"]), json!([]));
    assert!(stage.mock.requests().is_empty());
    // An empty file has nothing to lose.
    stage.project.write("r.jsonl", "");
    let output = stage.threaded(&["--record", "r.jsonl", "--limit", "turns=1"]);
    assert!(err(&output).contains("[CB716]"), "{}", err(&output));
    let first = std::fs::read_to_string(stage.project.path().join("r.jsonl")).unwrap();
    assert_eq!(first.lines().count(), 1);
    let id = stage.id();
    let refused = stage.threaded(&["--record", "r.jsonl"]);
    let said = err(&refused);
    assert!(
        said.contains("[CB518]") && said.contains("does not overwrite") && said.contains("name another"),
        "{said}"
    );
    assert_eq!(stage.mock.requests().len(), 1);
    // Nor does a thread that goes on write behind what is no recording.
    stage.project.write("notes.txt", "mine\n");
    let refused = stage.run(&["thread", "resume", &id, "--limit", "turns=3", "--record", "notes.txt"]);
    assert!(err(&refused).contains("[CB723]"), "{}", err(&refused));
    let output = stage.run(&["thread", "resume", &id, "--limit", "turns=3", "--record", "r.jsonl"]);
    assert!(output.status.success(), "{}", err(&output));
    let both = std::fs::read_to_string(stage.project.path().join("r.jsonl")).unwrap();
    assert!(both.starts_with(&first) && both.lines().count() == 2, "{both}");
    let played = stage.threaded(&["--replay", "r.jsonl"]);
    assert!(played.status.success(), "{}", err(&played));
}

#[test]
fn the_store_can_be_elsewhere() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let elsewhere = stage.project.path().join("elsewhere.db");
    let store = elsewhere.to_str().unwrap();
    assert!(stage.threaded(&["--store", store]).status.success());
    assert!(elsewhere.is_file() && !stage.project.path().join(".ai/state/threads.db").exists());
    assert_eq!(stage.json(&["thread", "list", "--store", store]).as_array().unwrap().len(), 1);
    let output = stage.command(&["thread", "list"]).env("CUEBOOK_STORE", store).output().unwrap();
    assert!(out(&output).starts_with("completed"), "{}", out(&output));
    stage.project.write("notes.txt", "no database, and long enough to be taken for one by nobody at all");
    let output = stage.run(&["thread", "list", "--store", "notes.txt"]);
    assert!(err(&output).contains("[CB724]"), "{}", err(&output));
}

#[test]
fn a_store_of_an_unknown_kind_is_refused_without_its_password() {
    let stage = stage(Script::new());
    for place in
        ["mysql://ann:hunter22@db.example/x", "redis://:hunter22@db.example", "Postgres://a:hunter22@h/x"]
    {
        for args in [&["thread", "list"][..], &THREADED] {
            let output = stage.run(&[args, &["--store", place]].concat());
            let said = err(&output);
            assert!(!output.status.success() && said.contains("[CB724]"), "{said}");
            assert!(
                said.contains(place.split(':').next().unwrap()) && said.contains("postgres://"),
                "{said}"
            );
            assert!(!said.contains("hunter22") && !out(&output).contains("hunter22"), "{said}");
        }
    }
    let names: Vec<String> = std::fs::read_dir(stage.project.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.contains(':')), "{names:?}");
    let output = stage.run(&["thread", "list", "--store", "sqlite://some.db", "--json"]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn looking_for_threads_makes_nothing() {
    let project = crate::support::Project::new();
    let before = |folder: &Path| {
        let mut names = Vec::new();
        search(folder, &mut |path, _| names.push(path.to_owned()));
        (names, folder.join(".ai").exists())
    };
    let known = before(project.path());
    for (args, wanted) in [
        (&["thread", "list"][..], "no threads"),
        (&["thread", "show", "x"], "[CB712]"),
        (&["thread", "tail", "x"], "[CB712]"),
        (&["thread", "cancel", "x"], "[CB712]"),
        (&["thread", "resume", "x"], "[CB712]"),
        (&["thread", "list", "--store", "other.db"], "no threads"),
        (&["thread", "list", "--status", "running"], "no threads"),
    ] {
        let run = |more: &[&str]| {
            let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
            command.args(args).args(more).output().unwrap()
        };
        let output = run(&[]);
        let file = if args.contains(&"other.db") { "other.db" } else { ".ai/state/threads.db" };
        let file = std::path::absolute(project.path()).unwrap().join(file);
        let missing = format!("{} does not exist", file.display());
        assert!(
            err(&output).contains(wanted) && err(&output).contains(&missing),
            "{args:?}: {}",
            err(&output)
        );
        // A caller that reads JSON is reported as well: a list has no place for it, an error has.
        let json = run(&["--json"]);
        match args[1] {
            "list" => assert!(out(&json).trim() == "[]" && err(&json).contains(&missing), "{}", err(&json)),
            _ => {
                let document: serde_json::Value = serde_json::from_str(&out(&json)).unwrap();
                assert_eq!(document["error"]["missing_store"], file.to_str().unwrap(), "{document:#}");
            }
        }
        assert_eq!(before(project.path()), known, "{args:?}");
    }
}

#[test]
fn an_empty_store_is_not_reported_as_missing() {
    let stage = stage(Script::new());
    let file = stage.project.path().join("empty.db");
    let key = cuebook_run::store::LogKey::from_bytes([7; 32]);
    cuebook_run::store::open(file.to_str().unwrap(), Ok(key)).unwrap();
    let said = err(&stage.run(&["thread", "list", "--store", "empty.db"]));
    assert!(said.contains("no threads; ") && !said.contains("does not exist"), "{said}");
    let output = stage.run(&["thread", "show", "x", "--store", "empty.db", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    assert!(
        document["error"]["code"] == "CB712" && document["error"].get("missing_store").is_none(),
        "{document:#}"
    );
}

#[test]
fn pipes_are_refused_as_recordings() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let pipe = stage.project.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let places = [("pipe", "a pipe"), ("/dev/full", "a device"), (".ai", "a directory"), ("home", "a link")];
    for (place, what) in places {
        let output = stage.threaded(&["--record", place]);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(what), "{said}");
    }
    assert_eq!(stage.mock.requests().len(), 0);
}

#[test]
fn a_recording_without_last_newline_continues() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let recorded = stage.threaded(&["--record", "r.jsonl"]);
    assert!(recorded.status.success(), "{}", err(&recorded));
    let path = stage.project.path().join("r.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.trim_end()).unwrap();
    let played = stage.threaded(&["--replay", "r.jsonl"]);
    assert_eq!(out(&played), out(&recorded), "{}", err(&played));
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let cut = stage.threaded(&["--replay", "r.jsonl"]);
    assert!(err(&cut).contains("exchange 1 cannot be read: it is cut off"), "{}", err(&cut));
}
