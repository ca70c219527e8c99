//! Runs hooks and variable providers that are written in Python, in a sandboxed worker process.
//!
//! ```no_run
//! use cuebook::{Book, Context, Variables};
//! use cuebook_hooks::sandbox::{Launcher, launch_if_asked};
//!
//! fn main() -> cuebook::Result<()> {
//!     // Workers are started by a copy of this program, which must do nothing else: there this does not return.
//!     launch_if_asked();
//!     let book = Book::open("my-prompts");
//!     let hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program());
//!     let rendered = book.with_hooks(hooks).render("greeting", &Variables::new(), &Context::default())?;
//!     println!("{}", rendered.text());
//!     Ok(())
//! }
//! ```
//!
//! `cuebook help hooks` shows such functions. How a call goes:
//!
//! ```text
//! PythonHooks ──▶ pool ──▶ worker ──▶ sandbox ──▶ python (bootstrap.py)
//!   engine.rs    pool.rs  worker.rs  sandbox.rs
//! ```
//!
//! A call takes a worker that waits for its script, or starts one; sends it the call; answers what the function asks of its
//! context; and takes the result.
//!
//! | file | what it does |
//! | --- | --- |
//! | `engine.rs` | a call from its beginning to its end, and the front door [`PythonHooks`] |
//! | `pool.rs` | workers that wait, by whose they are |
//! | `worker.rs` | one process: its pipes, its deadline, its end |
//! | `protocol.rs`, `marshal.rs` | what is said between the two, and how it is written |
//! | `errors.rs`, `errors/` | messages for people when it fails |
//! | `python.rs` | finds the interpreter |
//! | `configured.rs` | all of it as `cuebook.toml` wants it; `examination.rs` says what there is |
//! | `http.rs`, `model.rs` | what hooks may ask of the world outside |
//! | `python/bootstrap.py` | what a worker runs; `context.py`, `imports.py` and `slow.py` are its rarer parts |
//! | `sandbox/` | the fence around a worker |

pub mod http;
pub mod model;
pub mod sandbox;

mod configured;
#[cfg(unix)]
mod engine;
#[cfg(not(unix))]
#[path = "engine/unsupported.rs"]
mod engine;
#[cfg(unix)]
mod errors;
mod examination;
#[cfg(unix)]
mod marshal;
#[cfg(unix)]
mod not_json;
#[cfg(unix)]
mod pool;
#[cfg(unix)]
mod protocol;
mod python;
#[cfg(unix)]
mod worker;

pub use configured::hooks;
pub use engine::PythonHooks;
pub use examination::Examination;
pub use python::{Interpreter, OLDEST};
