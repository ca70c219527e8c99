//! The short way for plain templates: text, variables, conditions and loops.
//!
//! Most prompts are no more than that, and for them what the engine sets up and takes down around a render costs more than
//! the render. Such a template is turned into a few steps that write to the sink directly. The steps only do what is
//! certain: whatever is out of the ordinary (an error, a limit, a value of an unusual kind) ends the short way, and the
//! engine renders from the beginning. So the engine alone decides what a template means, and what an error says; the
//! differential tests render every plain case both ways.

mod reader;
mod run;
#[cfg(test)]
mod tests;

use minijinja::machinery::ast::Stmt;
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value};

use self::reader::Reader;
use self::run::Run;
use super::compat::{Comparison, ValueLimits};
use crate::template::sink::Sink;
use crate::variables::Scope;

/// A template as steps.
#[derive(Debug)]
pub(super) struct Plain {
    steps: Vec<Step>,
    fuel: u64,
    limits: ValueLimits,
}

/// Where a plain template finds its variables.
#[derive(Debug, Clone, Copy)]
pub(super) enum Values<'v> {
    /// The usual case, which lends its values.
    Scope(&'v Scope),
    /// Anything that has attributes.
    Value(&'v Value),
}

#[derive(Debug)]
enum Step {
    /// Bytes of the text that the engine runs.
    Literal {
        start: usize,
        end: usize,
    },
    /// A value, with the mark of its emission.
    Emit {
        mark: u32,
        value: Expression,
    },
    If {
        condition: Condition,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    For {
        items: Expression,
        body: Vec<Step>,
        otherwise: Vec<Step>,
    },
}

#[derive(Debug)]
struct Expression {
    start: Start,
    keys: Vec<Key>,
    /// Filters with their arguments behind the value.
    filters: Vec<(String, Vec<Value>)>,
}

impl Expression {
    fn new(start: Start) -> Expression {
        Expression { start, keys: Vec::new(), filters: Vec::new() }
    }
}

#[derive(Debug)]
enum Start {
    /// A variable from outside.
    Scope(String),
    /// The item of a loop, counted from the outermost.
    Item(usize),
    /// A counter of the innermost loop.
    Counter(Counter),
}

#[derive(Debug, Clone, Copy)]
enum Counter {
    Index,
    Index0,
    First,
    Last,
    Length,
}

#[derive(Debug)]
enum Key {
    Attribute(String),
    Item(Value),
    /// An item whose key is itself looked up.
    Computed(Expression),
}

#[derive(Debug)]
enum Condition {
    True(Expression),
    Defined(Expression),
    /// As the engine itself compares with a literal.
    Equal(Expression, Value),
    /// As one of our comparisons does.
    Compare(Comparison, Operand, Operand),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

#[derive(Debug)]
enum Operand {
    Value(Expression),
    Constant(Value),
}

impl Plain {
    /// The steps of a template, as the engine runs it; `None` if it is more than plain.
    pub(super) fn of(
        text: &str,
        syntax: &SyntaxConfig,
        environment: &Environment<'_>,
        fuel: u64,
        limits: ValueLimits,
    ) -> Option<Plain> {
        let tree = parse(text, "", syntax.clone()).ok()?;
        let Stmt::Template(template) = &tree else { return None };
        let globals: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
        let mut reader = Reader { text, globals, loops: Vec::new() };
        Some(Plain { steps: reader.steps(&template.children)?, fuel, limits })
    }

    /// Runs the steps; `None` if the engine has to render instead.
    pub(super) fn run(
        &self,
        environment: &Environment<'_>,
        text: &str,
        values: Values<'_>,
        sink: &mut Sink,
    ) -> Option<()> {
        Run::new(self, environment, text, values, sink).steps(&self.steps)
    }
}
