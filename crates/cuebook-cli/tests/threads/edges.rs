//! The edges of running: what scripts read line by line, what no tool may see, and what is wrong before anything begins.

use std::time::{Duration, Instant};

use cuebook_mock::{Api, Reply, Script};
use serde_json::{Value as Json, json};

use crate::setup::{Setup, err, out, returned, search};

const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <permissions><execute><tool>demo.*</tool><tool>rye.bash.bash</tool></execute></permissions>
  </metadata>
  <inputs><input name="user" type="string" required="true">Who</input></inputs>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet {input:user}.
"#;

const ASK: &str = "---\nname: ask\ninputs:\n  - {name: text, kind: string, required: true}\n\
    tools:\n  - name: look\n    kind: function\n    description: Looks\n---\nuser:\nSay {{text}}\n";

const PEEK: &str = "version: 1.0.0\ncategory: demo\ntool_type: shell\nexecutor_id: rye/core/primitives/subprocess\n\
    description: Shows the store\nconfig: {command: sh, args: [\"-c\", \"printenv CUEBOOK_STORE || echo unset\"]}\n";

/// What no output, file or log may show.
const SECRET: &str = "violet-5f0e8d7c6b5a4938";

fn stage(script: Script) -> Setup {
    let asks = PEEK.replace("config:", "env_config: {env: {CUEBOOK_STORE: \"${CUEBOOK_STORE}\"}}\nconfig:");
    let files = [
        (".ai/directives/demo/greet.md", GREET),
        ("prompts/ask.prompty", ASK),
        (".ai/tools/demo/peek.yaml", PEEK),
        (".ai/tools/demo/asks.yaml", &asks),
    ];
    Setup::new(script, &files)
}

fn executes(tool: &str, parameters: Json) -> Reply {
    let call = json!({"item_type": "tool", "item_id": tool, "parameters": parameters});
    Reply::call("c1", "rye_execute", call).usage(10, 2)
}

/// The words of a command line.
fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

const THREADED: &str = "execute directive demo/greet --param user=Ann --thread";

#[test]
fn line_output_has_one_document_per_line() {
    let stage =
        stage(Script::new().reply(returned("Hi")).reply(returned("Hi")).reply(Reply::error(401, "no")));
    let cases = [
        (0, "", THREADED.to_owned()),
        (0, "", format!("{THREADED} --async")),
        (1, "CB722", format!("{THREADED} --model mock-model")),
        (1, "CB716", format!("{THREADED} --limit turns=0")),
        (2, "CB715", format!("{THREADED} --limit trns=1")),
        (1, "CB720", format!("{THREADED} --model nothing")),
        (1, "CB401", "execute directive demo/greet --thread".to_owned()),
        (1, "CB116", "execute directive demo/gret --thread --async".to_owned()),
        (2, "CB407", "execute directiv demo/greet --thread".to_owned()),
        (2, "CB407", "execute tool rye/bash/bash --thread".to_owned()),
        (2, "CB407", format!("{THREADED} --param nothing")),
        (2, "usage", format!("{THREADED} --nothing")),
        (1, "CB101", "run nothing".to_owned()),
        (1, "CB101", "run nothing --async".to_owned()),
        (2, "CB730", "run ask --var text=x".to_owned()),
        (1, "CB720", "run ask --model nothing --tool look=demo/peek --var text=x".to_owned()),
        (1, "CB401", "run ask --model fast --tool look=demo/peek".to_owned()),
        (2, "CB407", "run".to_owned()),
        (2, "usage", "run ask --limit".to_owned()),
        (1, "CB712", "thread tail nothing".to_owned()),
        (2, "usage", "thread tail nothing --after soon".to_owned()),
        (1, "CB712", "thread resume nothing".to_owned()),
        (2, "usage", "thread resume".to_owned()),
        (1, "CB724", "thread tail x --store mysql://host/x".to_owned()),
        (2, "CB407", "watch".to_owned()),
    ];
    for (code, error, line) in cases {
        let output = stage.run(&[words(&line), vec!["--json"]].concat());
        let text = out(&output);
        settled(&stage);
        assert_eq!(output.status.code(), Some(code), "{line}: {text}{}", err(&output));
        let documents: Vec<Json> = text
            .lines()
            .map(|document| serde_json::from_str(document).unwrap_or_else(|_| panic!("{line}: {text}")))
            .collect();
        let last = documents.last().unwrap();
        if code == 0 {
            assert_eq!(last.get("error"), None, "{line}: {last:#}");
            continue;
        }
        assert_eq!(last["status"], "error", "{line}: {last:#}");
        assert_eq!(last["error"]["code"], error, "{line}: {last:#}");
        assert!(last["error"]["message"].as_str().is_some_and(|said| !said.is_empty()), "{line}: {last:#}");
        assert_eq!(last["metadata"].get("error"), None, "it is said once: {last:#}");
    }
}

#[test]
fn a_tool_result_has_its_error_as_a_text() {
    let stage = stage(Script::new());
    let output = stage.run(&words("execute directive demo/gret --json"));
    let answer: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(answer["error"], "Directive not found: demo/gret");
    assert_eq!(answer["metadata"]["error"]["code"], "CB116");
}

#[test]
fn the_store_password_reaches_only_tools_that_name_it() {
    let store = format!("postgres://ann:{SECRET}@localhost/threads");
    let stage = stage(
        Script::new()
            .reply(executes("demo/peek", json!({})))
            .reply(executes("demo/asks", json!({})))
            .reply(returned("Hi")),
    );
    let execute = |tool: &str, store: &str| {
        let mut command = stage.command(&["execute", "tool", tool]);
        out(&command.env("CUEBOOK_STORE", store).output().unwrap())
    };
    assert_eq!(execute("demo/peek", &store), "unset\n");
    assert_eq!(execute("demo/asks", &store), format!("{store}\n"));
    // Without a password it is no secret, and what a tool starts is kept where everything is.
    for open in ["threads.db", "postgres://ann@localhost/threads"] {
        assert_eq!(execute("demo/peek", open), format!("{open}\n"));
    }
    // In a thread nothing shows it either way.
    let mut command = stage.command(&[words(THREADED), words("--store threads.db")].concat());
    let output = command.env("CUEBOOK_STORE", &store).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    let reported = stage.mock.requests()[1].body["messages"].to_string();
    assert!(reported.contains("unset") && !reported.contains(SECRET), "{reported}");
}

#[test]
fn a_secret_in_a_file_is_never_shown() {
    let echo = json!({"command": format!("echo {SECRET}")});
    let stage = stage(
        Script::new()
            .reply(Reply::error(401, &format!("the key {SECRET} is not good")))
            .reply(executes("rye/bash/bash", echo).and_text(format!("I know {SECRET}")))
            .reply(returned(&format!("Hi {SECRET}"))),
    );
    let file = "home/.ai/config/providers/mock.yaml";
    let plain = stage.mock.provider_yaml(Api::Anthropic);
    for header in ["authorization: Bearer ", "x-api-key: ", "ocp-apim-subscription-key: ", "x-access-token: "]
    {
        let headers = format!("headers:\n  x-other: a\n  {header}{SECRET}\n");
        stage.project.write(file, plain.replace("key: MOCK_KEY\n", &headers));
        let (providers, check) = (stage.run(&["providers"]), stage.run(&["check"]));
        for text in [err(&providers), out(&check)] {
            assert!(text.contains("warning[CB719]"), "{header}: {text}");
            assert!(
                text.contains("mock.yaml: ") && text.contains("(line 6)") && text.contains("${env:"),
                "{text}"
            );
            assert!(!text.contains(SECRET), "{text}");
        }
        assert!(providers.status.success() && check.status.success());
    }
    let headers = format!("headers: {{authorization: Bearer {SECRET}}}\n");
    stage.project.write(file, plain.replace("key: MOCK_KEY\n", &headers));
    let mut seen = vec![stage.run(&[words(THREADED), vec!["--json"]].concat())];
    seen.push(stage.run(&[words(THREADED), words("--record replies.jsonl --json")].concat()));
    assert!(seen[1].status.success(), "{}{}", out(&seen[1]), err(&seen[1]));
    seen.push(stage.run(&words("thread list --json")));
    seen.push(stage.run(&words("providers --json")));
    let sent = format!("Bearer {SECRET}");
    assert_eq!(stage.mock.requests()[0].header("authorization"), Some(sent.as_str()));
    for output in &seen {
        assert!(!out(output).contains(SECRET) && !err(output).contains(SECRET), "{}", out(output));
    }
    assert!(seen[1].stdout.windows(8).any(|window| window == b"[secret]"), "{}", out(&seen[1]));
    // The mistakes of a file show the lines around them, and no secret there.
    for wrong in [
        format!("headers: {{x-api-key: [{SECRET}]}}\n"),
        format!("headers: {{host: a, x-api-key: {SECRET}}}\n"),
        format!("headers: {{x y: a, authorization: Bearer {SECRET}}}\n"),
        format!("headers:\n  x-api-key: {SECRET}\nstreem: true\n"),
        format!("headers:\n  x-api-key: {SECRET}\nstream: [\n"),
        format!("headers: {{authorization: Bearer {SECRET}\nstream: true\n"),
        format!("key: {SECRET}\nstreem: true\n"),
    ] {
        stage.project.write(file, plain.replace("key: MOCK_KEY\n", &wrong));
        let output = stage.run(&["providers"]);
        assert!(err(&output).contains("[CB719]") && !err(&output).contains(SECRET), "{}", err(&output));
    }
    std::fs::remove_file(stage.project.path().join(file)).unwrap();
    search(stage.project.path(), &mut |path, bytes| {
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{} has the secret", path.display());
    });
}

#[test]
fn a_secret_provider_option_is_never_shown() {
    let echo = json!({"command": format!("echo {SECRET} and flexible words")});
    let stage = stage(
        Script::new()
            .reply(Reply::error(401, &format!("the token {SECRET} is not good")))
            .reply(executes("rye/bash/bash", echo).and_text(format!("I know {SECRET}")))
            .reply(returned(&format!("Hi {SECRET}"))),
    );
    let file = "home/.ai/config/providers/mock.yaml";
    let plain = stage.mock.provider_yaml(Api::Anthropic);
    let options = format!("options:\n  service_tier: flexible\n  gateway: {{token: {SECRET}}}\n");
    stage.project.write(file, format!("{plain}{options}"));
    for text in [err(&stage.run(&["providers"])), out(&stage.run(&["check"]))] {
        let warning = "`options.gateway` holds a secret in the file";
        assert!(
            text.contains("warning[CB719]") && text.contains(warning) && text.contains("${env:"),
            "{text}"
        );
        assert!(!text.contains(SECRET), "{text}");
    }
    let mut seen = vec![stage.run(&[words(THREADED), vec!["--json"]].concat())];
    seen.push(stage.run(&[words(THREADED), words("--record replies.jsonl --json")].concat()));
    assert!(seen[1].status.success(), "{}{}", out(&seen[1]), err(&seen[1]));
    seen.push(stage.run(&words("thread list --json")));
    assert_eq!(stage.mock.requests()[0].body["gateway"]["token"], SECRET, "the provider has to know it");
    for output in &seen {
        assert!(!out(output).contains(SECRET) && !err(output).contains(SECRET), "{}", out(output));
    }
    // What is no secret stays: in the answer of the tool, and for the model.
    let reported = stage.mock.requests().pop().unwrap().body["messages"].to_string();
    assert!(reported.contains("[secret] and flexible words"), "{reported}");
    std::fs::remove_file(stage.project.path().join(file)).unwrap();
    search(stage.project.path(), &mut |path, bytes| {
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!found, "{} has the secret", path.display());
    });
}

#[test]
fn a_missing_tool_item_is_reported_before_the_start() {
    let stage = stage(Script::new());
    let output = stage.run(&words("run ask --var text=x --model fast --tool look=demo/pek"));
    assert_eq!(output.status.code(), Some(1));
    let text = err(&output);
    assert!(text.contains("error[CB116]: the tool `look` runs `demo/pek`"), "{text}");
    assert!(text.contains("did you mean `demo/peek`"), "{text}");
    // The same of one that the author named, with its place.
    let runs = ASK.replace("description: Looks\n", "description: Looks\n    runs: demo/pek\n");
    stage.project.write("prompts/ask.prompty", runs);
    let output = stage.run(&words("run ask --var text=x --model fast --allow rye.execute.tool.demo.*"));
    let text = err(&output);
    assert!(text.contains("[CB116]") && text.contains("prompts/ask.prompty:6"), "{text}");
    assert!(stage.mock.requests().is_empty());
    assert_eq!(out(&stage.run(&words("thread list --json"))), "[]\n");
    // `runs` is a key like others.
    let checked = stage.run(&words("check ask"));
    assert!(checked.status.success() && out(&checked).is_empty(), "{}", out(&checked));
}

/// Waits until no thread runs.
fn settled(stage: &Setup) {
    let began = Instant::now();
    while out(&stage.run(&words("thread list --json --status running --status created"))) != "[]\n" {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn mistakes_are_reported_with_a_fix_before_the_start() {
    let stage = stage(Script::new().reply(Reply::text("Hi")));
    stage.project.write("prompts/hi/template.md", "Say hi.\n");
    stage.project.write("empty.jsonl", "");
    stage.project.write(
        "text.db",
        "This is no database, and it is longer than the head of one would be, by far.\n".repeat(3),
    );
    let run = "run hi --model fast";
    let cases = [
        (2, "CB407", format!("{run} --limit spend=NaN"), "--limit spend=30"),
        (2, "CB407", format!("{run} --limit turns"), "--limit turns=30"),
        (2, "CB715", format!("{run} --limit turn=3"), "did you mean `turns`?"),
        (2, "CB715", format!("{run} --limit turns=-1"), "write turns=25"),
        (2, "CB715", format!("{THREADED} --limit turns=-1"), "write turns=25"),
        (2, "CB407", "run demo/greet --var user=Ann --tool look=demo/peek".to_owned(), "leave them out"),
        (2, "CB407", "run demo/greet --var user=Ann --allow garbage".to_owned(), "leave them out"),
        (1, "CB720", "run hi --model=".to_owned(), "name a model or a tier"),
        (1, "CB720", format!("{THREADED} --model="), "name a model or a tier"),
        (2, "CB730", format!("{run} --tool look=demo/peek"), "leave out --tool"),
        (2, "CB717", format!("{run} --allow my/search"), "--allow rye.execute.tool.my.search"),
        (2, "CB717", format!("{run} --allow rye.exec.tool.my.search"), "--allow rye.execute.tool."),
        (1, "CB110", format!("{run} --replay nothing.jsonl"), "--record FILE"),
        (1, "CB723", format!("{run} --replay empty.jsonl"), "--record FILE"),
        (1, "CB114", format!("{run} --record no/such/folder/r.jsonl"), "create the directory first"),
        (1, "CB724", format!("{run} --store text.db"), "it is not a SQLite file"),
        (1, "CB724", format!("{run} --store="), ".ai/state/threads.db"),
        (1, "CB724", format!("{run} --store postgres://"), "postgres://USER:PASSWORD@HOST"),
        (1, "CB720", "run hi --model nothing --record r.jsonl".to_owned(), "add the model to"),
        (2, "CB715", format!("{THREADED} --limit turn=1 --record r.jsonl"), "did you mean `turns`?"),
        (1, "CB110", format!("{run} --project no/such/folder"), "cuebook init"),
        (1, "CB110", format!("{THREADED} --project no/such/folder"), "cuebook init"),
        (1, "CB110", "thread list --project no/such/folder".to_owned(), "cuebook init"),
        (2, "CB407", "execute directiv demo/greet --thread".to_owned(), "did you mean `directive`?"),
        (1, "CB712", "thread show nothing".to_owned(), "threads.db does not exist; check --root"),
    ];
    for (code, error, line, way) in cases {
        let output = stage.run(&words(&line));
        let text = err(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {text}");
        assert!(text.contains(&format!("error[{error}]")), "{line}: {text}");
        assert!(text.contains("help: ") && text.contains(way), "{line}: {text}");
        assert_eq!(out(&output), "", "{line}");
    }
    let agent = ".ai/config/agent/agent.yaml";
    stage.project.write(agent, "provider: {defualt: mock}\n");
    let text = err(&stage.run(&words(run)));
    assert!(text.contains("[CB719]") && text.contains("did you mean `default`?"), "{text}");
    assert!(text.contains(&format!("{agent}:1:")), "{text}");
    // Nothing of all this began, and nothing is left of it.
    assert!(stage.mock.requests().is_empty());
    assert!(!stage.project.path().join(".ai/state/threads.db").exists());
    assert!(!stage.project.path().join("no").exists() && !stage.project.path().join("r.jsonl").exists());
}

#[test]
fn a_bad_limit_option_names_the_option() {
    let stage = stage(Script::new());
    let model = "<model tier=\"fast\" />";
    let far = GREET.replace("name=\"greet\"", "name=\"far\"");
    stage.project.write(
        ".ai/directives/demo/far.md",
        far.replace(model, &format!("{model}\n    <limits turns=\"5\" spend_currency=\"USD\" />")),
    );
    assert!(stage.run(&words("sign directive demo/far")).status.success());
    for (limit, said) in
        [("bogus=3", "Valid limits"), ("TURNS=1", "Valid limits"), ("turn=1", "did you mean `turns`?")]
    {
        let line = format!("execute directive demo/far --param user=Ann --thread --limit {limit}");
        let output = stage.run(&words(&line));
        let reported = err(&output);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains("[CB715]") && reported.contains(&format!("--limit {limit}")), "{reported}");
        assert!(reported.contains(said) && !reported.contains("far.md"), "{reported}");
    }
    // A caller that calls over a protocol has no options, and no line of the directive is wrong either.
    assert!(stage.mock.requests().is_empty());
}

#[test]
fn options_of_a_thread_count_wherever_the_thread_is_asked_for() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let line = "execute directive demo/greet --param user=Ann";
    for option in ["--model fast", "--limit turns=3", "--async"] {
        let output = stage.run(&words(&format!("{line} {option}")));
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(
            err(&output).contains("is for a thread") && err(&output).contains("add --thread"),
            "{option}"
        );
    }
    assert!(stage.mock.requests().is_empty());
    let output = stage.run(&words(&format!("{line} --param thread:=true --model fast --limit turns=3")));
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(stage.mock.requests().len(), 1);
}

#[test]
fn commands_that_show_threads_take_no_recordings() {
    let stage = stage(Script::new());
    for line in ["list", "show x", "tail x", "cancel x"] {
        for option in ["--record", "--replay"] {
            let output = stage.run(&words(&format!("thread {line} {option} x.rec")));
            assert_eq!(output.status.code(), Some(2), "{line} {option}");
            assert!(err(&output).contains(&format!("unexpected argument '{option}'")), "{}", err(&output));
        }
    }
    let help = out(&stage.run(&words("thread list --help")));
    assert!(help.contains("--store") && !help.contains("--replay"), "{help}");
    assert!(out(&stage.run(&words("thread resume --help"))).contains("--replay"));
}

#[test]
fn a_missing_parent_is_reported() {
    let stage = stage(Script::new().reply(returned("Hi")));
    assert!(stage.run(&words(THREADED)).status.success());
    let output = stage.run(&words("thread list --parent nope"));
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{}", err(&output));
    assert!(err(&output).contains("[CB712]"), "{}", err(&output));
    let output = stage.run(&words("thread list --parent demo/greet"));
    assert!(output.status.success() && err(&output).contains("no matching thread"), "{}", err(&output));
}

#[test]
fn check_and_run_report_an_invalid_limit() {
    let stage = stage(Script::new());
    let far = GREET.replace("name=\"greet\"", "name=\"far\"");
    for (limits, said) in [("turns=\"-5\"", "`turns`"), ("trns=\"5\"", "did you mean `turns`?")] {
        let model = "<model tier=\"fast\" />";
        let text = far.replace(model, &format!("{model}\n    <limits spend_currency=\"USD\" {limits} />"));
        stage.project.write(".ai/directives/demo/far.md", text);
        assert!(stage.run(&words("sign directive demo/far")).status.success());
        let checked = out(&stage.run(&words("check demo/far")));
        assert!(checked.contains("far.md:11:") && checked.contains(said), "{checked}");
        assert!(!checked.contains("spend_currency`"), "{checked}");
        let reported = err(&stage.run(&words("execute directive demo/far --param user=Ann --thread")));
        assert!(reported.contains("error[CB715]") && reported.contains("far.md:11:"), "{reported}");
        assert!(reported.contains(said), "{reported}");
    }
    assert!(stage.mock.requests().is_empty());
}

#[test]
fn a_command_that_is_suggested_finds_the_thread_where_it_is() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let reported = err(&stage.run(&words(&format!("{THREADED} --limit turns=0 --store other.db"))));
    let command = reported
        .split("`cuebook ")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .unwrap_or_else(|| panic!("{reported}"));
    assert!(command.starts_with("thread resume --store other.db demo/greet/greet-"), "{command}");
    let resumed = stage.run(&words(command));
    assert!(resumed.status.success(), "{}", err(&resumed));
    let reported = err(&stage.run(&words(&format!("{THREADED} --async --store other.db"))));
    assert!(
        reported.contains("follow it: cuebook thread tail --store other.db demo/greet/greet-"),
        "{reported}"
    );
    let id = reported.rsplit(' ').next().unwrap().trim().to_owned();
    let tailed = stage.run(&["thread", "tail", "--store", "other.db", &id]);
    assert!(tailed.status.success(), "{}", err(&tailed));
}
