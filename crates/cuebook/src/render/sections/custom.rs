//! Section types of programs: a body that code computes.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::error::Result;
use crate::source::Source;
use crate::template::engine::{Compiled, Engine, Job, Outline, Output};
use crate::template::page::{Page, StandaloneOutline};
use crate::variables::Scope;

/// A section type: it computes the body of a section. Heading, summary, visibility, tools and children are those of every section.
///
/// A program registers it by a name, with [`Book::with_section_type`](crate::Book::with_section_type) for files (`type: NAME`) and
/// with [`TreeBuilder::section_type`](super::TreeBuilder::section_type) for trees in code. What it returns is a value: it cannot begin a message or a section.
///
/// ```
/// use cuebook::sections::{Section, SectionType, Setting, Tree};
/// use serde_json::{Map, Value};
///
/// #[derive(Debug)]
/// struct Shout;
///
/// impl SectionType for Shout {
///     fn render_body(&self, text: &str, _values: &Map<String, Value>) -> cuebook::Result<String> {
///         Ok(text.to_uppercase())
///     }
/// }
///
/// let section = Section::new("rule", "Rule", "be brief").engine("shout");
/// let tree = Tree::builder("demo", "rules").section_type("shout", Shout).section(section).build()?;
/// assert_eq!(tree.render(&Setting::new(&[]))?.text(), "# Rule\n\nBE BRIEF");
/// let book = cuebook::Book::open(".").with_section_type("shout", Shout);
/// # Ok::<(), cuebook::Error>(())
/// ```
pub trait SectionType: fmt::Debug + Send + Sync {
    /// The body, from the section's own text and the values that the section is filled with.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being made. The error is reported with the path of the section.
    fn render_body(&self, text: &str, values: &Map<String, Json>) -> Result<String>;
}

/// A section type as the engine of its sections' bodies.
#[derive(Debug)]
pub(crate) struct Custom(pub(crate) Arc<dyn SectionType>);

impl Engine for Custom {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        Ok(Box::new(CustomBody { kind: self.0.clone(), source: job.source }))
    }

    fn writes_summaries(&self) -> bool {
        false
    }
}

/// The body of one section.
struct CustomBody {
    kind: Arc<dyn SectionType>,
    source: Arc<Source>,
}

impl Compiled for CustomBody {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        let given = scope.given();
        let values: Map<String, Json> =
            given.names().filter_map(|name| Some((name.to_owned(), given.get(name)?))).collect();
        let names: Vec<&str> = values.keys().map(String::as_str).collect();
        let body = self.kind.render_body(self.source.text(), &values)?;
        let mut page = Page::new(&self.source, limit);
        page.value(0..self.source.text().len(), &names, &body)?;
        Ok(page.finish())
    }

    fn outline(&self) -> Arc<dyn Outline> {
        Arc::new(StandaloneOutline::new(&self.source, []))
    }
}
