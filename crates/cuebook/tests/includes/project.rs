//! A project with a prompt of every notation, and prompts that include them.

use std::path::Path;

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook::{Book, Context, Error, Origin, Rendered, Variables};
use cuebook_lab::BookExt;
use serde_json::Value as Json;

pub(crate) const NOTE: &str = "---\nname: note\ninputs:\n  who: {kind: string, required: true}\n  tone: {kind: string, default: calm}\n---\nDear {{ who }}, be {{ tone }}.";
pub(crate) const MUSTACHE: &str = "---\nname: card\ninputs:\n  who: {kind: string, required: true}\n  tone: {kind: string, default: calm}\ntemplate: {format: {kind: mustache, options: {escape: false}}}\n---\nCard for {{who}}, {{tone}}.";
pub(crate) const GUIDE: &str = "---\ninputs:\n  who: {kind: string, required: true}\n  tone: {kind: string, default: calm}\n  loud: {kind: boolean, default: false}\n---\n# Task\nHelp $who.\n\n# Manner\nStay $tone.\n\n## Volume\n```yaml section\nenabled: loud\n```\nSpeak up, $who.\n\n# Close\nBye, $tone.\n";
pub(crate) const GREET: &str = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    <description>Greet somebody</description>\n    <category>demo</category>\n    <author>ann</author>\n  </metadata>\n  <inputs>\n    <input name=\"who\" type=\"string\" required=\"true\">Whom</input>\n    <input name=\"tone\" type=\"string\" default=\"calm\">How</input>\n  </inputs>\n</directive>\n```\n\nGreet {input:who} in a {input:tone} way.\n";
pub(crate) const TEA: &str =
    "```yaml\nname: tea\ncategory: demo\ntitle: Tea\nauthor: ann\n```\n\nFour minutes, {input:who}.\n";

pub(crate) struct Project {
    pub(crate) project: tempfile::TempDir,
    pub(crate) user: tempfile::TempDir,
    pub(crate) key: SigningKey,
}

impl Project {
    /// A project with a prompt of every dialect, in which what must be signed is.
    pub(crate) fn new() -> Project {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = SigningKey::from_seed(&[7; 32]).unwrap();
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let now = "2026-02-26T00:00:00Z".parse().unwrap();
        Trust::new(&spaces).add(SpaceKind::User, key.public(), "ann", Some(&key), now).unwrap();
        let project = Project { project, user, key };
        project.write("prompts/plain/prompt.py", "VARIABLES = {'required': [{'name': 'who', 'type': 'string'}], 'optional': [{'name': 'tone', 'type': 'string', 'default': 'calm'}]}\n");
        project.write("prompts/plain/template.md", "Hello {{ who }}, {{ tone|upper }}.\n");
        project.write("prompts/note.prompty", NOTE);
        project.write("prompts/card.prompty", MUSTACHE);
        project.write("prompts/guide.sections.md", GUIDE);
        project.sign(".ai/directives/demo/greet.md", GREET);
        project.sign(".ai/knowledge/demo/tea.md", TEA);
        project
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.project.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn with(self, path: &str, text: &str) -> Project {
        self.write(path, text);
        self
    }

    pub(crate) fn sign(&self, path: &str, text: &str) {
        let now = "2026-02-26T00:00:00Z".parse().unwrap();
        let extension = Path::new(path).extension().unwrap().to_str().unwrap();
        let purpose = Purpose::at(path.strip_prefix(".ai/").unwrap()).unwrap();
        self.write(path, sign_for(&purpose, extension, text.as_bytes(), &self.key, now).unwrap());
    }

    pub(crate) fn signed(self, path: &str, text: &str) -> Project {
        self.sign(path, text);
        self
    }

    pub(crate) fn book(&self) -> Book {
        Book::open(self.project.path())
            .with_spaces(Spaces::new(self.project.path(), Some(self.user.path())))
            .with_paths(true)
    }

    pub(crate) fn render(&self, prompt: &str, variables: Json) -> Result<Rendered, Error> {
        let variables = Variables::from_json(variables.as_object().unwrap());
        // Many tests give one set of values to several templates.
        let context = Context { unknown: cuebook::UnknownVariables::Ignore, ..Context::default() };
        self.book().render(prompt, &variables, &context)
    }

    pub(crate) fn text(&self, prompt: &str, variables: Json) -> String {
        self.render(prompt, variables).unwrap_or_else(|error| panic!("{error:?}")).into_text()
    }

    pub(crate) fn error(&self, prompt: &str, variables: Json) -> Error {
        match self.render(prompt, variables) {
            Ok(rendered) => panic!("rendered {:?}", rendered.text()),
            Err(error) => error,
        }
    }

    pub(crate) fn codes(&self, target: &str) -> Vec<&'static str> {
        let report = self.book().check(&[target.to_owned()], |_| {}).unwrap();
        report.findings.iter().map(|finding| finding.code.as_str()).collect()
    }
}

/// What can be included, and what it says by itself.
pub(crate) const ADDRESSES: [(&str, &str); 8] = [
    ("prompt:plain", "Hello Ann, CALM."),
    ("prompt:note", "Dear Ann, be calm."),
    ("prompt:card", "Card for Ann, calm."),
    ("prompt:guide", "# Task\n\nHelp Ann.\n\n# Manner\n\nStay calm.\n\n# Close\n\nBye, calm."),
    ("prompt:guide#manner", "# Manner\n\nStay calm."),
    ("prompt:demo/greet", "Greet Ann in a calm way."),
    ("directive:demo/greet", "Greet Ann in a calm way."),
    ("knowledge:demo/tea", "Four minutes, {input:who}."),
];

/// Prompts in every notation that can include something, by the path of their file.
pub(crate) fn includers(address: &str) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("host", "prompts/host/template.md", format!("[{{% include \"{address}\" %}}]")),
        ("host", "prompts/host.prompty", format!("---\nname: host\n---\n[{{% include \"{address}\" %}}]")),
        (
            "host",
            "prompts/host.prompty",
            format!("---\nname: host\ntemplate: {{format: mustache}}\n---\n[{{{{> {address} }}}}]"),
        ),
        (
            "host",
            "prompts/host.sections.md",
            format!("---\nengine: jinja2\n---\n# Host\n[{{% include \"{address}\" %}}]\n"),
        ),
    ]
}

/// The text between the brackets of an includer, and the number of bytes before it.
pub(crate) fn inside(text: &str) -> (usize, &str) {
    let start = text.find('[').unwrap() + 1;
    (start, &text[start..text.rfind(']').unwrap()])
}

pub(crate) fn assert_covered(rendered: &Rendered) {
    let mut end = 0;
    for span in rendered.spans() {
        assert_eq!(span.range.start, end, "spans leave a gap or overlap");
        end = span.range.end;
        if let Origin::Literal { source, range, .. } = &span.origin {
            assert_eq!(
                &source.text()[range.clone()],
                &rendered.text()[span.range.clone()],
                "{}",
                source.name()
            );
        }
    }
    assert_eq!(end, rendered.text().len(), "spans do not reach the end");
}
