//! Examples of tasks, as a file writes them: a list in the settings of the section that shows them, or one in the settings of each
//! heading below it. Whether their steps fit the tools of the tree is asked when the tree is built, for a tool may stand anywhere.

use serde_json::Value as Json;

use super::SectionsReader;
use super::key_of;
use crate::node::{Data, Node};
use crate::overrides::{TaskExample, TaskStep};
use crate::sections::{Section, title_of_task};

const KEYS: [&str; 5] = ["key", "title", "objective", "steps", "outcome"];
const STEP_KEYS: [&str; 4] = ["tool", "description", "input", "output"];

impl SectionsReader {
    /// A list of examples, each of which becomes a section.
    pub(super) fn task_examples(&mut self, node: &Node) -> Vec<Section> {
        let mut sections: Vec<Section> = Vec::new();
        for (index, item) in self.items(node, "`task_examples`").iter().enumerate() {
            let at = format!("task_examples[{index}]");
            let Some(section) = self.listed_example(item, &at) else { continue };
            if let Some(first) = sections.iter().find(|other| other.key == section.key)
                && let (Some(first), Some(second)) = (&first.place, &section.place)
            {
                self.twice(&section.key, second, first);
                continue;
            }
            sections.push(section);
        }
        sections
    }

    fn listed_example(&mut self, item: &Node, at: &str) -> Option<Section> {
        if !matches!(item.data, Data::Map(_)) {
            let hint = "write `objective: …`, `steps: …` and `outcome: …`, one per line and indented";
            self.mismatch(item, &format!("`{at}`"), "a task example", hint);
            return None;
        }
        let (mut key, mut title) = (None, None);
        for (name, node) in self.entries(item, &format!("`{at}`")) {
            match name.name.as_str() {
                "key" => key = Some(self.key_text(node, &format!("`{at}.key`"))?),
                "title" => title = self.text(node, &format!("`{at}.title`")),
                _ => {}
            }
        }
        let example = self.task_example(item, at, None, &KEYS)?;
        let title = title.unwrap_or_else(|| title_of_task(&example.objective));
        let key = key.unwrap_or_else(|| key_of(&title));
        if key.is_empty() {
            self.wrong(&item.opening(), format!("the title of `{at}` cannot become a key"), "add a `key`");
            return None;
        }
        match Section::task_example(key, Some(title), example) {
            Ok(mut section) => {
                section.place = Some(item.opening());
                Some(section)
            }
            Err(error) => {
                self.fault(error.diagnostic().clone().at(item.opening()), "invalid_definition");
                None
            }
        }
    }

    /// One example. The heading that it stands under says what the task is, unless the example says it.
    pub(super) fn task_example(
        &mut self,
        node: &Node,
        at: &str,
        heading: Option<&str>,
        keys: &[&str],
    ) -> Option<TaskExample> {
        let mut objective = heading.map(str::to_owned);
        let (mut steps, mut outcome) = (Vec::new(), None);
        let faults = self.problems();
        for (key, node) in self.entries(node, &format!("`{at}`")) {
            match key.name.as_str() {
                "objective" => objective = self.text(node, &format!("`{at}.objective`")).or(objective),
                "steps" => {
                    for (index, step) in self.items(node, &format!("`{at}.steps`")).iter().enumerate() {
                        steps.extend(self.task_step(step, &format!("{at}.steps[{index}]")));
                    }
                }
                "outcome" => outcome = Some(node.to_json()).filter(|outcome| !outcome.is_null()),
                name if keys.contains(&name) => {}
                _ => self.extra(&format!("`{at}`"), key, keys),
            }
        }
        let mut missing =
            |what: &str, hint: &str| self.wrong(&node.opening(), format!("`{at}` has no {what}"), hint);
        if objective.is_none() {
            missing("`objective`", "write `objective: …`, the goal of the task");
        }
        if outcome.is_none() {
            missing("`outcome`", "write `outcome: …`, the result of the task");
        }
        if steps.is_empty() && faults == self.problems() {
            let hint = "write `steps: [{tool: …, description: …, input: …, output: …}]`";
            self.wrong(&node.opening(), format!("`{at}` has no `steps`"), hint);
        }
        if faults != self.problems() {
            return None;
        }
        Some(TaskExample { objective: objective?.trim().to_owned(), outcome: outcome?, steps })
    }

    fn task_step(&mut self, item: &Node, at: &str) -> Option<TaskStep> {
        let (mut tool, mut description) = (None, None);
        let (mut input, mut output) = (Json::Null, Json::Null);
        for (key, node) in self.entries(item, &format!("`{at}`")) {
            match key.name.as_str() {
                "tool" => tool = self.text(node, &format!("`{at}.tool`")),
                "description" => description = self.text(node, &format!("`{at}.description`")),
                "input" => input = node.to_json(),
                "output" => output = node.to_json(),
                _ => self.extra(&format!("`{at}`"), key, &STEP_KEYS),
            }
        }
        for (what, is_there) in [("tool", tool.is_some()), ("description", description.is_some())] {
            if !is_there {
                self.wrong(&item.opening(), format!("`{at}` has no `{what}`"), format!("write `{what}: …`"));
            }
        }
        Some(TaskStep { tool: tool?, description: description?, input, output })
    }
}
