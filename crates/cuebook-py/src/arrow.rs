//! Tables of other libraries, read and written through the Arrow C data interface.
//!
//! pyarrow, Polars, pandas and DuckDB offer their tables under `__arrow_c_stream__`, and take ours under the same name. The interface is
//! three C structs; their definition is stable, so this module has them instead of twenty further crates.

mod export;
mod import;
mod interface;
mod table;

pub use import::{Table, read};
pub use table::{Chunk, RenderedTable, restore_table};
