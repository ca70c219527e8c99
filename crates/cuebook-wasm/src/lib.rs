//! The render path for JavaScript, as a module of WebAssembly without imports: no files, threads, clock or random bytes of a system.
//!
//! JavaScript writes the text of a call into the memory, calls [`border::cuebook_call`], and reads the text of the answer. Both are JSON,
//! but for the text of a render. What people use is written in TypeScript, in `package`.

mod book;
pub mod border;
mod calls;
mod moment;
mod renders;
