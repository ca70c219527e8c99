//! The tables of filters, tests, functions and methods say what is true.

use std::path::PathBuf;

use cuebook_template::{Entry, Environment, Group, Mark, Spans, reference};
use serde_json::{Map, json};

#[test]
fn every_example_gives_its_result() {
    for entry in reference() {
        if entry.example.is_empty() {
            assert!(entry.about.starts_with("Refused"), "{}", entry.name);
            continue;
        }
        let env = if entry.chat { Environment::chat() } else { Environment::new() };
        let template =
            env.compile("example", entry.example).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        let output =
            env.render(&template, &Map::new()).unwrap_or_else(|error| panic!("{}: {error}", entry.name));
        assert_eq!(output.text(), entry.result, "{}", entry.example);
        assert!(entry.example.contains(entry.name), "{} does not show {}", entry.example, entry.name);
    }
}

/// A filter is used on `a ~ b`. If it keeps or maps, no piece comes from both; if it mixes, every piece does.
#[test]
fn the_span_rule_of_every_text_filter_is_true() {
    let values = json!({"a": "one <x> ", "b": "TWO"});
    let values = values.as_object().expect("an object");
    let (mut seen, mut wrong) = (0, Vec::new());
    for entry in reference() {
        let call = match (entry.group, entry.owner) {
            (Group::Filter, _) => format!("(a ~ b)|{}", entry.name),
            (Group::Method, "string") => format!("(a ~ b).{}()", entry.name),
            _ => continue,
        };
        let call = match (entry.group, entry.name) {
            (Group::Filter, "replace") => "(a ~ b)|replace('n', 'N')".to_owned(),
            (Group::Method, "replace") => "(a ~ b).replace('n', 'N')".to_owned(),
            (Group::Method, "center" | "ljust" | "rjust" | "zfill") => format!("(a ~ b).{}(20)", entry.name),
            (Group::Method, "split" | "rsplit" | "splitlines") => format!("(a ~ b).{}()|join", entry.name),
            (Group::Method, "removeprefix" | "removesuffix") => format!("(a ~ b).{}('on')", entry.name),
            (Group::Filter, "random" | "int" | "float" | "attr" | "unique" | "list" | "sort") => continue,
            _ => call,
        };
        let env = if entry.chat { Environment::chat() } else { Environment::new() };
        let text = format!("{{{{ {call} }}}}");
        let Ok(template) = env.compile("main", &text) else { continue };
        let Ok(output) = env.render(&template, values) else { continue };
        let variables = |mark: Mark| -> Vec<String> {
            match mark {
                Mark::Value { origin, .. } => {
                    output.paths(origin).into_iter().map(|path| path.variable).collect()
                }
                _ => Vec::new(),
            }
        };
        for (at, piece) in output.pieces().iter().enumerate() {
            let both = variables(piece.mark).len() == 2;
            let blank = output.piece_text(at).trim_matches(['0', ' ']).is_empty();
            let holds = match entry.spans {
                Spans::Mixes => both || output.piece_text(at) == "\n",
                _ => !both || blank,
            };
            if !holds {
                wrong.push(format!(
                    "{call}: {:?} comes from {:?}",
                    output.piece_text(at),
                    variables(piece.mark)
                ));
            }
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen > 50, "{seen}");
}

#[test]
fn arguments_are_checked_by_the_signature() {
    let message = |text: &str| {
        let env = Environment::new();
        let result = env.compile("main", text).and_then(|template| env.render(&template, &Map::new()));
        result.expect_err(text).message().to_owned()
    };
    assert_eq!(
        message("{{ 'a'|center('x') }}"),
        "the argument `width` of `center` must be an integer, not a string"
    );
    assert_eq!(message("{{ 'a'|replace('x') }}"), "`replace` needs the argument `new`");
    assert_eq!(message("{{ 'a'|upper(1) }}"), "`upper` takes at most 0 arguments");
    assert_eq!(message("{{ 'a'|trim(char='x') }}"), "`trim` has no argument `char`");
    assert_eq!(message("{{ 1 is divisibleby }}"), "`divisibleby` needs the argument `num`");
}

fn code(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('\n', "⏎");
    let ticks = if text.contains('`') { "``" } else { "`" };
    format!("{ticks}{text}{ticks}")
}

fn page() -> String {
    let mut page = String::from(
        "# Filters, tests, functions and methods\n\n\
         Everything that Jinja2 templates can use. The page is made from the tables of the engine, and a test runs every example.\n\n\
         The column *origins* says what `explain` shows for the result. *keeps*: each part keeps its origin. *maps*: each part is changed in \
         its place and keeps its origin. *mixes*: the result is one value that comes from all the inputs. `⏎` is a new line.\n",
    );
    let all = reference();
    let table = |page: &mut String, title: &str, rows: Vec<&Entry>| {
        page.push_str(&format!("\n## {title}\n\n| name | what it does | example | result | origins |\n| --- | --- | --- | --- | --- |\n"));
        for entry in rows {
            let name = if entry.owner.is_empty() {
                code(&entry.signature)
            } else {
                code(&format!("{}.{}", entry.owner, entry.signature))
            };
            let spans = match entry.spans {
                Spans::Keeps => "keeps",
                Spans::Maps => "maps",
                Spans::Mixes => "mixes",
            };
            let shown = |text: &str| if text.is_empty() { String::new() } else { code(text) };
            page.push_str(&format!(
                "| {name} | {} | {} | {} | {spans} |\n",
                entry.about,
                shown(entry.example),
                shown(entry.result)
            ));
        }
    };
    let of = |group: Group, chat: bool| {
        all.iter().filter(|entry| entry.group == group && entry.chat == chat).collect()
    };
    table(&mut page, "Filters", of(Group::Filter, false));
    table(&mut page, "Tests", of(Group::Test, false));
    table(&mut page, "Functions", of(Group::Function, false));
    table(&mut page, "Methods", of(Group::Method, false));
    table(&mut page, "Chat templates of models", all.iter().filter(|entry| entry.chat).collect());
    page
}

#[test]
fn the_reference_page_is_made_from_the_tables() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/filters.md");
    if std::env::var_os("CUEBOOK_BLESS").is_some() {
        std::fs::write(&file, page()).expect("the page is written");
    }
    let kept = std::fs::read_to_string(&file).expect("the page exists");
    assert!(kept == page(), "run this test with CUEBOOK_BLESS=1 to write {} again", file.display());
}
