//! Units: the texts that a render writes from, with what is known of them beforehand.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cuebook_template::{Origin, Origins};

use crate::source::{OffsetMap, Place, Source};

/// One template of a render: the prompt's own, a parent, or an included one. Every render copies it, so it shares what it has.
#[derive(Debug, Clone)]
pub struct Unit {
    source: Arc<Source>,
    /// From the text that the engine runs to the source.
    map: Arc<OffsetMap>,
    /// The marks of the emissions in the text that the engine runs, ascending.
    marks: Arc<[u32]>,
    emissions: Arc<[Emission]>,
    /// What a render knows of its values, instead of what is known beforehand.
    late: Option<Arc<PrintedValues>>,
    /// The section that it is the text of.
    label: Option<Arc<str>>,
}

/// What the engine wrote by itself, and for which section.
#[derive(Debug, Clone)]
pub struct Frame {
    /// What it is, as in `heading`.
    pub name: &'static str,
    /// The section.
    pub section: Option<Arc<str>>,
}

/// The frames that begin messages, each with the role.
#[doc(hidden)]
pub const MESSAGES: [(&str, &str); 5] = [
    ("system message", "system"),
    ("developer message", "developer"),
    ("user message", "user"),
    ("assistant message", "assistant"),
    ("tool message", "tool"),
];

/// The frames of a text whose parser is `marks`, behind those that begin messages: an attribute of a message, a section, a picture or
/// another medium, the type of it, and the end of each mark.
pub(crate) const MARK_FRAMES: [&str; 5] = ["attribute", "section", "media", "media type", "end of a mark"];

/// The numbers of those frames.
pub(crate) const ATTRIBUTE: u32 = MESSAGES.len() as u32;
pub(crate) const SECTION: u32 = ATTRIBUTE + 1;
pub(crate) const MEDIA: u32 = ATTRIBUTE + 2;
pub(crate) const MEDIA_TYPE: u32 = ATTRIBUTE + 3;
pub(crate) const MARK_END: u32 = ATTRIBUTE + 4;

/// The number of the frame that begins a message of a role.
pub(crate) fn message_frame(role: &str) -> u32 {
    MESSAGES.iter().position(|(_, known)| *known == role).unwrap_or_default() as u32
}

/// All frames of a text whose parser is `marks`.
pub(crate) fn mark_frames() -> Arc<[Frame]> {
    let names = MESSAGES.iter().map(|(name, _)| *name).chain(MARK_FRAMES);
    names.map(|name| Frame { name, section: None }).collect()
}

/// The number of the frame of fences, in every render.
pub(crate) const FENCE: u32 = u32::MAX;

static FENCE_FRAME: Frame = Frame { name: "fence", section: None };

/// Units that a render brought: the number of the first of them, the units, and the section that all of them are texts of; `None` if
/// each says so itself.
pub(crate) type ExtraUnits = (u32, Arc<Vec<Unit>>, Option<Arc<str>>);

/// The units that the pieces of one text speak of: those that are known beforehand, and those that a render brought.
#[derive(Debug, Clone)]
pub struct Units {
    own: Arc<Vec<Unit>>,
    /// By the number of the first of them, ascending.
    more: Vec<ExtraUnits>,
    frames: Arc<[Frame]>,
}

impl From<Arc<Vec<Unit>>> for Units {
    fn from(own: Arc<Vec<Unit>>) -> Units {
        Units { own, more: Vec::new(), frames: Arc::default() }
    }
}

impl Units {
    pub(crate) fn new(own: Arc<Vec<Unit>>, more: Vec<ExtraUnits>, frames: Arc<[Frame]>) -> Units {
        Units { own, more, frames }
    }

    /// The unit of this number, and the section that it belongs to.
    pub fn get(&self, index: u32) -> (&Unit, Option<&Arc<str>>) {
        if let Some(unit) = self.own.get(index as usize) {
            return (unit, unit.label.as_ref());
        }
        let after = self.more.partition_point(|(first, ..)| *first <= index);
        let found = after.checked_sub(1).and_then(|at| {
            let (first, units, label) = &self.more[at];
            let unit = units.get((index - first) as usize)?;
            Some((unit, label.as_ref().or(unit.label.as_ref())))
        });
        // Pieces speak of units that there are; should one ever not, one without a text stands in.
        found.unwrap_or_else(|| (unknown_unit(), None))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.more.iter().fold(self.own.len(), |count, (_, units, _)| count + units.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A frame by its number.
    pub fn frame(&self, index: u32) -> Option<&Frame> {
        if index == FENCE { Some(&FENCE_FRAME) } else { self.frames.get(index as usize) }
    }

    /// Those that a render brought, by the number of the first of them.
    pub(crate) fn more(&self) -> &[ExtraUnits] {
        &self.more
    }

    /// Those that are known beforehand.
    pub(crate) fn own(&self) -> &Arc<Vec<Unit>> {
        &self.own
    }

    /// The frames.
    pub(crate) fn frames(&self) -> &Arc<[Frame]> {
        &self.frames
    }
}

impl std::ops::Index<usize> for Units {
    type Output = Unit;

    fn index(&self, index: usize) -> &Unit {
        self.get(index as u32).0
    }
}

/// A unit without a text.
fn unknown_unit() -> &'static Unit {
    static EMPTY: OnceLock<Unit> = OnceLock::new();
    EMPTY.get_or_init(|| Unit::new(Source::new("", ""), OffsetMap::default(), Vec::new(), Vec::new()))
}

/// A place in a template that writes a value.
#[derive(Debug, Clone, Default)]
pub struct Emission {
    /// The tag in the source.
    pub range: Range<usize>,
    /// The paths of the variables that can show there.
    pub paths: Vec<String>,
    /// The name that the tag begins with if it does nothing but look something up, as `user` in `{{ user.name }}`; `None` if
    /// it computes anything. Inside a loop it is the loop's own name.
    pub accessor: Option<String>,
    /// What can show there because a template has set it to something of its own, which comes from no variable.
    pub set: Vec<String>,
    /// Whether it shows a variable just as it is, or else what a template has set in its place.
    pub as_is: bool,
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
        let (map, marks, emissions) = (Arc::new(map), marks.into(), emissions.into());
        Unit { source, map, marks, emissions, late: None, label: None }
    }

    /// The same unit as the text of a section.
    pub fn labelled(mut self, section: Arc<str>) -> Unit {
        self.label = Some(section);
        self
    }

    /// The same unit, in whose emissions other paths can show.
    pub(crate) fn with_paths(mut self, wider: impl Fn(&[String]) -> Vec<String>) -> Unit {
        let wide = |known: &Emission| Emission { paths: wider(&known.paths), as_is: false, ..known.clone() };
        self.emissions = self.emissions.iter().map(wide).collect();
        self.late = self.late.map(|late| Arc::new(late.with_paths(&wider)));
        self
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

    /// The same unit with what a render knows of its values.
    pub(crate) fn with_late(mut self, late: Arc<PrintedValues>) -> Unit {
        self.late = Some(late);
        self
    }

    /// The text of the author that a filter made something else of.
    pub fn changed(&self, change: u32) -> Range<usize> {
        let known = self.late.as_ref().and_then(|late| late.changes.get(change as usize));
        known.map_or(0..0, |range| range.start as usize..range.end as usize)
    }

    /// The emission with this mark.
    pub fn emission(&self, mark: u32) -> Option<&Emission> {
        if let Some(late) = &self.late {
            return late.emissions().get(mark as usize);
        }
        self.emissions.get(self.marks.binary_search(&mark).ok()?)
    }

    /// A place in the source, from a range in the text that the engine runs.
    pub fn place(&self, range: Range<usize>) -> Place {
        self.source.place(self.source_range(range))
    }
}

/// The values that one render printed, by the numbers of their marks. What they came from is written out when it is first asked for.
#[derive(Debug)]
pub(crate) struct PrintedValues {
    /// The unit, the offset of the tag, and the origin of each.
    records: Vec<(u32, u32, Origin)>,
    /// What the author wrote where a filter made something else of it.
    changes: Vec<Range<u32>>,
    origins: Origins,
    units: Vec<Unit>,
    made: OnceLock<Vec<Emission>>,
}

impl PrintedValues {
    pub(crate) fn new(
        records: Vec<(u32, u32, Origin)>,
        changes: Vec<Range<u32>>,
        origins: Origins,
        units: Vec<Unit>,
    ) -> PrintedValues {
        PrintedValues { records, changes, origins, units, made: OnceLock::new() }
    }

    fn emissions(&self) -> &[Emission] {
        self.made.get_or_init(|| self.records.iter().map(|record| self.emission(*record)).collect())
    }

    fn emission(&self, (unit, tag, origin): (u32, u32, Origin)) -> Emission {
        let paths = self.origins.paths(origin).iter().map(ToString::to_string).collect();
        let known = self.units.get(unit as usize).and_then(|unit| {
            let after = unit.marks.partition_point(|mark| *mark <= tag);
            unit.emissions.get(after.checked_sub(1)?).filter(|known| known.range.contains(&(tag as usize)))
        });
        match known {
            Some(known) => Emission {
                range: known.range.clone(),
                paths,
                accessor: known.accessor.clone(),
                ..Emission::default()
            },
            None => Emission { range: tag as usize..tag as usize, paths, ..Emission::default() },
        }
    }

    /// The same values, in which other paths can show.
    fn with_paths(&self, wider: impl Fn(&[String]) -> Vec<String>) -> PrintedValues {
        let wide = |known: &Emission| Emission { paths: wider(&known.paths), ..known.clone() };
        let made = OnceLock::from(self.emissions().iter().map(wide).collect::<Vec<_>>());
        PrintedValues {
            records: Vec::new(),
            changes: self.changes.clone(),
            origins: Origins::default(),
            units: Vec::new(),
            made,
        }
    }
}
