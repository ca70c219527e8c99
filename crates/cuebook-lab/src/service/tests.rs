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
        let survey = Survey::of(service.book(), service.buffers(), &[]).unwrap();
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
    let edits = project.1.rename(&template, at, "person").unwrap();
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
