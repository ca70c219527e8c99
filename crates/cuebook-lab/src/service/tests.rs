//! A small library, and what an editor asks about it.

use std::path::PathBuf;

use super::*;

struct Project(PathBuf, Service);

const GREET: &str = "---\nname: greet\ninputs:\n  - name: user\n    kind: string\n    description: Who is greeted\n    default: Ada\n---\nsystem:\nHello {{ user }}! {{ user|upper }}\n{% include \"parts/end.md\" %}\n";

impl Project {
    fn new(name: &str, files: &[(&str, &str)]) -> Project {
        let root = std::env::temp_dir().join(format!("cuebook-service-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        for (file, text) in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut service = Service::new(Book::open(&root));
        let survey = Survey::of(service.book(), service.buffers(), &[]);
        service.install(survey);
        Project(root, service)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// The bytes behind a piece of text in a file.
    fn behind(&self, file: &str, piece: &str) -> usize {
        let text = self.1.text(&self.path(file)).unwrap();
        text.find(piece).unwrap() + piece.len()
    }

    /// Looks at everything that waits.
    fn settle(&mut self) -> BTreeSet<PathBuf> {
        let mut files = BTreeSet::new();
        while let Some(changed) = self.1.work(4) {
            files.extend(changed);
        }
        files
    }

    fn codes(&self, file: &str) -> Vec<String> {
        self.1.findings(&self.path(file)).iter().map(|found| found.code.to_string()).collect()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn library(name: &str) -> Project {
    Project::new(
        name,
        &[
            ("prompts/p/template.md", "Dear {{ name }},\n{% include \"parts/end.md\" %}\n"),
            (
                "prompts/p/prompt.py",
                "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\", \"description\": \"Who\"}]}\n",
            ),
            ("prompts/parts/end.md", "Yours, {{ name }}\n"),
            ("README.md", "# {{ nothing }}\n"),
        ],
    )
}

#[test]
fn unsaved_text_is_checked_with_everything_that_uses_it() {
    let mut project = library("checked");
    let part = project.path("prompts/parts/end.md");
    assert_eq!(project.codes("prompts/parts/end.md"), [""; 0]);
    project.1.change(&part, "Yours, {{ name|uper }}\n");
    let changed = project.settle();
    assert!(changed.contains(&part), "{changed:?}");
    assert_eq!(project.codes("prompts/parts/end.md").len(), 1);
    project.1.close(&part);
    project.settle();
    assert_eq!(project.codes("prompts/parts/end.md"), [""; 0]);
}

#[test]
fn a_half_typed_tag_leaves_completion_and_hover() {
    let mut project = library("half");
    let path = project.path("prompts/p/template.md");
    let text = "Dear {{ name }},\n{{ na";
    project.1.change(&path, text);
    project.settle();
    assert!(!project.codes("prompts/p/template.md").is_empty());
    let offered = project.1.complete(&path, text.len());
    assert!(offered.iter().all(|one| one.label.starts_with("na")), "{offered:?}");
    let text = "Dear {{ name }},\n{{ name|up }}";
    project.1.change(&path, text);
    let offered = project.1.complete(&path, text.len() - 3);
    assert_eq!(offered.iter().map(|one| one.label.as_str()).collect::<Vec<_>>(), ["upper"]);
    assert!(offered[0].documentation.contains("```jinja"));
}

#[test]
fn a_variable_leads_to_its_declaration_and_all_its_uses() {
    let project = library("uses");
    let template = project.path("prompts/p/template.md");
    let at = project.behind("prompts/p/template.md", "{{ na");
    let hover = project.1.hover(&template, at).unwrap();
    assert!(hover.contains("**name**: required") && hover.contains("Who"), "{hover}");
    let declared = project.1.definition(&template, at).unwrap();
    assert_eq!(declared.path, project.path("prompts/p/prompt.py"));
    let files: Vec<PathBuf> = project.1.references(&template, at).into_iter().map(|one| one.path).collect();
    assert_eq!(
        files,
        ["prompts/p/prompt.py", "prompts/p/template.md", "prompts/parts/end.md"]
            .map(|file| project.path(file))
    );
    let edits = project.1.rename(&template, at, "person").unwrap().edits;
    assert_eq!(edits.len(), 3);
    for edit in &edits {
        let text = project.1.text(&edit.location.path).unwrap();
        assert_eq!(&text[edit.location.range()], "name");
    }
    assert!(project.1.rename(&template, at, "two words").is_err());
}

#[test]
fn an_include_leads_to_its_file() {
    let project = library("include");
    let template = project.path("prompts/p/template.md");
    let at = project.behind("prompts/p/template.md", "parts/e");
    assert_eq!(project.1.definition(&template, at).unwrap().path, project.path("prompts/parts/end.md"));
    let offered = project.1.complete(&template, at);
    assert_eq!(offered.iter().map(|one| one.label.as_str()).collect::<Vec<_>>(), ["parts/end.md"]);
    let symbols: Vec<String> = project.1.symbols(&template).into_iter().map(|one| one.name).collect();
    assert_eq!(symbols, ["include parts/end.md"]);
}

#[test]
fn other_markdown_is_left_alone() {
    let mut project = library("other");
    let readme = project.path("README.md");
    assert!(!project.1.owns(&readme));
    project.1.change(&readme, "# {{ nothing|nope }}\n{% if %}");
    project.settle();
    assert_eq!(project.codes("README.md"), [""; 0]);
    assert_eq!(project.1.complete(&readme, 6), []);
    assert_eq!(project.1.hover(&readme, 6), None);
}

#[test]
fn check_and_the_service_agree() {
    let project = Project::new(
        "agree",
        &[
            ("prompts/a/template.md", "{{ x|uper }} {% include \"parts/none.md\" %}"),
            ("prompts/b/template.md", "{% if %}"),
            ("prompts/c.prompty", GREET),
            ("prompts/parts/end.md", "{{ user.nam }}"),
        ],
    );
    let report = check::check(project.1.book(), &[], |_| {}).unwrap();
    assert!(report.findings.len() >= 3, "{}", report.findings.len());
    for finding in &report.findings {
        let path = file_of(&project.0, finding);
        let is_same = |other: &Diagnostic| other.code == finding.code && other.message == finding.message;
        assert!(project.1.findings(&path).iter().any(is_same), "{finding:?}");
    }
    let files: BTreeSet<PathBuf> = report.findings.iter().map(|one| file_of(&project.0, one)).collect();
    let count: usize = files.iter().map(|file| project.1.findings(file).len()).sum();
    assert_eq!(count, report.findings.len());
}

/// One file of each dialect, and one that is always wrong.
const DIALECTS: [(&str, &str); 7] = [
    ("prompts/wrong/template.md", "{{ x|uper }}\n"),
    (
        "prompts/p/template.md",
        "{% macro m(a) %}{{ a }}{% endmacro %}\n{% block one %}Dear {{ name|upper }},{% endblock %}\n{% if name %}\n{% include \"parts/end.md\" %}\n{% endif %}\n",
    ),
    ("prompts/p/prompt.py", "VARIABLES = {\"optional\": [{\"name\": \"name\"}]}\n"),
    ("prompts/parts/end.md", "Yours\n"),
    (
        "prompts/q.prompty",
        "---\nname: q\ninputs:\n  - name: user\n    kind: string\n---\nsystem:\nHello {{ user }}.\n{% include \"prompt:s#two\" %}\nuser:\n{{ user }}\n",
    ),
    (
        "prompts/s.sections.md",
        "---\ninputs:\n  tone: {kind: string, default: calm}\n---\n# One\n```yaml section\nsummary: Short.\n```\nBe $tone.\n\n# Two\nBe ${tone}.\n",
    ),
    (
        ".ai/directives/team/d.md",
        "# D\n\n```xml\n<directive name=\"d\" version=\"1.0.0\">\n<metadata>\n<description>d</description>\n<category>team</category>\n<author>a</author>\n</metadata>\n<inputs>\n<input name=\"app\" type=\"string\">x</input>\n</inputs>\n</directive>\n```\n\nDeploy {input:app}.\n",
    ),
];

#[test]
fn every_truncated_file_has_symbols_and_completions() {
    let mut project = Project::new("beginnings", &DIALECTS);
    let mut tried = 0;
    for (file, text) in DIALECTS.iter().skip(1) {
        let path = project.path(file);
        let whole: Vec<Symbol> = project.1.symbols(&path);
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            project.1.change(&path, &text[..cut]);
            project.settle();
            assert_eq!(project.codes("prompts/wrong/template.md"), ["CB316"], "{file} up to {cut}");
            let symbols = project.1.symbols(&path);
            // What stands before the line that is typed is still there.
            let line = text[..cut].rfind('\n').unwrap_or(0);
            let kinds = [SymbolKind::Variable, SymbolKind::Tool];
            for wanted in whole.iter().filter(|one| one.location.end < line && !kinds.contains(&one.kind)) {
                assert!(
                    symbols.contains(wanted),
                    "{file} up to {cut}: {wanted:?} is missing from {symbols:?}"
                );
            }
            project.1.complete(&path, cut);
            project.1.hover(&path, cut);
            project.1.definition(&path, cut);
            project.1.references(&path, cut);
            project.1.signature(&path, cut);
            project.1.tokens(&path);
            project.1.folds(&path);
            project.1.hints(&path, 0..cut);
            project.1.actions(&path, cut..cut);
            tried += 1;
        }
        project.1.change(&path, *text);
        project.settle();
        assert_eq!(project.1.symbols(&path), whole, "{file}");
    }
    assert!(tried > 600, "{tried}");
}

#[test]
fn a_name_that_is_half_typed_is_completed_in_every_dialect() {
    let mut project = Project::new("completed", &DIALECTS);
    for (file, piece, typed, wanted) in [
        ("prompts/p/template.md", "{{ name|upper }}", "{{ na", "name"),
        ("prompts/p/template.md", "{{ name|upper }}", "{{ name|upp", "upper"),
        ("prompts/p/template.md", "\"parts/end.md\" %}", "\"parts/e", "parts/end.md"),
        ("prompts/q.prompty", "{{ user }}.", "{{ us", "user"),
        ("prompts/q.prompty", "kind: string", "kind: str", "string"),
        ("prompts/q.prompty", "\"prompt:s#two\" %}", "\"prompt:s#t", "prompt:s#two"),
        ("prompts/s.sections.md", "$tone.", "$to", "tone"),
        ("prompts/s.sections.md", "summary: Short.", "visib", "visibility"),
        (".ai/directives/team/d.md", "{input:app}", "{input:a", "app"),
        (".ai/directives/team/d.md", "type=\"string\"", "type=\"str", "string"),
        (".ai/directives/team/d.md", "<author>a", "<auth", "author"),
    ] {
        let path = project.path(file);
        let text = project.1.text(&path).unwrap();
        let at = text.find(piece).unwrap();
        let half = format!("{}{typed}{}", &text[..at], &text[at + piece.len()..]);
        project.1.change(&path, half.as_str());
        project.settle();
        let offered = project.1.complete(&path, at + typed.len());
        assert!(offered.iter().any(|one| one.label == wanted), "{file} {typed}: {offered:?}");
        project.1.change(&path, &*text);
        project.settle();
    }
}

#[test]
fn every_hint_that_an_edit_can_follow_has_an_action() {
    let project = Project::new(
        "hints",
        &[
            ("prompts/a/template.md", "{{ name|uper }} {{ nam }}\n"),
            (
                "prompts/a/prompt.py",
                "VARIABLES = {\"optional\": [{\"name\": \"name\"}]}\n\ndef pre_render(context):\n    return {}\n",
            ),
            ("prompts/b/template.md", "{{ name }}\n"),
            (
                "prompts/b/prompt.py",
                "VARIABLES = {\"optional\": [{\"name\": \"name\"}, {\"name\": \"unused\"}]}\n",
            ),
            (
                "prompts/old.prompty",
                "---\nname: old\nmodel:\n  api: chat\n  configuration:\n    type: openai\ninputs:\n  who:\n    type: string\n---\nsystem:\nHi {{ who }}\n",
            ),
            (
                ".ai/directives/team/d.md",
                "# D\n\n```xml\n<directive name=\"e\" version=\"1.0.0\">\n<metadata>\n<description>d</description>\n<category>team</category>\n<author>a</author>\n</metadata>\n</directive>\n```\n\nGo.\n",
            ),
            ("prompts/open/template.md", "{% if a %}\nYes.\n"),
            ("prompts/named/prompt.py", "METADATA = {\"template\": \"greting.md\"}\n"),
            ("prompts/named/greeting.md", "Hello!\n"),
            ("prompts/bracket/prompt.py", "METADATA = {\"name\": \"A\"\nTEMPLATE = \"Hi\"\n"),
            (
                "prompts/yaml.prompty",
                "---\nname: y\ninputs:\n  - {name: who, kind: string\n---\nHi {{ who }}\n",
            ),
            ("prompts/marker.prompty", "---\nname: m\n---\nsystem:\nBe kind.\nuser: Hello!\n"),
            ("prompts/photo.prompty", "---\ninputs:\n  photo: {kind: image}\n---\nuser:\n{{ photo|trim }}\n"),
            ("prompts/kind.prompty", "---\ninputs:\n  question: string\n---\nuser:\n{{ question }}\n"),
            ("prompts/git/template.md", "{% if git.available %}{{ git.branch }}{% endif %}\n"),
            ("prompts/git/prompt.py", "VARIABLES = {}\n"),
            ("prompts/cycle/template.md", "{% include \"cycle/template.md\" %}\n"),
        ],
    );
    let titles = |file: &str| -> Vec<String> {
        let path = project.path(file);
        let length = project.1.text(&path).unwrap().len();
        let actions = project.1.actions(&path, 0..length).into_iter();
        actions.filter(|action| action.kind == ActionKind::Fix).map(|action| action.title).collect()
    };
    let wanted = ["Replace `uper` with `upper`", "Replace `nam` with `name`", "Declare the variable `nam`"];
    for title in wanted {
        assert!(
            titles("prompts/a/template.md").contains(&title.to_owned()),
            "{:?}",
            titles("prompts/a/template.md")
        );
    }
    let found = titles("prompts/a/prompt.py");
    assert!(found.contains(&"Write `def pre_render(variables, context):`".to_owned()), "{found:?}");
    let found = titles("prompts/b/prompt.py");
    assert!(found.contains(&"Remove it".to_owned()), "{found:?}");
    assert!(titles("prompts/old.prompty").contains(&"Rewrite the file for Prompty 2".to_owned()));
    let found = titles(".ai/directives/team/d.md");
    assert!(
        found.contains(&"Sign it before you run it: cuebook sign directive team/d".to_owned()),
        "{found:?}"
    );
    assert!(found.contains(&"Write `d`".to_owned()), "{found:?}");
    for (file, wanted) in [
        ("prompts/open/template.md", "Add `{% endif %}`"),
        ("prompts/named/prompt.py", "Replace `greting.md` with `greeting.md`"),
        ("prompts/bracket/prompt.py", "Add `}`"),
        ("prompts/yaml.prompty", "Add `}`"),
        ("prompts/marker.prompty", "Put `user:` on a separate line"),
        ("prompts/photo.prompty", "Write `{{ photo }}`"),
        ("prompts/kind.prompty", "Write `question: {kind: string}`"),
        ("prompts/git/template.md", "Declare the variable `git`"),
        // No edit can do what this hint says.
        ("prompts/cycle/template.md", "Explain CB307"),
    ] {
        assert!(titles(file).contains(&wanted.to_owned()), "{file}: {:?}", titles(file));
    }
    // The rewritten file is no old file any more.
    let path = project.path("prompts/old.prompty");
    let length = project.1.text(&path).unwrap().len();
    let actions = project.1.actions(&path, 0..length);
    let edit = actions.iter().find(|one| one.title.starts_with("Rewrite")).unwrap().edits[0].clone();
    let mut buffers = project.1.buffers().clone();
    buffers.set(path, edit.text);
    let report = buffers.during(|| check::check(project.1.book(), &["old".to_owned()], |_| {})).unwrap();
    assert!(report.findings.iter().all(|finding| finding.code.as_str() != "CB320"), "{:?}", report.findings);
}

#[test]
fn an_unsaved_tool_has_findings() {
    let tool = "version: 1.0.0\ntool_type: http\ncategory: desk\ndescription: Orders\n";
    let mut project = Project::new("tool", &[(".ai/tools/desk/order.yaml", tool)]);
    let path = project.path(".ai/tools/desk/order.yaml");
    assert_eq!(project.codes(".ai/tools/desk/order.yaml"), [""; 0]);
    project.1.change(&path, tool.replace("category: desk", "category: dsk"));
    assert!(project.settle().contains(&path));
    assert_eq!(project.codes(".ai/tools/desk/order.yaml"), ["CB328"]);
    project.1.change(&path, tool);
    project.settle();
    assert_eq!(project.codes(".ai/tools/desk/order.yaml"), [""; 0]);
    let new = project.path(".ai/knowledge/ops/backup.md");
    project.1.change(&new, "---\nname: other\ntitle: T\nversion: 1.0.0\nentry_type: note\n---\nText.\n");
    project.settle();
    assert_eq!(project.codes(".ai/knowledge/ops/backup.md"), ["CB327"]);
}
