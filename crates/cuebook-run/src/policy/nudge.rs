//! What to make of an answer without a call: it is the result, or the model is asked to continue, or the thread has failed.
//!
//! A model that only talks on its first turn has mostly not begun; one that says nothing has mostly lost the thread; and where
//! outputs are asked for, words are not enough. It gets a reminder three times at most. Then words are the result, unless outputs are asked
//! for: what was promised to a caller and is not there is an error.

use cuebook::dialect::directive::Output;
use cuebook::{Code, Diagnostic, Error, ErrorKind};

use super::returns;

/// How often a model is asked to continue, in the whole of a thread.
pub const MAX: u32 = 3;

/// An answer without a call, and what is known of the thread.
#[derive(Debug, Clone, Copy)]
pub struct AnswerWithoutCall<'a> {
    /// What the model said.
    pub text: &'a str,
    /// How often it was asked, with this time.
    pub turn: u32,
    /// How often it was asked to continue.
    pub nudges: u32,
    /// What it is to give.
    pub outputs: &'a [Output],
    /// Whether it can call anything at all; one that cannot has nothing to begin.
    pub may_call: bool,
}

/// What to make of it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// The text is the result.
    Done,
    /// The model gets this, and is asked again.
    Nudge(String),
    /// The thread failed.
    Failed(Error),
}

/// Decides.
pub fn decide(said: &AnswerWithoutCall<'_>) -> Verdict {
    let names: Vec<&str> =
        said.outputs.iter().map(|output| output.name.as_str()).filter(|name| !name.is_empty()).collect();
    let is_empty = said.text.trim().is_empty();
    let is_first = said.turn <= 1 && said.may_call;
    if said.nudges < MAX && (is_first || is_empty || !names.is_empty()) {
        return Verdict::Nudge(text(&names, said.may_call));
    }
    if names.is_empty() {
        return Verdict::Done;
    }
    let message =
        format!("the model ended without returning {}, after {} reminders", names.join(", "), said.nudges);
    let diagnostic = Diagnostic::new(Code::OutputsMissing, message).hint(
        "its last answer is in the thread's log; use a model that calls tools, or describe the outputs more clearly in the directive",
    );
    Verdict::Failed(
        Error::new(ErrorKind::OutputParse, diagnostic).with("missing", names).with("said", said.text),
    )
}

fn text(names: &[&str], may_call: bool) -> String {
    let tool = returns::NAME;
    if !names.is_empty() {
        return format!(
            "You have not called {tool} yet, and this directive has to return: {}. Carry out the steps that are left, with tools \
             where you need them, and then call {tool} with these outputs. If you cannot finish, call {tool} with status \
             \"error\" and error_detail.",
            names.join(", ")
        );
    }
    if may_call {
        return "You have not called a tool yet. Carry out the steps of the directive with the tools that you have. If there is \
                nothing to do, or everything is done, answer with your result in words."
            .to_owned();
    }
    "Your answer was empty. Carry out the directive, and answer with your result in words.".to_owned()
}

#[cfg(test)]
mod tests {
    use cuebook::dialect::directive;
    use cuebook::source::Source;

    use super::*;

    fn outputs() -> Vec<Output> {
        let text =
            "```xml\n<directive name=\"d\"><outputs><output name=\"greeting\"/></outputs></directive>\n```\n";
        directive::read(&Source::new("d.md", text)).unwrap().outputs
    }

    fn without_call(text: &str, turn: u32, nudges: u32) -> AnswerWithoutCall<'_> {
        AnswerWithoutCall { text, turn, nudges, outputs: &[], may_call: true }
    }

    #[test]
    fn words_are_the_result_of_a_later_turn() {
        assert!(matches!(decide(&without_call("Done.", 2, 0)), Verdict::Done));
        assert!(matches!(decide(&without_call("Hello", 1, 0)), Verdict::Nudge(_)));
        assert!(matches!(decide(&without_call(" \n", 5, 2)), Verdict::Nudge(_)));
        assert!(matches!(decide(&without_call("", 9, 3)), Verdict::Done));
    }

    #[test]
    fn a_model_that_can_call_nothing_is_done_when_it_spoke() {
        let said = AnswerWithoutCall { may_call: false, ..without_call("Hello", 1, 0) };
        assert!(matches!(decide(&said), Verdict::Done));
        assert!(
            matches!(decide(&AnswerWithoutCall { text: "", ..said }), Verdict::Nudge(text) if text.starts_with("Your answer was empty"))
        );
    }

    #[test]
    fn words_are_never_enough_where_outputs_are_asked_for() {
        let outputs = outputs();
        for nudges in 0..MAX {
            let verdict = decide(&AnswerWithoutCall {
                outputs: &outputs,
                ..without_call("just text", nudges + 1, nudges)
            });
            assert!(
                matches!(verdict, Verdict::Nudge(text) if text.contains("directive_return") && text.contains("greeting"))
            );
        }
        let Verdict::Failed(error) =
            decide(&AnswerWithoutCall { outputs: &outputs, ..without_call("just text", 4, 3) })
        else {
            panic!()
        };
        assert_eq!(error.code(), Code::OutputsMissing);
        assert_eq!(
            error.diagnostic().message,
            "the model ended without returning greeting, after 3 reminders"
        );
        assert_eq!(error.field("said").and_then(|said| said.as_str()), Some("just text"));
    }
}
