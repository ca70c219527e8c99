//! Chat templates of models render as the library `transformers` renders them.

mod support;

use cuebook_template::{Environment, ErrorKind};
use serde_json::{Map, Value as Json, json};

const NOW: &str = "2026-07-04T05:06:07[UTC]";

fn environment() -> Environment {
    let mut env = Environment::chat();
    env.now = Some(NOW.parse().expect("a time"));
    env
}

fn render(text: &str, context: &Json) -> Result<String, cuebook_template::Error> {
    let env = environment();
    let empty = Map::new();
    let template = env.compile("model", text)?;
    Ok(env.render(&template, context.as_object().unwrap_or(&empty))?.text().to_owned())
}

fn written() -> Vec<Json> {
    let messages = json!([
        {"role": "system", "content": "Be <b>brief</b> & \"kind\"."},
        {"role": "user", "content": "Grüße \u{1F389} \u{7f}\u{1}"},
        {"role": "assistant", "content": "ok", "tool_calls": [{"function": {"name": "z", "arguments": {"b": 1, "a": [1.5, null, true]}}}]},
    ]);
    let context = json!({"messages": messages, "tools": [{"z": 1, "a": {"y": "ü", "x": "<&'>"}}, []], "bos_token": "<s>", "add_generation_prompt": true});
    let texts = [
        "{{ tools|tojson }}",
        "{{ tools|tojson(indent=2) }}",
        "{{ tools|tojson(indent='--') }}",
        "{{ tools|tojson(indent=0) }}",
        "{{ tools|tojson(true) }}",
        "{{ tools|tojson(ensure_ascii=True, sort_keys=true) }}",
        "{{ tools|tojson(separators=(',', ':')) }}",
        "{{ tools|tojson(separators=(',', ':'), indent=4) }}",
        "{{ messages|map(attribute='content')|list|tojson }}",
        "{{ messages[2].tool_calls|tojson }} {{ {'b': none, 'a': 1e30, 1: 2, true: 3}|tojson }}",
        "{{ undefined_name|tojson }}",
        "{{ tools|tojson(separators=1) }}",
        "{{ strftime_now('%d %b %Y') }}|{{ strftime_now('%Y-%m-%d %H:%M:%S') }}|{{ strftime_now('%A, %B %d, %j %y %I %p %%') }}",
        "{{ raise_exception('Only two roles!') }}",
        "{% if messages|length > 5 %}{{ raise_exception('x') }}{% endif %}fine",
        "{% for m in messages %}\n  {%- generation %}\n{{ m.content }}{{ loop.index }}\n  {% endgeneration %}\n{% endfor %}",
        "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}",
        "{% generation %}",
        "{{ bos_token }}{% for message in messages %}\n    {% if message.role == 'user' %}\n[INST] {{ message['content'] | trim }} [/INST]\n    {%- else %}\n        {{ message.content + '</s>' }}\n    {%- endif %}\n{% endfor %}\n{% if add_generation_prompt %}\n<|assistant|>\n{% endif %}\n",
        "{% raw %}\n{{ x }}{% endraw %}\ny",
        "{%- set ns = namespace(found=false) -%}{% for m in messages %}{% if m.tool_calls is defined %}{% set ns.found = true %}{% break %}{% endif %}{% endfor %}{{ ns.found }}",
        "{{ messages|tojson|length }} {{ (messages|tojson) ~ '<' }}",
    ];
    texts.iter().map(|text| json!({"main": text, "context": context})).collect()
}

#[test]
fn chat_templates_render_as_transformers_renders_them() {
    let Some(python) = support::jinja2() else { return };
    let mut cases = written();
    let ours = cases.len();
    cases.extend(support::chat_cases());
    let expected = support::transformers(&python, &cases);
    assert_eq!(expected.len(), cases.len());
    let (mut same, mut decided, mut wrong) = (0, 0, Vec::new());
    for (case, expected) in cases.iter().zip(&expected) {
        let text = case["main"].as_str().expect("a text");
        match (render(text, &case["context"]), expected["text"].as_str()) {
            (Ok(got), Some(wanted)) if got == wanted => same += 1,
            (Err(error), None) => {
                same += 1;
                if let (ErrorKind::Raised, Some(message)) = (error.kind(), expected["error"].as_str()) {
                    assert_eq!(error.message(), message);
                }
            }
            (Err(error), Some(_)) if error.message().contains("values cannot change") => decided += 1,
            (got, _) => wrong.push(format!("{text}\n  transformers {expected}\n  ours {got:?}")),
        }
    }
    println!("{same} same ({ours} of ours), {decided} decided, {} wrong", wrong.len());
    for case in wrong.iter().take(5) {
        println!("{}", case.chars().take(3000).collect::<String>());
    }
    assert!(wrong.is_empty(), "{} of {} differ", wrong.len(), cases.len());
}

#[test]
fn chat_extras_exist_in_the_chat_style_alone() {
    let env = Environment::new();
    let error = env.compile("main", "{% generation %}x{% endgeneration %}").expect_err("no such tag");
    assert!(error.message().contains("unknown tag `generation`"), "{error}");
    let template = env.compile("main", "{{ strftime_now('%Y') }}").expect("a name can be a variable");
    assert_eq!(env.render(&template, &Map::new()).expect_err("undefined").kind(), ErrorKind::Undefined);
    let template = env.compile("main", "{{ {'b': '<', 'a': 1}|tojson }}").expect("valid");
    let output = env.render(&template, &Map::new()).expect("renders");
    assert_eq!(output.text(), r#"{"a": 1, "b": "\u003c"}"#);
}

#[test]
fn output_of_a_generation_block_keeps_its_origins() {
    let env = environment();
    let template = env.compile("m", "{% generation %}a {{ x }}{% endgeneration %}").expect("valid");
    let variables = json!({"x": "b"});
    let output = env.render(&template, variables.as_object().expect("an object")).expect("renders");
    assert_eq!(output.text(), "a b");
    assert!(output.paths_at(0).is_empty());
    assert_eq!(output.paths_at(2)[0].to_string(), "x");
}
