//! The tree of a template, for programs that analyse templates. It may change with every version.
#![allow(missing_docs, reason = "the names of the grammar say what the parts are")]

mod walk;

pub use self::walk::each_child;
pub(crate) use self::walk::each_child_mut;
use crate::lexer::Range;

/// A name or another short text, which needs no memory apart from the tree.
#[cfg(feature = "compact-names")]
pub type Word = compact_str::CompactString;
/// A name, or the text of a literal.
#[cfg(not(feature = "compact-names"))]
pub type Word = String;

/// Where a name's value is: a slot in a scope, so many scopes outwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    pub up: u32,
    pub index: u32,
}

impl Slot {
    /// The same slot as seen from the next scope outwards.
    pub(crate) fn outwards(self) -> Slot {
        Slot { up: self.up.saturating_sub(1), ..self }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub range: Range,
    /// How many expressions are inside of each other here.
    pub height: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    Name(Name),
    /// A namespace's attribute as the target of `set`.
    NamespaceTarget(Box<(Name, Word)>),
    None,
    Bool(bool),
    Int(i64),
    /// An integer that 64 bits do not hold.
    Big(Box<i128>),
    Float(f64),
    /// A string; the offset of its content if that is written exactly so.
    Text(Word, Option<u32>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    /// The test, what is taken if it is true, and otherwise.
    If(Box<Expr>, Box<Expr>, Option<Box<Expr>>),
    Attribute(Box<Expr>, Word),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Box<Slice>),
    Call(Box<Expr>, Box<Arguments>),
    Filter(Option<Box<Expr>>, Box<Named>),
    Test(Box<Expr>, Box<Named>),
}

/// A name and, once the template is resolved, its slot.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    pub name: Word,
    pub slot: Slot,
    pub range: Range,
}

/// A filter or test with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    pub name: Word,
    pub range: Range,
    pub arguments: Arguments,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments {
    pub positional: Vec<Expr>,
    pub named: Vec<(Word, Expr)>,
    pub star: Option<Expr>,
    pub double_star: Option<Expr>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    pub start: Option<Expr>,
    pub stop: Option<Expr>,
    pub step: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unary {
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    pub range: Range,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    /// Text of the author, which the range covers.
    Data,
    /// `{{ … }}` or one expression of `{% print %}`.
    Emit(Expr),
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>),
    For(Box<For>),
    With(Box<With>),
    /// Statements in a scope of their own; `autoescape` if given.
    Autoescape(Box<(Expr, Body)>),
    /// The target and the value.
    Set(Box<(Expr, Expr)>),
    SetBlock(Box<SetBlock>),
    FilterBlock(Box<(Expr, Body)>),
    /// Index into the template's macros.
    Macro(u32, Name),
    /// The call, and the index of the macro that `caller` is.
    CallBlock(Box<Expr>, u32),
    /// What the model writes itself: the index of the macro with the statements.
    Generation(u32),
    /// Index into the template's blocks.
    Block(u32),
    Extends(Expr),
    Include(Box<Include>),
    Import(Box<Import>),
    Do(Expr),
    /// An expression of a tag with an error. It says what the tag uses; a template with it is never rendered.
    Broken(Expr),
    Break,
    Continue,
}

/// Statements with the scope that they run in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    pub statements: Vec<Statement>,
    pub scope: Scope,
}

/// What a scope holds, by slot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scope {
    pub slots: Vec<Held>,
}

/// A name of a scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub name: Word,
    /// What it begins with.
    pub load: Load,
    /// Whether something assigns it in this scope.
    pub stored: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// The code that opens the scope sets it.
    Parameter,
    /// The context has it.
    Resolve,
    /// The slot of an outer scope.
    Alias(Slot),
    Missing,
}

#[derive(Debug, Clone, PartialEq)]
pub struct For {
    pub target: Expr,
    pub iterable: Expr,
    /// The condition, with a scope of its own.
    pub test: Option<(Expr, Scope, Expr)>,
    pub recursive: bool,
    pub body: Body,
    /// The slot of `loop`, if the body uses it.
    pub loop_slot: Option<u32>,
    pub otherwise: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub struct With {
    pub pairs: Vec<(Expr, Expr)>,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SetBlock {
    pub target: Expr,
    pub filter: Option<Expr>,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Macro {
    pub name: Word,
    pub parameters: Vec<Name>,
    /// Defaults of the last parameters.
    pub defaults: Vec<Expr>,
    pub body: Body,
    pub caller: Option<u32>,
    pub kwargs: Option<u32>,
    pub varargs: Option<u32>,
    pub explicit_caller: bool,
    pub range: Range,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub name: Word,
    pub scoped: bool,
    pub required: bool,
    pub body: Body,
    pub self_slot: Option<u32>,
    pub super_slot: Option<u32>,
    pub range: Range,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Include {
    pub template: Expr,
    pub ignore_missing: bool,
    pub with_context: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    pub template: Expr,
    pub with_context: bool,
    pub names: Imported,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Imported {
    /// `import … as name`.
    Module(Name),
    /// `from … import name as other`.
    Names(Vec<(Word, Name)>),
}

/// A template that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    pub body: Body,
    pub self_slot: Option<u32>,
    pub macros: Vec<Macro>,
    pub blocks: Vec<Block>,
    /// Whether `extends` is among its statements.
    pub extends: bool,
}
