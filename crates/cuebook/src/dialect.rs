//! Read: from a prompt's files to a [`Prompt`], and from that to a [`Body`] that writes its text. One folder per dialect.
//!
//! A dialect is an implementation of [`Dialect`]. A book knows those that are registered here ([`Dialects::default`]), and those
//! of a program ([`Book::with_dialect`](crate::Book::with_dialect)); all of them go the same way.
//!
//! Reading executes nothing. What a file computes instead of writing out is an error with its place.

mod body;
pub mod directive;
#[cfg(not(all(feature = "dotprompt", feature = "items", feature = "skills")))]
mod disabled;
#[cfg(feature = "dotprompt")]
pub mod dotprompt;
pub mod prompty;
mod reading;
pub mod sections;
#[cfg(feature = "skills")]
pub mod skill;
pub mod template;

pub use crate::notation::{knowledge, python, tool};
pub(crate) use body::Texts;
pub use body::{Body, Rendering, Writing};
pub use reading::{Compiling, Offer, Parsed, Read, Reading};

use std::fmt;
use std::sync::Arc;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::library::{Candidate, Claims, Defaults, Library, LibraryLoader, VersionOf};
use crate::prompt::{Metadata, Traits};

/// A notation that prompts are written in.
///
/// A dialect whose files shout what they say, and put a value in place of `<<name>>`:
///
/// ```
/// use std::ops::Range;
/// use std::sync::Arc;
///
/// use cuebook::dialect::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading, Writing};
/// use cuebook::prompt::{Claim, Metadata, Traits};
/// use cuebook::source::Source;
/// use cuebook::template::engine::{Outline, Output};
/// use cuebook::template::page::{StandaloneOutline, Page};
/// use cuebook::{Book, Context, Result, Variables};
///
/// static SHOUT: Traits = Traits { name: "shout", claim: Claim::End(".shout"), ..Traits::PLAIN };
///
/// #[derive(Debug)]
/// struct Shout;
///
/// impl Dialect for Shout {
///     fn traits(&self) -> &'static Traits {
///         &SHOUT
///     }
///
///     fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
///         Ok(offer.metadata(None, None, &Default::default()))
///     }
///
///     fn read(&self, reading: &Reading<'_>) -> Result<Read> {
///         Ok(Read::new(reading.prompt(self.summary(reading.offer())?, reading.text()?)))
///     }
///
///     fn compile(&self, _: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
///         let source = compiling.prompt().template.clone();
///         Ok(Box::new(Shouted { names: names(&source), source }))
///     }
/// }
///
/// struct Shouted {
///     source: Arc<Source>,
///     names: Vec<(String, Range<usize>)>,
/// }
///
/// /// Every `<<name>>`, and where it stands.
/// fn names(source: &Source) -> Vec<(String, Range<usize>)> {
///     let text = source.text();
///     let tags = text.match_indices("<<").filter_map(|(start, _)| {
///         let end = start + text[start..].find(">>")? + 2;
///         Some((text[start + 2..end - 2].to_owned(), start..end))
///     });
///     tags.collect()
/// }
///
/// impl Body for Shouted {
///     fn outline(&self) -> Arc<dyn Outline> {
///         Arc::new(StandaloneOutline::new(&self.source, self.names.iter().cloned()))
///     }
///
///     fn write(&self, writing: &Writing<'_>) -> Result<Output> {
///         let mut page = Page::new(&self.source, writing.limit());
///         let mut end = 0;
///         for (name, tag) in &self.names {
///             page.literal(end..tag.start)?;
///             page.value(tag.clone(), &[name], &writing.value(name).unwrap_or_default().to_uppercase())?;
///             end = tag.end;
///         }
///         page.literal(end..self.source.text().len())?;
///         Ok(page.finish())
///     }
/// }
///
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::create_dir(folder.path().join("prompts")).unwrap();
/// # std::fs::write(folder.path().join("prompts/alarm.shout"), "Beware of the <<animal>>!").unwrap();
/// // prompts/alarm.shout: Beware of the <<animal>>!
/// let book = Book::open(folder.path()).with_dialect(Shout);
/// let rendered = book.render("alarm", &Variables::new().set("animal", "dog"), &Context::default())?;
/// assert_eq!(rendered.text(), "Beware of the DOG!");
/// # Ok::<(), cuebook::Error>(())
/// ```
pub trait Dialect: fmt::Debug + Send + Sync {
    /// What is known of all its prompts: which files they are, and how the other stages treat them.
    fn traits(&self) -> &'static Traits;

    /// What a file says of itself, for lists. Reads as little as it can.
    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata>;

    /// Reads a file. Runs nothing.
    fn read(&self, reading: &Reading<'_>) -> Result<Read>;

    /// Compiles what was read. The prompt has its inherited variables by now. Syntax errors are found here at the latest.
    fn compile(&self, parsed: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>>;

    /// The same for one section of it, which another prompt includes; `None` if it has no such section.
    fn compile_section(
        &self,
        parsed: Parsed,
        section: &str,
        compiling: &Compiling<'_>,
    ) -> Result<Option<Box<dyn Body>>> {
        let _ = (parsed, section, compiling);
        Ok(None)
    }

    /// The sections that other prompts can include, with dots between their keys; empty if it has none.
    fn sections(&self, parsed: &Parsed) -> Vec<String> {
        let _ = parsed;
        Vec::new()
    }
}

/// The dialects of a book.
#[derive(Debug, Clone)]
pub struct Dialects(Vec<Arc<dyn Dialect>>);

impl Default for Dialects {
    fn default() -> Dialects {
        Dialects(vec![
            Arc::new(template::Template),
            Arc::new(prompty::Prompty),
            Arc::new(sections::Sections),
            #[cfg(feature = "items")]
            Arc::new(directive::Directives),
            #[cfg(not(feature = "items"))]
            Arc::new(disabled::DIRECTIVES),
            #[cfg(feature = "dotprompt")]
            Arc::new(dotprompt::Dotprompt),
            #[cfg(not(feature = "dotprompt"))]
            Arc::new(disabled::DOTPROMPTS),
            #[cfg(feature = "skills")]
            Arc::new(skill::Skills),
            #[cfg(not(feature = "skills"))]
            Arc::new(disabled::SKILLS),
        ])
    }
}

impl Dialects {
    /// The same dialects and one more. One of that name is replaced.
    pub(crate) fn with(mut self, dialect: impl Dialect + 'static) -> Dialects {
        self.0.retain(|known| known.traits() != dialect.traits());
        self.0.push(Arc::new(dialect));
        self
    }

    /// The files that they claim.
    pub(crate) fn claims(&self) -> Claims {
        self.0.iter().map(|dialect| dialect.traits()).collect()
    }

    /// What reads the versions of candidates.
    pub(crate) fn versions(self: &Arc<Self>) -> VersionOf {
        let dialects = self.clone();
        VersionOf(Arc::new(move |candidate, library| {
            Ok(dialects.summary("", candidate, library, &Defaults::default())?.version)
        }))
    }

    /// The dialect of a candidate or a prompt.
    pub(crate) fn get(&self, traits: &Traits) -> Result<&dyn Dialect> {
        let found = self.0.iter().find(|dialect| dialect.traits() == traits);
        found.map(|dialect| &**dialect).ok_or_else(|| {
            let message = format!("no dialect is registered by the name `{}`", traits.name);
            let hint = "register it: Book::with_dialect";
            Error::new(ErrorKind::Invoker, Diagnostic::new(Code::UnknownEngine, message).hint(hint))
        })
    }

    /// Reads the prompt that a candidate offers.
    pub(crate) fn read(
        &self,
        id: &str,
        candidate: &Candidate,
        loader: &LibraryLoader,
        defaults: &Defaults,
    ) -> Result<Read> {
        let offer = Offer { id, candidate, library: loader.library(), defaults };
        self.get(candidate.dialect)?.read(&Reading { offer, loader })
    }

    /// Name, type, version and tags of a candidate without its template.
    pub(crate) fn summary(
        &self,
        id: &str,
        candidate: &Candidate,
        library: &Library,
        defaults: &Defaults,
    ) -> Result<Metadata> {
        self.get(candidate.dialect)?.summary(&Offer { id, candidate, library, defaults })
    }
}

/// Where the front matter of a file stands, if it has any.
pub fn front_range(source: &Arc<crate::source::Source>) -> Option<std::ops::Range<usize>> {
    prompty::split(source).ok()?.front_matter
}
