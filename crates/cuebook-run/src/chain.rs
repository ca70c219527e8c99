//! Chains: from a tool over those that run it to a primitive.
//!
//! A tool names its executor, that perhaps another one, and the last is a primitive, which is part of the program. Each
//! element is verified before a word of it is believed. The executor of an item is looked for in its own space and those
//! behind it, so that what a project puts in the way of a runtime changes the project's own tools and no others.

mod validate;
mod version;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::dialect::tool::{self, Notation, Tool};
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::{Item, ItemId, ItemType, Located, SpaceKind, Spaces};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use serde_json::{Value as Json, json};

pub(crate) use validate::elements;
pub use validate::{Report, validate};

use crate::verify::Verify;

/// How many elements a chain may have.
pub const MAX_LINKS: usize = 10;

/// The largest file that a tool may be.
pub(crate) const LARGEST_TOOL: u64 = 16 << 20;

/// One element of a chain.
#[derive(Debug, Clone)]
pub(crate) struct Element {
    pub(crate) located: Located,
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) tool: Arc<Tool>,
    /// SHA-256 of what was signed.
    pub(crate) hash: String,
}

impl Element {
    pub(crate) fn id(&self) -> &str {
        self.located.id.as_str()
    }

    /// The space, as answers call it.
    pub(crate) fn space(&self) -> &'static str {
        match self.located.space {
            SpaceKind::Project => "project",
            SpaceKind::User => "user",
            SpaceKind::System => "system:cuebook",
        }
    }

    /// What answers and lockfiles say of it.
    pub(crate) fn to_json(&self) -> Json {
        json!({
            "item_id": self.id(),
            "space": self.space(),
            "tool_type": self.tool.tool_type,
            "executor_id": self.tool.executor_id,
            "integrity": self.hash,
        })
    }
}

/// A chain that could not be built: why, and how far it came.
pub(crate) struct ChainFailure {
    pub(crate) error: Error,
    pub(crate) so_far: Vec<Element>,
}

/// The metadata of tools, as long as their bytes are the same.
#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<HashMap<String, CachedTool>>);

/// The bytes of a tool's file, and what it says.
type CachedTool = (Arc<Vec<u8>>, Arc<Tool>);

/// How many tools are remembered.
const MAX_REMEMBERED: usize = 512;

impl Memo {
    fn read(&self, item: &Item) -> Result<CachedTool> {
        // The name says the space as well.
        let key = item.located.name.clone();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bytes, tool)) = known.get(&key)
            && **bytes == item.bytes
        {
            return Ok((bytes.clone(), tool.clone()));
        }
        let tool = match Notation::of_extension(item.located.extension) {
            Some(notation) => {
                let source = files::source_from_bytes(item.bytes.clone(), &item.located.name)?;
                tool::read(&source, notation)?
            }
            None => Tool::default(),
        };
        let entry = (Arc::new(item.bytes.clone()), Arc::new(tool));
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(key, entry.clone());
        Ok(entry)
    }
}

/// Builds the chain of a tool, or of the pack's tool that replaces it.
pub(crate) fn build(
    spaces: &Spaces,
    verify: &dyn Verify,
    memo: &Memo,
    id: &ItemId,
    replaced: Option<Located>,
) -> Result<Vec<Element>, Box<ChainFailure>> {
    let mut chain: Vec<Element> = Vec::new();
    match extend(spaces, verify, memo, (id, replaced), &mut chain) {
        Ok(()) => Ok(chain),
        Err(error) => Err(Box::new(ChainFailure { error, so_far: chain })),
    }
}

fn extend(
    spaces: &Spaces,
    verify: &dyn Verify,
    memo: &Memo,
    (id, replaced): (&ItemId, Option<Located>),
    chain: &mut Vec<Element>,
) -> Result<()> {
    let found = match replaced {
        Some(found) => Some(found),
        None => spaces.find(ItemType::Tool, id)?,
    };
    let Some(found) = found else { return Err(spaces.not_found(ItemType::Tool, id)) };
    push(found, verify, memo, chain)?;
    while let Some(last) = chain.last()
        && let Some(next) = last.tool.executor_id.clone()
    {
        let shown = || chain.iter().map(Element::id).collect::<Vec<_>>().join(" → ");
        if chain.iter().any(|element| element.id() == next) {
            let diagnostic =
                Diagnostic::new(Code::ChainCycle, format!("Circular dependency detected: {next}"))
                    .file(&last.located.name)
                    .hint(format!("the chain is {} → {next}: change the executor of one of them", shown()));
            return Err(Error::new(ErrorKind::Execute, diagnostic));
        }
        if chain.len() >= MAX_LINKS {
            let message = format!("Chain too deep (max {MAX_LINKS}): {}", id);
            let diagnostic = Diagnostic::new(Code::ChainTooLong, message)
                .file(&last.located.name)
                .hint(format!("the chain is {} → {next}: remove some links", shown()));
            return Err(Error::new(ErrorKind::Execute, diagnostic));
        }
        let next_id = ItemId::new(&next)?;
        match spaces.find_from(ItemType::Tool, &next_id, last.located.space)? {
            Some(found) => push(found, verify, memo, chain)?,
            None => return Err(no_executor(spaces, last, &next_id, &shown())),
        }
    }
    Ok(())
}

fn push(located: Located, verify: &dyn Verify, memo: &Memo, chain: &mut Vec<Element>) -> Result<()> {
    let item = located.read(LARGEST_TOOL)?;
    let hash = verify.verify(&item)?.hash;
    let (bytes, tool) = memo.read(&item)?;
    chain.push(Element { located: item.located, bytes, tool, hash });
    Ok(())
}

/// An element without a trusted signature, for a message.
pub(crate) fn unverified(located: Located, memo: &Memo) -> Option<Element> {
    let item = located.read(LARGEST_TOOL).ok()?;
    let (bytes, tool) = memo.read(&item).ok()?;
    Some(Element { located: item.located, bytes, tool, hash: String::new() })
}

fn no_executor(spaces: &Spaces, last: &Element, wanted: &ItemId, shown: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::ExecutorNotFound, format!("Executor not found: {wanted}"));
    let seen = spaces.all().iter().filter(|space| space.kind() >= last.located.space);
    let known: Vec<String> = seen
        .filter_map(|space| spaces.walk(ItemType::Tool, space).ok())
        .flatten()
        .map(|item| item.id.to_string())
        .collect();
    let near = did_you_mean(&nearest(wanted.as_str(), known.iter().map(String::as_str)));
    let elsewhere = matches!(spaces.find(ItemType::Tool, wanted), Ok(Some(_)));
    let mut hint = match (near, elsewhere) {
        (_, true) => Hint::from(format!(
            "the project has one, but {} is in the {} space, whose tools never use a project's executors",
            last.id(),
            last.located.space.as_str()
        )),
        (Some(near), _) => near.into(),
        (None, _) => Hint::run("search for one", "cuebook search '' --scope tool.rye.core.runtimes"),
    };
    let shown = format!(" (the chain so far: {shown})");
    hint.text.push_str(&shown);
    if let Some(advice) = &mut hint.advice {
        advice.push_str(&shown);
    }
    let diagnostic = diagnostic.file(&last.located.name).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic).with("executor_id", wanted.as_str())
}
