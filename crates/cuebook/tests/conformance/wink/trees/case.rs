//! From the declarative form of a case to a tree, and to what it is rendered with.

use std::sync::Arc;

use cuebook::Result;
use cuebook::chat::output::{Container, OutputSpec};
use cuebook::overrides::{Resolved, SectionOverride, TaskExample, TaskStep, ToolOverride};
use cuebook::prompt::{Field, Record, Shape, Visibility};
use cuebook::sections::{
    Binding, BoundParams, ConditionContext, Headings, ParamsType, Section, SectionTool, Selector, Skill,
    ToolResult, Tree, VisibilityOverrides,
};
use serde_json::{Map, Value as Json};

use super::super::types;

/// The type that flat parameters are of.
const FLAT: &str = "Params";

pub struct Case {
    pub tree: Tree,
    pub bound: Binding,
    pub session: VisibilityOverrides,
    pub overrides: Resolved,
}

pub fn text(value: &Json) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

pub fn texts(value: &Json) -> Vec<String> {
    list(value).map(text).collect()
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn members(value: &Json) -> impl Iterator<Item = (&String, &Json)> {
    value.as_object().into_iter().flatten()
}

fn visibility(value: &Json) -> Visibility {
    Visibility::named(value.as_str().expect("a visibility")).expect("a known visibility")
}

impl Case {
    pub fn read(case: &Json) -> Result<Case> {
        let prompt = &case["prompt"];
        let maker = Maker { case };
        let mut builder =
            Tree::builder(text(&prompt["ns"]), text(&prompt["key"])).headings(Headings::Numbered);
        if let Some(name) = prompt["name"].as_str() {
            builder = builder.name(name);
        }
        for section in list(&prompt["sections"]) {
            builder = builder.section(maker.section(section)?);
        }
        if prompt["output"].is_object() {
            builder = builder.output(maker.output(prompt));
        }
        Ok(Case {
            tree: builder.build()?,
            bound: maker.bound(),
            session: session(&case["visibility_overrides"]),
            overrides: overrides(case),
        })
    }
}

struct Maker<'c> {
    case: &'c Json,
}

impl Maker<'_> {
    fn output(&self, prompt: &Json) -> OutputSpec {
        let output = &prompt["output"];
        let container = match output["container"].as_str() {
            Some("array") => Container::Array,
            _ => Container::Object,
        };
        let allows = |of: &Json| of["allow_extra_keys"] == true;
        OutputSpec {
            record: types::record(&self.case["types"], output["type"].as_str().expect("a type")),
            container,
            allow_extra_keys: allows(output) || allows(prompt),
        }
    }

    /// The type of this name: one that the case declares, or that of its flat parameters, in which everything is required.
    fn record(&self, name: &str) -> Arc<Record> {
        if name != FLAT || self.case["types"].get(FLAT).is_some() {
            return types::record(&self.case["types"], name);
        }
        let fields = members(&self.case["params"]).map(|(name, _)| Field::new(name, Shape::Any));
        Arc::new(fields.fold(Record::new(FLAT), Record::field))
    }

    /// A value of a type, as the type makes it: with its defaults.
    fn value(&self, name: &str, values: &Json) -> BoundParams {
        let mut whole = Map::new();
        for field in &self.record(name).fields {
            let value = values.get(&field.name).or(field.default.as_ref());
            whole.insert(field.name.clone(), value.cloned().expect("a value"));
        }
        BoundParams::new(name, &whole)
    }

    fn bound(&self) -> Binding {
        let mut binding = Binding::new();
        if self.case["params"].is_object() {
            binding.bind([self.value(FLAT, &self.case["params"])]);
        }
        for call in list(&self.case["bind"]) {
            let one = |value: &Json| self.value(value["type"].as_str().expect("a type"), &value["values"]);
            match call.as_array() {
                Some(several) => binding.bind(several.iter().map(one)),
                None => binding.bind([one(call)]),
            };
        }
        binding
    }

    fn section(&self, spec: &Json) -> Result<Section> {
        let key = |or: &str| spec["key"].as_str().unwrap_or(or).to_owned();
        let title = spec["title"].as_str().map(str::to_owned);
        let mut section = match spec["kind"].as_str() {
            None | Some("markdown") => {
                Section::new(key(""), title.unwrap_or_default(), text(&spec["template"]))
            }
            Some("task_examples") => {
                let examples = list(&spec["examples"]).map(|example| self.section(example));
                let examples = examples.collect::<Result<Vec<Section>>>()?;
                let title = title.unwrap_or_else(|| "Task Examples".to_owned());
                Section::task_examples(key("task-examples"), title, examples)
            }
            Some("task_example") => Section::task_example(key(""), title, example(spec))?,
            Some(other) => panic!("a kind that is not known: {other}"),
        };
        let is_template = spec["template"].is_string();
        let of = match spec["params_type"].as_str() {
            Some(name) => Some(name),
            None if spec["untyped"] == true || !self.case["params"].is_object() || !is_template => None,
            None => Some(FLAT),
        };
        section.params = of.map(|name| {
            Arc::new(ParamsType {
                name: name.to_owned(),
                record: self.record(name),
                open: false,
                fences: Default::default(),
            })
        });
        if spec["default_params"].is_object() {
            section.default_params = Some(self.value(of.expect("a type"), &spec["default_params"]));
        }
        if let Some(summary) = spec["summary"].as_str() {
            section = section.summary(summary);
        }
        if let Some(selector) = shown(&spec["visibility"]) {
            section.visibility = selector;
        }
        if let Some(selector) = enabled(&spec["enabled"]) {
            section.enabled = selector;
        }
        section.accepts_overrides = spec["accepts_overrides"] != false;
        for tool in list(&spec["tools"]) {
            section = section.tool(self.tool(tool)?);
        }
        for skill in list(&spec["skills"]) {
            let name = skill["name"].as_str().map(str::to_owned);
            section = section.skill(Skill::new(text(&skill["source"]), name));
        }
        for child in list(&spec["children"]) {
            section = section.child(self.section(child)?);
        }
        Ok(section)
    }

    fn tool(&self, spec: &Json) -> Result<SectionTool> {
        let name = text(&spec["name"]);
        let record = |field: &str, given: &str, suffix: &str| {
            let named = spec[given].as_str().map_or_else(|| camel(&name) + suffix, str::to_owned);
            spec[field]
                .is_object()
                .then(|| types::record_of_fields(&named, &spec[field], &self.case["types"]))
        };
        let params = record("params", "params_type_name", "Params");
        let result = record("result", "result_type_name", "Result");
        let mut tool = SectionTool::taking(name.clone(), &text(&spec["description"]), params)?;
        tool.result = match result {
            Some(record) if spec["result_container"] == "array" => ToolResult::Many(record),
            Some(record) => ToolResult::One(record),
            None => ToolResult::Nothing,
        };
        tool.accepts_overrides = spec["accepts_overrides"] != false;
        for example in list(&spec["examples"]) {
            let description = text(&example["description"]);
            tool = tool.example(&description, example["input"].clone(), example["output"].clone())?;
            if let Some(format) = spec["result_render"].as_str() {
                *tool.shown_outputs.last_mut().expect("an example") =
                    Some(formatted(format, &example["output"]));
            }
        }
        Ok(tool)
    }
}

/// `deploy_build` as `DeployBuild`.
fn camel(name: &str) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let upper = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    words.filter(|word| !word.is_empty()).map(upper).collect()
}

/// What Python's `format` makes of fields and of items of lists in them.
fn formatted(format: &str, value: &Json) -> String {
    let mut out = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').expect("a closing brace");
        let found = match name.split_once('[') {
            Some((name, index)) => {
                let index: usize = index.trim_end_matches(']').parse().expect("an index");
                &value[name][index]
            }
            None => &value[name],
        };
        out += before;
        out += &found.as_str().map_or_else(|| found.to_string(), str::to_owned);
        rest = after;
    }
    out + rest
}

fn example(spec: &Json) -> TaskExample {
    let steps = list(&spec["steps"]).map(|step| TaskStep {
        tool: text(&step["tool"]),
        description: text(&step["description"]),
        input: step["input"].clone(),
        output: step["output"].clone(),
    });
    let outcome = match &spec["outcome"] {
        // A record is written with the name of its type.
        Json::Object(outcome) if outcome.contains_key("values") => outcome["values"].clone(),
        other => other.clone(),
    };
    TaskExample { objective: text(&spec["objective"]), outcome, steps: steps.collect() }
}

fn field(circumstances: &ConditionContext<'_>, name: &str) -> Result<Json, String> {
    let params = circumstances.params.ok_or("no parameters")?;
    params.get(name).ok_or_else(|| format!("no field `{name}`"))
}

/// What Python takes for true.
fn is_true(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(truth) => *truth,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
    }
}

fn enabled(spec: &Json) -> Option<Selector<bool>> {
    if let Some(always) = spec.as_bool() {
        return Some(Selector::Always(always));
    }
    let (shape, of) = spec.as_object()?.iter().next().expect("a condition");
    let of = of.clone();
    Some(Selector::Asked(match shape.as_str() {
        "const" | "zero_arg" => Arc::new(move |_| Ok(is_true(&of))),
        "param" => Arc::new(move |known| Ok(is_true(&field(known, of.as_str().expect("a name"))?))),
        "not_param" => Arc::new(move |known| Ok(!is_true(&field(known, of.as_str().expect("a name"))?))),
        "raise" => Arc::new(move |_| Err(text(&of))),
        other => panic!("a condition that is not known: {other}"),
    }))
}

fn shown(spec: &Json) -> Option<Selector<Visibility>> {
    if spec.is_string() {
        return Some(Selector::Always(visibility(spec)));
    }
    let condition = spec.as_object()?;
    if let Some(always) = condition.get("const_callable") {
        let always = visibility(always);
        return Some(Selector::Asked(Arc::new(move |_| Ok(always))));
    }
    let (name, then, or) = (text(&spec["param"]), visibility(&spec["then"]), visibility(&spec["else"]));
    Some(Selector::Asked(Arc::new(move |known| Ok(if is_true(&field(known, &name)?) { then } else { or }))))
}

fn session(spec: &Json) -> VisibilityOverrides {
    let mut session = VisibilityOverrides::new();
    for (path, shown) in members(spec) {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        session.set(&path, visibility(shown));
    }
    for entry in list(spec) {
        session.set(&texts(&entry["path"]), visibility(&entry["visibility"]));
    }
    session
}

fn overrides(case: &Json) -> Resolved {
    let mut resolved = Resolved::default();
    for entry in list(&case["body_overrides"]) {
        let (path, body) = (texts(&entry["path"]), Some(text(&entry["body"])));
        let section = SectionOverride { path: path.clone(), body, ..SectionOverride::default() };
        resolved.sections.insert(path, section);
    }
    for (name, by) in members(&case["tool_overrides"]) {
        let described = members(&by["param_descriptions"]).map(|(name, of)| (name.clone(), text(of)));
        let tool = ToolOverride {
            name: name.clone(),
            description: by["description"].as_str().map(str::to_owned),
            param_descriptions: described.collect(),
            ..ToolOverride::default()
        };
        resolved.tools.insert(name.clone(), tool);
    }
    resolved
}
