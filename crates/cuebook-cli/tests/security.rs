//! SECURITY.md names a test for each promise, tests that pages name exist, and every attack that once worked has a regression test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, promises) = page.split_once("## What Cuebook promises").unwrap();
    let (promises, _) = promises.split_once("\n## ").unwrap();
    let mut count = 0;
    for row in promises.lines().filter(|row| row.starts_with("| ") && !row.contains("---")) {
        let (promise, tests) = row.trim_matches(['|', ' ']).split_once(" | ").unwrap();
        if promise == "promise" {
            continue;
        }
        count += 1;
        let names: Vec<&str> = tests.split('`').filter(|name| name.contains("::")).collect();
        assert!(!names.is_empty(), "no test for: {promise}");
        for name in names {
            let (file, test) = name.split_once("::").unwrap();
            let code =
                std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(code.contains(&format!("fn {test}(")), "{file} has no test `{test}`");
        }
    }
    assert!(count > 25, "{count} promises");
}

/// The files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
}

#[test]
fn tests_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut pages, mut code) = (Vec::new(), Vec::new());
    for folder in ["docs/src", "crates/cuebook-cli/topics", "crates/cuebook-text/src/error/pages"] {
        files(&root.join(folder), &["md"], &mut pages);
    }
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "COMPATIBILITY.md"].map(|page| root.join(page)),
    );
    files(&root.join("crates"), &["rs"], &mut code);
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let mut functions = BTreeSet::new();
    for text in code.iter().map(read) {
        let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        functions.extend(names.map(str::to_owned));
    }
    let mut checked = 0;
    for page in &pages {
        for name in read(page).split('`') {
            // Names of tests are sentences; the names of functions, tools and settings are shorter.
            let is_word =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            if name.matches('_').count() >= 4 && !name.starts_with('_') && name.chars().all(is_word) {
                checked += 1;
                assert!(
                    functions.contains(name),
                    "{} names the test `{name}`, which does not exist",
                    page.display()
                );
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The attacks that worked on an early version, each with the tests that fail if it works again. The letters are those of the
/// review that found them: critical, high, medium, low.
const ATTACKS: &[(&str, &str, &[&str])] = &[
    (
        "C1",
        "`hooks.python` runs a program of the project outside the sandbox",
        &[
            "a_project_python_runs_nothing_without_a_grant",
            "a_granted_project_program_is_never_run_outside_the_sandbox",
            "a_model_cannot_write_settings_with_the_file_tools",
        ],
    ),
    (
        "C2",
        "a signed tool runs an interpreter of the project",
        &[
            "a_signed_tool_runs_no_interpreter_of_the_project",
            "a_dry_run_and_the_lockfile_name_the_interpreter",
            "every_way_to_a_program_of_the_project_needs_a_grant",
            "a_program_below_proc_self_cwd_is_that_of_this_process",
            "a_project_program_needs_a_grant_to_find_python",
        ],
    ),
    (
        "H1",
        "a fake environment, or the home folder as workspace, opens folders to hooks",
        &["an_environment_cannot_open_other_folders_to_hooks", "a_home_folder_is_never_a_workspace"],
    ),
    (
        "H2",
        "a file is swapped between its check and its start",
        &[
            "a_file_that_is_swapped_while_it_runs_never_runs_unsigned",
            "a_granted_program_that_is_swapped_runs_only_as_granted",
            "a_folder_that_is_swapped_for_a_link_leads_a_sink_nowhere",
        ],
    ),
    (
        "H3",
        "`.env` loads native code",
        &["code_is_not_loaded_from_an_unsigned_file", "a_signed_tool_runs_no_interpreter_of_the_project"],
    ),
    (
        "H4",
        "a signed item takes the place of another",
        &[
            "a_copied_or_renamed_item_is_refused_in_every_format",
            "an_item_of_one_type_or_format_is_none_of_another",
            "a_copied_tool_does_not_run_as_another",
        ],
    ),
    ("H5", "a signed tool becomes a trusted key", &["a_signed_item_is_no_key_and_a_signed_key_no_item"]),
    (
        "H6",
        "Node and Python load unsigned files",
        &["node_loads_no_unsigned_file", "python_imports_no_unsigned_file"],
    ),
    ("H7", "MCP over HTTP without a token", &["a_request_without_the_token_is_refused_on_this_machine_too"]),
    (
        "H8",
        "a rehashed log widens a thread",
        &["a_rehashed_log_gives_a_thread_no_power", "a_log_that_was_changed_and_hashed_again_is_detected"],
    ),
    (
        "H9",
        "\"No\" at an upgrade is ignored",
        &[
            "no_at_an_upgrade_keeps_the_old_text_and_yes_takes_the_new",
            "an_upgrade_without_a_terminal_keeps_the_accepted_text",
        ],
    ),
    (
        "H10",
        "one row makes a database run without end",
        &[
            "a_store_that_leads_in_a_circle_hangs_nothing",
            "no_statement_and_no_lock_is_waited_for_without_end",
        ],
    ),
    ("H11", "a second `<permissions>` replaces the first", &["an_element_that_counts_once_is_refused_twice"]),
    ("H12", "`--force` replaces pipes, devices and links", &["output_is_written_over_plain_files_only"]),
    (
        "M1",
        "a tool reads provider keys",
        &[
            "a_tool_of_a_thread_finds_no_secret",
            "a_fenced_tool_sees_no_home_and_no_processes",
            "a_program_hides_its_keys_from_other_programs",
        ],
    ),
    ("M2", "a clone brings its own approvals", &["approvals_inside_a_project_count_for_nothing"]),
    (
        "M3",
        "names forge what is shown",
        &[
            "output_of_approve_and_show_cannot_forge_the_screen",
            "names_that_hide_something_or_are_twins_are_not_installed",
            "no_listing_passes_control_characters_of_a_project",
        ],
    ),
    (
        "M4",
        "half-sent requests shut out a client",
        &["half_sent_requests_do_not_shut_out_a_client_with_the_token"],
    ),
    (
        "M5",
        "work inside filters is free",
        &[
            "work_on_items_and_bytes_is_paid_for_in_proportion",
            "every_limit_is_an_error_of_its_own",
            "every_call_pays_for_the_text_that_it_reads",
            "a_text_is_refused_before_it_grows_too_long",
        ],
    ),
    (
        "M6",
        "work grows faster than its input",
        &[
            "four_times_the_input_is_not_eight_times_the_work",
            "many_inputs_share_the_values_and_each_breach_is_found",
            "every_shape_works_at_its_smallest_size",
            "work_on_items_and_bytes_is_paid_for_in_proportion",
            "long_texts_are_cut_in_one_pass",
        ],
    ),
    (
        "M7",
        "an MCP client signs and reaches other folders",
        &[
            "a_client_signs_and_copies_only_if_the_user_allowed_it",
            "a_client_reaches_no_project_that_the_user_did_not_grant",
        ],
    ),
    (
        "M8",
        "links in prompts lead outside",
        &["no_link_of_a_project_shows_a_file_outside_of_it", "a_file_of_the_project_leads_nowhere_else"],
    ),
    (
        "M9",
        "the folder that tools run from is not private",
        &[
            "the_folder_and_its_files_are_for_the_user_alone",
            "the_copy_that_a_tool_runs_from_is_private_and_goes",
        ],
    ),
    (
        "M10",
        "a conversation takes any role",
        &[
            "a_conversation_has_only_listed_roles",
            "a_conversation_is_driven_with_roles_that_it_must_not_have",
        ],
    ),
    ("M11", "MCP serves unsigned directives", &["a_directive_is_served_only_if_its_signature_is_valid"]),
    (
        "M12",
        "an MCP client gets shells by default",
        &[
            "a_shell_and_writing_need_to_be_allowed_by_name",
            "a_read_only_server_has_prompts_and_resources_only",
        ],
    ),
    (
        "M13",
        "links multiply the memory of `diff`",
        &["links_to_a_large_folder_are_counted_before_they_are_followed"],
    ),
    (
        "M14",
        "`diff` leaves a folder that others can read",
        &["only_the_user_can_open_the_folder", "a_folder_that_a_killed_run_left_is_removed_by_the_next"],
    ),
    (
        "M15",
        "a mistyped store address shows the password",
        &["a_misspelt_store_address_shows_no_password_and_makes_no_file"],
    ),
    (
        "M16",
        "a sign of life in the future keeps a thread",
        &[
            "a_thread_is_taken_over_from_a_process_that_seems_to_live",
            "an_unreachable_thread_is_cancelled_by_force",
        ],
    ),
    (
        "low",
        "stores and recordings are readable by others",
        &["only_its_owner_can_read_a_store", "recordings_and_traces_are_for_the_user_alone"],
    ),
    (
        "low",
        "the MCP token stays in the environment of tools",
        &["a_tool_that_a_client_calls_finds_no_token_and_no_key"],
    ),
    (
        "low",
        "slow calls delay others",
        &["prompts_and_lists_do_not_wait_for_slow_calls", "a_client_with_too_many_calls_is_refused_clearly"],
    ),
    ("low", "sessions have no limit", &["a_new_session_takes_the_place_of_the_one_quiet_for_longest"]),
    (
        "low",
        "calls and cost of one answer have no limit",
        &[
            "an_answer_with_too_many_calls_makes_none_of_them",
            "an_answer_with_thousands_of_calls_is_refused",
            "an_answer_that_costs_more_than_the_limit_does_nothing",
        ],
    ),
    ("low", "a large stream fills the memory", &["an_answer_that_is_too_large_is_refused_once"]),
    (
        "low",
        "a parameter is injected into a nested shell",
        &["a_parameter_inside_a_nested_script_is_refused"],
    ),
    ("low", "a pack named `approvals.json`", &["a_pack_cannot_take_the_name_of_a_file_that_cuebook_keeps"]),
    ("low", "twins of normal forms", &["names_that_hide_something_or_are_twins_are_not_installed"]),
    ("low", "memory of hooks is limited per process", &["the_memory_of_all_processes_together_is_limited"]),
    ("low", "an older signed version is put back", &["an_older_signed_version_that_is_put_back_is_refused"]),
    ("low", "parameters are arguments of processes", &["parameters_are_never_arguments_of_a_process"]),
    ("low", "property tests never draw new cases", &["fresh_lists_every_crate_with_property_tests"]),
    (
        "low",
        "dependencies are not checked",
        &[
            "every_dependency_comes_from_the_registry_with_a_checksum",
            "every_dependency_has_an_allowed_licence",
        ],
    ),
    (
        "low",
        "one bad row hides all threads",
        &["one_bad_row_is_listed_as_damaged", "one_bad_row_does_not_hide_the_others"],
    ),
    ("low", "a JSONB column answers with a Rust type", &["a_column_of_another_type_is_a_plain_error"]),
    (
        "low",
        "`Retry-After` in the past or in the year 9999",
        &["a_date_to_ask_again_counts_only_if_it_is_to_come"],
    ),
    ("low", "endless trailers are read", &["a_server_that_goes_on_behind_its_answer_is_not_listened_to"]),
    ("low", "a pipe as `.git/HEAD` hangs `diff`", &["a_pipe_in_place_of_head_is_refused"]),
    ("low", "a partial clone is misreported", &["a_partial_clone_says_that_a_file_is_not_here"]),
    ("low", "`.git` as a file leads to another repository", &["a_git_file_cannot_name_another_repository"]),
    ("low", "a huge event is read whole", &["an_event_that_is_too_large_is_not_read"]),
    (
        "low",
        "a pipe or a device in a project stops the language server",
        &["pipes_and_devices_of_a_project_do_not_stop_the_server"],
    ),
    ("low", "a template ends with a panic", &["numbers_at_their_ends_are_errors_or_right"]),
    ("low", "an old git fetches what a partial clone lacks", &["an_old_git_fetches_nothing_either"]),
];

#[test]
fn every_attack_has_a_regression_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut code = Vec::new();
    files(&root, &["rs"], &mut code);
    let mut tests = BTreeSet::new();
    for file in &code {
        let text = std::fs::read_to_string(file).unwrap();
        // Tests of the stores have no attribute: a macro runs each on every kind of store.
        if text.contains("test]") || file.components().any(|part| part.as_os_str() == "tests") {
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            tests.extend(names.map(str::to_owned));
        }
    }
    for (letter, attack, regressions) in ATTACKS {
        assert!(!regressions.is_empty(), "{letter}: {attack}");
        for test in *regressions {
            assert!(tests.contains(*test), "{letter} ({attack}): there is no test `{test}`");
        }
    }
    let letters: BTreeSet<&str> = ATTACKS.iter().map(|(letter, ..)| *letter).collect();
    let (critical, high, medium) = (1..=2, 1..=12, 1..=16);
    let expected = critical.map(|n| format!("C{n}"));
    let expected = expected.chain(high.map(|n| format!("H{n}"))).chain(medium.map(|n| format!("M{n}")));
    for letter in expected {
        assert!(letters.contains(letter.as_str()), "{letter} is missing");
    }
}
