//! The `cuebook` command.

fn main() {}
