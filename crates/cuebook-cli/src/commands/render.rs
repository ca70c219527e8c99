//! `cuebook render`

use std::process::ExitCode;

use cuebook::Message;
use cuebook_lab::BookExt;
use serde_json::json;

use super::{explain, with_choice};
use crate::args::{Form, Options, RenderArgs};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json, print_text, say};

pub fn run(args: &RenderArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let explanation = with_choice(&book, options, || {
        let mut given = inputs::read(args.prompt.as_deref(), &args.inputs, &book)?;
        given.context.model = args.model.clone().or(given.context.model);
        let explanation = book.explain(&given.prompt, &given.variables, &given.context)?;
        given.remember()?;
        if !options.json {
            given.mention_unseen(explanation.rendered());
        }
        Ok(explanation)
    })?;
    let rendered = explanation.rendered();
    if !options.json {
        print_findings(rendered.notes());
        explain::mention_fit(rendered);
        let found = explanation.prepared().findings();
        if found > 0 {
            let id = args.prompt.as_deref().unwrap_or(&explanation.prepared().found().id);
            let findings = if found == 1 { "one finding" } else { &format!("{found} findings") };
            say(format_args!("note: {findings} about this prompt: cuebook check {id}"));
        }
    }
    match &args.form {
        Form::Segments => print_json(&json!(rendered.segments()))?,
        Form::Messages => print_json(&rendered.messages()?.iter().map(Message::to_json).collect())?,
        Form::Wire(name) => {
            let wire = match name {
                Some(name) => rendered.wire_as(name)?,
                None => rendered.wire()?,
            };
            // The body is the document, so what is said about it goes to stderr, also under --json.
            print_findings(&wire.notes);
            print_json(&wire.body)?;
        }
        Form::Text if options.json && args.explain => print_json(&explanation.to_json())?,
        Form::Text if options.json => print_json(&rendered.to_json())?,
        Form::Text => print_text(rendered.text())?,
    }
    if args.explain && !options.json {
        explain::describe(&explanation, &mut anstream::stderr())?;
    }
    Ok(ExitCode::SUCCESS)
}
