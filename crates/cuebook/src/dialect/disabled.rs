//! A program without the feature of a dialect finds its files, reads none of them, and says so.

use super::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading};
use crate::error::{Error, ErrorKind, Result};
use crate::prompt::{DIRECTIVE, DOTPROMPT, Metadata, SKILL, Traits};

/// A dialect that this program does not have.
#[derive(Debug)]
pub(super) struct Disabled {
    traits: &'static Traits,
    /// What it would read.
    files: &'static str,
    feature: &'static str,
}

pub(super) const DIRECTIVES: Disabled =
    Disabled { traits: &DIRECTIVE, files: "directives", feature: "items" };
pub(super) const DOTPROMPTS: Disabled =
    Disabled { traits: &DOTPROMPT, files: "`.prompt` files", feature: "dotprompt" };
pub(super) const SKILLS: Disabled = Disabled { traits: &SKILL, files: "skills", feature: "skills" };

impl Disabled {
    fn refuse(&self, offer: &Offer<'_>) -> Error {
        let error =
            Error::missing_feature(ErrorKind::PromptRead, &format!("read {}", self.files), self.feature);
        error.map(|finding| finding.file(offer.file()))
    }
}

impl Dialect for Disabled {
    fn traits(&self) -> &'static Traits {
        self.traits
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        Err(self.refuse(offer))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        Err(self.refuse(reading.offer()))
    }

    fn compile(&self, _: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
        let id = &compiling.prompt().id;
        let error =
            Error::missing_feature(ErrorKind::PromptRead, &format!("read {}", self.files), self.feature);
        Err(error.with("prompt_id", id.as_str()))
    }
}
