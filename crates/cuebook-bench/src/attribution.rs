//! What attribution costs: a render of ours, with validation, layers and the origin of every byte, against the bare
//! template engine on the same template and the same values. The target is at most 1.25 times as long. The last two
//! are no plain templates (see `template::jinja::plain`), so that the engine itself renders them.

use std::fs;
use std::sync::Arc;

use cuebook::{Book, Context, Variables};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde_json::{Map, Value as Json, json};

use crate::measure::compare;

struct Case {
    name: &'static str,
    template: String,
    /// Templates that it extends and includes, by path.
    others: &'static [(&'static str, &'static str)],
    values: Json,
}

fn cases() -> Vec<Case> {
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
            template: "You are {{ agent_name }}.\nThe time is {{ datetime }}.\n\nAnswer politely.\n\
                       {% if project_memory %}\n## Project\n{{ project_memory }}\n{% endif %}\n"
                .into(),
            others: &[],
            values: json!({"agent_name": "Rumi", "datetime": "2026-02-20T15:30:00+09:00", "project_memory": "Uses Rust."}),
        },
        Case {
            name: "loop of 50 items",
            template: "# Items\n{% for item in items %}- {{ item.name }}: {{ item.description }} ({{ loop.index }})\n\
                       {% endfor %}\nDone.\n"
                .into(),
            others: &[],
            values: json!({"items": items}),
        },
        Case {
            name: "agent prompt of 6 KB with 20 tools",
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

/// Prints one row per case.
pub fn run() {
    println!(
        "attribution: rendering with the origin of every byte, against bare minijinja (target: ratio ≤ 1.25)"
    );
    println!("{:36} {:>12} {:>12} {:>7}", "", "minijinja", "cuebook", "ratio");
    for case in cases() {
        if let Err(error) = row(&case) {
            eprintln!("{}: {error}", case.name);
            std::process::exit(1);
        }
    }
}

fn row(case: &Case) -> Result<(), Box<dyn std::error::Error>> {
    let project = tempfile::tempdir()?;
    let folder = project.path().join("prompts/case");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("template.md"), &case.template)?;
    for (path, text) in case.others {
        let path = project.path().join("prompts").join(path);
        fs::create_dir_all(path.parent().unwrap_or(project.path()))?;
        fs::write(path, text)?;
    }
    let empty = Map::new();
    let variables = Variables::from_json(case.values.as_object().unwrap_or(&empty));
    let context = Arc::new(Context::default());
    let prepared = Book::open(project.path()).prepare("case", &context)?;

    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_template("case", &case.template)?;
    for (path, text) in case.others {
        environment.add_template(path, text)?;
    }
    let bare = environment.get_template("case")?;
    let values = Value::from(Serde(&case.values));

    let rendered = prepared.render(&variables, &context)?;
    assert_eq!(rendered.text(), bare.render(values.clone())?, "both must give the same text");

    let pair = compare(|| bare.render(values.clone()), || prepared.render(&variables, &context));
    println!("{:36} {:>9.0} ns {:>9.0} ns {:>7.2}", case.name, pair.peer, pair.ours, pair.ratio());
    Ok(())
}
