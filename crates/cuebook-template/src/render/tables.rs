//! The rows of the tables of filters, tests and functions.

use super::{Args, Call, Render};
use crate::error::Result;
use crate::value::{Cx, Val, Value, type_error, type_name};

/// What a filter does to the origins of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spans {
    /// What is left of the text keeps its pieces.
    Keeps,
    /// Every piece is changed where it is, and keeps its origin.
    Maps,
    /// The result comes from everything together.
    Mixes,
}

/// What an argument must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Anything.
    Any,
    /// A text.
    Text,
    /// An integer.
    Integer,
    /// Anything, of which only the truth counts.
    Flag,
}

/// A parameter of a filter, test or function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What an argument must be.
    pub kind: Kind,
    /// What counts if it is left out, as a template writes it.
    pub default: Option<&'static str>,
}

/// A parameter that must be given.
pub(crate) const fn need(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, default: None }
}

/// A parameter that may be left out.
pub(crate) const fn may(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    Parameter { name, kind, default: Some(default) }
}

/// The parameters of what takes any arguments.
pub(crate) static ANYTHING: &[Parameter] = &[Parameter { name: "*", kind: Kind::Any, default: None }];

type Run = for<'a, 'r> fn(&mut Call<'a, 'r>) -> Result<Val<'r>>;

/// A filter, test or function: its name, its parameters, what it is for, and what it does.
pub(crate) struct Definition {
    pub name: &'static str,
    /// The parameters after the value.
    pub parameters: &'static [Parameter],
    pub spans: Spans,
    pub about: &'static str,
    /// A template and its text.
    pub example: (&'static str, &'static str),
    pub run: Run,
}

pub(crate) const fn row(
    name: &'static str,
    parameters: &'static [Parameter],
    spans: Spans,
    about: &'static str,
    example: (&'static str, &'static str),
    run: Run,
) -> Definition {
    Definition { name, parameters, spans, about, example, run }
}

impl Definition {
    pub fn call<'r>(
        &self,
        render: &Render<'r>,
        cx: &Cx<'r>,
        value: Val<'r>,
        args: Args<'r>,
    ) -> Result<Val<'r>> {
        // Everything that a call reads is paid for here, and everything that it makes, so that no filter can forget it.
        render.spend_read(&value)?;
        args.spend_read(render)?;
        let mut call = Call { render, cx, name: self.name, value, given: Vec::new(), rest: Args::default() };
        if self.parameters.first().is_some_and(|first| first.name == "*") {
            call.rest = args;
            return render.spend_made((self.run)(&mut call)?);
        }
        if !(self.parameters.is_empty() && args.positional.is_empty() && args.named.is_empty()) {
            call.given = self.bind(args)?;
        }
        render.spend_made((self.run)(&mut call)?)
    }

    /// The arguments by parameter, checked against the signature.
    fn bind<'r>(&self, args: Args<'r>) -> Result<Vec<Option<Val<'r>>>> {
        let mut given = vec![None; self.parameters.len()];
        for (at, value) in args.positional.into_iter().enumerate() {
            let Some(place) = given.get_mut(at) else {
                let most = self.parameters.len();
                return Err(type_error(format!("`{}` takes at most {most} arguments", self.name)));
            };
            *place = Some(value);
        }
        for (name, value) in args.named {
            let Some(at) = self.parameters.iter().position(|parameter| parameter.name == name.as_ref())
            else {
                return Err(type_error(format!("`{}` has no argument `{name}`", self.name)));
            };
            if given[at].replace(value).is_some() {
                return Err(type_error(format!("`{}` got the argument `{name}` twice", self.name)));
            }
        }
        for (parameter, value) in self.parameters.iter().zip(&given) {
            match value {
                None if parameter.default.is_none() => {
                    let name = parameter.name;
                    return Err(type_error(format!("`{}` needs the argument `{name}`", self.name)));
                }
                None => {}
                Some(value) => self.check(parameter, &value.value)?,
            }
        }
        Ok(given)
    }

    fn check(&self, parameter: &Parameter, value: &Value<'_>) -> Result<()> {
        let (fits, wanted) = match parameter.kind {
            Kind::Any | Kind::Flag => return Ok(()),
            Kind::Text => (value.as_str().is_some(), "a string"),
            Kind::Integer => (value.as_integer().is_some(), "an integer"),
        };
        if fits || (value.is_none() && parameter.default == Some("none")) {
            return Ok(());
        }
        if let Value::Undefined(missing) = value {
            return Err(missing.error());
        }
        let (name, found) = (parameter.name, type_name(value));
        Err(type_error(format!("the argument `{name}` of `{}` must be {wanted}, not {found}", self.name)))
    }

    /// The parameters as a template could write them, and what the value is called.
    pub fn signature(&self) -> String {
        let parameter = |parameter: &Parameter| match (parameter.name, parameter.default) {
            ("*", _) => "…".to_owned(),
            (name, None) => name.to_owned(),
            (name, Some(default)) => format!("{name}={default}"),
        };
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        if parameters.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}({})", self.name, parameters.join(", "))
        }
    }
}

/// What templates can name: one table each.
pub(crate) struct Library {
    /// In the order of the names.
    pub filters: &'static [Definition],
    /// In the order of the names.
    pub tests: &'static [Definition],
    pub functions: &'static [Definition],
    /// What a style has instead of the filters above, or beyond these.
    pub more_filters: &'static [Definition],
    pub more_functions: &'static [Definition],
    /// The method of a value that has this name.
    pub method: fn(&Value<'_>, &str) -> Option<&'static str>,
    /// The methods of a value.
    pub methods: fn(&Value<'_>) -> Vec<&'static str>,
}

fn find(table: &'static [Definition], name: &str) -> Option<&'static Definition> {
    table.binary_search_by(|known| known.name.cmp(name)).ok().map(|at| &table[at])
}

impl Library {
    pub fn filter(&self, name: &str) -> Option<&'static Definition> {
        find(self.more_filters, name).or_else(|| find(self.filters, name))
    }

    pub fn test(&self, name: &str) -> Option<&'static Definition> {
        find(self.tests, name)
    }

    pub fn function(&self, name: &str) -> Option<&'static Definition> {
        find(self.more_functions, name).or_else(|| find(self.functions, name))
    }

    pub fn function_names<'n>(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.more_functions.iter().chain(self.functions).map(|function| function.name)
    }

    pub fn filter_names<'n>(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.filters.iter().map(|filter| filter.name)
    }

    pub fn test_names<'n>(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.tests.iter().map(|test| test.name).filter(|name| name.starts_with(char::is_alphabetic))
    }
}
