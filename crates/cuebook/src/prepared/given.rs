//! What a caller gives a render: the circumstances, and variables, which the prompt has to know.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::{Mode, Prepared};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::library::Root;
use crate::variables::{Context, SESSION, SYSTEM, Scope, UnknownVariables, Variables};

/// The variables that a prompt has.
pub(super) struct KnownVariables {
    names: BTreeSet<String>,
    /// Whether it may read others as well.
    takes_any: bool,
}

impl Prepared {
    /// The folder of the project.
    #[doc(hidden)]
    pub fn project(&self) -> &Path {
        self.files.loader.library().root()
    }

    /// The prompts that it inherits variables from, nearest first.
    #[doc(hidden)]
    pub fn parents(&self) -> &[String] {
        &self.files.parents
    }

    /// The folders of packs, by the names that their files go by, each with the pack's id.
    #[doc(hidden)]
    pub fn packs(&self) -> Vec<(String, String)> {
        // If the places of a library cannot be listed, the search for the prompt has reported that.
        let roots = self.files.loader.library().roots().unwrap_or_default();
        let of_pack = |root: &Arc<Root>| Some((root.name.clone(), root.pack_id()?.to_owned()));
        roots.iter().filter_map(of_pack).collect()
    }

    /// The language that its texts were chosen by. A render has this language.
    pub fn language(&self) -> &str {
        self.files.loader.language()
    }

    /// Whether printing an absent variable is an error.
    pub fn is_strict(&self) -> bool {
        self.mode == Mode::Strict
    }

    /// The circumstances of a render: the language is that of its texts.
    ///
    /// # Errors
    ///
    /// `CB407` if the caller wants another language, or wants to be strict: both are chosen by [`prepare`](crate::Book::prepare).
    pub(super) fn circumstances<'c>(&self, given: &'c Arc<Context>) -> Result<Cow<'c, Arc<Context>>> {
        if given.strict && self.mode == Mode::Lenient {
            let message = format!("the prompt `{}` was not prepared to be strict", self.prompt.id);
            return Err(prepare_again(message));
        }
        let wanted = Scope::language(given);
        if wanted == self.language() {
            return Ok(Cow::Borrowed(given));
        }
        if given.language.is_some() || given.agent.language.is_some() {
            let (id, own) = (&self.prompt.id, self.language());
            let message =
                format!("the prompt `{id}` was prepared in the language `{own}`, not in `{wanted}`");
            return Err(prepare_again(message));
        }
        let own = Context { language: Some(self.language().to_owned()), ..(**given).clone() };
        Ok(Cow::Owned(Arc::new(own)))
    }

    fn known(&self) -> &KnownVariables {
        self.names
            .known
            .get_or_init(|| KnownVariables { names: self.find_names(), takes_any: self.finds_any_name() })
    }

    fn find_names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.reads().into_iter().map(|(read, _)| read.root).collect();
        names.extend(self.prompt.variables.iter().map(|variable| variable.name.clone()));
        names.insert(SYSTEM.into());
        if self.prompt.dialect.is_tree {
            names.insert(SESSION.into());
        }
        names
    }

    fn finds_any_name(&self) -> bool {
        // A directive that declares nothing takes what it is given.
        let takes_all = self.prompt.dialect.is_item && self.prompt.variables.is_empty();
        let has_host_engine = match self.body.sections() {
            Some(sections) => sections.has_host_types,
            None => self.book.engines.is_of_host(&self.prompt.format.engine),
        };
        let id = self.prompt.id.as_str();
        let has_hooks =
            !self.prompt.hooks.is_empty() || self.book.hooks.of_prompts().any(|(_, prompt)| prompt == id);
        // A template that shows all values at once can show any.
        let shows_all = self.reads().iter().any(|(read, _)| read.root == ".");
        takes_all || has_host_engine || has_hooks || shows_all || self.has_computed_references()
    }

    /// Whether the prompt has a variable of this name: declared, read by a template, or supplied by the system.
    #[doc(hidden)]
    pub fn knows(&self, name: &str) -> bool {
        let known = self.known();
        known.takes_any || known.names.contains(name)
    }

    /// Whether it may have a variable of any name, beside those that are known.
    #[doc(hidden)]
    pub fn takes_any_name(&self) -> bool {
        self.known().takes_any
    }

    /// The names of all its variables.
    #[doc(hidden)]
    pub fn known_names(&self) -> &BTreeSet<String> {
        &self.known().names
    }

    /// Refuses variables that the prompt does not have, and names the nearest that it has.
    ///
    /// # Errors
    ///
    /// `CB404` for the first such variable.
    #[doc(hidden)]
    pub fn refuse_unknown(&self, variables: &Variables) -> Result<()> {
        match variables.names().find(|name| !self.knows(name)) {
            None => Ok(()),
            Some(name) => {
                let near = self.near(name);
                let error = Error::new(ErrorKind::PromptValidation, self.unknown(name, &near));
                Err(error.with("variable", name).with("nearest", near))
            }
        }
    }

    /// What is reported of variables that the prompt does not have, unless they are refused.
    pub(super) fn unknown_in(
        &self,
        variables: &Variables,
        policy: UnknownVariables,
    ) -> Result<Vec<Diagnostic>> {
        match policy {
            // A directive checks its inputs in the order of its seed.
            _ if self.prompt.dialect.is_item => Ok(Vec::new()),
            UnknownVariables::Ignore => Ok(Vec::new()),
            UnknownVariables::Note => {
                let unknown = variables.names().filter(|name| !self.knows(name));
                let note = |name| self.unknown(name, &self.near(name)).severity(Severity::Note);
                Ok(unknown.map(note).collect())
            }
            // `Refuse`: the enum is open to other crates, and the strict answer is the safe one.
            _ => self.refuse_unknown(variables).map(|()| Vec::new()),
        }
    }

    fn near(&self, name: &str) -> Vec<String> {
        nearest(name, self.known_names().iter().map(String::as_str))
    }

    fn unknown(&self, name: &str, near: &[String]) -> Diagnostic {
        let hint = did_you_mean(near).unwrap_or_else(|| {
            let known: Vec<&str> =
                self.known_names().iter().map(String::as_str).filter(|name| *name != SYSTEM).collect();
            match known.is_empty() {
                true => "this prompt has no variables".to_owned(),
                false => format!("its variables are {}", known.join(", ")),
            }
        });
        let message = format!("the prompt `{}` has no variable `{name}`", self.prompt.id);
        Diagnostic::new(Code::UnknownVariable, message).hint(hint)
    }
}

fn prepare_again(message: String) -> Error {
    let diagnostic = Diagnostic::new(Code::BadInput, message).hint("prepare it again with this context");
    Error::new(ErrorKind::Usage, diagnostic)
}
