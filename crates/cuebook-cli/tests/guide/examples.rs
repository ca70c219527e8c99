//! The examples of the crates, compiled into this binary so that sessions can run them.

use crate::programs::{Ended, Program};

#[path = "../../../cuebook/examples/errors.rs"]
mod errors;
#[path = "../../../cuebook/examples/hooks.rs"]
mod hooks;
#[path = "../../../cuebook-run/examples/items.rs"]
mod items;
#[path = "../../../cuebook/examples/reload.rs"]
mod reload;
#[path = "../../../cuebook/examples/reply.rs"]
mod reply;
#[path = "../../../cuebook/examples/sections.rs"]
mod sections;
#[path = "../../../cuebook/examples/service.rs"]
mod service;
#[path = "../../../cuebook/examples/spans.rs"]
mod spans;
#[path = "../../../cuebook/examples/tasks.rs"]
mod tasks;
#[path = "../../../cuebook-run/examples/threads.rs"]
mod threads;

macro_rules! example {
    ($folder:literal $name:ident) => {
        (
            stringify!($name),
            || $name::main().ended(),
            include_str!(concat!("../../../", $folder, "/examples/", stringify!($name), ".rs")),
        )
    };
}

/// The examples.
pub const EXAMPLES: &[Program] = &[
    example!("cuebook" spans),
    example!("cuebook" reply),
    example!("cuebook" sections),
    example!("cuebook" hooks),
    example!("cuebook" reload),
    example!("cuebook" errors),
    example!("cuebook" tasks),
    example!("cuebook" service),
    example!("cuebook-run" items),
    example!("cuebook-run" threads),
];
