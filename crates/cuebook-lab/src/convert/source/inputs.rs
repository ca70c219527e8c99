//! What a prompt takes.

use crate::error::Hint;
use std::collections::HashMap;

use serde_json::{Map, Value as Json};

use super::Drafting;
use crate::by_name::ByName;
use crate::convert::BuiltIn;
use crate::convert::draft::{Draft, Input, Piece, anything};
use crate::convert::reported_differences::ReportedDifference;
use crate::node::{Data, Node};
use crate::prompt::{Need, Prompt, Type, Variable};
use crate::template::parts::MissingValue;

impl Drafting<'_> {
    pub(super) fn inputs(&mut self, prompt: &Prompt, front: Option<&Node>) -> ByName<Input> {
        let (variables, front) = (prompt.variables.iter(), front.map(declared).unwrap_or_default());
        // Every `.prompt` file has `@history`, whether it shows the conversation or not.
        let is_given =
            |variable: &&Variable| self.from != BuiltIn::Dotprompt || !variable.name.starts_with('@');
        let variables: Vec<&Variable> = variables.filter(is_given).collect();
        variables.into_iter().filter_map(|variable| self.input(variable, &front, self.from)).collect()
    }

    pub(super) fn input(
        &mut self,
        variable: &Variable,
        front: &HashMap<&str, &Node>,
        from: BuiltIn,
    ) -> Option<Input> {
        let target = self.target;
        let place = variable.place.clone();
        let name = &variable.name;
        let has_front = matches!(target, BuiltIn::Prompty | BuiltIn::Sections);
        if let Some(rich) = variable.rich {
            let message = format!(
                "the input `{name}` has the kind `{}`, which only .prompty files have",
                rich.as_str()
            );
            self.report
                .lost("inputs", message)
                .at(place)
                .hint("put it into a separate message")
                .spares(ReportedDifference::Value(name.clone()));
            return None;
        }
        let (mut kind_name, mut more) = (None, Map::new());
        if let Some(Data::Map(entries)) = front.get(name.as_str()).map(|node| &node.data) {
            for (key, node) in entries {
                match key.name.as_str() {
                    "name" | "description" | "required" | "default" | "enumValues" | "strict" => {}
                    "kind" | "type" => kind_name = node.text().map(str::to_owned),
                    "items" if node.to_json() == anything() => {}
                    "fence" if from == BuiltIn::Sections && target != BuiltIn::Sections => {
                        let message = format!("the values of `{name}` are no longer fenced");
                        let hint = format!("fence them in the template: {{{{ {name}|fence }}}}");
                        self.report.lost("inputs", message).at(Some(key.place.clone())).hint(hint);
                    }
                    _ => drop(more.insert(key.name.clone(), node.to_json())),
                }
            }
        }
        let mut input = Input {
            name: name.clone(),
            need: variable.need,
            kind: variable.kind,
            kind_name: kind_name.filter(|_| has_front),
            description: variable.description.clone(),
            default: variable.default.clone(),
            choices: variable.choices.clone(),
            strict: variable.strict,
            more,
            place: place.clone(),
        };
        if !has_front && !input.more.is_empty() {
            let keys: Vec<&str> = input.more.keys().map(String::as_str).collect();
            let message = format!("the inner structure of `{name}` is left out: {}", keys.join(", "));
            self.report.lost("inputs", message).at(place.clone()).hint("describe it in the description");
        }
        if !has_front && !input.choices.is_empty() {
            let message = format!("the allowed values of `{name}` are left out");
            self.report.lost("inputs", message).at(place.clone()).hint("list them in the description");
        }
        if variable.is_secret {
            let message = format!("the default of `{name}` comes from the environment, so it is not copied");
            let hint = Hint::command_line("pass it with --var, or make the input required")
                .for_programs("pass it, or make the input required");
            self.report
                .lost("inputs", message)
                .at(place.clone())
                .hint(hint)
                .spares(ReportedDifference::Absence(name.clone()));
            input.default = None;
        }
        if input.strict && target != BuiltIn::Prompty {
            let message =
                format!("the strict check of `{name}` is left out: only .prompty files refuse role markers");
            self.report
                .lost("inputs", message)
                .at(place.clone())
                .hint("without roles, a value cannot forge a message");
            input.strict = false;
        }
        if variable.need == Need::Custom {
            let message = format!("the custom variable `{name}` becomes optional");
            self.report
                .changed("inputs", message)
                .at(place.clone())
                .hint("say in the description who sets it");
            input.need = Need::Optional;
        }
        if variable.from_system {
            let message = format!("the system no longer sets `{name}`: the caller must pass it");
            let hint = match has_front {
                true => format!("write {{{{ system.{name} }}}} instead").into(),
                false => Hint::option("pass it", format!("--var {name}=…")),
            };
            self.report
                .changed("inputs", message)
                .at(place.clone())
                .hint(hint)
                .spares(ReportedDifference::Absence(name.clone()));
            if input.default.is_none() {
                input.need = Need::Required;
            }
        }
        let declared_in_xml = from == BuiltIn::Directive
            || variable.inherited_from.as_ref().is_some_and(|parent| {
                self.prepared
                    .included_prompts()
                    .iter()
                    .any(|included| included.is_directive() && included.id == *parent)
            });
        if declared_in_xml && let Some(Json::String(text)) = &input.default {
            // In XML everything is text.
            match (input.kind, serde_json::from_str::<Json>(text)) {
                (Type::String | Type::Any, _) => {}
                (kind, Ok(value)) if kind.admits(&value) && reads_as(&value, text) => {
                    input.default = Some(value)
                }
                (kind, _) => {
                    let message = format!(
                        "the default {text:?} of `{name}` is not of type {}, so its type is left out",
                        kind.as_str()
                    );
                    self.report
                        .changed("inputs", message)
                        .at(place.clone())
                        .hint("change the default or the type");
                    input.kind = Type::Any;
                }
            }
        }
        if target == BuiltIn::Template
            && input.default.as_ref().is_some_and(|value| !input.kind.admits(value))
        {
            let message = format!(
                "the default of `{name}` is not of type {}, so its type is left out",
                input.kind.as_str()
            );
            self.report.changed("inputs", message).at(place).hint("change the default or the type");
            input.kind = Type::Any;
        }
        Some(input)
    }

    /// A value that a text cannot do without is required; one that is always there needs no words for its absence.
    pub(super) fn certain(&mut self, draft: &mut Draft) {
        let mut needed: Vec<String> = Vec::new();
        for piece in draft.words.iter().filter_map(|chunk| chunk.pieces.as_ref().ok()).flatten() {
            if let Piece::Value { name, absent: MissingValue::Fails } = piece {
                needed.push(name.clone());
            }
        }
        for name in needed {
            let require = |input: &mut Input| {
                if input.default.is_none() {
                    input.need = Need::Required;
                }
            };
            if !draft.inputs.change(&name, require) {
                draft.inputs.push(Input {
                    name,
                    need: Need::Required,
                    kind: Type::Any,
                    kind_name: None,
                    description: None,
                    default: None,
                    choices: Vec::new(),
                    strict: false,
                    more: Map::new(),
                    place: None,
                });
            }
        }
        let inputs = &draft.inputs;
        for chunk in &mut draft.words {
            for piece in chunk.pieces.iter_mut().flatten() {
                if let Piece::Value { name, absent } = piece
                    && inputs.get(name).is_some_and(Input::is_certain)
                {
                    *absent = MissingValue::Nothing;
                }
            }
        }
    }
}

/// What front matter says of inputs, by their names.
fn declared(front: &Node) -> HashMap<&str, &Node> {
    match front.get("inputs").map(|inputs| &inputs.data) {
        Some(Data::List(items)) => {
            items.iter().rev().filter_map(|item| Some((item.get("name")?.text()?, item))).collect()
        }
        Some(Data::Map(entries)) => entries.iter().map(|(key, node)| (key.name.as_str(), node)).collect(),
        _ => HashMap::new(),
    }
}

/// Whether a value reads as a text does.
fn reads_as(value: &Json, text: &str) -> bool {
    let written = value.to_string();
    written == text
}
