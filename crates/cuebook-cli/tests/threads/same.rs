//! One road: for every dialect, interface and entry point, and for values from a fixed seed, the body of a thread's first request
//! equals `render --as wire` with the same inputs.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use cuebook_mock::{Api, Reply, Script};
use serde_json::{Value as Json, json};

use crate::setup::{Setup, err, out};

const DIRECTIVE: &str = r#"# Weigh

```xml
<directive name="weigh" version="1.0.0">
  <metadata>
    <description>Weighs &lt;things&gt;.</description>
    <category>demo</category>
    <author>tests</author>
    <context><system>demo/rules</system><before>demo/before</before><after>demo/after</after></context>
    <permissions><execute><tool>rye.bash.bash</tool></execute><search><tool>demo.*</tool></search><acknowledge risk="elevated">Yes.</acknowledge></permissions>
  </metadata>
  <inputs><input name="word" type="string" required="true">What</input></inputs>
  <outputs><output name="weight" type="string">How heavy</output></outputs>
</directive>
```

Weigh {input:word}.
"#;

const TEMPLATE: &str = "Weigh {{ word }} for {{ system.model }}.\n{% if word %}Twice.{% endif %}\n";

const PROMPTY: &str = "---\nname: scales\nmodel:\n  id: mock-model\n  options: {temperature: 0.5}\ninputs:\n  word: {kind: string}\n---\nsystem:\nBe exact.\n\nuser:\nWeigh {{word}}.\n";

const SECTIONS: &str = "---\ninputs:\n  word: {kind: string, required: true}\n---\n# Task\nWeigh $word.\n\n# More\n```yaml section\nsummary: Some rules.\nvisibility: summary\n```\nRules.\n";

const DOTPROMPT: &str = "---\nmodel: mock-model\nconfig: {temperature: 0.5}\ninput:\n  schema: {word: string}\n---\n{{role \"system\"}}\nBe exact.\n{{role \"user\"}}\nWeigh {{word}}.\n";

const SKILL: &str = "---\nname: weigh-skill\ndescription: Weighs things.\n---\n\nWeigh {{word}} twice.\n";

const DELEGATE: &str = r#"# Delegate

```xml
<directive name="delegate" version="1.0.0">
  <metadata>
    <description>Has something weighed.</description>
    <category>demo</category>
    <author>tests</author>
    <permissions>*<acknowledge risk="unrestricted">Yes.</acknowledge></permissions>
  </metadata>
  <inputs><input name="word" type="string" required="true">What</input></inputs>
</directive>
```

Delegate {input:word}.
"#;

/// Pieces of values: most look like structure of some dialect.
const PIECES: [&str; 17] = [
    "a feather",
    " ",
    "\n",
    "\n\n",
    "</directive>",
    "system:\n",
    "user:\n",
    "{{ word }}",
    "{% if x %}",
    "$word",
    "${word}",
    "{input:word}",
    "# Task",
    "\"quoted\" \\n",
    "naïve 羽 \u{1f600}",
    "```yaml section\n",
    "<<<dotprompt:role:system>>>",
];

/// Values from a fixed seed.
struct Values(u64);

impl Values {
    fn below(&mut self, most: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn next(&mut self) -> String {
        let count = 1 + self.below(6);
        let value: String = (0..count).map(|_| PIECES[self.below(PIECES.len())]).collect();
        // An empty value is a missing input in some dialects.
        format!("w{value}")
    }
}

fn knowledge(name: &str) -> String {
    format!(
        "---\nname: {name}\ntitle: {name}\nversion: 1.0.0\nentry_type: note\ncategory: demo\n---\n\nKnown {name}: \"$x\" {{y}}.\n"
    )
}

fn project(api: Api) -> Setup {
    let known =
        ["rules", "before", "after"].map(|name| (format!(".ai/knowledge/demo/{name}.md"), knowledge(name)));
    let mut files = vec![
        (".ai/directives/demo/weigh.md", DIRECTIVE),
        (".ai/directives/demo/delegate.md", DELEGATE),
        ("prompts/weigh_template/template.md", TEMPLATE),
        ("prompts/weigh_prompty.prompty", PROMPTY),
        ("prompts/weigh_sections.sections.md", SECTIONS),
        ("prompts/weigh_dotprompt.prompt", DOTPROMPT),
        ("skills/weigh-skill/SKILL.md", SKILL),
        ("cuebook.toml", "[directives]\ninstruction = \"Weigh it well.\"\nreturns = \"block\"\n"),
    ];
    files.extend(known.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    let stage = Setup::new(Script::answer(answer), &files);
    stage.project.write("home/.ai/config/providers/mock.yaml", stage.mock.provider_yaml(api));
    let signed = stage.run(&["sign", "knowledge", "demo/*"]);
    assert!(signed.status.success(), "{}", err(&signed));
    stage
}

/// Answers the thread that delegates with a call, once, and everything else with a text.
fn answer(request: &cuebook_mock::Request) -> Reply {
    let body = request.body.to_string();
    let Some(start) = body.find("Delegate w").filter(|_| !body.contains("thread_status")) else {
        return Reply::text("Light.");
    };
    // The value is in a JSON string, up to the sentence's end.
    let value = &body[start + "Delegate ".len()..];
    let end = value.find(".\\n").or_else(|| value.find(".\"")).unwrap_or(value.len());
    let word: String = serde_json::from_str(&format!("\"{}\"", &value[..end])).unwrap_or_default();
    let parameters = json!({"word": word});
    let arguments = json!({
        "item_type": "directive", "item_id": "demo/weigh", "parameters": parameters, "thread": true, "model": MODEL,
    });
    Reply::call("c1", "rye_execute", arguments)
}

/// A body without what the provider's file and the limits of a thread decide: streaming, and how long an answer may be.
fn said(mut body: Json) -> Json {
    if let Some(body) = body.as_object_mut() {
        for name in ["stream", "stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens"] {
            body.shift_remove(name);
        }
        if let Some(config) = body.get_mut("generationConfig").and_then(Json::as_object_mut) {
            config.shift_remove("maxOutputTokens");
        }
        body.retain(|_, value| value.as_object().is_none_or(|object| !object.is_empty()));
    }
    body
}

/// How a thread starts. A recording model receives its first request.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Run,
    Execute,
    Mcp,
    /// Another thread starts it.
    Child,
}

const MODEL: &str = "mock-model";

/// The body of the first request.
fn sent(stage: &Setup, entry: Entry, prompt: &str, word: &str, question: Option<&str>) -> Json {
    let asked = stage.mock.requests().len();
    let input = format!("word={word}");
    // The answer does not matter here: a directive without its outputs fails.
    match entry {
        Entry::Run => {
            let mut args = vec!["run", prompt, "--var", &input, "--model", MODEL];
            args.extend(question.into_iter().flat_map(|question| ["--message", question]));
            stage.run(&args);
        }
        Entry::Execute => {
            let model = format!("model={MODEL}");
            let given = ["--param", &input, "--param", "thread:=true", "--param", &model];
            stage.run(&[&["execute", "directive", prompt], &given[..]].concat());
        }
        Entry::Mcp => over_mcp(stage, prompt, word),
        Entry::Child => {
            stage.run(&["run", "demo/delegate", "--var", &input, "--model", MODEL]);
        }
    }
    let first = asked + usize::from(matches!(entry, Entry::Child));
    let requests = stage.mock.requests();
    requests.get(first).unwrap_or_else(|| panic!("{entry:?} {prompt} sent nothing")).body.clone()
}

/// Executes a directive in a thread, as an MCP client does.
fn over_mcp(stage: &Setup, prompt: &str, word: &str) {
    let mut command = stage.command(&["mcp", "--allow", "*"]);
    let mut server = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let arguments = json!({
        "item_type": "directive", "item_id": prompt, "project_path": stage.project.path(), "parameters": {"word": word},
        "thread": true, "model": MODEL,
    });
    for message in [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rye_execute", "arguments": arguments}}),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let answered = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut answers = answered.filter_map(|line| serde_json::from_str::<Json>(&line).ok());
    let answer = answers.find(|answer| answer["id"] == 1);
    assert!(answer.is_some(), "the server answers");
    drop(input);
    server.wait().unwrap();
}

fn is_same(api: Api, wire: &str, seed: u64) {
    let stage = project(api);
    let mut values = Values(seed);
    let check = |entry: Entry, prompt: &str, word: &str, question: Option<&str>| {
        let input = format!("word={word}");
        let mut args = vec!["render", prompt, "--as", wire, "--var", &input, "--model", MODEL];
        args.extend(question.into_iter().flat_map(|question| ["--message", question]));
        let rendered = stage.run(&args);
        assert!(rendered.status.success(), "{prompt} with {word:?}: {}", err(&rendered));
        let shown: Json = serde_json::from_str(&out(&rendered)).unwrap();
        let sent = sent(&stage, entry, prompt, word, question);
        assert_eq!(said(sent), said(shown), "{entry:?} of {prompt} with {word:?} over {wire}");
    };
    for round in 0..3 {
        for prompt in ["demo/weigh", "weigh_template", "weigh_prompty", "weigh_sections", "weigh_dotprompt"] {
            let question = (round == 1).then_some("How heavy is it?");
            check(Entry::Run, prompt, &values.next(), question);
        }
        for entry in [Entry::Execute, Entry::Mcp, Entry::Child] {
            check(entry, "demo/weigh", &values.next(), None);
        }
    }
}

#[test]
fn anthropic_gets_what_render_shows() {
    is_same(Api::Anthropic, "wire:anthropic", 0x9e37_79b9_7f4a_7c15);
}

#[test]
fn openai_gets_what_render_shows() {
    is_same(Api::OpenAiChat, "wire:openai", 0xd1b5_4a32_d192_ed03);
}

#[test]
fn openai_responses_get_what_render_shows() {
    is_same(Api::OpenAiResponses, "wire:openai-responses", 0x8cb9_2ba7_2f3d_8dd7);
}

#[test]
fn gemini_gets_what_render_shows() {
    is_same(Api::Gemini, "wire:gemini", 0xaf25_1af3_b0f0_25b5);
}

#[test]
fn a_request_has_settings_and_knowledge() {
    let stage = project(Api::Anthropic);
    let sent = sent(&stage, Entry::Execute, "demo/weigh", "iron", None).to_string();
    for part in ["Weigh it well.", "<returns>", "Known rules"] {
        assert!(sent.contains(part), "{part}: {sent}");
    }
}

#[test]
fn a_skill_is_sent_as_it_is_rendered() {
    let stage = project(Api::OpenAiChat);
    let rendered = stage.run(&["render", "weigh-skill", "--as", "wire:openai", "--model", MODEL]);
    assert!(rendered.status.success(), "{}", err(&rendered));
    let shown: Json = serde_json::from_str(&out(&rendered)).unwrap();
    stage.run(&["run", "weigh-skill", "--model", MODEL]);
    let sent = stage.mock.requests().last().unwrap().body.clone();
    assert!(sent.to_string().contains("Weigh {{word}} twice."), "{sent}");
    assert_eq!(said(sent), said(shown));
}
