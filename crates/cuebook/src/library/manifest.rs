//! `pack.json`.
