//! The prompts that both sides render. Each is described once: ours is built from the description, and the peer gets it as JSON.

use cuebook::sections::{BoundParams, Headings, Section, SectionTool, Tree};
use cuebook::{Error, Result};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};

/// A prompt and its name in the table.
pub struct Case {
    pub name: &'static str,
    sections: Vec<Part>,
}

/// A section of a prompt.
struct Part {
    key: String,
    title: String,
    template: String,
    params: Option<Kind>,
    tools: Vec<(String, String)>,
    children: Vec<Part>,
}

/// What a section is filled with. The peer knows the same types by these names.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Task,
    Project,
}

#[derive(Serialize, JsonSchema)]
struct Task {
    goal: String,
    audience: String,
    words: i64,
}

#[derive(Serialize, JsonSchema)]
struct Project {
    name: String,
    language: String,
    version: String,
}

/// What every tool takes.
#[derive(Serialize, JsonSchema)]
struct Search {
    query: String,
    limit: i64,
}

/// What is bound. The peer binds the same.
pub fn values() -> Result<[BoundParams; 2]> {
    let task = Task { goal: "Explain the outage".into(), audience: "the people on call".into(), words: 250 };
    let project = Project { name: "harbour".into(), language: "Rust".into(), version: "1.4.2".into() };
    Ok([BoundParams::of(task)?, BoundParams::of(project)?])
}

fn part(key: impl Into<String>, title: &str, template: impl Into<String>, params: Option<Kind>) -> Part {
    let (tools, children) = (Vec::new(), Vec::new());
    Part { key: key.into(), title: title.to_owned(), template: template.into(), params, tools, children }
}

/// Three sections, of which two are filled.
pub fn small() -> Case {
    let sections = vec![
        part(
            "task",
            "Task",
            "Your task: $goal.\nWrite at most $words words for $audience.",
            Some(Kind::Task),
        ),
        part(
            "project",
            "Project",
            "The project is ${name} $version, written in $language.",
            Some(Kind::Project),
        ),
        part(
            "style",
            "Style",
            "Say what you found, in short sentences.\nAsk when something is missing.",
            None,
        ),
    ];
    Case { name: "3 sections", sections }
}

/// Eight sections with four below each and five below each of those, and 50 tools on the lowest.
pub fn large() -> Case {
    let mut leaf = 0;
    let mut sections = Vec::new();
    for area in 0..8 {
        let text = "What follows belongs together.\nRead it before you begin.";
        let mut top = part(format!("area-{area}"), "Area", text, None);
        for topic in 0..4 {
            let text = "This topic is about $name $version.";
            let mut middle = part(format!("topic-{topic}"), "Topic", text, Some(Kind::Project));
            for rule in 0..5 {
                let (text, params) = match leaf % 2 {
                    0 => ("Keep in mind: $goal, for $audience.\nStay below $words words.", Kind::Task),
                    _ => ("\n    Everything in ${name} is $language.\n    Nothing else is.\n", Kind::Project),
                };
                let mut lowest = part(format!("rule-{rule}"), "Rule", text, Some(params));
                // Five of sixteen: 50 of 160.
                if leaf % 16 < 5 {
                    lowest
                        .tools
                        .push((format!("search_{leaf}"), format!("Searches the index number {leaf}.")));
                }
                leaf += 1;
                middle.children.push(lowest);
            }
            top.children.push(middle);
        }
        sections.push(top);
    }
    Case { name: "200 sections, 50 tools", sections }
}

/// A thousand sections of a few lines each, all of which can be summarized.
pub fn long() -> Result<Tree> {
    let mut tree = Tree::builder("bench", "long").headings(Headings::Numbered);
    for chapter in 0..40 {
        let text = format!("Chapter {chapter} of what was said about $goal, for $audience.");
        let mut top = Section::of::<Task>(format!("chapter-{chapter}"), "Chapter", text)?;
        for page in 0..24 {
            let text = format!(
                "On day {page} of chapter {chapter} somebody wrote about ${{name}} $version in $language:\n\
                 - the build number {} took longer than the one before it, and nobody knows why\n\
                 - the answer to ticket {} is still missing; ask for it before the end of the week",
                chapter * 100 + page,
                page * 1_000 + chapter
            );
            let page = Section::of::<Project>(format!("page-{page}"), "Page", text)?
                .map(|section| section.summary("A build was slow.").priority((page * 7 + chapter) % 11));
            top = top.map(|section| section.child(page));
        }
        tree = tree.section(top.map(|section| section.summary("Much was said about $goal.").priority(20)));
    }
    tree.build()
}

impl Case {
    /// Our tree, with the headings that the peer writes.
    pub fn tree(&self) -> Result<Tree> {
        let mut tree = Tree::builder("bench", "sections").headings(Headings::Numbered);
        for part in &self.sections {
            tree = tree.section(part.section()?);
        }
        tree.build()
    }

    /// The sections, for the peer.
    pub fn to_json(&self) -> Json {
        self.sections.iter().map(Part::to_json).collect()
    }
}

impl Part {
    fn section(&self) -> Result<Section> {
        let (key, title, text) = (self.key.as_str(), self.title.as_str(), self.template.as_str());
        let mut section = match self.params {
            None => Section::new(key, title, text),
            Some(Kind::Task) => Section::of::<Task>(key, title, text)?.into(),
            Some(Kind::Project) => Section::of::<Project>(key, title, text)?.into(),
        };
        for (name, description) in &self.tools {
            section = section.tool(SectionTool::new(name.as_str(), description)?.takes::<Search>()?);
        }
        self.children
            .iter()
            .try_fold(section, |section, child| Ok::<_, Error>(section.child(child.section()?)))
    }

    fn to_json(&self) -> Json {
        json!({
            "key": self.key,
            "title": self.title,
            "template": self.template,
            "params": self.params.map(|kind| format!("{kind:?}")),
            "tools": self.tools,
            "children": self.children.iter().map(Part::to_json).collect::<Vec<Json>>(),
        })
    }
}
