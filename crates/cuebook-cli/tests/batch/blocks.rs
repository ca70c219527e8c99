//! Blocks of rows that a program brings: the same lines and the same keys as those of the command.

use std::path::Path;

use cuebook::items::Spaces;
use cuebook::{Book, Context, Variables};
use cuebook_batch::rows::Row;
use cuebook_batch::{Batch, Form, JudgePlan, Plan};
use cuebook_mock::{Api, Reply, Script};
use cuebook_run::Engine;
use cuebook_run::provider::Stop;
use serde_json::{Map, Value as Json, json};

use crate::judge::JUDGE;
use crate::setup::{Setup, asked, echo, err};

fn setup() -> Setup {
    let setup =
        Setup::new(Script::answer(|request| match request.body.to_string().contains("Judge this.") {
            true => Reply::text(format!("{{\"stars\": {}}}", &asked(request)[4..])).usage(30, 4),
            false => echo(request),
        }));
    // A server of this machine needs no key, so this process can ask it too.
    let provider = setup.mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
    setup.project.write("home/.ai/config/providers/mock.yaml", provider);
    setup.project.write("prompts/quality.prompty", JUDGE);
    setup
}

fn batch(setup: &Setup, judges: Vec<JudgePlan>, journals: &Path) -> Batch {
    let (root, home) = (setup.project.path(), setup.project.home());
    let spaces = || Spaces::new(root, Some(&home));
    let plan = Plan {
        prompt: "ask".to_owned(),
        data: "".into(),
        output: None,
        form: judges.is_empty().then_some(Form::Text),
        run: true,
        model: Some("mock-model".to_owned()),
        columns: Vec::new(),
        variables: Variables::new(),
        context: Context::default(),
        prefix: String::new(),
        keeps_inputs: true,
        keep_going: true,
        limit: None,
        concurrency: 4,
        threads: 1,
        by_prefix: false,
        sources: false,
        judges,
    };
    let book = Book::open(root).with_spaces(spaces());
    Batch::open_blocks(&book, &Engine::new(spaces()), plan, Some(journals)).unwrap()
}

fn rows(lines: &[Json]) -> Vec<Row> {
    let row = |(line, number): (&Json, u64)| Row::new(number, line.as_object().unwrap().clone(), None);
    lines.iter().zip(1..).map(row).collect()
}

fn without(line: &Json, names: impl Fn(&str) -> bool) -> Map<String, Json> {
    line.as_object().unwrap().clone().into_iter().filter(|(name, _)| !names(name)).collect()
}

#[test]
fn a_block_has_the_lines_of_the_command_and_its_keys() {
    let setup = setup();
    setup.questions(20);
    let output = setup.ask(&["--as", "text", "--judge", "good=quality", "--judge-model", "mock-model"]);
    assert!(output.status.success(), "{}", err(&output));
    let journals = setup.project.path().join("journals");
    std::fs::create_dir(&journals).unwrap();
    std::fs::copy(setup.project.path().join(".out.jsonl.journal"), journals.join("7.journal")).unwrap();
    let lines = setup.lines("out.jsonl");
    let requests = setup.mock.requests().len();

    let run = batch(&setup, Vec::new(), &journals);
    let never = Stop::when(|| false);
    let block = run.block(&rows(&setup.lines("data.jsonl")), &never).unwrap();
    for (made, line) in block.iter().zip(&lines) {
        assert_eq!(made, &without(line, |name| name.starts_with("good_") || name == "sources"));
    }
    assert_eq!(block.len(), 20);
    drop(run);
    let judge = |model: &str| JudgePlan {
        name: "good".to_owned(),
        prompt: "quality".to_owned(),
        model: Some(model.to_owned()),
    };
    let judged = batch(&setup, vec![judge("mock-model")], &journals);
    let answers: Vec<Json> = block.into_iter().map(Json::Object).collect();
    for (made, line) in judged.judge_block(&rows(&answers), &never).unwrap().iter().zip(&lines) {
        assert_eq!(made, &without(line, |name| !name.starts_with("good_")));
    }
    // All answers are in the journal of the command.
    assert_eq!(setup.mock.requests().len(), requests);
    let more = [json!({"question": "row-21."})];
    assert_eq!(
        batch(&setup, Vec::new(), &journals).block(&rows(&more), &never).unwrap()[0]["answer"],
        "answer to row-21"
    );
    assert_eq!(setup.mock.requests().len(), requests + 1);
}
