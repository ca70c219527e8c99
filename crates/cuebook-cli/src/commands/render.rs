//! `cuebook render`

use std::process::ExitCode;

use serde_json::json;

use super::{explain, with_choice};
use crate::args::{Form, Options, RenderArgs};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json, print_text};

pub fn run(args: &RenderArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let explanation = with_choice(&book, options, || {
        let given = inputs::read(args.prompt.as_deref(), &args.inputs, &book)?;
        book.explain(&given.prompt, &given.variables, &given.context)
    })?;
    let rendered = explanation.rendered();
    if !options.json {
        print_findings(rendered.notes());
    }
    match args.form {
        Form::Segments => print_json(&json!(rendered.segments()))?,
        Form::Text if options.json && args.explain => print_json(&explanation.to_json())?,
        Form::Text if options.json => print_json(&rendered.to_json())?,
        Form::Text => print_text(rendered.text())?,
    }
    if args.explain && !options.json {
        explain::describe(&explanation, &mut anstream::stderr())?;
    }
    Ok(ExitCode::SUCCESS)
}
