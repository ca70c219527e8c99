//! Fill: inputs are checked, and put into the body, the XML, the whole file and all actions.
//!
//! The order is that of the seed: undeclared inputs are refused, then defaults are taken, then what is required must be there,
//! then types are looked at, and then values are put in.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{Directive, Input};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::template::engine::Output;
use crate::template::input::{self, Template, Values};

/// Characters that one filled text may have.
#[doc(hidden)]
pub const MAX_TEXT: usize = 16 << 20;

/// Asks an environment.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A directive with its inputs. What they are put into is made on first use.
#[derive(Clone)]
pub struct Filled<'d> {
    directive: &'d Directive,
    /// The inputs: those that were given, and defaults.
    pub inputs: Map<String, Json>,
    environment: Environment,
}

impl fmt::Debug for Filled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filled").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

impl Directive {
    /// Checks inputs and takes them in. `{env:…}` asks the environment of this process.
    ///
    /// An error carries `declared_inputs`, so that the caller can call again.
    pub fn fill(&self, parameters: &Map<String, Json>) -> Result<Filled<'_>> {
        let inputs = self.complete(parameters)?;
        Ok(Filled { directive: self, inputs, environment: Arc::new(input::environment) })
    }

    /// The inputs with defaults, if nothing is wrong with them.
    fn complete(&self, parameters: &Map<String, Json>) -> Result<Map<String, Json>> {
        self.refuse_unknown(parameters.keys().map(String::as_str))?;
        let mut inputs = parameters.clone();
        for input in &self.inputs {
            if let Some(default) = &input.default
                && !inputs.contains_key(&input.name)
            {
                inputs.insert(input.name.clone(), Json::from(default.as_str()));
            }
        }
        self.refuse_missing(|name| inputs.contains_key(name))?;
        self.refuse_mistyped(|name| parameters.get(name).cloned())?;
        self.refuse_defaults(|name| !parameters.contains_key(name))?;
        Ok(inputs)
    }

    /// Whether it takes an input of this name: one that it declares, or any if it declares none.
    #[doc(hidden)]
    pub fn takes(&self, name: &str) -> bool {
        self.inputs.is_empty() || self.inputs.iter().any(|input| input.name == name)
    }

    /// Refuses undeclared names. A directive that declares nothing takes what it is given.
    #[doc(hidden)]
    pub fn refuse_unknown<'n>(&self, given: impl Iterator<Item = &'n str>) -> Result<()> {
        if self.inputs.is_empty() {
            return Ok(());
        }
        let declared: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let known: HashSet<&str> = declared.iter().copied().collect();
        let unknown: Vec<&str> = given.filter(|name| !known.contains(name)).collect();
        let [first, ..] = unknown.as_slice() else { return Ok(()) };
        let message =
            format!("Unknown parameters: {}. Valid inputs: {}", unknown.join(", "), declared.join(", "));
        let hint = did_you_mean(&nearest(first, declared.iter().copied()))
            .unwrap_or_else(|| "remove the inputs that the directive does not declare".to_owned());
        let diagnostic = Diagnostic::new(Code::UnknownVariable, message).file(self.source.name()).hint(hint);
        Err(self.invalid(diagnostic).with("unknown", &unknown))
    }

    /// Refuses inputs that are required and not there.
    #[doc(hidden)]
    pub fn refuse_missing(&self, is_there: impl Fn(&str) -> bool) -> Result<()> {
        let missing: Vec<&Input> =
            self.inputs.iter().filter(|input| input.required && !is_there(&input.name)).collect();
        let [first, ..] = missing.as_slice() else { return Ok(()) };
        let names: Vec<&str> = missing.iter().map(|input| input.name.as_str()).collect();
        let mut diagnostic =
            Diagnostic::new(Code::InvalidVariables, format!("Missing required inputs: {}", names.join(", ")));
        diagnostic = match &first.place {
            Some(place) => diagnostic.at(place.clone()).label("declared here"),
            None => diagnostic,
        };
        if let Some(place) = self.included_at(&first.name) {
            diagnostic = diagnostic.related(place.clone(), "included here");
        }
        let pass: Vec<String> = missing.iter().map(|input| input.to_pass()).collect();
        let hint = Hint::command_line(format!("pass {}", pass.join(" ")))
            .for_programs(format!("give values to {}", names.join(", ")));
        let diagnostic = diagnostic.hint(hint);
        Err(self.invalid(diagnostic).with("missing", names))
    }

    /// Refuses values that are not of their declared types.
    #[doc(hidden)]
    pub fn refuse_mistyped(&self, value: impl Fn(&str) -> Option<Json>) -> Result<()> {
        let mut wrong = Vec::new();
        for input in &self.inputs {
            let Some(value) = value(&input.name).filter(|value| !input.admits(value)) else { continue };
            let message = format!(
                "`{}` must be of type {}, but is {}",
                input.name,
                input.type_name,
                crate::json::type_of(&value)
            );
            let diagnostic = Diagnostic::new(Code::InvalidVariables, message);
            let diagnostic = match &input.place {
                Some(place) => diagnostic.at(place.clone()).label("declared here"),
                None => diagnostic,
            };
            let meant = value
                .as_str()
                .is_some_and(|text| serde_json::from_str(text).is_ok_and(|value| input.kind.admits(&value)));
            wrong.push(match meant {
                true => {
                    let name = &input.name;
                    let text = value.as_str().unwrap_or_default();
                    diagnostic.hint(
                        Hint::command_line(format!(
                            "pass anything but text with `:=`, as in --var {name}:={text}"
                        ))
                        .for_programs(format!("give `{name}` a value of its type")),
                    )
                }
                false => diagnostic,
            });
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Error::all(ErrorKind::PromptValidation, wrong)
                .with("declared_inputs", self.declared_inputs())),
        }
    }

    /// Refuses defaults that do not stand for what they are declared to be, where they count.
    #[doc(hidden)]
    pub fn refuse_defaults(&self, counts: impl Fn(&str) -> bool) -> Result<()> {
        let mut wrong = Vec::new();
        for input in self.inputs.iter().filter(|input| counts(&input.name)) {
            let Some(default) = input.default.as_deref().filter(|text| !input.kind.admits_text(text)) else {
                continue;
            };
            let message = format!(
                "`{}` must be of type {}, but its default is {default:?}",
                input.name, input.type_name
            );
            let diagnostic = Diagnostic::new(Code::InvalidVariables, message);
            let diagnostic = diagnostic.hint("pass a value, or change the default or the type");
            wrong.push(match &input.place {
                Some(place) => diagnostic.at(place.clone()).label("declared here"),
                None => diagnostic,
            });
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Error::all(ErrorKind::PromptValidation, wrong)
                .with("declared_inputs", self.declared_inputs())),
        }
    }

    fn invalid(&self, diagnostic: Diagnostic) -> Error {
        Error::new(ErrorKind::PromptValidation, diagnostic).with("declared_inputs", self.declared_inputs())
    }
}

impl Values for Filled<'_> {
    fn input(&self, key: &str) -> Option<String> {
        self.inputs.get(key).map(input::text_of)
    }

    fn env(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }
}

/// Inputs alone, for texts that the environment has no part in.
struct OnlyInputs<'f>(&'f Map<String, Json>);

impl Values for OnlyInputs<'_> {
    fn input(&self, key: &str) -> Option<String> {
        self.0.get(key).map(input::text_of)
    }

    fn env(&self, _: &str) -> Option<String> {
        None
    }
}

impl<'d> Filled<'d> {
    /// The same with another environment.
    pub fn with_environment(
        mut self,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Filled<'d> {
        self.environment = Arc::new(environment);
        self
    }

    /// The directive.
    pub fn directive(&self) -> &'d Directive {
        self.directive
    }

    /// The body with the inputs in it.
    pub fn body(&self) -> Result<Output> {
        self.directive.refuse_unfollowed()?;
        let output = self.directive.body_output(self, MAX_TEXT, false);
        output.map_err(|_| self.directive.template.too_large(MAX_TEXT))
    }

    /// The XML with the inputs in it. It is text from then on: what a value says does not make elements.
    pub fn content(&self) -> Result<Output> {
        self.part(self.directive.content.clone())
    }

    /// The whole file with the inputs in it.
    pub fn raw(&self) -> Result<Output> {
        self.part(self.directive.raw.clone())
    }

    /// The actions with the inputs in all texts of their attributes and parameters.
    pub fn actions(&self) -> Vec<Map<String, Json>> {
        let values = OnlyInputs(&self.inputs);
        let expand = |value: &Json| match value {
            Json::String(text) => Json::String(input::expand(text, &values)),
            other => other.clone(),
        };
        let action = |(key, value): (&String, &Json)| {
            let value = match value {
                Json::Object(params) if key == "params" => {
                    params.iter().map(|(key, value)| (key.clone(), expand(value))).collect()
                }
                other => expand(other),
            };
            (key.clone(), value)
        };
        self.directive.actions.iter().map(|found| found.iter().map(action).collect()).collect()
    }

    /// The directive as scripts see it, with the inputs in it.
    pub fn to_json(&self) -> Result<Json> {
        let mut object = self.directive.to_json();
        object["body"] = Json::from(self.body()?.text);
        object["content"] = Json::from(self.content()?.text);
        object["raw"] = Json::from(self.raw()?.text);
        if !self.directive.actions.is_empty() {
            object["actions"] = self.actions().into_iter().map(Json::Object).collect();
        }
        Ok(object)
    }

    fn part(&self, range: Range<usize>) -> Result<Output> {
        self.render(&Template::compile(self.directive.source.clone(), range))
    }

    fn render(&self, template: &Template) -> Result<Output> {
        template.render(MAX_TEXT, self).map_err(|_| template.too_large(MAX_TEXT))
    }
}
