//! A survey: everything that the library's places offer, looked at once.
//!
//! Finding one prompt asks every place for one name. Work that looks at all prompts would ask every place for every name;
//! it takes a survey instead, and what it finds is true of the moment at which the survey was taken.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::manifest::VariableProvider;
use super::{Candidate, Defaults, Found, Library, Reason, Root};
use crate::error::Result;

/// What the places of a library offered at one moment.
#[derive(Debug)]
pub struct Survey {
    roots: Vec<Arc<Root>>,
    /// The candidates of every id, in the order of the places.
    candidates: BTreeMap<String, Vec<Candidate>>,
    providers: OnceLock<Vec<(String, VariableProvider)>>,
    defaults: OnceLock<Arc<Defaults>>,
}

impl Library {
    /// Looks at all places. Reads no file.
    #[doc(hidden)]
    pub fn survey(&self) -> Result<Survey> {
        let roots = self.roots()?;
        let mut candidates: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
        for root in &roots {
            for (id, offered) in self.all_below(root)?.into_iter().filter(|(_, offered)| !offered.is_empty())
            {
                let known = candidates.entry(id).or_default();
                for candidate in offered {
                    // What lies on disk under ecosystem/default stands before the built-in prompt of the same source.
                    if known.iter().all(|known| known.source != candidate.source) {
                        known.push(candidate);
                    }
                }
            }
        }
        self.survey_directives(&mut candidates)?;
        Ok(Survey { roots, candidates, providers: OnceLock::new(), defaults: OnceLock::new() })
    }
}

impl Survey {
    /// The places of the library, in the order in which they are asked.
    pub fn roots(&self) -> &[Arc<Root>] {
        &self.roots
    }

    /// Every id, sorted, with the places that offer it.
    pub fn ids(&self) -> impl Iterator<Item = (&str, &[Candidate])> {
        self.candidates.iter().map(|(id, candidates)| (id.as_str(), candidates.as_slice()))
    }

    /// Every prompt below a place, sorted by its id; `None` if the place is not part of the library.
    pub fn below(&self, root: &Arc<Root>) -> Option<Vec<Found>> {
        self.roots.iter().any(|known| Arc::ptr_eq(known, root)).then(|| {
            let below = |candidate: &&Candidate| Arc::ptr_eq(&candidate.root, root);
            let found = |id: &str, candidate: &Candidate| Found {
                id: id.to_owned(),
                candidate: candidate.clone(),
                reason: Reason::Given,
            };
            let of_id = |(id, candidates): (&'_ str, &'_ [Candidate])| {
                candidates.iter().filter(below).map(|candidate| found(id, candidate)).collect::<Vec<_>>()
            };
            self.ids().flat_map(of_id).collect()
        })
    }

    /// What `defaults.json` says.
    pub fn defaults(&self, library: &Library) -> Result<Arc<Defaults>> {
        if let Some(defaults) = self.defaults.get() {
            return Ok(defaults.clone());
        }
        let defaults = library.defaults()?;
        Ok(self.defaults.get_or_init(|| defaults).clone())
    }

    /// How many places offer an id. What is shadowed by a nearer space is not offered.
    pub fn offers(&self, id: &str) -> usize {
        let offered = |candidates: &Vec<Candidate>| {
            candidates.iter().filter(|candidate| candidate.shadowed_by.is_none()).count()
        };
        self.candidates.get(id).map_or(0, offered)
    }

    /// Chooses between the candidates of an id as [`Library::choose`] does. A name that is no id as it stands is looked up.
    pub fn choose(&self, library: &Library, id: &str) -> Result<Found> {
        match self.candidates.get(id) {
            Some(candidates) => {
                let candidates = library.with_replacement(id, candidates.clone())?;
                library.choose_among(id.to_owned(), candidates)
            }
            None => library.choose(id),
        }
    }

    /// The variable providers of all packs. A manifest that cannot be read has its own finding, and provides nothing.
    pub fn providers(&self, library: &Library) -> &[(String, VariableProvider)] {
        self.providers.get_or_init(|| {
            let packs = self.roots.iter().filter_map(|root| root.pack_id());
            packs.flat_map(|pack| library.pack_providers(pack).unwrap_or_default()).collect()
        })
    }
}
