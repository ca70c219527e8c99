//! Names that lead from file to file, in every dialect: where they are defined, where they are used, and what renaming them changes.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Editor;

const GUIDE: &str = "prompts/guide.sections.md";
const LETTER: &str = "prompts/letter/template.md";
const NOTE: &str = "prompts/note.prompty";
const DEPLOY: &str = ".ai/directives/ops/deploy.md";
const TOOL: &str = ".ai/tools/team/report.py";
const TEA: &str = ".ai/knowledge/tea.md";

const FILES: &[(&str, &str)] = &[
    (
        "prompts/base/template.md",
        "{% block intro %}Hello {{ name }}.{% endblock %}\n{% block rest %}{% endblock %}\n",
    ),
    (
        "prompts/base/prompt.py",
        "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}]}\n\ndef pre_render(variables, context):\n    \
         variables[\"name\"] = variables.get(\"name\", \"x\")\n    return variables\n",
    ),
    (
        "prompts/child/template.md",
        "{% extends \"base/template.md\" %}\n{% block rest %}{{ self.intro() }}{% set mood = name %}{{ mood }}{% include \"parts/end.md\" %}{% endblock %}\n",
    ),
    ("prompts/child/prompt.py", "METADATA = {\"extends\": \"base\"}\n"),
    (
        "prompts/child/tests.md",
        "## greets\n\n```yaml inputs\nname: Ada\n```\n\n```text contains\nHello\n```\n",
    ),
    ("prompts/parts/end.md", "Yours, {{ name }}\n"),
    (
        NOTE,
        "---\nname: note\ninputs:\n  - name: who\n    kind: string\n    default: Ann\ntools:\n  - name: find\n    kind: function\n    \
         description: Finds\n    parameters:\n      - name: q\n        kind: string\n    bindings:\n      q: {input: who}\n---\nsystem:\nWrite to {{ who }}.\n",
    ),
    ("prompts/note.tests.md", "## writes\n\n```yaml inputs\nwho: Bo\n```\n\n```text contains\nBo\n```\n"),
    (
        GUIDE,
        "---\ninputs:\n  tone: {kind: string, default: friendly}\n  level: {kind: string, default: low}\n---\n# Rules\n```yaml section\n\
         enabled: level == \"low\"\ntools:\n  - name: find_rule\n    description: Finds a rule\n    parameters:\n      number: {kind: integer, required: true}\n\
         ```\nFollow them.\n\n## Tone\nBe $tone and ${level}.\n\n# Examples\n```yaml section\nkey: ex\ntask_examples:\n  - objective: Say it\n    steps:\n      \
         - {tool: find_rule, description: Look, input: {number: 1}, output: x}\n    outcome: Done\n```\n",
    ),
    (LETTER, "{% include \"prompt:note\" %}\n{% include \"prompt:guide#rules.tone\" %}\n"),
    (
        DEPLOY,
        "# Deploy\n\n```xml\n<directive name=\"deploy\" version=\"1.0.0\">\n<metadata>\n<description>d</description>\n<category>ops</category>\n\
         <author>ann</author>\n<permissions><execute><tool>team.report</tool><tool>rye.bash.*</tool></execute></permissions>\n</metadata>\n\
         <inputs>\n<input name=\"app\" type=\"string\" required=\"true\">Which</input>\n</inputs>\n</directive>\n```\n\nDeploy {input:app}. {include:tea}\n",
    ),
    (
        TOOL,
        "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__executor_id__ = \"rye/core/runtimes/python/function\"\n__category__ = \"team\"\n",
    ),
    (TEA, "---\nname: tea\ntitle: Tea\n---\n\nTea is hot.\n"),
    (
        "prompts/mustache.prompty",
        "---\nname: mustache\ntemplate:\n  format: {kind: mustache}\n---\nHi {{> parts/end.md}}\n",
    ),
];

impl Editor {
    /// The position of `^` in a piece of a file, which is written there without it.
    fn position(&self, file: &str, piece: &str) -> (u64, u64) {
        let text = std::fs::read_to_string(self.folder.path().join(file)).unwrap();
        let (before, after) = piece.split_once('^').unwrap();
        let at = text.find(&format!("{before}{after}")).unwrap_or_else(|| panic!("{piece}")) + before.len();
        let line = text[..at].matches('\n').count();
        let column = at - text[..at].rfind('\n').map_or(0, |end| end + 1);
        (line as u64, column as u64)
    }

    pub(super) fn at_piece(&mut self, method: &str, file: &str, piece: &str, more: Json) -> Json {
        let (line, column) = self.position(file, piece);
        self.at(method, file, line, column, more)
    }

    /// `FILE:LINE text` of each place.
    fn shown(&self, places: &Json) -> BTreeSet<String> {
        let one = |place: &Json| {
            let uri = place["uri"].as_str().unwrap();
            let file = uri.strip_prefix(&self.uri("")).unwrap().trim_start_matches('/').to_owned();
            let text = std::fs::read_to_string(self.folder.path().join(&file)).unwrap();
            let number = |at: &str, what: &str| place["range"][at][what].as_u64().unwrap() as usize;
            let line = text.lines().nth(number("start", "line")).unwrap_or_default();
            let word = &line[number("start", "character")..number("end", "character")];
            format!("{file}:{} {word}", number("start", "line") + 1)
        };
        match places.as_array() {
            Some(all) => all.iter().map(one).collect(),
            None if places.is_null() => BTreeSet::new(),
            None => BTreeSet::from([one(places)]),
        }
    }

    /// What a rename changes: `FILE:LINE old -> new`, and `FILE => FILE` for what moves.
    pub(super) fn renamed(&mut self, file: &str, piece: &str, to: &str) -> Result<BTreeSet<String>, String> {
        let answer = self.at_piece("rename", file, piece, json!({"newName": to}));
        if let Some(message) = answer["error"]["message"].as_str() {
            return Err(message.to_owned());
        }
        let mut changes = BTreeSet::new();
        let mut add = |uri: &str, edits: &Json| {
            for edit in edits.as_array().unwrap() {
                let place = json!({"uri": uri, "range": edit["range"]});
                let shown = self.shown(&place).into_iter().next().unwrap();
                changes.insert(format!("{shown} -> {}", edit["newText"].as_str().unwrap()));
            }
        };
        let result = &answer["result"];
        for (uri, edits) in result["changes"].as_object().into_iter().flatten() {
            add(uri, edits);
        }
        let operations: Vec<Json> = result["documentChanges"].as_array().cloned().unwrap_or_default();
        for one in operations.iter().filter(|one| one["kind"].is_null()) {
            add(one["textDocument"]["uri"].as_str().unwrap(), &one["edits"]);
        }
        for one in operations.iter().filter(|one| one["kind"] == "rename") {
            let root = self.uri("");
            let path = |key: &str| {
                one[key].as_str().unwrap().strip_prefix(&root).unwrap().trim_start_matches('/').to_owned()
            };
            changes.insert(format!("{} => {}", path("oldUri"), path("newUri")));
        }
        Ok(changes)
    }

    fn set(&self, places: &[&str]) -> BTreeSet<String> {
        places.iter().map(|place| (*place).to_owned()).collect()
    }
}

#[test]
fn names_lead_to_where_they_are_defined() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    for (file, piece, wanted) in [
        ("prompts/child/template.md", "self.in^tro", "prompts/base/template.md:1 intro"),
        ("prompts/child/template.md", "parts/en^d.md", "prompts/parts/end.md:1 "),
        ("prompts/child/prompt.py", "\"ba^se\"", "prompts/base/template.md:1 "),
        ("prompts/base/prompt.py", "variables[\"na^me", "prompts/base/prompt.py:1 \"name\""),
        ("prompts/child/tests.md", "na^me: Ada", "prompts/base/prompt.py:1 \"name\""),
        (NOTE, "input: wh^o", "prompts/note.prompty:4 who"),
        (NOTE, "name: fi^nd", "prompts/note.prompty:8 find"),
        (GUIDE, "enabled: lev^el", "prompts/guide.sections.md:4 level"),
        (GUIDE, "$to^ne", "prompts/guide.sections.md:3 tone"),
        (GUIDE, "tool: find^_rule", "prompts/guide.sections.md:10 find_rule"),
        (LETTER, "prompt:no^te", "prompts/note.prompty:1 "),
        (LETTER, "#rules.to^ne", "prompts/guide.sections.md:17 Tone"),
        (DEPLOY, "{input:ap^p", ".ai/directives/ops/deploy.md:12 app"),
        (DEPLOY, "team.re^port", ".ai/tools/team/report.py:1 "),
        (DEPLOY, "{include:te^a", ".ai/knowledge/tea.md:1 "),
        ("prompts/mustache.prompty", "parts/en^d.md", "prompts/parts/end.md:1 "),
    ] {
        let found = editor.at_piece("definition", file, piece, json!({}))["result"].clone();
        assert_eq!(editor.shown(&found), editor.set(&[wanted]), "{file} {piece}");
    }
    // A built-in runtime has no file, and is known all the same.
    let hover = editor.at_piece("hover", TOOL, "runtimes/python/fun^ction", json!({}))["result"].clone();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("part of the program"), "{hover}");
    let hover = editor.at_piece("hover", DEPLOY, "rye.ba^sh.*", json!({}))["result"].clone();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("rye/bash/bash"), "{hover}");
    let hover = editor.at_piece("hover", LETTER, "#rules.to^ne", json!({}))["result"].clone();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("tokens"), "{hover}");
    editor.leave();
}

#[test]
fn references_are_found_in_every_dialect() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    for (file, piece, wanted) in [
        (LETTER, "prompt:no^te", &["prompts/letter/template.md:1 note"][..]),
        (
            GUIDE,
            "## To^ne",
            &["prompts/guide.sections.md:17 Tone", "prompts/letter/template.md:2 rules.tone"],
        ),
        (
            GUIDE,
            "name: find^_rule",
            &["prompts/guide.sections.md:10 find_rule", "prompts/guide.sections.md:26 find_rule"],
        ),
        (DEPLOY, "{include:te^a", &[".ai/directives/ops/deploy.md:17 tea"]),
        (
            "prompts/child/template.md",
            "parts/en^d.md",
            &["prompts/child/template.md:2 parts/end.md", "prompts/mustache.prompty:6 parts/end.md"],
        ),
        (
            GUIDE,
            "  lev^el: {",
            &[
                "prompts/guide.sections.md:4 level",
                "prompts/guide.sections.md:8 level",
                "prompts/guide.sections.md:18 level",
            ],
        ),
    ] {
        let found =
            editor.at_piece("references", file, piece, json!({"context": {"includeDeclaration": true}}));
        assert_eq!(editor.shown(&found["result"]), editor.set(wanted), "{file} {piece}");
    }
    editor.leave();
}

#[test]
fn a_rename_is_one_edit_of_everything_that_has_the_name() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    for (file, piece, to, wanted) in [
        (
            "prompts/child/template.md",
            "parts/en^d.md",
            "parts/close.md",
            &[
                "prompts/child/template.md:2 parts/end.md -> parts/close.md",
                "prompts/mustache.prompty:6 parts/end.md -> parts/close.md",
                "prompts/parts/end.md => prompts/parts/close.md",
            ][..],
        ),
        (
            LETTER,
            "prompt:no^te",
            "message",
            &[
                "prompts/letter/template.md:1 note -> message",
                "prompts/note.prompty => prompts/message.prompty",
                "prompts/note.tests.md => prompts/message.tests.md",
            ],
        ),
        (
            "prompts/child/prompt.py",
            "\"ba^se\"",
            "root",
            &[
                "prompts/child/prompt.py:1 base -> root",
                "prompts/child/template.md:1 base/template.md -> root/template.md",
                "prompts/base => prompts/root",
            ],
        ),
        (
            GUIDE,
            "## To^ne",
            "Voice and manner",
            &[
                "prompts/guide.sections.md:17 Tone -> Voice and manner",
                "prompts/letter/template.md:2 rules.tone -> rules.voice-and-manner",
            ],
        ),
        (
            LETTER,
            "#rules.to^ne",
            "voice",
            &[
                "prompts/guide.sections.md:18  -> ```yaml section\nkey: voice\n```\n",
                "prompts/letter/template.md:2 rules.tone -> rules.voice",
            ],
        ),
        (GUIDE, "key: e^x", "samples", &["prompts/guide.sections.md:22 ex -> samples"]),
        (
            GUIDE,
            "name: find^_rule",
            "look_up",
            &[
                "prompts/guide.sections.md:10 find_rule -> look_up",
                "prompts/guide.sections.md:26 find_rule -> look_up",
            ],
        ),
        (
            DEPLOY,
            "team.re^port",
            "count",
            &[
                ".ai/directives/ops/deploy.md:9 report -> count",
                ".ai/tools/team/report.py => .ai/tools/team/count.py",
            ],
        ),
        (
            DEPLOY,
            "{include:te^a",
            "coffee",
            &[
                ".ai/directives/ops/deploy.md:17 tea -> coffee",
                ".ai/knowledge/tea.md:2 tea -> coffee",
                ".ai/knowledge/tea.md => .ai/knowledge/coffee.md",
            ],
        ),
        ("prompts/child/template.md", "{{ mo^od", "temper", &["prompts/child/template.md:2 mood -> temper"]),
        (
            "prompts/base/prompt.py",
            "variables[\"na^me",
            "person",
            &[
                "prompts/base/prompt.py:1 name -> person",
                "prompts/base/prompt.py:4 name -> person",
                "prompts/base/template.md:1 name -> person",
                "prompts/child/template.md:2 name -> person",
                "prompts/child/tests.md:4 name -> person",
                "prompts/parts/end.md:1 name -> person",
            ],
        ),
    ] {
        assert_eq!(editor.renamed(file, piece, to), Ok(editor.set(wanted)), "{file} {piece}");
    }
    editor.leave();
}

#[test]
fn a_rename_that_would_break_something_is_refused() {
    let mut editor = Editor::open(FILES);
    editor.settle();
    for (file, piece, to, wanted) in [
        (LETTER, "prompt:no^te", "guide", "there is a prompt `guide` already"),
        (LETTER, "prompt:no^te", "a/b", "not the id of a prompt"),
        ("prompts/child/template.md", "parts/en^d.md", "../end.md", "not the name of a template"),
        ("prompts/child/template.md", "base/tem^plate.md", "x.md", "the text of the prompt `base`"),
        (GUIDE, "key: e^x", "rules", "would have an error"),
        (DEPLOY, "rye.ba^sh.*", "x", "no file of this project"),
        (DEPLOY, "team.re^port", "other/count", "not the name of a tool"),
        (GUIDE, "name: find^_rule", "two words", "not the name of a tool"),
    ] {
        let refused = editor.renamed(file, piece, to).unwrap_err();
        assert!(refused.contains(wanted), "{file} {piece}: {refused}");
    }
    editor.leave();
    // An editor that cannot move files gets no half of a rename.
    let mut plain = Editor::without_files(FILES);
    plain.settle();
    let refused = plain.renamed(LETTER, "prompt:no^te", "message").unwrap_err();
    assert!(refused.contains("cannot move files"), "{refused}");
    plain.leave();
}

const TWO: &str = "{% block a %}A{% endblock %}{% block b %}B{% endblock %}\n{% macro m(x) %}{{ x }}{% endmacro %}{% macro n() %}{% endmacro %}\n{{ m(who) }}{{ n() }}{% set one = 1 %}{% set two = 2 %}{{ one }}{{ two }}\n";
const ITEMS: &str = "---\nname: items\ninputs:\n  - {name: things, kind: array, items: {kind: string}}\n  - {name: who, kind: string}\ntemplate: {format: {kind: mustache}}\n---\nuser:\n{{#things}}{{#who}}x{{/who}}{{/things}} {{^things}}none{{/things}} {{{who}}}\n";

#[test]
fn a_rename_to_a_name_that_is_taken_is_refused() {
    let mut editor = Editor::open(&[("prompts/two/template.md", TWO)]);
    editor.settle();
    for (piece, to, wanted) in [
        ("block ^a", "b", "there is a block `b` already"),
        ("macro ^m(", "n", "there is a macro `n` already"),
        ("{{ ^m(", "one", "there is a name `one` already"),
        ("macro ^m(", "who", "already has a variable `who`"),
        ("set on^e", "two", "there is a name `two` already"),
    ] {
        let refused = editor.renamed("prompts/two/template.md", piece, to).unwrap_err();
        assert!(refused.contains(wanted), "{piece}: {refused}");
    }
    let wanted = ["prompts/two/template.md:2 m -> say", "prompts/two/template.md:3 m -> say"];
    let renamed = editor.renamed("prompts/two/template.md", "macro ^m(", "say");
    assert_eq!(renamed, Ok(editor.set(&wanted)));
    let renamed = editor.renamed("prompts/two/template.md", "block ^a", "c");
    assert_eq!(renamed, Ok(editor.set(&["prompts/two/template.md:1 a -> c"])));
    editor.leave();
}

#[test]
fn a_rename_beside_a_prompt_with_an_error_is_refused() {
    let one = "---\nname: one\ninputs:\n  - {name: who, kind: string}\n  - {name: l, kind: array}\n---\nuser:\n{{ who }}{{ l }}{% include \"parts/x.md\" %}\n";
    let two = "---\nname: two\ninputs:\n  - {name: who, kind: string}\n---\nuser:\n{{ who }}{% include \"parts/x.md\" %}\n";
    let mut editor = Editor::open(&[
        ("prompts/one.prompty", one),
        ("prompts/two.prompty", two),
        ("prompts/parts/x.md", "Dear {{ who }}\n"),
        ("prompts/lonely.prompty", &two.replace("{% include \"parts/x.md\" %}", "").replace("two", "lonely")),
    ]);
    editor.settle();
    assert_eq!(editor.codes("prompts/one.prompty"), ["CB319"]);
    let refused = editor.renamed("prompts/two.prompty", "name: wh^o", "person").unwrap_err();
    assert!(refused.contains("the prompt `one` has an error"), "{refused}");
    let refused = editor.renamed("prompts/one.prompty", "{{ wh^o", "person").unwrap_err();
    assert!(refused.contains("the prompt `one` has an error"), "{refused}");
    // A prompt that has nothing to do with it is renamed.
    assert!(editor.renamed("prompts/lonely.prompty", "name: wh^o", "person").is_ok());
    editor.did_open("prompts/one.prompty", &one.replace("kind: array", "kind: string"));
    editor.settle();
    assert_eq!(editor.renamed("prompts/two.prompty", "name: wh^o", "person").unwrap().len(), 5);
    editor.leave();
}

#[test]
fn closing_tags_of_mustache_are_renamed_with_their_sections() {
    let mut editor = Editor::open(&[("prompts/items.prompty", ITEMS)]);
    editor.settle();
    for (piece, to, wanted) in
        [("name: thi^ngs", "stuff", 5), ("{{#wh^o", "person", 4), ("{{/thi^ngs", "stuff", 5)]
    {
        let file = "prompts/items.prompty";
        let renamed = editor.at_piece("rename", file, piece, json!({"newName": to}));
        let edits = renamed["result"]["changes"][editor.uri(file)].as_array().map(Vec::len);
        assert_eq!(edits, Some(wanted), "{piece}: {renamed}");
    }
    let found = editor.at_piece("references", "prompts/items.prompty", "name: thi^ngs", json!({}));
    assert_eq!(found["result"].as_array().unwrap().len(), 5, "{found}");
    editor.leave();
}

const FORMS: &str =
    "{% macro hi(name, loud=false) %}Hi {{ name }}{% endmacro %}\n{% macro bye() %}Bye{% endmacro %}\n";
const CALLS: &str = "{% import \"parts/forms.md\" as m %}{% from \"parts/forms.md\" import bye as ciao %}\n{{ m.hi(\"a\") }} {{ ciao() }} {{ who.hi() }}\n{% for x in l %}{{ loop.index }}{% endfor %}\n";

#[test]
fn macros_are_known_under_the_names_of_their_imports() {
    let calls = "prompts/calls/template.md";
    let mut editor = Editor::open(&[("prompts/parts/forms.md", FORMS), (calls, CALLS)]);
    editor.settle();
    for (piece, wanted) in [
        ("m.h^i(\"", "prompts/parts/forms.md:1 hi"),
        ("{{ cia^o(", "prompts/parts/forms.md:2 bye"),
        ("{{ ^m.hi", "prompts/calls/template.md:1 m"),
    ] {
        let found = editor.at_piece("definition", calls, piece, json!({}))["result"].clone();
        assert_eq!(editor.shown(&found), editor.set(&[wanted]), "{piece}");
    }
    for (piece, wanted) in [("m.h^i(\"", "hi(name, loud=false)"), ("{{ cia^o(", "bye()")] {
        let hover = editor.at_piece("hover", calls, piece, json!({}))["result"].clone();
        assert!(hover["contents"]["value"].as_str().unwrap().contains(wanted), "{piece}: {hover}");
    }
    let hi = &["prompts/calls/template.md:2 hi -> greet", "prompts/parts/forms.md:1 hi -> greet"][..];
    for (file, piece, to, wanted) in [
        (calls, "m.h^i(\"", "greet", hi),
        ("prompts/parts/forms.md", "macro h^i(", "greet", hi),
        (
            calls,
            "{{ ^m.hi",
            "f",
            &["prompts/calls/template.md:1 m -> f", "prompts/calls/template.md:2 m -> f"],
        ),
        (
            calls,
            "{{ cia^o(",
            "end",
            &["prompts/calls/template.md:1 ciao -> end", "prompts/calls/template.md:2 ciao -> end"],
        ),
        (
            "prompts/parts/forms.md",
            "macro by^e(",
            "end",
            &["prompts/calls/template.md:1 bye -> end", "prompts/parts/forms.md:2 bye -> end"],
        ),
    ] {
        assert_eq!(editor.renamed(file, piece, to), Ok(editor.set(wanted)), "{piece}");
    }
    for (piece, wanted) in [("{{ m.^hi", &["hi", "bye"][..]), ("loop.ind^ex", &["index", "index0"])] {
        let offered = editor.at_piece("completion", calls, piece, json!({}))["result"].clone();
        let labels: Vec<&str> =
            offered.as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
        assert_eq!(labels, wanted, "{piece}");
    }
    let help = editor.at_piece("signatureHelp", calls, "ciao(^)", json!({}))["result"].clone();
    assert_eq!(help["signatures"][0]["label"], "bye()", "{help}");
    editor.leave();
}
