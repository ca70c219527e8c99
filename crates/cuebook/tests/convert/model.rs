//! Prompts that every notation can say, and a writer for each notation that shares nothing with the converter.

use cuebook::chat::Role;
use cuebook::{Book, Context, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn;
use cuebook_lab::convert::{Conversion, Target};
use serde_json::{Map, Value as Json, json};

use crate::support::Project;

pub const ALL: [BuiltIn; 4] = [BuiltIn::Template, BuiltIn::Prompty, BuiltIn::Sections, BuiltIn::Directive];

/// The names of inputs; the last one is a whole number, the one before it has a default.
pub const NAMES: [&str; 4] = ["who", "_what_2", "tone", "count"];

#[derive(Debug, Clone)]
pub enum Part {
    Text(String),
    Name(usize),
}

#[derive(Debug, Clone)]
pub struct Section {
    pub level: usize,
    pub title: String,
    pub lines: Vec<Vec<Part>>,
}

#[derive(Debug, Clone)]
pub struct Model {
    pub sections: Vec<Section>,
    pub description: String,
}

impl Model {
    /// Headings and lines, one below the other: a heading, or the parts of a line.
    fn lines(&self) -> Vec<Result<String, Vec<Part>>> {
        let mut lines = Vec::new();
        for section in &self.sections {
            if !lines.is_empty() {
                lines.push(Ok(String::new()));
            }
            if section.level > 0 {
                lines.push(Ok(format!("{} {}", "#".repeat(section.level), section.title)));
                lines.push(Ok(String::new()));
            }
            lines.extend(section.lines.iter().cloned().map(Err));
        }
        lines
    }

    fn joined(
        &self,
        mut heading: impl FnMut(&str) -> String,
        mut line: impl FnMut(&[Part]) -> String,
    ) -> String {
        let shown = |found: Result<String, Vec<Part>>| match found {
            Ok(text) => heading(&text),
            Err(parts) => line(&parts),
        };
        self.lines().into_iter().map(shown).collect::<Vec<_>>().join("\n")
    }

    /// What it says with some values.
    pub fn expected(&self, values: &Map<String, Json>) -> String {
        self.joined(str::to_owned, |parts| {
            let show = |part: &Part| match part {
                Part::Text(text) => text.clone(),
                Part::Name(index) => match values.get(NAMES[*index]) {
                    Some(Json::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                    None => "kind".to_owned(),
                },
            };
            parts.iter().map(show).collect()
        })
    }

    fn jinja(&self) -> String {
        let text = |text: &str| {
            // White space that is a line by itself is not kept in sections.
            let harmless =
                !text.trim().is_empty() && text.chars().all(|c| c.is_alphanumeric() || " .,_$".contains(c));
            if harmless { text.to_owned() } else { format!("{{{{ {} }}}}", json!(text)) }
        };
        let line = |parts: &[Part]| {
            let show = |part: &Part| match part {
                Part::Text(literal) => text(literal),
                Part::Name(index) => format!("{{{{ {} }}}}", NAMES[*index]),
            };
            parts.iter().map(show).collect::<String>()
        };
        self.joined(str::to_owned, line)
    }

    fn front(&self) -> String {
        format!(
            "name: Probe\ndescription: {}\nmetadata: {{version: \"2.1.0\", author: ann}}\ninputs:\n  who: {{kind: string, required: true, description: Whom}}\n  _what_2: {{kind: string, required: true}}\n  tone: {{kind: string, default: kind}}\n  count: {{kind: integer, required: true}}\n",
            json!(self.description)
        )
    }

    fn template(&self) -> Vec<(String, String)> {
        let definition = format!(
            "METADATA = {{\"name\": \"Probe\", \"version\": \"2.1.0\", \"description\": {}, \"metadata\": {{\"author\": \"ann\"}}}}\nVARIABLES = {{\"required\": [{{\"name\": \"who\", \"type\": \"string\", \"description\": \"Whom\"}}, {{\"name\": \"_what_2\", \"type\": \"string\"}}, {{\"name\": \"count\", \"type\": \"integer\"}}], \"optional\": [{{\"name\": \"tone\", \"type\": \"string\", \"default\": \"kind\"}}]}}\nLIMITS = {{\"max_output_size\": 1000000}}\n",
            json!(self.description)
        );
        vec![
            ("prompts/p/template.md".into(), format!("{}\n", self.jinja())),
            ("prompts/p/prompt.py".into(), definition),
        ]
    }

    fn prompty(&self) -> Vec<(String, String)> {
        vec![("prompts/p.prompty".into(), format!("---\n{}---\n{}", self.front(), self.jinja()))]
    }

    fn sections(&self) -> Vec<(String, String)> {
        // A space and a fence behind it are two parts, and one beginning of a line.
        let harmful = |line: &Vec<Part>| {
            let texts = line.iter().map_while(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Name(_) => None,
            });
            let text = texts.collect::<String>();
            let is_blank = text.trim().is_empty() && line.iter().all(|part| matches!(part, Part::Text(_)));
            is_blank || text.trim_start().starts_with(['#', '`', '~', '<'])
        };
        let lines = || self.sections.iter().flat_map(|section| &section.lines);
        let text = if lines().any(harmful) || lines().any(|line| line.is_empty()) {
            format!("---\n{}engine: jinja2\n---\n{}\n", self.front(), self.jinja())
        } else {
            let line = |parts: &[Part]| {
                let show = |part: &Part| match part {
                    Part::Text(text) => text.replace('$', "$$"),
                    Part::Name(index) => format!("${{{}}}", NAMES[*index]),
                };
                parts.iter().map(show).collect::<String>()
            };
            format!("---\n{}---\n{}\n", self.front(), self.joined(str::to_owned, line))
        };
        vec![("prompts/p.sections.md".into(), text)]
    }

    fn directive(&self) -> Vec<(String, String)> {
        let brace = |text: &str| text.replace('{', "{input:_:{}");
        let line = |parts: &[Part]| {
            let show = |part: &Part| match part {
                Part::Text(text) => brace(text),
                Part::Name(index) => format!("{{input:{}}}", NAMES[*index]),
            };
            parts.iter().map(show).collect::<String>()
        };
        let body = self.joined(brace, line);
        let xml = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let text = format!(
            "# Probe\n\n```xml\n<directive name=\"p\" version=\"2.1.0\">\n<metadata><description>{}</description><category></category><author>ann</author></metadata>\n<inputs><input name=\"who\" type=\"string\" required=\"true\">Whom</input><input name=\"_what_2\" required=\"true\"/><input name=\"tone\" default=\"kind\"/><input name=\"count\" type=\"integer\" required=\"true\"/></inputs>\n</directive>\n```\n{body}\n",
            xml(&self.description)
        );
        vec![(".ai/directives/p.md".into(), text)]
    }

    /// The files of a project with this prompt, and the path that it goes by.
    pub fn files(&self, dialect: BuiltIn) -> Vec<(String, String)> {
        match dialect {
            BuiltIn::Template => self.template(),
            BuiltIn::Prompty => self.prompty(),
            BuiltIn::Sections => self.sections(),
            BuiltIn::Directive => self.directive(),
            BuiltIn::Dotprompt | BuiltIn::Skill => unreachable!("not in BuiltIn::ALL"),
        }
    }

    pub fn project(&self, dialect: BuiltIn) -> Project {
        let project = Project::new();
        self.files(dialect).iter().for_each(|(path, text)| project.write(path, text));
        project
    }
}

/// Converts the prompt `p` of a project into a project of its own.
pub fn convert(project: &Project, to: BuiltIn) -> Result<(Conversion, Project), cuebook::Error> {
    let conversion = project.book().convert("p", &Target::new(to))?;
    let result = Project::new();
    let folder = match to {
        BuiltIn::Template => "prompts/p/",
        BuiltIn::Directive => ".ai/directives/",
        _ => "prompts/",
    };
    for file in &conversion.files {
        result.write(&format!("{folder}{}", file.path), &file.text);
    }
    Ok((conversion, result))
}

/// What the prompt `p` of a project says, and who says it. Of a directive it is what stands between the engine's own words.
pub fn said(project: &Project, dialect: BuiltIn, values: &Map<String, Json>) -> (Role, String) {
    let book: Book = project.book();
    let rendered = book
        .render("p", &Variables::from_json(values), &Context::default())
        .unwrap_or_else(|error| panic!("{dialect:?}: {error}"));
    let messages = rendered.messages().unwrap();
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    let text: String = message.texts().collect();
    match dialect {
        BuiltIn::Directive => {
            let text = text.strip_suffix("\n\n</directive>").unwrap();
            let start = text.find("</description>\n\n").map(|at| at + "</description>\n\n".len());
            let start = start.unwrap_or_else(|| text.find("\">\n\n").unwrap() + 4);
            (message.role.clone(), text[start..].to_owned())
        }
        _ => (message.role.clone(), text),
    }
}
