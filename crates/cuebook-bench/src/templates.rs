//! The template engine alone, `cuebook-template` with the origin of every byte, against bare minijinja: the time of a render,
//! the time to compile, and the memory of a compiled template.

use std::collections::BTreeMap;
use std::error::Error;

use cuebook_template::Environment;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Value};
use serde_json::{Map, Value as Json, json};

use crate::measure::{Pair, compare};

/// A template with its values, and the target for our time as a share of minijinja's.
pub struct Case {
    pub name: &'static str,
    target: f64,
    pub template: String,
    /// Templates that it extends and includes, by path.
    pub others: &'static [(&'static str, &'static str)],
    pub values: Json,
}

pub fn cases() -> Vec<Case> {
    let items: Vec<Json> = (0..50)
        .map(|n| json!({"name": format!("item {n}"), "description": format!("what item number {n} is good for, in a sentence")}))
        .collect();
    let tools: Vec<Json> = (0..20)
        .map(|n| json!({"name": format!("tool_{n}"), "description": format!("Does the thing number {n}, and reports what it did.")}))
        .collect();
    let prose = "Work in small steps, say what you found, and ask when something is missing. ".repeat(8);
    vec![
        Case {
            name: "small prompt",
            target: 0.8,
            template: "You are {{ agent_name }}.\nThe time is {{ datetime }}.\n\nAnswer politely.\n\
                       {% if project_memory %}\n## Project\n{{ project_memory }}\n{% endif %}\n"
                .into(),
            others: &[],
            values: json!({"agent_name": "Rumi", "datetime": "2026-02-20T15:30:00+09:00", "project_memory": "Uses Rust."}),
        },
        Case {
            name: "loop of 50 items",
            target: 0.5,
            template: "# Items\n{% for item in items %}- {{ item.name }}: {{ item.description }} ({{ loop.index }})\n\
                       {% endfor %}\nDone.\n"
                .into(),
            others: &[],
            values: json!({"items": items}),
        },
        Case {
            name: "agent prompt of 6 KB with 20 tools",
            target: 0.45,
            template: format!(
                "You are {{{{ agent_name }}}}, {{{{ role }}}}.\n\n{prose}\n\n## Tools\n{{% for tool in tools %}}\
                 ### {{{{ tool.name }}}}\n{{{{ tool.description }}}}\n{{% endfor %}}\n## Rules\n{prose}\n{prose}\n\
                 {{% if language != 'en' %}}Answer in {{{{ language }}}}.{{% endif %}}\n{{{{ memory|trim }}}}\n"
            ),
            others: &[],
            values: json!({
                "agent_name": "Rumi", "role": "an engineer", "tools": tools.clone(), "language": "ja",
                "memory": "The user prefers short answers.\n".repeat(20),
            }),
        },
        Case {
            name: "the same with a macro and captures",
            target: 0.8,
            template: format!(
                "{{% macro entry(tool) %}}### {{{{ tool.name }}}}\n{{{{ tool.description }}}}\n{{% endmacro %}}\
                 {{% set rules %}}{prose}{{% endset %}}You are {{{{ agent_name }}}}.\n{{{{ rules }}}}\n## Tools\n\
                 {{% for tool in tools %}}{{{{ entry(tool) }}}}{{% endfor %}}\n{prose}{prose}\n"
            ),
            others: &[],
            values: json!({"agent_name": "Rumi", "tools": tools.clone()}),
        },
        Case {
            name: "a child of a parent, with includes",
            target: 0.8,
            template: "{% extends 'base/template.md' %}{% block role %}Answer questions about {{ product }}.{% endblock %}".into(),
            others: &[
                (
                    "base/template.md",
                    "You are {{ agent_name }}.\n{% block role %}Be helpful.{% endblock %}\n{% include 'parts/tools.md' %}\n\
                     {% include 'parts/rules.md' %}\n",
                ),
                ("parts/tools.md", "## Tools\n{% for tool in tools %}- {{ tool.name }}: {{ tool.description }}\n{% endfor %}"),
                ("parts/rules.md", "## Rules\n- Say what you found.\n- Ask when something is missing.\n"),
            ],
            values: json!({"agent_name": "Rumi", "product": "teapots", "tools": tools}),
        },
    ]
}

/// Prints one row for each case and measure.
pub fn run() -> Result<(), Box<dyn Error>> {
    println!(
        "templates: cuebook-template with the origin of every byte, against bare minijinja (target: the largest ratio)"
    );
    println!("{:46} {:>12} {:>12} {:>7} {:>7}", "", "minijinja", "ours", "ratio", "target");
    for case in cases() {
        render(&case)?;
    }
    for case in cases() {
        compile(&case)?;
    }
    let agent = cases().into_iter().find(|case| case.name.starts_with("agent")).ok_or("no agent prompt")?;
    memory(&agent.template)
}

fn print(name: &str, pair: &Pair, target: f64) {
    println!("{name:46} {:>9.0} ns {:>9.0} ns {:>7.2} {target:>7.2}", pair.peer, pair.ours, pair.ratio());
}

fn ours(case: &Case) -> Environment {
    let others: BTreeMap<&str, &str> = case.others.iter().copied().collect();
    let mut env = Environment::new().loader(move |name| others.get(name).map(|text| (*text).to_owned()));
    env.limits.fuel = u64::MAX;
    env
}

fn theirs() -> minijinja::Environment<'static> {
    let mut env = minijinja::Environment::new();
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env
}

fn render(case: &Case) -> Result<(), Box<dyn Error>> {
    let env = ours(case);
    let template = env.compile("case", &case.template)?;
    let empty = Map::new();
    let variables = case.values.as_object().unwrap_or(&empty);
    let mut peer = theirs();
    peer.add_template_owned("case", case.template.clone())?;
    for (path, text) in case.others {
        peer.add_template(path, text)?;
    }
    let bare = peer.get_template("case")?;
    let values = Value::from(Serde(&case.values));
    let same = env.render(&template, variables)?.text() == bare.render(values.clone())?;
    assert!(same, "both must give the same text");
    let pair = compare(|| bare.render(values.clone()), || env.render(&template, variables));
    print(case.name, &pair, case.target);
    Ok(())
}

fn compile(case: &Case) -> Result<(), Box<dyn Error>> {
    let env = ours(case);
    env.compile("case", &case.template)?;
    let peer = theirs();
    let pair = compare(
        || peer.template_from_named_str("case", &case.template).map(drop),
        || env.compile("case", &case.template).map(drop),
    );
    print(&format!("compile: {}", case.name), &pair, 1.0);
    Ok(())
}

/// Bytes of memory in use, where the system says so.
fn resident() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<usize>().ok()?;
    Some(pages * 4096)
}

fn memory(text: &str) -> Result<(), Box<dyn Error>> {
    const COPIES: usize = 4_000;
    let env = Environment::new();
    let before = resident();
    let kept = (0..COPIES).map(|_| env.compile("case", text)).collect::<Result<Vec<_>, _>>()?;
    let after = resident();
    let each = before.zip(after).map(|(before, after)| after.saturating_sub(before) / kept.len());
    match each {
        Some(each) => {
            println!("memory of the compiled agent prompt: {each} bytes, for {} bytes of text", text.len())
        }
        None => println!("memory of the compiled agent prompt: this system does not say"),
    }
    Ok(())
}
