//! Rows of renders: to text, to messages, and to the body of a request.
//!
//! Every peer first has to give what ours gives: the same text, the same messages, the same body. One that does not has no
//! figure but the difference.

pub mod npm;
pub mod python;

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use cuebook::{Book, Context, Prepared, Variables};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde_json::{Map, Value as Json, json};
use tempfile::TempDir;

use super::prompts::{self, Case};
use crate::measure::{Turns, memcpy, turns};
use crate::peers::{MINIJINJA, MINIJINJA_VERSION, Renderer, Renderers};
use crate::race::Race;
use crate::table::{Peer, Row, Target};

/// The rows.
pub fn rows(peers: &mut Renderers) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    let small = Loaded::new(prompts::small())?;
    rows.push(small.text(peers)?);
    rows.push(small.messages(peers)?);
    rows.push(Loaded::new(prompts::list())?.text(peers)?);
    let agent = Loaded::new(prompts::agent())?;
    rows.push(agent.text(peers)?);
    rows.push(agent.wire(peers)?);
    Ok(rows)
}

/// A prompt in a project of its own, ready to be rendered.
struct Loaded {
    case: Case,
    file: PathBuf,
    prepared: Arc<Prepared>,
    context: Arc<Context>,
    variables: Variables,
    _project: TempDir,
}

impl Loaded {
    fn new(case: Case) -> Result<Loaded, Box<dyn Error>> {
        let project = tempfile::tempdir()?;
        let file = project.path().join("prompts/case.prompty");
        fs::create_dir_all(project.path().join("prompts"))?;
        fs::write(&file, case.file())?;
        let context = Arc::new(Context::default());
        let prepared = Book::open(project.path()).prepare("case", &context)?;
        let variables = Variables::from_json(case.values.as_object().unwrap_or(&Map::new()));
        Ok(Loaded { case, file, prepared, context, variables, _project: project })
    }

    fn render(&self) -> cuebook::Result<cuebook::Rendered> {
        self.prepared.render(&self.variables, &self.context)
    }

    fn bytes(&self) -> cuebook::Result<Vec<u8>> {
        Ok(self.render()?.payload_as("openai")?.bytes)
    }

    /// What is said, as pairs of role and text.
    fn answer_json(&self) -> Result<Json, Box<dyn Error>> {
        Ok(self.render()?.wire_as("openai")?.body["messages"].clone())
    }

    /// Loads the prompt into a peer, checks what comes of it, and gives its turns.
    fn turns<'a>(
        &self,
        peer: &'a mut Renderer,
        what: &'a str,
        check: impl Fn(&Json) -> Result<(), String>,
    ) -> Result<Turns<'a>, String> {
        let case = &self.case;
        let load = json!({
            "file": self.file, "template": case.jinja, "handlebars": case.handlebars, "values": case.values,
        });
        check(&peer.ask(&json!({"load": load}))?)?;
        Ok(peer.turns(what))
    }

    fn text(&self, peers: &mut Renderers) -> Result<Row, Box<dyn Error>> {
        let (rendered, said) = (self.render()?, self.answer_json()?);
        let text = rendered.text();
        let same_text = |answer: &Json| same(&json!(text.trim_end()), &trimmed(&answer["text"]), "text");
        let same_said = |answer: &Json| same(&messages(&said), &messages(&answer["messages"]), "messages");
        let environment = bare(&self.case.jinja)?;
        let template = environment.get_template("case")?;
        let values = Value::from(Serde(&self.case.values));
        same(&json!(text.trim_end()), &json!(template.render(values.clone())?.trim_end()), "text")?;
        let Renderers { jinja2, prompty_python, prompty_rust, dotprompt } = peers;
        let race = Race::new(self.case.name, self.case.what, Ok(turns(|| self.render())))
            .floor("`memcpy` of the output", Ok(memcpy(text.as_bytes())))
            .peer(
                Peer::new(MINIJINJA, MINIJINJA_VERSION)
                    .yardstick()
                    .note("the bare template engine: it checks no inputs and records no origins"),
                Ok(turns(|| template.render(values.clone()))),
            )
            .peer(peer(jinja2), self.turns(jinja2, "render", same_text))
            .peer(peer(prompty_python), self.turns(prompty_python, "render", same_text))
            .peer(peer(prompty_rust), self.turns(prompty_rust, "render", same_text))
            .peer(
                peer(dotprompt).note("returns the same messages; it has no plain text"),
                self.turns(dotprompt, "messages", same_said),
            );
        Ok(race.run().target(Target::AtMost { times: 1.25, peer: MINIJINJA }).target(Target::Ahead))
    }

    fn messages(&self, peers: &mut Renderers) -> Result<Row, Box<dyn Error>> {
        let said = self.answer_json()?;
        let same_said = |answer: &Json| same(&messages(&said), &messages(&answer["messages"]), "messages");
        let Renderers { prompty_python, prompty_rust, dotprompt, .. } = peers;
        let name = format!("{}: messages", self.case.name);
        let ours = turns(|| self.render()?.messages());
        let race = Race::new(name, "the same, as messages with roles", Ok(ours))
            .peer(peer(prompty_python), self.turns(prompty_python, "messages", same_said))
            .peer(peer(prompty_rust), self.turns(prompty_rust, "messages", same_said))
            .peer(peer(dotprompt), self.turns(dotprompt, "messages", same_said));
        Ok(race.run().target(Target::Ahead))
    }

    fn wire(&self, peers: &mut Renderers) -> Result<Row, Box<dyn Error>> {
        let bytes = self.bytes()?;
        let body: Json = serde_json::from_slice(&bytes)?;
        let parts = |body: &Json| json!({"messages": messages(&body["messages"]), "tools": body["tools"], "model": body["model"]});
        let same_wire = |answer: &Json| same(&parts(&body), &parts(&answer["wire"]), "body");
        let environment = bare(&self.case.jinja)?;
        let template = environment.get_template("case")?;
        let values = Value::from(Serde(&self.case.values));
        let Renderers { prompty_python, prompty_rust, .. } = peers;
        let what = format!(
            "the same, as {} messages and 20 tools, to the {} bytes of a request to OpenAI's chat interface",
            body["messages"].as_array().map_or(0, Vec::len),
            bytes.len()
        );
        let race = Race::new(format!("{}: wire payload", self.case.name), what, Ok(turns(|| self.bytes())))
            .floor("`memcpy` of the output", Ok(memcpy(&bytes)))
            .peer(
                Peer::new(MINIJINJA, MINIJINJA_VERSION)
                    .yardstick()
                    .note("the bare template engine: it renders the text and builds no request body"),
                Ok(turns(|| template.render(values.clone()))),
            )
            .peer(peer(prompty_python), self.turns(prompty_python, "wire", same_wire))
            .peer(peer(prompty_rust), self.turns(prompty_rust, "wire", same_wire));
        Ok(race.run().target(Target::AtMost { times: 1.45, peer: MINIJINJA }).target(Target::Ahead))
    }
}

fn peer(renderer: &Renderer) -> Peer {
    Peer::new(renderer.name, renderer.version)
}

/// The bare engine.
fn bare(template: &str) -> Result<Environment<'_>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_template("case", template)?;
    Ok(environment)
}

/// White space at the end does not matter.
fn trimmed(text: &Json) -> Json {
    text.as_str().map_or(Json::Null, |text| json!(text.trim_end()))
}

/// Messages without the white space around them, which each side treats in its own way.
fn messages(list: &Json) -> Json {
    let one = |message: &Json| json!([message["role"], message["content"].as_str().map(str::trim)]);
    list.as_array().into_iter().flatten().map(one).collect()
}

/// Two that give something else do other work.
fn same(ours: &Json, theirs: &Json, what: &str) -> Result<(), String> {
    if ours == theirs && !ours.is_null() {
        return Ok(());
    }
    let (ours, theirs) = (ours.to_string(), theirs.to_string());
    let alike = ours.chars().zip(theirs.chars()).take_while(|(ours, theirs)| ours == theirs).count();
    let from = |text: &str| text.chars().skip(alike.saturating_sub(10)).take(40).collect::<String>();
    Err(format!("it gives another {what}: {:?} instead of {:?}", from(&theirs), from(&ours)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_prompt_gives_what_its_row_says() {
        let agent = Loaded::new(prompts::agent()).unwrap();
        let size = agent.render().unwrap().text().len();
        assert!((5_800..6_400).contains(&size), "6 KB, not {size} bytes");
        let body: Json = serde_json::from_slice(&agent.bytes().unwrap()).unwrap();
        assert_eq!(body["tools"].as_array().map(Vec::len), Some(20));
        // The system, ten questions with their answers, and a last question.
        assert_eq!(body["messages"].as_array().map(Vec::len), Some(1 + 20 + 1));
        let small = Loaded::new(prompts::small()).unwrap();
        assert_eq!(
            messages(&small.answer_json().unwrap())[1],
            json!(["user", "When is breakfast, and can I bring my dog?"])
        );
        let list = Loaded::new(prompts::list()).unwrap();
        assert_eq!(list.render().unwrap().text().matches(" (urgent)").count(), 8);
    }

    #[test]
    fn the_bare_engine_gives_the_same_text() {
        for case in [prompts::small(), prompts::list(), prompts::agent()] {
            let loaded = Loaded::new(case).unwrap();
            let environment = bare(&loaded.case.jinja).unwrap();
            let text = environment
                .get_template("case")
                .unwrap()
                .render(Value::from(Serde(&loaded.case.values)))
                .unwrap();
            assert_eq!(loaded.render().unwrap().text().trim_end(), text.trim_end());
        }
    }

    #[test]
    fn a_difference_is_named_and_nothing_is_not_the_same_as_nothing() {
        let error =
            same(&json!("the same until here, then this"), &json!("the same until here, then that"), "text");
        assert!(error.unwrap_err().contains("then that"));
        assert!(same(&Json::Null, &Json::Null, "text").is_err());
        assert!(same(&json!([1]), &json!([1]), "text").is_ok());
    }

    #[test]
    fn the_version_of_the_engine_is_the_one_that_is_pinned() {
        let manifest = include_str!("../../../../Cargo.toml");
        assert!(manifest.contains(&format!("minijinja = {{ version = \"={MINIJINJA_VERSION}\"")));
    }
}
