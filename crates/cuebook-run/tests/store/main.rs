//! One suite over every kind of store. What a store in a SQLite file passes, one in PostgreSQL passes too.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod authentic;
mod elapsed;
mod ends;
mod files;
mod ledger;
mod log;
mod many;
mod processes;
mod property;
mod queue;
mod rates;
mod server;
mod servers;
mod support;
mod unpriced;

/// Every function of the suite as a test of both kinds of stores.
macro_rules! suite {
    ($($module:ident::$name:ident)*) => {
        mod sqlite {
            $(#[test] fn $name() { crate::$module::$name(&crate::support::Fixture::sqlite().unwrap()); })*
        }

        mod postgresql {
            $(#[test] fn $name() {
                if let Some(world) = crate::support::Fixture::postgres() {
                    crate::$module::$name(&world);
                }
            })*
        }
    };
}

suite! {
    log::a_thread_is_registered_with_its_first_events
    log::threads_of_one_millisecond_get_numbers
    log::only_the_holder_of_a_thread_writes_to_it
    log::no_process_writes_to_a_thread_at_rest
    log::events_are_read_from_where_one_left_off
    log::hostile_words_are_kept_as_they_are
    log::too_deep_values_are_kept_as_text
    log::threads_are_listed_newest_first
    log::a_thread_that_ended_is_not_taken_up
    log::taking_up_makes_a_new_holder
    log::a_tree_is_cancelled
    log::one_query_lists_the_threads_that_a_process_must_stop
    log::threads_of_the_dead_are_swept
    log::a_sign_of_life_keeps_threads_from_being_swept
    log::unknown_names_are_not_found
    log::a_conversation_is_handed_over
    log::a_parent_that_another_process_resumed_starts_nothing
    ends::a_tree_is_one_question
    ends::a_list_knows_what_children_spent
    ends::sums_include_all_settled_money
    ends::details_of_a_dead_thread_are_in_its_log
    ends::work_that_must_stop_does_not_continue
    elapsed::a_request_of_a_dead_thread_counts_as_read
    elapsed::money_for_a_lost_answer_is_released
    elapsed::what_had_come_of_an_answer_counts_once
    elapsed::the_time_of_a_dead_thread_goes_to_its_last_sign_of_life
    ledger::a_child_has_what_its_parent_gives
    ledger::too_little_is_said_with_figures
    ledger::a_hold_becomes_the_cost
    ledger::a_cost_higher_than_what_was_held_is_recorded
    ledger::a_parent_settles_after_its_children
    ledger::spawns_are_counted
    ledger::a_settled_thread_asks_its_parent_again
    ledger::parents_reopen_with_their_child
    ledger::a_limit_is_changed_within_what_the_parent_has
    ledger::without_a_limit_there_is_always_enough
    ledger::an_unreleased_hold_counts_as_spent
    ledger::an_ended_or_cancelled_parent_has_no_more_children
    ledger::negative_amounts_give_nothing
    ledger::a_failed_change_leaves_nothing_behind
    many::threads_at_once_never_overdraw
    many::threads_at_once_keep_their_logs_whole
    many::two_who_take_up_one_thread_do_not_both_get_it
    many::children_started_during_a_cancel_are_stopped
    processes::processes_share_a_store
    processes::two_processes_stay_within_one_budget
    processes::a_log_goes_on_in_another_process
    processes::killed_processes_leave_whole_logs_and_a_true_ledger
    unpriced::a_model_without_a_price_makes_all_sums_above_it_unknown
    unpriced::usage_of_a_dead_process_is_unknown_at_first
    property::the_ledger_holds_whatever_is_done
    queue::threads_are_claimed_once_by_priority_and_age
    queue::two_workers_never_claim_one_thread
    queue::a_thread_that_is_due_later_waits
    queue::limits_count_all_workers
    queue::a_row_that_another_program_wrote_is_not_claimed
    queue::a_worker_gets_only_what_its_own_user_queued
    queue::a_worker_that_lost_its_lease_cannot_write
    queue::a_worker_that_lives_keeps_its_threads
    queue::a_claim_without_a_thread_is_released
    queue::a_cancelled_thread_leaves_the_queue
    queue::a_thread_that_kills_its_workers_is_left_alone
    rates::connections_to_one_store_share_a_budget
    rates::threads_at_once_stay_within_a_budget
    rates::a_clock_behind_the_others_gives_nothing_twice
    rates::what_one_process_learns_holds_for_all
    rates::a_damaged_row_starts_a_new_budget
    rates::a_row_that_is_too_long_is_not_read
    authentic::a_log_that_was_changed_and_hashed_again_is_detected
    authentic::events_that_were_cut_moved_or_borrowed_are_detected
    authentic::a_changed_row_is_detected_and_never_sealed_again
    authentic::a_log_of_another_key_is_shown_and_not_written
    authentic::an_old_log_is_taken_up_only_when_the_user_vouches
    authentic::an_old_thread_changes_no_account_of_ours
    authentic::a_circle_of_parents_comes_to_an_end
    authentic::one_bad_row_does_not_hide_the_others
    authentic::an_event_that_is_too_large_is_not_read
    authentic::a_thread_is_released_from_a_holder_that_seems_to_live
}

#[test]
fn a_queued_thread_wakes_a_listener_on_postgresql() {
    if let Some(world) = support::Fixture::postgres() {
        queue::a_queued_thread_wakes_a_listener(&world);
    }
}
