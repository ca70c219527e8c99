//! Why an answer ended, in the words of all providers.

/// Why an answer ended, as far as it matters for what to make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is whole, or there is no sign of the opposite.
    Whole,
    /// It was not to be longer.
    Cut,
    /// It filled the window of the model.
    Full,
    /// For an unknown reason: it may be whole or not.
    Strange,
}

/// Reasons that say that an answer is whole, or that it ended with calls, or that the model declined. The last of them are words of
/// gateways and of servers for models of one's own.
const WHOLE: [&str; 17] = [
    "stop",
    "tool_calls",
    "function_call",
    "content_filter",
    "completed",
    "end_turn",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "complete",
    "tool_call",
    "eos",
    "eos_token",
    "stop_token",
    "done",
    "",
];

/// Reasons that say that an answer may not be longer.
const CUT: [&str; 5] = ["length", "max_tokens", "max_output_tokens", "incomplete", "model_length"];

/// Why an answer ended that ended with this reason. Gemini shouts its reasons.
pub(crate) fn ending(finish: Option<&str>) -> Ending {
    let Some(finish) = finish else { return Ending::Whole };
    let is = |word: &&str| word.eq_ignore_ascii_case(finish);
    match () {
        () if WHOLE.iter().any(is) => Ending::Whole,
        () if CUT.iter().any(is) => Ending::Cut,
        () if finish == "model_context_window_exceeded" => Ending::Full,
        () => Ending::Strange,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_reason_is_not_a_success() {
        for whole in ["stop", "STOP", "end_turn", "tool_use", "tool_calls", "completed", "eos"] {
            assert_eq!(ending(Some(whole)), Ending::Whole, "{whole}");
        }
        for cut in ["length", "MAX_TOKENS", "max_tokens", "max_output_tokens", "incomplete"] {
            assert_eq!(ending(Some(cut)), Ending::Cut, "{cut}");
        }
        assert_eq!(ending(Some("model_context_window_exceeded")), Ending::Full);
        for strange in ["OTHER", "FINISH_REASON_UNSPECIFIED", "error", "insufficient_system_resource"] {
            assert_eq!(ending(Some(strange)), Ending::Strange, "{strange}");
        }
        assert_eq!(ending(None), Ending::Whole);
    }
}
