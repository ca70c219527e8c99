//! Who answers: what the user says, what the environment says, and what a prompt may say.

use std::process::Output;

use cuebook_mock::{Api, Script};

use crate::setup::{KEY, Setup, err, out};

fn prompt(more: &str) -> String {
    format!("---\nname: ask\nmodel:\n  id: mock-model\n{more}---\nuser:\nHi.\n")
}

fn stage(more: &str) -> Setup {
    let script = Script::new().text("Hello.").text("Hello again.").text("And again.");
    let stage = Setup::new(script, &[(".ai/directives/demo/greet.md", crate::greeting::GREET)]);
    stage.project.write("ask.prompty", prompt(more));
    stage
}

fn run(stage: &Setup, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = stage.command(&[&["run", "ask.prompty"], args].concat());
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn the_user_chooses_a_provider_for_any_prompt() {
    let stage = stage("  provider: openai\n");
    for (args, variables) in [(&["--provider", "mock"][..], &[][..]), (&[], &[("CUEBOOK_PROVIDER", "mock")])]
    {
        let output = run(&stage, args, variables);
        assert!(output.status.success(), "{}", err(&output));
    }
    assert_eq!(stage.mock.requests().len(), 2);
    let unknown = run(&stage, &["--provider", "mok"], &[]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(err(&unknown).contains("did you mean `mock`?"), "{}", err(&unknown));
}

#[test]
fn a_variable_of_the_sdk_moves_a_built_in_provider() {
    let stage = stage("  provider: openai\n");
    stage.project.write("ask.prompty", prompt("  provider: openai\n").replace("mock-model", "gpt-4o"));
    let mut command = stage.command(&["run", "ask.prompty"]);
    let url = format!("{}/v1", stage.mock.url());
    let output = command.env("OPENAI_BASE_URL", &url).env("OPENAI_API_KEY", KEY).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(stage.mock.requests()[0].path, "/v1/chat/completions");
    let listed = stage.command(&["providers"]).env("OPENAI_BASE_URL", &url).output().unwrap();
    assert!(out(&listed).contains(&format!("{url} (OPENAI_BASE_URL)")), "{}", out(&listed));
}

#[test]
fn a_prompt_reaches_its_endpoint_through_a_provider_of_the_user() {
    let stage = stage("");
    let endpoint = |url: &str| prompt(&format!("  connection: {{kind: key, endpoint: \"{url}\"}}\n"));
    let yaml = stage.mock.provider_yaml(Api::Anthropic);
    let address = yaml.lines().find_map(|line| line.strip_prefix("base_url: ")).unwrap();
    stage.project.write("ask.prompty", endpoint(address));
    assert!(run(&stage, &[], &[]).status.success());
    // The user's environment may name it; a variable that is not set names nothing.
    stage.project.write("ask.prompty", endpoint("${env:ASK_ENDPOINT}"));
    let output = run(&stage, &[], &[("ASK_ENDPOINT", address)]);
    assert!(output.status.success(), "{}", err(&output));
    let refused = run(&stage, &[], &[("ASK_ENDPOINT", "https://elsewhere.example")]);
    assert!(err(&refused).contains("endpoint `${env:ASK_ENDPOINT}`"), "{}", err(&refused));
    assert!(!err(&refused).contains("elsewhere"), "a value is not shown: {}", err(&refused));
    // Elsewhere is one clear error, before any key is missed; the user can choose another provider.
    stage.project.write("ask.prompty", endpoint("https://elsewhere.example/v1"));
    let refused = run(&stage, &[], &[]);
    let reported = err(&refused);
    assert_eq!(refused.status.code(), Some(2));
    assert!(reported.contains("error[CB720]: no provider has the prompt's endpoint"), "{reported}");
    assert!(
        reported.contains("base_url: https://elsewhere.example/v1") && !reported.contains("API_KEY"),
        "{reported}"
    );
    assert!(run(&stage, &["--provider", "mock"], &[]).status.success());
}

#[test]
fn a_broken_provider_file_stops_only_its_users() {
    let stage = stage("  provider: mock\n");
    stage.project.write("home/.ai/config/providers/broken.yaml", "name: broken\napi: nonsense\n");
    let output = run(&stage, &[], &[]);
    assert!(output.status.success(), "{}", err(&output));
    let asked = run(&stage, &["--provider", "broken"], &[]);
    assert!(err(&asked).contains("[CB719]") && err(&asked).contains("broken.yaml:"), "{}", err(&asked));
    let listed = stage.run(&["providers"]);
    assert!(listed.status.success() && err(&listed).contains("broken.yaml"), "{}", err(&listed));
}

#[test]
fn a_dead_port_is_one_attempt() {
    let stage = stage("  provider: dead\n");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = format!(
        "name: dead\napi: openai-chat\nbase_url: http://127.0.0.1:{port}/v1\nmodels: {{mock-model: {{}}}}\n"
    );
    stage.project.write("home/.ai/config/providers/dead.yaml", file);
    let output = run(&stage, &[], &[]);
    let reported = err(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(reported.contains(&format!("nothing listens at http://127.0.0.1:{port}/v1")), "{reported}");
    assert!(!reported.contains("attempts"), "{reported}");
}
