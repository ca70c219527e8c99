//! Errors of templates.

use std::fmt;
use std::sync::Arc;

use crate::lexer::Range;

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template does not follow the grammar.
    Syntax,
    /// A filter, test or tag does not exist.
    Unknown,
    /// A value was used that is not defined.
    Undefined,
    /// An operation does not fit its values.
    Type,
    /// A template that another one names does not exist.
    TemplateNotFound,
    /// A limit is exceeded: work, size, depth or time.
    Limit,
    /// The template's author raised it.
    Raised,
    /// Anything else that goes wrong during a render.
    Runtime,
}

/// The limit that a render exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exceeded {
    /// The steps that it may take.
    Fuel,
    /// How deeply macros, blocks, includes and loops may nest, or the expressions of a template.
    Depth,
    /// The length of the text.
    Output,
    /// The size of a value.
    Size,
}

/// An error of the program, which ends the render. [`Error::cause`] gives it back.
#[derive(Clone)]
pub struct Cause(pub Arc<dyn std::error::Error + Send + Sync>);

impl Cause {
    /// An error that the render gives back as it is.
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Cause {
        Cause(Arc::new(error))
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Cause {
    fn eq(&self, other: &Cause) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// What only few errors have.
#[derive(Debug, Clone, PartialEq, Default)]
struct More {
    cause: Option<Cause>,
    exceeded: Option<Exceeded>,
    open: Option<Range>,
    undefined: Option<String>,
    /// The places that led to the error, the nearest first.
    callers: Vec<(String, Range)>,
}

/// The places that an error remembers on its way.
const MAX_CALLERS: usize = 16;

/// An error with the place in the template.
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<Inner>);

/// What an error holds. It is in a box, so that the way without errors moves little.
#[derive(Debug, Clone, PartialEq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
    /// The template and the range, once they are known.
    unit: Option<u32>,
    template: Option<String>,
    range: Option<Range>,
    more: Option<Box<More>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            help: None,
            unit: None,
            template: None,
            range: None,
            more: None,
        }))
    }

    /// An error for a limit that is exceeded.
    pub(crate) fn limit(exceeded: Exceeded, message: impl Into<String>) -> Error {
        let mut error = Error::new(ErrorKind::Limit, message);
        error.more().exceeded = Some(exceeded);
        error
    }

    fn more(&mut self) -> &mut More {
        self.0.more.get_or_insert_default()
    }

    /// The variable that is undefined.
    pub(crate) fn of_variable(mut self, name: &str) -> Error {
        self.more().undefined = Some(name.to_owned());
        self
    }

    /// The tag that was opened and not closed.
    pub(crate) fn opened(mut self, tag: Range) -> Error {
        self.more().open = Some(tag);
        self
    }

    /// Notes a place that led to the error, if the error itself is elsewhere.
    pub(crate) fn through(mut self, template: &str, range: Range) -> Error {
        let same = self.0.template.as_deref() == Some(template) && self.0.range == Some(range);
        if self.0.template.is_some() && !same && self.more().callers.len() < MAX_CALLERS {
            self.more().callers.push((template.to_owned(), range));
        }
        self
    }

    pub(crate) fn at(mut self, range: Range) -> Error {
        self.0.range.get_or_insert(range);
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help.get_or_insert(help.into());
        self
    }

    /// Says in which template the range is, unless that is known.
    pub(crate) fn inside(mut self, unit: u32, template: &str) -> Error {
        if self.0.unit.is_none() {
            self.0.unit = Some(unit);
            self.0.template = Some(template.to_owned());
        }
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// How to fix it, if that is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The limit that was exceeded.
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.0.more.as_ref().and_then(|more| more.exceeded)
    }

    /// The program's own error that ended the render.
    pub fn cause(&self) -> Option<&Cause> {
        self.0.more.as_ref().and_then(|more| more.cause.as_ref())
    }

    /// The tag that was opened and not closed, where that is the error.
    pub fn opening(&self) -> Option<Range> {
        self.0.more.as_ref().and_then(|more| more.open)
    }

    /// The variable that is undefined, if that is the error.
    pub fn undefined(&self) -> Option<&str> {
        self.0.more.as_ref().and_then(|more| more.undefined.as_deref())
    }

    /// The places that led to the error: the names of templates with ranges, the nearest first.
    pub fn callers(&self) -> &[(String, Range)] {
        self.0.more.as_ref().map_or(&[], |more| more.callers.as_slice())
    }

    /// The name of the template.
    pub fn template(&self) -> Option<&str> {
        self.0.template.as_deref()
    }

    /// The bytes of the template's text that the error is about.
    pub fn range(&self) -> Option<Range> {
        self.0.range
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(template) = &self.0.template {
            write!(f, " (in {template}")?;
            if let Some(range) = self.0.range {
                write!(f, ", byte {}", range.start)?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<Cause> for Error {
    fn from(cause: Cause) -> Error {
        if let Some(own) = cause.0.downcast_ref::<Error>() {
            return own.clone();
        }
        let mut error = Error::new(ErrorKind::Runtime, cause.0.to_string());
        error.more().cause = Some(cause);
        error
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The names that are most like this one, the best first; at most three.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let most = name.chars().count().div_ceil(3).max(1);
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|other| other.len().abs_diff(name.len()) <= most * 4)
        .map(|other| (distance(name, other), other))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name).take(3).collect()
}

/// How many characters must be inserted, removed, replaced or swapped.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut previous: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    let mut before = None;
    for (i, letter) in left.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in right.iter().enumerate() {
            let mut best = (row[j] + usize::from(letter != *other)).min(row[j + 1] + 1).min(next[j] + 1);
            if j > 0 && Some(*other) == before && letter == right[j - 1] {
                best = best.min(previous[j - 1] + 1);
            }
            next.push(best);
        }
        previous = std::mem::replace(&mut row, next);
        before = Some(letter);
    }
    row.last().copied().unwrap_or(0)
}

/// A question with the names that are most like this one, if any are.
pub(crate) fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let near: Vec<String> = nearest(name, known).iter().map(|near| format!("`{near}`")).collect();
    let (last, others) = near.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        _ => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

/// An error for a name that does not exist, with the nearest ones.
pub(crate) fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Error {
    let error = Error::new(ErrorKind::Unknown, format!("unknown {what} `{name}`"));
    match did_you_mean(name, known) {
        Some(help) => error.help(help),
        None => error,
    }
}
