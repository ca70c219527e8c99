//! Units: the texts that a render writes from, with what is known of them beforehand.

use std::ops::Range;
use std::sync::Arc;

use crate::source::{OffsetMap, Place, Source};

/// One template of a render: the prompt's own, a parent, or an included one.
#[derive(Debug)]
pub struct Unit {
    source: Arc<Source>,
    /// From the text that the engine runs to the source.
    map: OffsetMap,
    /// The marks of the emissions in the text that the engine runs, ascending.
    marks: Vec<u32>,
    emissions: Vec<Emission>,
}

/// A place in a template that writes a value.
#[derive(Debug, Clone)]
pub struct Emission {
    /// The tag in the source.
    pub range: Range<usize>,
    /// The paths of the variables that can show there.
    pub paths: Vec<String>,
    /// The name that the tag begins with if it does nothing but look something up, as `user` in `{{ user.name }}`; `None` if
    /// it computes anything. Inside a loop it is the loop's own name.
    pub accessor: Option<String>,
}

impl Emission {
    /// Whether a variable can show there. The path `.` is the whole scope.
    pub fn can_show(&self, variable: &str) -> bool {
        self.paths.iter().any(|path| path == "." || path.split(['.', '[']).next() == Some(variable))
    }
}

impl Unit {
    /// A unit whose engine runs a derived text; `marks` and `emissions` go in pairs.
    pub fn new(source: Arc<Source>, map: OffsetMap, marks: Vec<u32>, emissions: Vec<Emission>) -> Unit {
        Unit { source, map, marks, emissions }
    }

    /// The author's text.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// All places that emit values.
    pub fn emissions(&self) -> &[Emission] {
        &self.emissions
    }

    /// The range in the source of bytes in the text that the engine runs.
    pub fn source_range(&self, range: Range<usize>) -> Range<usize> {
        self.map.range(range)
    }

    /// The emission with this mark.
    pub fn emission(&self, mark: u32) -> Option<&Emission> {
        self.emissions.get(self.marks.binary_search(&mark).ok()?)
    }

    /// A place in the source, from a range in the text that the engine runs.
    pub fn place(&self, range: Range<usize>) -> Place {
        self.source.place(self.source_range(range))
    }
}
