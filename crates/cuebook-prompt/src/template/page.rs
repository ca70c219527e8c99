//! What a host needs to write an engine of its own: a page to write attributed text on, and an outline of a template.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::engine::{Outline, Output};
use super::jinja::names::{Names, Read};
use super::sink::{Full, Sink};
use super::unit::{Emission, Frame, MESSAGES, Unit, Units};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::{OffsetMap, Source};

/// A page: text in the making, of which every byte is an author's or a value's.
///
/// ```
/// use cuebook::source::Source;
/// use cuebook::template::page::Page;
///
/// let source = Source::new("greeting", "Hello NAME!");
/// let mut page = Page::new(&source, 1_000);
/// page.literal(0..6)?;
/// page.value(6..10, &["name"], "Ada")?;
/// page.literal(10..11)?;
/// assert_eq!(page.finish().text, "Hello Ada!");
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug)]
pub struct Page {
    source: Arc<Source>,
    sink: Sink,
    limit: usize,
    emissions: BTreeMap<u32, Emission>,
}

impl Page {
    /// An empty page for what a template writes, at most `limit` characters.
    pub fn new(source: &Arc<Source>, limit: usize) -> Page {
        Page { source: source.clone(), sink: Sink::new(limit, 0, 0), limit, emissions: BTreeMap::new() }
    }

    /// Writes a part of the author's text as it stands there.
    pub fn literal(&mut self, range: Range<usize>) -> Result<()> {
        let source = self.source.clone();
        let Some(text) = source.text().get(range.clone()) else {
            let message =
                format!("internal error: an engine copied bytes {range:?}, but the template is shorter");
            let diagnostic = Diagnostic::new(Code::RenderFailed, message).file(source.name());
            return Err(Error::new(ErrorKind::PromptRender, diagnostic));
        };
        let written = self.sink.literal(0, range.start as u32, text.as_bytes());
        written.map_err(|full| self.full(full))
    }

    /// Writes a value: the tag that shows it, and the variables that can show in it.
    pub fn value(&mut self, tag: Range<usize>, variables: &[&str], text: &str) -> Result<()> {
        let mark = tag.start as u32;
        let emission = self.emissions.entry(mark).or_insert_with(|| Emission {
            range: tag,
            paths: Vec::new(),
            accessor: match variables {
                [one] => Some((*one).to_owned()),
                _ => None,
            },
            ..Emission::default()
        });
        for variable in variables {
            if !emission.paths.iter().any(|known| known == variable) {
                emission.paths.push((*variable).to_owned());
            }
        }
        self.sink.begin_value(0, mark);
        let written = self.sink.value(text.as_bytes());
        written.map_err(|full| self.full(full))
    }

    /// Begins a message of a role: `system`, `developer`, `user`, `assistant` or `tool`. The text shows `mark` there, and no message
    /// does. Only a prompt whose format has the parser `cuebook::render::MARKS` has such messages.
    pub fn message(&mut self, role: &str, mark: &str) -> Result<()> {
        let found = MESSAGES.iter().position(|(_, known)| *known == role).filter(|_| !mark.is_empty());
        let Some(frame) = found else {
            let message =
                format!("internal error: a dialect began a message of the role {role:?} with {mark:?}");
            let diagnostic = Diagnostic::new(Code::RenderFailed, message).file(self.source.name());
            return Err(Error::new(ErrorKind::PromptRender, diagnostic));
        };
        let written = self.sink.frame(frame as u32, mark.as_bytes());
        written.map_err(|full| self.full(full))
    }

    fn full(&self, full: Full) -> Error {
        let message = format!("{full} ({} characters)", self.limit);
        let diagnostic = Diagnostic::new(Code::OutputTooLarge, message).file(self.source.name());
        Error::new(
            ErrorKind::Limit,
            diagnostic.hint("shorten the text, or raise `max_output_size` under \"limits\" in defaults.json"),
        )
    }

    /// What was written.
    pub fn finish(self) -> Output {
        let (text, pieces) = self.sink.finish();
        let (marks, emissions) = self.emissions.into_iter().unzip();
        let unit = Unit::new(self.source, OffsetMap::default(), marks, emissions);
        let frames = MESSAGES.map(|(name, _)| Frame { name, section: None });
        let units = Units::new(Arc::new(vec![unit]), Vec::new(), Arc::new(frames));
        Output { text, pieces, units }
    }
}

/// The outline of a template that stands alone.
pub struct StandaloneOutline {
    units: [Unit; 1],
    names: [Names; 1],
}

impl StandaloneOutline {
    /// A template that reads these variables, each at a place in its text.
    pub fn new(
        source: &Arc<Source>,
        reads: impl IntoIterator<Item = (String, Range<usize>)>,
    ) -> StandaloneOutline {
        let reads = reads
            .into_iter()
            .map(|(root, range)| Read { path: root.clone(), root, range, maybe_local: false })
            .collect();
        let mut names = Names::default();
        names.reads = reads;
        StandaloneOutline {
            units: [Unit::new(source.clone(), OffsetMap::default(), Vec::new(), Vec::new())],
            names: [names],
        }
    }
}

impl Outline for StandaloneOutline {
    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn names(&self) -> &[Names] {
        &self.names
    }
}
