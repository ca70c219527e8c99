//! `cuebook show`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::Context;
use cuebook::dialect::directive::Directive;
use cuebook::error::{printable, printable_lines};
use cuebook::prompt::Need;

use super::with_choice;
use crate::args::{Options, PromptArgs};
use crate::output::{Outcome, print_json};

/// What a thread that follows a directive gets of it, and what it is to give.
fn describe_directive(directive: &Directive, out: &mut impl Write) -> std::io::Result<()> {
    if let Some(extends) = &directive.extends {
        writeln!(out, "extends   {}", printable(extends))?;
    }
    if let Some(permissions) = &directive.permissions {
        writeln!(out, "may       {}", printable(&permissions.capabilities.join(", ")))?;
    }
    if let Some(limits) = &directive.limits {
        let limits: Vec<String> = limits.iter().map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(out, "limits    {}", printable(&limits.join(", ")))?;
    }
    if !directive.outputs.is_empty() {
        let outputs: Vec<&str> = directive.outputs.iter().map(|output| output.name.as_str()).collect();
        writeln!(out, "returns   {}", printable(&outputs.join(", ")))?;
    }
    Ok(())
}

pub fn run(args: &PromptArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let prepared = with_choice(&book, options, || book.prepare(&args.prompt, &Context::default()))?;
    if options.json {
        print_json(&prepared.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    let prompt = prepared.prompt();
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let mut out = anstream::stdout().lock();
    writeln!(
        out,
        "{bold}{}{bold:#} {}  {quiet}{}{quiet:#}",
        printable(&prompt.id),
        printable(&prompt.metadata.version),
        printable(&prompt.metadata.kind.to_string())
    )?;
    if let Some(description) = &prompt.metadata.description {
        writeln!(out, "{}", printable_lines(description))?;
    }
    writeln!(out, "\nfrom      {}", printable(&prompt.source.to_string()))?;
    let traits = prompt.dialect;
    if traits.has_roles {
        writeln!(out, "format    {}", printable(&prompt.format.engine.to_string()))?;
    } else if traits.is_folder {
        writeln!(out, "template  {}", printable(prompt.template.name()))?;
    }
    let languages = prepared.languages();
    if !languages.is_empty() {
        let languages = languages.join(", ");
        writeln!(out, "languages {} {quiet}(besides the plain file){quiet:#}", printable(&languages))?;
    }
    if let Some(model) = &prompt.model {
        let details = [model.provider.as_deref(), model.api_type.as_deref()];
        let details: Vec<&str> = details.into_iter().flatten().collect();
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        writeln!(out, "model     {}{quiet}{}{quiet:#}", printable(&model.id), printable(&details))?;
    }
    if !prompt.tools.is_empty() {
        let tools: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
        writeln!(out, "tools     {}", printable(&tools.join(", ")))?;
    }
    if let Some(names) = prompt.metadata.extra.get("allowed-tools").and_then(|names| names.as_array()) {
        let names: Vec<&str> = names.iter().filter_map(|name| name.as_str()).collect();
        writeln!(out, "allowed   {}", printable(&names.join(", ")))?;
    }
    if !prompt.outputs.is_empty() {
        let outputs: Vec<String> = prompt
            .outputs
            .iter()
            .map(|output| format!("{} ({})", output.name, output.kind.as_str()))
            .collect();
        writeln!(out, "answers   {}", printable(&outputs.join(", ")))?;
    }
    if !prepared.parents().is_empty() {
        writeln!(out, "extends   {}", printable(&prepared.parents().join(" → ")))?;
    }
    let includes = Vec::from_iter(prepared.includes());
    if !includes.is_empty() {
        writeln!(out, "includes  {}", printable(&includes.join(", ")))?;
    }
    let tags: Vec<&str> = prompt.metadata.tags().collect();
    if !tags.is_empty() {
        writeln!(out, "tags      {}", printable(&tags.join(", ")))?;
    }
    let granted = prompt.permissions.granted();
    if !granted.is_empty() {
        writeln!(out, "may       {}", granted.join(", "))?;
    }
    if !prompt.hooks.is_empty() {
        let hooks: Vec<&str> = prompt.hooks.iter().map(|hook| hook.name.as_str()).collect();
        writeln!(out, "hooks     {}", printable(&hooks.join(", ")))?;
    }
    if let Some(tree) = prepared.tree() {
        writeln!(out, "overrides {}/{}", printable(&tree.ns), printable(&tree.key))?;
        writeln!(out, "\n{bold}sections{bold:#}")?;
        for node in tree.sections() {
            let margin = "  ".repeat(node.depth);
            write!(
                out,
                "  {margin}{} {}  {quiet}{}{quiet:#}",
                node.number,
                printable(&node.section.title),
                printable(node.dotted())
            )?;
            let tools: Vec<&str> = node.section.tools.iter().map(|tool| tool.name.as_str()).collect();
            match tools.is_empty() {
                true => writeln!(out)?,
                false => writeln!(out, "  {quiet}tools:{quiet:#} {}", printable(&tools.join(", ")))?,
            }
        }
    }
    if let Some(directive) = prepared.directive() {
        describe_directive(directive, &mut out)?;
    }
    for need in [Need::Required, Need::Optional, Need::Custom] {
        let declared: Vec<_> = prompt.variables.iter().filter(|variable| variable.need == need).collect();
        if declared.is_empty() {
            continue;
        }
        writeln!(out, "\n{bold}{}{bold:#}", need.as_str())?;
        let width = declared.iter().map(|variable| variable.name.chars().count()).max().unwrap_or_default();
        for variable in declared {
            write!(out, "  {:width$}  {:7}", printable(&variable.name), variable.type_name())?;
            if variable.from_system {
                write!(out, "  from the system")?;
            } else if let Some(default) = &variable.default {
                write!(out, "  = {}", printable(&variable.shown(default).to_string()))?;
            }
            if let Some(description) = &variable.description {
                write!(out, "  {quiet}{}{quiet:#}", printable(description))?;
            }
            if let Some(parent) = &variable.inherited_from {
                write!(out, "  {quiet}(from {}){quiet:#}", printable(parent))?;
            }
            writeln!(out)?;
        }
    }
    let is_undeclared =
        |name: &&str| *name != "system" && *name != "session" && prompt.variable(name).is_none();
    let names = prepared.known_names().iter().map(String::as_str);
    let undeclared: Vec<&str> = names.filter(is_undeclared).collect();
    if !undeclared.is_empty() {
        let names = undeclared.join(", ");
        writeln!(out, "\n{bold}used without a declaration{bold:#}\n  {}", printable(&names))?;
    }
    Ok(ExitCode::SUCCESS)
}
