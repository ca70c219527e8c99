//! `.prompty` files: ours against Prompty's own Rust crate, each file loaded once and rendered many times. The target is
//! three times as fast or more. Ours gives the origin of every byte as well; theirs gives the text.
//!
//! Ours is measured twice: with values that were converted once, as a program with a fixed context has them, and with values
//! that come as JSON for each render, which is what theirs takes.

use std::fs;
use std::sync::Arc;

use cuebook::{Book, Context, Variables};
use futures_executor::block_on;
use serde_json::{Map, Value as Json, json};

use crate::measure::compare;

struct Case {
    name: &'static str,
    file: &'static str,
    values: Json,
}

fn cases() -> Vec<Case> {
    let items: Vec<Json> = (0..50)
        .map(|n| {
            json!({
                "name": format!("item {n}"),
                "description": format!("what item number {n} is good for, in one sentence of some length"),
                "urgent": n % 7 == 0,
            })
        })
        .collect();
    vec![
        Case {
            name: "small prompt, 3 variables",
            file: "---\nname: small\nmodel: gpt-4o\ninputs:\n  - {name: first, kind: string}\n  \
                   - {name: last, kind: string}\n  - {name: question, kind: string}\n---\nsystem:\n\
                   You are an assistant who helps people find information. As the assistant, you answer questions \
                   briefly and in a friendly way, with Markdown where it helps.\n\n# Customer\nYou are helping \
                   {{first}} {{last}} to find answers.\n\nuser:\n{{question}}\n",
            values: json!({"first": "Jane", "last": "Doe", "question": "What is the meaning of life, and why is it 42?"}),
        },
        Case {
            name: "loop of 50 objects",
            file: "---\nname: loop50\nmodel: gpt-4o\ninputs:\n  - {name: items, kind: array, items: {kind: object}}\n---\n\
                   system:\nHere is what there is:\n{% for item in items %}\n{{ loop.index }}. {{ item.name }}: \
                   {{ item.description }}{% if item.urgent %} (urgent: {{ item.urgent }}){% endif %}\n{% endfor %}\n\
                   user:\nChoose one.\n",
            values: json!({"items": items}),
        },
    ]
}

/// Prints the rows of each case.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    prompty::register_defaults();
    println!("\n.prompty: render and messages, against Prompty's Rust crate 2.1.0 (target: 3 times as fast)");
    println!("{:52} {:>12} {:>12} {:>7}", "", "prompty", "cuebook", "faster");
    for case in cases() {
        rows(&case)?;
    }
    Ok(())
}

fn rows(case: &Case) -> Result<(), Box<dyn std::error::Error>> {
    let project = tempfile::tempdir()?;
    let path = project.path().join("prompts/case.prompty");
    fs::create_dir_all(project.path().join("prompts"))?;
    fs::write(&path, case.file)?;
    let agent = prompty::load(&path)?;
    let context = Arc::new(Context::default());
    let prepared = Book::open(project.path()).prepare("case", &context)?;
    let empty = Map::new();
    let object = case.values.as_object().unwrap_or(&empty);
    let variables = Variables::from_json(object);

    let ours = prepared.render(&variables, &context)?;
    let theirs = block_on(prompty::render(&agent, &case.values))?;
    // They drop the last newline, and print a boolean as Python does.
    let alike = theirs.replace("True", "true");
    assert_eq!(ours.text().trim_end(), alike.trim_end(), "both must give the same text");
    assert_eq!(ours.messages()?.len(), block_on(prompty::prepare(&agent, Some(&case.values)))?.len());

    let render = || block_on(prompty::render(&agent, &case.values));
    let prepare = || block_on(prompty::prepare(&agent, Some(&case.values)));
    let from_json = || Variables::from_json(object);
    let row = |what: &str, pair: crate::measure::Pair| {
        let name = format!("{}: {what}", case.name);
        println!("{name:52} {:>9.0} ns {:>9.0} ns {:>7.1}", pair.peer, pair.ours, 1.0 / pair.ratio());
    };
    row("render", compare(render, || prepared.render(&variables, &context)));
    row("render, values as JSON", compare(render, || prepared.render(&from_json(), &context)));
    row("messages", compare(prepare, || prepared.render(&variables, &context)?.messages()));
    row("messages, values as JSON", compare(prepare, || prepared.render(&from_json(), &context)?.messages()));
    Ok(())
}
