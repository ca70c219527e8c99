//! `cuebook render`

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use cuebook::Message;
use cuebook::error::shell_word;
use cuebook::source::Source;
use cuebook::template::jinja::{Loader, Template};
use serde_json::json;

use super::{explain, packages};
use crate::args::{FileStyle, Format, Options, RenderArgs};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json, print_text, say};

pub fn run(args: &RenderArgs, options: &Options) -> Outcome {
    if let Some(FileStyle::Chat) = args.style {
        return chat(args, options);
    }
    let book = options.book()?;
    let explanation =
        explain::explanation(&book, args.prompt.as_deref(), &args.inputs, args.model.as_ref(), options)?;
    let rendered = explanation.rendered();
    if !options.json {
        print_findings(rendered.notes());
        print_findings(&packages::differences(&book, Some(&rendered.prompt().source))?);
        explain::mention_fit(rendered);
        let found = explanation.prepared().findings();
        if found > 0 {
            let id = args.prompt.as_deref().unwrap_or(&explanation.prepared().found().id);
            let findings = if found == 1 { "one finding" } else { &format!("{found} findings") };
            let id = shell_word(id);
            say(format_args!("note: {findings} about this prompt: cuebook check {id}"));
        }
    }
    match &args.format {
        Format::Segments => print_json(&json!(rendered.segments()))?,
        Format::Messages => print_json(&rendered.messages()?.iter().map(Message::to_json).collect())?,
        Format::Wire(name) => {
            let wire = match name {
                Some(name) => rendered.wire_as(name)?,
                None => rendered.wire()?,
            };
            // The body is the document, so what is said about it goes to stderr, also under --json.
            print_findings(&wire.notes);
            print_json(&wire.body)?;
        }
        Format::Text if options.json && args.explain => print_json(&explanation.to_json())?,
        Format::Text if options.json => print_json(&rendered.to_json())?,
        Format::Text => print_text(rendered.text())?,
    }
    if args.explain && !options.json {
        explain::describe(&explanation, &mut anstream::stderr())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A chat template is one file.
struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&self, _name: &str, _parent: &str) -> cuebook::Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

/// Renders a model's own chat template.
fn chat(args: &RenderArgs, options: &Options) -> Outcome {
    let (Some(file), Format::Text, false) = (&args.prompt, &args.format, args.explain) else {
        let hint = "write cuebook render FILE --style chat --vars FILE";
        return Err(inputs::bad_input("--style chat renders a file to text", hint).into());
    };
    let book = options.book()?;
    let source = book.library().read_named(Path::new(file))?;
    let values = inputs::read_values(&args.inputs)?;
    let settings = book.library().config()?.template_settings(args.inputs.strict).chat();
    let output =
        Template::compile(source, Arc::new(NoIncludes), &settings)?.render(&values, settings.string_bytes)?;
    match options.json {
        true => print_json(&json!({ "text": output.text }))?,
        false => print_text(&output.text)?,
    }
    Ok(ExitCode::SUCCESS)
}
