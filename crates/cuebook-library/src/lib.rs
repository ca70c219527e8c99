//! A part of the crate `cuebook`: it finds, verifies and reads the files of prompts, items and packs.
//!
//! Programs use `cuebook`, which exports these modules. Items that only the other parts of `cuebook` use are hidden here and may
//! change. The modules are [`items`] (ids and spaces), [`notation`] (readers of files), [`trust`] (signatures and approvals),
//! [`overrides`] and [`library`] (folders, packs and settings).

// A feature that is off leaves code unused that others share.
#![cfg_attr(
    not(all(feature = "items", feature = "packs", feature = "python")),
    allow(dead_code, unused_imports)
)]

pub mod items;
pub mod library;
pub mod notation;
pub mod overrides;
pub mod trust;

pub(crate) use cuebook_prompt::{chat, prompt, template, variables};
pub(crate) use cuebook_text::{error, files, json, limits, node, reader, sha256, source, yaml};
