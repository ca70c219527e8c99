//! Rows are asked through the batch interfaces of providers, also by one process after the other.

use cuebook_mock::{Api, Reply, Script};
use serde_json::{Value as Json, json};

use crate::setup::{Setup, asked, echo, err, out};

fn via(api: Api) -> &'static str {
    if api == Api::Anthropic { "anthropic-batch" } else { "openai-batch" }
}

const INTERFACES: [Api; 3] = [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic];

/// How many questions the model got.
fn questions(setup: &Setup) -> usize {
    setup.mock.requests().iter().filter(|request| request.api.is_some()).count()
}

#[test]
fn a_job_answers_all_rows_at_half_the_price() {
    for api in INTERFACES {
        let setup = Setup::speaking(api, Script::answer(echo).polls(2));
        setup.questions(12);
        let output = setup.ask(&["--via", via(api), "--poll", "0.01", "--json"]);
        assert!(output.status.success(), "{}{}", out(&output), err(&output));
        let summary: Json = serde_json::from_str(&out(&output)).unwrap();
        assert_eq!(
            (&summary["requests"], &summary["spent"]),
            (&json!(12), &json!(0.00042)),
            "{}",
            api.as_str()
        );
        for (row, number) in setup.lines("out.jsonl").iter().zip(1..) {
            assert_eq!(
                (&row["answer"], &row["error"]),
                (&json!(format!("answer to row-{number}")), &json!(null))
            );
        }
        assert_eq!(questions(&setup), 12);
    }
}

#[test]
fn another_process_collects_what_one_has_submitted() {
    for api in INTERFACES {
        let setup = Setup::speaking(api, Script::answer(echo).polls(1));
        setup.questions(5);
        let first = setup.ask(&["--via", via(api), "--no-wait"]);
        assert!(first.status.success(), "{}", err(&first));
        assert!(err(&first).contains("a job with 5 questions is under way: batch_"), "{}", err(&first));
        assert!(!setup.project.path().join("out.jsonl").exists());
        // It is not done yet, and nothing is submitted twice.
        assert!(setup.ask(&["--via", via(api), "--no-wait"]).status.success());
        let last = setup.ask(&["--via", via(api), "--no-wait"]);
        assert!(last.status.success(), "{}", err(&last));
        assert_eq!((setup.lines("out.jsonl").len(), questions(&setup)), (5, 5));
    }
}

/// Leaves the journal as a process does that is killed while it submits: the job is known, and its name is not.
fn lose_names(setup: &Setup) {
    let journal = setup.read(".out.jsonl.journal");
    let lines = journal.lines().filter(|line| !line.contains("batch_"));
    let kept: String = lines.map(|line| format!("{line}\n")).collect();
    assert!(kept.contains("\"job\":null"), "{journal}");
    setup.project.write(".out.jsonl.journal", kept);
}

#[test]
fn a_job_whose_name_was_lost_is_found_again() {
    for api in INTERFACES {
        let setup = Setup::speaking(api, Script::answer(echo).polls(1));
        setup.questions(5);
        assert!(setup.ask(&["--via", via(api), "--no-wait"]).status.success());
        lose_names(&setup);
        let output = setup.ask(&["--via", via(api), "--poll", "0.01"]);
        assert!(output.status.success(), "{}", err(&output));
        assert_eq!((setup.lines("out.jsonl").len(), questions(&setup)), (5, 5), "{}", api.as_str());
    }
}

#[test]
fn a_row_that_a_job_does_not_answer_is_an_error_row() {
    for api in INTERFACES {
        let setup = Setup::speaking(
            api,
            Script::answer(|request| match asked(request).as_str() {
                "row-2" => Reply::status(400, json!({"error": {"message": "not this one"}})),
                _ => echo(request),
            }),
        );
        setup.questions(3);
        let output = setup.ask(&["--via", via(api), "--poll", "0.01"]);
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        let rows = setup.lines("out.jsonl");
        assert_eq!(rows[1]["error"], "CB722");
        assert!(rows[1]["error_message"].as_str().unwrap().contains("not this one"), "{}", rows[1]);
        setup.mock.play(Script::answer(echo));
        assert!(setup.ask(&["--via", via(api), "--poll", "0.01"]).status.success());
        assert_eq!(questions(&setup), 4);
    }
}

#[test]
fn judges_are_asked_in_a_second_job() {
    let setup =
        Setup::new(Script::answer(|request| match request.body.to_string().contains("Judge this.") {
            true => Reply::text("{\"stars\": 3}").usage(30, 4),
            false => echo(request),
        }));
    setup.project.write("prompts/quality.prompty", crate::judge::JUDGE);
    setup.questions(4);
    let output = setup.ask(&["--judge", "good=quality", "--via", "openai-batch", "--poll", "0.01"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(setup.lines("out.jsonl").iter().all(|row| row["good_stars"] == 3));
    let jobs = setup
        .mock
        .requests()
        .iter()
        .filter(|request| request.method == "POST" && request.path == "/batches")
        .count();
    assert_eq!((jobs, questions(&setup)), (2, 8));
}

#[test]
fn an_interface_that_the_provider_does_not_have_is_refused() {
    let setup = Setup::echo();
    setup.questions(1);
    let output = setup.ask(&["--via", "anthropic-batch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("mock has the interface `openai-chat`"), "{}", err(&output));
}

#[test]
fn a_job_of_the_same_size_is_not_taken_for_a_lost_one() {
    let setup = Setup::speaking(Api::Anthropic, Script::answer(echo));
    setup.questions(3);
    let other = "{\"question\":\"row-7.\"}\n{\"question\":\"row-8.\"}\n{\"question\":\"row-9.\"}\n";
    setup.project.write("other.jsonl", other);
    let via = ["--run", "--model", "mock-model", "--via", "anthropic-batch", "--poll", "0.01"];
    let other = |more: &[&str]| {
        setup.run(&[&["ask", "other.jsonl", "--out", "others.jsonl"], &via[..], more].concat())
    };
    // The mock lists this job first.
    assert!(other(&["--no-wait"]).status.success());
    assert!(setup.ask(&[&via[3..], &["--no-wait"]].concat()).status.success());
    lose_names(&setup);
    let output = setup.ask(&via[3..]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(setup.lines("out.jsonl")[2]["answer"], "answer to row-3");
    assert!(other(&[]).status.success());
    assert_eq!(setup.lines("others.jsonl")[0]["answer"], "answer to row-7");
    assert_eq!(questions(&setup), 6);
}

#[test]
fn rows_of_a_job_are_not_asked_directly_while_it_is_under_way() {
    let setup = Setup::speaking(Api::OpenAiChat, Script::answer(echo));
    setup.questions(3);
    assert!(setup.ask(&["--via", "openai-batch", "--no-wait"]).status.success());
    let output = setup.ask(&[]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(
        err(&output).contains("error[CB904]: the job batch_2 with 3 questions is under way"),
        "{}",
        err(&output)
    );
    assert!(setup.ask(&["--via", "openai-batch", "--poll", "0.01"]).status.success());
    assert!(setup.ask(&[]).status.success());
    assert_eq!(questions(&setup), 3);
}

#[test]
fn a_job_that_expires_keeps_its_answers() {
    for api in INTERFACES {
        let setup = Setup::speaking(
            api,
            Script::answer(|request| match asked(request).as_str() {
                "row-2" => Reply::hang_up(),
                _ => echo(request),
            }),
        );
        setup.questions(3);
        let output = setup.ask(&["--via", via(api), "--poll", "0.01"]);
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        let rows = setup.lines("out.jsonl");
        assert_eq!((&rows[0]["error"], &rows[2]["error"]), (&Json::Null, &Json::Null));
        assert!(rows[1]["error_message"].as_str().unwrap().contains("expired"), "{}", rows[1]);
        assert_eq!(rows[1]["error"], if api == Api::Anthropic { "CB722" } else { "CB907" });
        setup.mock.play(Script::answer(echo));
        assert!(setup.ask(&["--via", via(api), "--poll", "0.01"]).status.success());
        assert_eq!((setup.lines("out.jsonl").len(), questions(&setup)), (3, 3));
    }
}

#[test]
fn many_rows_are_several_jobs() {
    let setup = Setup::speaking(Api::OpenAiChat, Script::answer(|_| Reply::text("yes").usage(20, 5)));
    setup.questions(12_000);
    let output = setup.ask(&["--via", "openai-batch", "--poll", "0.01", "--json"]);
    assert!(output.status.success(), "{}", err(&output));
    let summary: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&summary["requests"], &summary["failed"]), (&json!(12_000), &json!(0)));
    let is_job =
        |request: &&cuebook_mock::Request| request.method == "POST" && request.path.ends_with("/batches");
    assert_eq!(setup.mock.requests().iter().filter(is_job).count(), 2);
}
