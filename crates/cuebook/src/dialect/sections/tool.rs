//! The tools and skills of a section, as a file writes them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::SectionsReader;
use crate::chat::output::read_arguments;
use crate::node::{Data, Node};
use crate::prompt::Record;
use crate::sections::{SectionTool, Skill};
use crate::source::Place;

const KEYS: [&str; 5] = ["name", "description", "parameters", "examples", "accepts_overrides"];
const EXAMPLE_KEYS: [&str; 3] = ["description", "input", "output"];

impl SectionsReader {
    /// Tools: a list whose entries have names, or a map from name to tool. `seen` are those of the whole tree.
    pub(super) fn section_tools(
        &mut self,
        node: &Node,
        seen: &mut HashMap<String, Place>,
    ) -> Vec<Arc<SectionTool>> {
        let mut tools = Vec::new();
        let named: Vec<(String, Place, &Node)> = match &node.data {
            Data::Map(entries) => {
                entries.iter().map(|(key, entry)| (key.name.clone(), key.place.clone(), entry)).collect()
            }
            _ => {
                let items = self.items(node, "`tools`");
                let mut named = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    if let Some((name, place)) = self.name_of(item, &format!("tools[{index}]")) {
                        named.push((name, place, item));
                    }
                }
                named
            }
        };
        for (name, place, node) in named {
            if let Some(first) = seen.get(&name) {
                self.twice(&name, &place, first);
                continue;
            }
            seen.insert(name.clone(), place.clone());
            tools.extend(self.section_tool(name, place, node).map(Arc::new));
        }
        tools
    }

    fn section_tool(&mut self, name: String, place: Place, node: &Node) -> Option<SectionTool> {
        let at = format!("tools.{name}");
        let (mut description, mut parameters, mut examples, mut accepts) = (None, None, None, true);
        for (key, node) in self.entries(node, &format!("`{at}`")) {
            let what = format!("`{at}.{}`", key.name);
            match key.name.as_str() {
                "name" => {}
                "description" => description = self.text(node, &what).map(|text| (text, node)),
                "parameters" => {
                    let properties = self.properties(node, &format!("{at}.parameters"));
                    self.known_kinds(&properties);
                    parameters = (!properties.is_empty()).then_some(properties);
                }
                "examples" => examples = Some(node),
                "accepts_overrides" => accepts = self.flag(node, &what).unwrap_or(true),
                _ => self.extra(&format!("`{at}`"), key, &KEYS),
            }
        }
        let Some((description, described)) = description else {
            let hint = "add `description: …`, one sentence that says when to call the tool";
            self.wrong(&place, format!("the tool `{name}` has no description"), hint);
            return None;
        };
        let mut tool = match SectionTool::new(name, &description) {
            Ok(tool) => tool,
            Err(error) => {
                let about_name = error.field("placeholder").and_then(Json::as_str) != Some("description");
                let place = if about_name { place } else { described.place.clone() };
                self.fault(error.diagnostic().clone().at(place), "invalid_definition");
                return None;
            }
        };
        tool.params =
            parameters.map(|properties| Arc::new(Record::from_properties(title(&tool.name), &properties)));
        (tool.accepts_overrides, tool.place) = (accepts, Some(place));
        match examples {
            Some(examples) => self.examples(tool, examples, &at),
            None => Some(tool),
        }
    }

    fn examples(&mut self, mut tool: SectionTool, node: &Node, at: &str) -> Option<SectionTool> {
        for (index, item) in self.items(node, &format!("`{at}.examples`")).iter().enumerate() {
            let at = format!("{at}.examples[{index}]");
            let (mut description, mut input, mut output) = (None, None, Json::Null);
            for (key, node) in self.entries(item, &format!("`{at}`")) {
                match key.name.as_str() {
                    "description" => description = self.text(node, &format!("`{at}.description`")),
                    "input" => input = Some(node),
                    "output" => output = node.to_json(),
                    _ => self.extra(&format!("`{at}`"), key, &EXAMPLE_KEYS),
                }
            }
            let place = input.map_or_else(|| item.opening(), Node::opening);
            let given = input.map_or(Json::Null, Node::to_json);
            let fits = match (&tool.params, &given) {
                (None, Json::Null) => Ok(()),
                (None, _) => Err("the example has an input, but the tool takes none".to_owned()),
                (Some(record), given) => read_arguments(record, given)
                    .map(drop)
                    .map_err(|error| error.diagnostic().message.clone()),
            };
            if let Err(why) = fits {
                let message = format!("`{at}.input` does not fit the parameters of `{}`: {why}", tool.name);
                self.wrong(&place, message, "write an input that the tool accepts");
                continue;
            }
            let shown = output.as_str().map(str::to_owned);
            let reported = tool.clone().example(description.as_deref().unwrap_or_default(), given, output);
            match reported {
                Ok(mut more) => {
                    // A text is shown as the text that a model would get.
                    if let Some(last) = more.shown_outputs.last_mut() {
                        *last = shown;
                    }
                    tool = more;
                }
                Err(error) => {
                    self.fault(error.diagnostic().clone().at(item.opening()), "invalid_definition");
                }
            }
        }
        Some(tool)
    }

    /// Skills: a list of names, or of names and the folders that they lie in.
    pub(super) fn skills(&mut self, node: &Node) -> Vec<Skill> {
        let mut skills = Vec::new();
        for (index, item) in self.items(node, "`skills`").iter().enumerate() {
            let at = format!("skills[{index}]");
            if !matches!(item.data, Data::Text(_) | Data::Map(_)) {
                self.mismatch(
                    item,
                    &format!("`{at}`"),
                    "a name, or a map with a `name`",
                    "write the skill's name",
                );
                continue;
            }
            if let Data::Text(name) = &item.data {
                if name.trim().is_empty() {
                    self.wrong(&item.place, format!("`{at}` has an empty name"), "write the skill's name");
                    continue;
                }
                skills.push(Skill { name: name.clone(), source: name.clone() });
                continue;
            }
            let Some((name, _)) = self.name_of(item, &at) else { continue };
            let mut source = name.clone();
            for (key, node) in self.entries(item, &format!("`{at}`")) {
                match key.name.as_str() {
                    "name" => {}
                    "source" => source = self.text(node, &format!("`{at}.source`")).unwrap_or(source),
                    _ => self.extra(&format!("`{at}`"), key, &["name", "source"]),
                }
            }
            skills.push(Skill { name, source });
        }
        skills
    }
}

/// The title of the schema of what a tool takes: `find_order` takes `FindOrderParams`.
fn title(name: &str) -> String {
    let words = name.split(['_', '-']).filter_map(|word| {
        let mut letters = word.chars();
        Some(letters.next()?.to_uppercase().chain(letters).collect::<String>())
    });
    words.chain(["Params".to_owned()]).collect()
}
