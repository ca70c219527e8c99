//! What attribution costs: a render of ours, with validation, layers and the origin of every byte, against the bare
//! template engine on the same template and the same values. The target is at most 1.25 times as long.

use std::fs;
use std::sync::Arc;

use cuebook::{Book, Context, Variables};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde_json::Map;

use crate::measure::compare;
use crate::templates::{Case, cases};

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
