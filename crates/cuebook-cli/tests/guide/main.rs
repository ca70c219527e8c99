//! The book in `docs/`: its chapters are sessions that are true, and its reference leaves nothing out.
//!
//! This binary is also the Rust programs that the book shows (`programs.rs`): where a chapter says `cargo run`, its session starts
//! this file again. That is why it has a `main` of its own and does by itself what a harness does. A word on the command line
//! picks the checks whose names contain it.

#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

#[path = "../support/mod.rs"]
mod support;

mod book;
mod chapters;
mod complete;
mod examples;
mod generated;
mod programs;

use std::process::ExitCode;

/// Every check, by name.
const CHECKS: &[(&str, fn())] = &[
    ("the_guide_is_true_from_its_first_chapter_to_its_last", chapters::the_guide_is_true),
    ("every_page_of_the_reference_is_true", chapters::every_page_of_the_reference_is_true),
    ("every_error_is_in_the_book", generated::every_error_is_in_the_book),
    ("every_event_is_in_the_book", generated::every_event_is_in_the_book),
    ("every_key_of_every_file_is_named", complete::every_key_of_every_file_is_named),
    ("every_list_of_keys_has_its_page", complete::every_list_of_keys_has_its_page),
    ("every_setting_of_trust_is_named", complete::every_setting_of_trust_is_named),
    ("every_setting_is_named_with_its_default", complete::every_setting_is_named_with_its_default),
    ("every_environment_variable_is_named", complete::every_environment_variable_is_named),
    ("every_command_is_in_the_book", generated::every_command_is_in_the_book),
    ("every_topic_is_named", complete::every_topic_is_named),
    ("every_exit_code_is_named", complete::every_exit_code_is_named),
    ("every_limit_is_listed_and_true", complete::every_limit_is_listed_and_true),
    ("the_summary_lists_every_page", book::the_summary_lists_every_page),
    ("every_link_leads_somewhere", book::every_link_leads_somewhere),
    ("a_file_is_named_before_it_is_shown", book::a_file_is_named_before_it_is_shown),
    ("every_program_that_is_shown_is_compiled", programs::every_program_that_is_shown_is_compiled),
    ("the_pieces_of_programs_run", programs::the_pieces_of_programs_run),
    ("the_example_service_answers", programs::the_example_service_answers),
];

fn main() -> ExitCode {
    // Workers of hooks are started by a copy of the program that needs them.
    cuebook_hooks::sandbox::launch_if_asked();
    if let Some(program) = std::env::var_os(programs::ASKED) {
        return programs::run(&program.to_string_lossy());
    }
    let words = filters(std::env::args().skip(1));
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let mut failed = 0;
    for (name, check) in CHECKS.iter().filter(|(name, _)| wanted(name)) {
        if std::env::args().any(|word| word == "--list") {
            println!("{name}: test");
            continue;
        }
        let fine = std::panic::catch_unwind(check).is_ok();
        println!("test {name} ... {}", if fine { "ok" } else { "FAILED" });
        failed += usize::from(!fine);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The words that pick checks, among the options that `cargo test` hands to every harness.
fn filters(mut words: impl Iterator<Item = String>) -> Vec<String> {
    const WITH_VALUE: [&str; 6] = ["--test-threads", "--skip", "--color", "--format", "--logfile", "-Z"];
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            found.push(word);
        }
    }
    found
}
