//! The short way for plain templates: text, variables, conditions and loops.
//!
//! Most prompts are no more than that, and for them what the engine sets up and takes down around a render costs more than
//! the render. Such a template is turned into a few steps that write to the sink directly. The steps only do what is
//! certain: whatever is out of the ordinary (an error, a limit, a value of an unusual kind) ends the short way, and the
//! engine renders from the beginning. So the engine alone decides what a template means, and what an error says; the
//! differential tests render every plain case both ways.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, State, Value};

use super::compat::{ValueLimits, to_str};
use crate::template::sink::Sink;

/// A template as steps.
#[derive(Debug)]
pub(super) struct Plain {
    steps: Vec<Step>,
    fuel: u64,
    limits: ValueLimits,
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
}

#[derive(Debug)]
enum Condition {
    True(Expression),
    Defined(Expression),
    Equal(Expression, Value),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
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
        scope: &Value,
        sink: &mut Sink,
    ) -> Option<()> {
        let mut run = Run {
            text,
            scope,
            sink,
            environment,
            state: None,
            loops: Vec::new(),
            fuel: self.fuel,
            limits: self.limits,
        };
        run.steps(&self.steps)
    }
}

/// Turns the syntax tree into steps, as long as all of it is plain.
struct Reader<'s> {
    text: &'s str,
    globals: Vec<&'s str>,
    /// The names of the loops' items, outermost first.
    loops: Vec<String>,
}

impl Reader<'_> {
    fn steps(&mut self, statements: &[Stmt<'_>]) -> Option<Vec<Step>> {
        let mut steps = Vec::with_capacity(statements.len());
        // A beacon is an empty literal before the tag that it names.
        let mut mark = 0;
        for statement in statements {
            match statement {
                Stmt::EmitRaw(raw) => {
                    let start = (raw.raw.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
                    let end = start + raw.raw.len();
                    if raw.raw.is_empty() {
                        mark = u32::try_from(start).ok()?;
                    } else {
                        steps.push(Step::Literal { start, end });
                    }
                }
                Stmt::EmitExpr(emit) => {
                    let value = self.expression(&emit.expr)?;
                    steps.push(Step::Emit { mark, value });
                }
                Stmt::IfCond(cond) => {
                    let condition = self.condition(&cond.expr)?;
                    let then = self.steps(&cond.true_body)?;
                    let otherwise = self.steps(&cond.false_body)?;
                    steps.push(Step::If { condition, then, otherwise });
                }
                Stmt::ForLoop(each) if !each.recursive && each.filter_expr.is_none() => {
                    let Expr::Var(target) = &each.target else { return None };
                    // The engine runs `for x in (xs)|__cue_iter`.
                    let Expr::Filter(iter) = &each.iter else { return None };
                    if iter.name != "__cue_iter" {
                        return None;
                    }
                    let items = self.expression(iter.expr.as_ref()?)?;
                    self.loops.push(target.id.to_owned());
                    let body = self.steps(&each.body);
                    self.loops.pop();
                    let otherwise = self.steps(&each.else_body)?;
                    steps.push(Step::For { items, body: body?, otherwise });
                }
                _ => return None,
            }
        }
        Some(steps)
    }

    fn expression(&mut self, expression: &Expr<'_>) -> Option<Expression> {
        match expression {
            Expr::Var(var) => {
                if let Some(depth) = self.loops.iter().rposition(|name| name == var.id) {
                    return Some(Expression {
                        start: Start::Item(depth),
                        keys: Vec::new(),
                        filters: Vec::new(),
                    });
                }
                if self.globals.contains(&var.id) || matches!(var.id, "loop" | "self" | "super" | "caller") {
                    return None;
                }
                let start = Start::Scope(var.id.to_owned());
                Some(Expression { start, keys: Vec::new(), filters: Vec::new() })
            }
            Expr::GetAttr(get) => {
                if let Expr::Var(var) = &get.expr
                    && var.id == "loop"
                    && !self.loops.is_empty()
                    && !self.loops.iter().any(|name| name == "loop")
                {
                    let counter = match get.name {
                        "index" => Counter::Index,
                        "index0" => Counter::Index0,
                        "first" => Counter::First,
                        "last" => Counter::Last,
                        "length" => Counter::Length,
                        _ => return None,
                    };
                    let start = Start::Counter(counter);
                    return Some(Expression { start, keys: Vec::new(), filters: Vec::new() });
                }
                self.with_key(&get.expr, Key::Attribute(get.name.to_owned()))
            }
            Expr::GetItem(get) => {
                let key = get.subscript_expr.as_const()?;
                self.with_key(&get.expr, Key::Item(key))
            }
            Expr::Filter(filter) if !filter.name.starts_with("__cue") => {
                let mut value = self.expression(filter.expr.as_ref()?)?;
                let arguments = filter.args.iter().map(|argument| match argument {
                    CallArg::Pos(Expr::Const(constant)) => Some(constant.value.clone()),
                    _ => None,
                });
                value.filters.push((filter.name.to_owned(), arguments.collect::<Option<_>>()?));
                Some(value)
            }
            _ => None,
        }
    }

    fn with_key(&mut self, of: &Expr<'_>, key: Key) -> Option<Expression> {
        let mut value = self.expression(of)?;
        if !value.filters.is_empty() || matches!(value.start, Start::Counter(_)) {
            return None;
        }
        value.keys.push(key);
        Some(value)
    }

    fn condition(&mut self, expression: &Expr<'_>) -> Option<Condition> {
        Some(match expression {
            Expr::UnaryOp(unary) if matches!(unary.op, UnaryOpKind::Not) => {
                Condition::Not(Box::new(self.condition(&unary.expr)?))
            }
            Expr::BinOp(binary) => match (binary.op, &binary.right) {
                (BinOpKind::ScAnd, right) => {
                    Condition::And(Box::new(self.condition(&binary.left)?), Box::new(self.condition(right)?))
                }
                (BinOpKind::ScOr, right) => {
                    Condition::Or(Box::new(self.condition(&binary.left)?), Box::new(self.condition(right)?))
                }
                (BinOpKind::Eq, Expr::Const(constant)) => {
                    Condition::Equal(self.expression(&binary.left)?, constant.value.clone())
                }
                (BinOpKind::Ne, Expr::Const(constant)) => Condition::Not(Box::new(Condition::Equal(
                    self.expression(&binary.left)?,
                    constant.value.clone(),
                ))),
                _ => return None,
            },
            Expr::Test(test) if test.name == "defined" && test.args.is_empty() => {
                Condition::Defined(self.expression(&test.expr)?)
            }
            other => Condition::True(self.expression(other)?),
        })
    }
}

struct Loop {
    item: Value,
    index: usize,
    length: usize,
}

struct Run<'r, 'e, 's> {
    text: &'r str,
    scope: &'r Value,
    sink: &'s mut Sink,
    environment: &'e Environment<'e>,
    /// Made when a filter first needs it.
    state: Option<State<'e, 'e>>,
    loops: Vec<Loop>,
    fuel: u64,
    limits: ValueLimits,
}

impl Run<'_, '_, '_> {
    fn steps(&mut self, steps: &[Step]) -> Option<()> {
        self.fuel = self.fuel.checked_sub(steps.len() as u64)?;
        for step in steps {
            match step {
                Step::Literal { start, end } => {
                    let bytes = &self.text.as_bytes()[*start..*end];
                    self.sink.literal(0, *start as u32, bytes).ok()?;
                }
                Step::Emit { mark, value } => {
                    let value = self.value(value)?;
                    self.sink.begin_value(0, *mark);
                    self.print(&value)?;
                }
                Step::If { condition, then, otherwise } => {
                    let branch = if self.holds(condition)? { then } else { otherwise };
                    self.steps(branch)?;
                }
                Step::For { items, body, otherwise } => {
                    let items = self.value(items)?;
                    let length = match items.kind() {
                        ValueKind::Undefined => 0,
                        ValueKind::Seq => items.len()?,
                        _ => return None,
                    };
                    if length == 0 {
                        self.steps(otherwise)?;
                        continue;
                    }
                    for (index, item) in items.try_iter().ok()?.enumerate() {
                        self.loops.push(Loop { item, index, length });
                        let done = self.steps(body);
                        self.loops.pop();
                        // An empty body costs a step as well.
                        self.fuel = self.fuel.checked_sub(1)?;
                        done?;
                    }
                }
            }
        }
        Some(())
    }

    fn value(&mut self, expression: &Expression) -> Option<Value> {
        let mut value = match &expression.start {
            // What is missing may still be known to the engine; only what is there is certain.
            Start::Scope(name) => self.scope.get_attr(name).ok()?,
            Start::Item(depth) => self.loops.get(*depth)?.item.clone(),
            Start::Counter(counter) => {
                let current = self.loops.last()?;
                match counter {
                    Counter::Index => Value::from(current.index + 1),
                    Counter::Index0 => Value::from(current.index),
                    Counter::First => Value::from(current.index == 0),
                    Counter::Last => Value::from(current.index + 1 == current.length),
                    Counter::Length => Value::from(current.length),
                }
            }
        };
        for key in &expression.keys {
            value = match key {
                Key::Attribute(name) => value.get_attr(name).ok()?,
                Key::Item(key) => value.get_item(key).ok()?,
            };
        }
        if value.kind() == ValueKind::Invalid {
            return None;
        }
        for (name, arguments) in &expression.filters {
            let state = self.state.get_or_insert_with(|| self.environment.empty_state());
            value = if arguments.is_empty() {
                state.apply_filter(name, &[value]).ok()?
            } else {
                let mut all = Vec::with_capacity(arguments.len() + 1);
                all.push(value);
                all.extend(arguments.iter().cloned());
                state.apply_filter(name, &all).ok()?
            };
        }
        Some(value)
    }

    fn holds(&mut self, condition: &Condition) -> Option<bool> {
        Some(match condition {
            Condition::True(expression) => self.value(expression)?.is_true(),
            Condition::Defined(expression) => !self.value(expression)?.is_undefined(),
            Condition::Equal(expression, constant) => self.value(expression)? == *constant,
            Condition::Not(inner) => !self.holds(inner)?,
            Condition::And(left, right) => self.holds(left)? && self.holds(right)?,
            Condition::Or(left, right) => self.holds(left)? || self.holds(right)?,
        })
    }

    fn print(&mut self, value: &Value) -> Option<()> {
        match value.kind() {
            ValueKind::Undefined => Some(()),
            ValueKind::String => self.sink.value(value.as_str()?.as_bytes()).ok(),
            _ => self.sink.value(to_str(value, self.limits).ok()?.as_bytes()).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use minijinja::value::Serde;
    use proptest::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::source::Source;
    use crate::template::jinja::{Loader, Settings, Template};

    struct Nothing;

    impl Loader for Nothing {
        fn load(&self, _name: &str, _parent: &str) -> crate::Result<Option<Arc<Source>>> {
            Ok(None)
        }
    }

    fn compile(template: &str) -> Template {
        Template::compile(Source::new("t", template), Arc::new(Nothing), &Settings::default()).unwrap()
    }

    /// Renders both ways. `None` if the short way ended; else the texts and pieces of both.
    fn both(template: &str, scope: &Json) -> Option<()> {
        let program = compile(template).program();
        assert!(program.plain.is_some(), "not plain: {template}");
        let scope = Value::from(Serde(scope));
        let mut short = Sink::new(10_000, 0, 0);
        program.run_plain(&scope, &mut short)?;
        let mut engine = Sink::new(10_000, 0, 0);
        program
            .run(scope, &mut engine)
            .unwrap_or_else(|error| panic!("{template}: only the engine fails: {error}"));
        assert_eq!(short.finish(), engine.finish(), "{template}");
        Some(())
    }

    #[test]
    fn what_is_more_than_plain_is_left_to_the_engine() {
        for template in [
            "{% set x = 1 %}",
            "{% macro m() %}{% endmacro %}",
            "{{ a ~ b }}",
            "{{ f(x) }}",
            "{{ x.upper() }}",
            "{% for a, b in xs %}{% endfor %}",
            "{% for x in xs if x %}{% endfor %}",
            "{% for x in xs recursive %}{% endfor %}",
            "{% for x in xs %}{{ loop.previtem }}{% endfor %}",
            "{{ range }}",
            "{{ self }}",
            "{{ x|join(d=',') }}",
            "{{ x[y] }}",
            "{% block b %}{% endblock %}",
        ] {
            assert!(compile(template).program().plain.is_none(), "{template}");
        }
    }

    const TEMPLATES: &[&str] = &[
        "{{ a }}",
        "x {{ a.b }} y {{ a.b.c }}",
        "{{ a['b'] }}{{ a[0] }}{{ a[-1] }}",
        "{% if a %}yes{% elif b %}b{% else %}no{% endif %}",
        "{% if not a and b or a %}1{% endif %}",
        "{% if a is defined %}1{% endif %}{% if b == 'x' %}2{% endif %}{% if b != 1 %}3{% endif %}",
        "{% for i in a %}{{ loop.index }}/{{ loop.length }} {{ i }}{{ loop.first }}{{ loop.last }};{% else %}none{% endfor %}",
        "{% for i in a %}{% for j in i %}{{ i }}{{ j }}{{ loop.index0 }}{% endfor %}{{ loop.index }}{% endfor %}",
        "{{ a|upper }}{{ b|default('d') }}{{ a|join(', ') }}{{ b|length }}",
        "  {{- a -}}  {%- if b %} x {%- endif %}",
        "{% for a in a %}{{ a }}{% endfor %}{{ a }}",
    ];

    fn any_value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            (-1e6..1e6f64).prop_map(Json::from),
            Just(json!(1e300)),
            "[a-zX<{}%\\n]{0,6}".prop_map(Json::from),
            Just(json!("x")),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                proptest::collection::vec(("[abc]", inner), 0..3)
                    .prop_map(|entries| Json::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_short_way_gives_what_the_engine_gives_or_ends(
            template in proptest::sample::select(TEMPLATES),
            scope in proptest::collection::vec(("[ab]", any_value()), 0..3),
        ) {
            let scope = Json::Object(scope.into_iter().collect());
            both(template, &scope);
        }
    }

    #[test]
    fn ordinary_values_go_the_short_way_to_its_end() {
        let scope = json!({"a": {"b": {"c": "deep"}}, "b": "x"});
        for template in [TEMPLATES[1], TEMPLATES[3], TEMPLATES[4], TEMPLATES[5]] {
            assert!(both(template, &scope).is_some(), "{template}");
        }
        let scope = json!({"a": ["one", 2, null, 1.5, [1]], "b": true});
        for template in [TEMPLATES[0], TEMPLATES[2], TEMPLATES[6], TEMPLATES[9], TEMPLATES[10]] {
            assert!(both(template, &scope).is_some(), "{template}");
        }
    }

    #[test]
    fn a_loop_without_end_is_left_to_the_engine_which_says_so() {
        let many: Vec<Json> = (0..3_000).map(Json::from).collect();
        let nested = "{% for i in a %}{% for j in a %}{% endfor %}{% endfor %}";
        assert!(both(nested, &json!({"a": many})).is_none());
    }
}
