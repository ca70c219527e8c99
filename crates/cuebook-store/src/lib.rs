//! A part of the crate `cuebook-run`: where threads are kept.
//!
//! Programs use `cuebook-run`, which exports these modules. Items that only `cuebook-run` uses are hidden here and may change. The
//! modules are [`money`], [`record`] (ids, statuses, events, costs, and the process that runs each thread) and [`store`] (the registry,
//! the logs and the ledger, in SQLite or in PostgreSQL).

pub mod money;
pub mod record;
pub mod store;
