//! What only directives have.

use super::Prepared;
use crate::dialect::directive::{Composed, Directive, Wording, Written, wording};
use crate::error::{Code, Diagnostic, Error, Result, Severity};
use crate::items::{Item, ItemId};
use crate::variables::Context;

impl Prepared {
    /// The directive, if it is one.
    pub fn directive(&self) -> Option<&Directive> {
        self.body.directive().map(|body| body.directive())
    }

    /// What it is together with those that it extends, if it is a directive that lies in a space.
    #[doc(hidden)]
    pub fn compose(&self) -> Option<Result<Composed>> {
        let body = self.body.directive()?;
        Some(body.compose(&body.item()?.located.id, &self.files.loader))
    }

    /// Checks the signatures of a directive and of what it includes, and that of a skill that has one. Another prompt that is no
    /// directive of a space needs none.
    ///
    /// # Errors
    ///
    /// `CB220` to `CB226` for a directive that is unsigned, was changed, or whose signer is not trusted; `CB221` for a skill that
    /// was changed after it was signed.
    #[doc(hidden)]
    pub fn verify_signature(&self) -> Result<()> {
        match self.body.directive() {
            Some(body) if body.item().is_none() => Ok(()),
            _ => self.body.verify(self.files.loader.library().trust()),
        }
    }

    /// Whether a directive has a trusted signature. `Ok` with a finding if that cannot be said and need not be: one
    /// of the project without a signature is being written, and can be looked at; it cannot be executed.
    pub fn verify(&self) -> Result<Option<Diagnostic>> {
        match self.body.directive() {
            Some(body) => body.verify_to_show(self.files.loader.library().trust()),
            None => self.body.verify(self.files.loader.library().trust()).map(|()| None),
        }
    }

    /// What is known of the signature on a directive's file, in a few words; `None` for what is no directive of a space.
    pub fn signature(&self) -> Option<String> {
        self.body.directive()?.item().map(|item| self.signed(item))
    }

    /// The same of any file that its text is made from: its own, or what it includes.
    #[doc(hidden)]
    pub fn signature_of(&self, file: &str) -> Option<String> {
        let included_prompts = self.includes.prompts.iter().flat_map(|included| included.items());
        let mut items = self.body.items().into_iter().chain(included_prompts);
        items.find(|item| item.located.name == file).map(|item| self.signed(item))
    }

    fn signed(&self, item: &Item) -> String {
        match self.files.loader.library().trust().verify(item) {
            Ok(verified) if verified.fingerprint.is_empty() => "part of the program".to_owned(),
            Ok(verified) => match verified.owner {
                Some(owner) => format!("signed by {owner} ({})", verified.fingerprint),
                None => format!("signed by {}", verified.fingerprint),
            },
            Err(error) if error.code() == Code::Unsigned => "not signed".to_owned(),
            Err(error) => error.diagnostic().message.clone(),
        }
    }

    /// The words of the engine: the project's, unless the caller says otherwise.
    #[doc(hidden)]
    pub fn wording(&self, context: &Context) -> Wording {
        wording(&self.files.config, context)
    }
}

/// Everything that keeps a directive from being executed, for `check`.
pub fn findings(prepared: &Prepared) -> Vec<Diagnostic> {
    let mut findings = match prepared.verify() {
        Ok(finding) => Vec::from_iter(finding),
        Err(error) => error.into_diagnostics(),
    };
    match prepared.compose() {
        Some(Ok(composed)) => findings.extend(composed.missing),
        Some(Err(error)) => findings.extend(Error::into_diagnostics(error)),
        None => {}
    }
    findings.extend(prepared.directive().and_then(|directive| misplaced(prepared, directive)));
    findings
}

/// A directive whose name or category is not that of its place cannot be signed, and would not be believed.
fn misplaced(prepared: &Prepared, directive: &Directive) -> Option<Diagnostic> {
    let id: &ItemId = &prepared.body.directive()?.item()?.located.id;
    let wrong = |what: &str, said: Option<&Written>, is: &str| {
        let message = format!("the {what} is {:?}, but its path says {is:?}", said.map_or("", |said| said));
        let diagnostic = Diagnostic::new(Code::ItemMoved, message).severity(Severity::Warning);
        let diagnostic = match said {
            Some(said) => diagnostic.at(said.place()),
            None => diagnostic.file(directive.source.name()),
        };
        diagnostic.hint(format!("write {is:?}, or move the file; otherwise it cannot be signed"))
    };
    let name = directive.name.as_ref();
    if name.map(|name| name.as_str()) != Some(id.name()) {
        return Some(wrong("name", name, id.name()));
    }
    let category = directive.category.as_ref();
    (category.map_or("", |category| category.as_str()) != id.category())
        .then(|| wrong("category", category, id.category()))
}
