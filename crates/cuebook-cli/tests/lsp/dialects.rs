//! The files that are no templates: `.prompt` files, skills, knowledge, and keys of the others.

use serde_json::{Value as Json, json};

use super::Editor;

const HI: &str = "prompts/hi.prompt";
const SKILL: &str = "skills/pdf/SKILL.md";
const TEA: &str = ".ai/knowledge/tea.md";
const TREE: &str = "prompts/s.sections.md";
const DEPLOY: &str = ".ai/directives/team/deploy.md";
const ACME: &str = ".ai/config/providers/acme.yaml";

const FILES: &[(&str, &str)] = &[
    (
        HI,
        "---\nmodel:   openai/gpt-4o\ninput:\n  schema:\n    who: string\n    tone?: string\n---\n{{role \"system\"}}\nHello {{who}}.\n{{#if tone}}\nBe {{tone}}.\n{{/if}}\n{{> end}}\n{{!-- {{x|nope}} --}}\n",
    ),
    ("prompts/_end.prompt", "Bye {{who}}\n"),
    (SKILL, "---\nname:   pdf\ndescription: Reads PDFs\n---\n# Use\n{{ x|nope }} and {% if %} literally.\n"),
    (
        TEA,
        "---\nname: tea\ntitle:   Tea\nentry_type: reference\nversion: 1.0.0\n---\n\n# Tea\n\nTea is {{ hot }}.\n",
    ),
    (
        TREE,
        "---\ninputs:\n  tone: {kind: string, default: calm}\n---\n# One\n```yaml section\nenabled: tone == \"x\"\n```\nBe $tone.\n",
    ),
    (
        DEPLOY,
        "# D\n\n```xml\n<directive name=\"deploy\" version=\"1.0.0\">\n<metadata>\n<description>d</description>\n<category>team</category>\n\
         <author>a</author>\n</metadata>\n</directive>\n```\n\nDeploy.\n",
    ),
    (ACME, "name: acme\napi: openai-chat\nba\n"),
];

/// The words of a file, each with the number of its kind.
fn coloured(editor: &mut Editor, file: &str) -> Vec<(u64, String)> {
    let text = std::fs::read_to_string(editor.folder.path().join(file)).unwrap();
    let lines: Vec<&str> = text.split('\n').collect();
    let tokens = editor.of("semanticTokens/full", file, json!({}))["data"].clone();
    let numbers: Vec<usize> =
        tokens.as_array().unwrap().iter().map(|one| one.as_u64().unwrap() as usize).collect();
    let (mut line, mut column) = (0, 0);
    let mut words = Vec::new();
    for one in numbers.chunks(5) {
        column = if one[0] == 0 { column + one[1] } else { one[1] };
        line += one[0];
        words.push((one[3] as u64, lines[line][column..column + one[2]].to_owned()));
    }
    words
}

fn labels(answer: &Json) -> Vec<&str> {
    answer["result"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect()
}

#[test]
fn dotprompt_has_colours_keys_folds_and_definitions() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    assert_eq!(editor.codes(HI), [""; 0]);
    let words = coloured(&mut editor, HI);
    let shown: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
    let wanted = [
        "model",
        "input",
        "schema",
        "who",
        "tone?",
        "role",
        "\"system\"",
        "who",
        "if",
        "tone",
        "tone",
        "if",
        "end",
        "{{!-- {{x|nope}} --}}",
    ];
    assert_eq!(shown, wanted.into_iter().filter(|word| *word != "tone?").collect::<Vec<_>>());
    // 0 is a keyword, 3 a function, 6 a comment.
    assert_eq!((words[4].0, words[7].0, words[12].0), (3, 0, 6), "{words:?}");

    let folds = editor.of("foldingRange", HI, json!({}));
    let lines: Vec<(u64, u64)> = folds
        .as_array()
        .unwrap()
        .iter()
        .map(|fold| (fold["startLine"].as_u64().unwrap(), fold["endLine"].as_u64().unwrap()))
        .collect();
    assert_eq!(lines, [(0, 5), (9, 10)]);
    let edits = editor.of("formatting", HI, json!({"options": {}}));
    assert!(edits[0]["newText"].as_str().unwrap().starts_with("model: openai/gpt-4o\n"), "{edits}");
    let part = editor.at_piece("definition", HI, "{{> en^d", json!({}));
    assert_eq!(part["result"]["uri"], editor.uri("prompts/_end.prompt"), "{part}");
    for (piece, wanted) in [
        ("mo^del:", &["model"][..]),
        ("  sche^ma:", &["schema"]),
        ("role \"sy^s", &["system"]),
        ("{{ro^le", &["role"]),
        ("{{to^ne", &["tone"]),
        ("{{> en^d", &["end"]),
        ("{{#i^f", &["if", "ifEquals"]),
    ] {
        let offered = editor.at_piece("completion", HI, piece, json!({}));
        assert_eq!(labels(&offered), wanted, "{piece}");
    }
    for (piece, wanted) in [
        ("mo^del:", "The model"),
        ("ro^le \"", "Begins a message"),
        ("{{to^ne", "**tone**"),
        ("#i^f tone", "{{else}}"),
    ] {
        let hover = editor.at_piece("hover", HI, piece, json!({}))["result"].clone();
        assert!(
            hover["contents"]["value"].as_str().is_some_and(|text| text.contains(wanted)),
            "{piece}: {hover}"
        );
    }
    let renamed = editor.renamed(HI, "Hello {{wh^o", "person").unwrap();
    assert_eq!(renamed.len(), 3, "{renamed:?}");
    editor.leave();
}

#[test]
fn the_text_of_skills_and_knowledge_is_no_template() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    for (file, keys, formatted) in [
        (SKILL, &["name", "description"][..], "name: pdf\n"),
        (TEA, &["name", "title", "entry_type", "version"], "name: tea\ntitle: Tea\n"),
    ] {
        let words: Vec<String> = coloured(&mut editor, file).into_iter().map(|(_, word)| word).collect();
        assert_eq!(words, keys, "{file}");
        let edits = editor.of("formatting", file, json!({"options": {}}));
        assert!(edits[0]["newText"].as_str().unwrap().starts_with(formatted), "{file}: {edits}");
        assert_eq!(editor.of("foldingRange", file, json!({}))[0]["startLine"], 0, "{file}");
    }
    assert_eq!(labels(&editor.at_piece("completion", SKILL, "x|no^pe", json!({}))), [""; 0]);
    assert_eq!(labels(&editor.at_piece("completion", SKILL, "desc^ription", json!({}))), ["description"]);
    assert_eq!(labels(&editor.at_piece("completion", TEA, "tit^le", json!({}))), ["title"]);
    assert_eq!(editor.at_piece("hover", SKILL, "x|no^pe", json!({}))["result"], Json::Null);
    editor.leave();
}

#[test]
fn keys_and_elements_have_documentation() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    for (file, piece, wanted) in [
        (TREE, "^inputs:", "The variables"),
        (TREE, "ena^bled:", "Whether it is there"),
        (TREE, "enabled: to^ne", "**tone**"),
        (DEPLOY, "<meta^data", "What the directive is"),
        (DEPLOY, "<dir^ective name", "`extends`"),
        (SKILL, "desc^ription", "when it helps"),
        (TEA, "entry_^type", "The kind"),
    ] {
        let hover = editor.at_piece("hover", file, piece, json!({}))["result"].clone();
        assert!(
            hover["contents"]["value"].as_str().is_some_and(|text| text.contains(wanted)),
            "{piece}: {hover}"
        );
    }
    let offered = editor.at_piece("completion", ACME, "\nba^", json!({}));
    assert!(labels(&offered).contains(&"base_url"), "{offered}");
    let offered = editor.at_piece("completion", ACME, "api: openai-^", json!({}));
    assert!(labels(&offered).contains(&"openai-chat"), "{offered}");
    editor.leave();
}
