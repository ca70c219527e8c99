//! `cuebook convert`

use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use cuebook::error::{printable, shell_word};
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Result, files};
use cuebook_lab::BookExt;
use cuebook_lab::convert::{BuiltIn, Conversion, EntryKind, Export, OutFile, Report, Target, export};
use serde_json::json;

use super::with_choice;
use crate::args::{ConvertArgs, Options, To, Written};
use crate::output::{Outcome, print_findings, print_json, print_text, say};

pub fn run(args: &ConvertArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let dialect = match args.to.written() {
        Written::Dialect(dialect) => dialect,
        Written::Export(to) => return run_export(&book, args, to, options),
    };
    let mut target = Target::new(dialect);
    let place = args.out.as_deref().map(|out| Destination::of(out, args.to)).transpose()?;
    if let Some(place) = &place {
        (target.name, target.category) = (place.name.clone(), category(&place.folder));
    }
    let conversion = with_choice(&book, options, || book.convert(&args.prompt, &target))?;
    if args.strict {
        conversion.strictly()?;
    }
    let written = match &place {
        Some(place) => {
            let files: Vec<&OutFile> = conversion.files.iter().chain(&conversion.cases).collect();
            write(&files, &place.folder, args.force)?
        }
        None => Vec::new(),
    };
    if options.json {
        let mut object = conversion.to_json();
        object["written"] = json!(written);
        print_json(&object)?;
        return Ok(code(&conversion));
    }
    match (&place, conversion.files.as_slice()) {
        (Some(_), _) => written.iter().for_each(|path| say(format_args!("wrote {}", printable(path)))),
        (None, [file]) => print_text(&file.text)?,
        (None, files) => {
            let mut out = io::stdout().lock();
            for (index, file) in files.iter().enumerate() {
                let apart = if index > 0 { "\n" } else { "" };
                writeln!(out, "{apart}==> {} <==", file.path)?;
                out.write_all(file.text.as_bytes())?;
            }
            out.flush()?;
        }
    }
    if let (None, Some(cases)) = (&place, &conversion.cases) {
        say(format_args!(
            "its test cases are not shown; --out writes them next to it as {}\n",
            printable(&cases.path)
        ));
    }
    print_findings(conversion.report.entries.iter().map(|entry| &entry.finding));
    say(summary(&conversion));
    if place.is_some() {
        report_conflict(&book, &conversion, &target.category);
    }
    Ok(code(&conversion))
}

/// Writes a file for other programs.
fn run_export(book: &Book, args: &ConvertArgs, to: Export, options: &Options) -> Outcome {
    let place = args.out.as_deref().map(|out| ExportPlace::of(out, to, args.to.ending())).transpose()?;
    let name = place.as_ref().and_then(|place| place.name.as_deref());
    let exported = with_choice(book, options, || export(book, &args.prompt, to, name))?;
    if args.strict {
        exported.report.strictly(&exported.prompt)?;
    }
    let written = match &place {
        Some(place) => {
            let path = place.file.clone().unwrap_or_else(|| exported.path.clone());
            write(&[&OutFile { path, text: exported.text.clone() }], &place.folder, args.force)?
        }
        None => Vec::new(),
    };
    if options.json {
        let mut object = exported.to_json();
        object["written"] = json!(written);
        print_json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    match &place {
        Some(_) => written.iter().for_each(|path| say(format_args!("wrote {}", printable(path)))),
        None => print_text(&exported.text)?,
    }
    print_findings(exported.report.entries.iter().map(|entry| &entry.finding));
    say(losses(&exported.report));
    Ok(ExitCode::SUCCESS)
}

/// Where a file for other programs goes.
struct ExportPlace {
    folder: PathBuf,
    /// The name of the skill or of the `.prompt` file, if the user chose it.
    name: Option<String>,
    /// The name of the file, if the user chose it.
    file: Option<String>,
}

impl ExportPlace {
    fn of(out: &Path, to: Export, ending: &str) -> Result<ExportPlace> {
        let text = out.to_string_lossy();
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        if text.ends_with('/') || (out.is_dir() && !(to == Export::Skill && out.join("SKILL.md").exists())) {
            return Ok(ExportPlace { folder: out.to_owned(), name: None, file: None });
        }
        let file = name(out);
        match (to, &file) {
            (Export::Skill, Some(file)) => {
                let folder = if file == "SKILL.md" { parent(out) } else { out.to_owned() };
                let file = name(&folder).map(|name| format!("{name}/SKILL.md"));
                Ok(ExportPlace { name: name(&folder), folder: parent(&folder), file })
            }
            (_, Some(file)) if file.ends_with(ending) && file.len() > ending.len() => {
                let name = file.strip_suffix(ending).map(str::to_owned);
                Ok(ExportPlace { folder: parent(out), name, file: Some(file.clone()) })
            }
            _ => {
                let message = format!("--out names a file that does not end in `{ending}`");
                let hint = format!("write --out NAME{ending}, or name an existing folder");
                Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
            }
        }
    }
}

/// A result that says something else, for no reason that is known, is a failure.
fn code(conversion: &Conversion) -> ExitCode {
    if conversion.differs { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Tells if the result lies where it offers an id that something else offers as well, as what it was made from does.
fn report_conflict(book: &Book, conversion: &Conversion, category: &str) {
    let id = match (conversion.to, category) {
        (BuiltIn::Directive, category) if !category.is_empty() => format!("{category}/{}", conversion.name),
        _ => conversion.name.clone(),
    };
    // If candidates cannot be listed, the user of the prompt gets the reason.
    let Ok(offered) = book.list_candidates(&id) else { return };
    let sources: Vec<&str> = offered.iter().map(|candidate| candidate.source.as_str()).collect();
    if sources.len() > 1 && book.prepare(&id, &Context::default()).is_err() {
        say(format_args!(
            "\n{} candidates for `{id}` now: delete one, or choose with cuebook resolve {} SOURCE\n  {}",
            sources.len(),
            shell_word(&id),
            sources.join("\n  ")
        ));
    }
}

/// What became of it, in a line.
fn summary(conversion: &Conversion) -> String {
    let (losses, lossless) = (losses(&conversion.report), conversion.report.is_lossless());
    let apart = if conversion.report.entries.is_empty() { "" } else { "\n" };
    let renders = match conversion.compared {
        1 => "1 test render matches".to_owned(),
        renders => format!("{renders} test renders match"),
    };
    let without = match conversion.compared_without.as_slice() {
        [] => String::new(),
        without => format!("\n(in the comparison, {})", without.join("; ")),
    };
    match &conversion.uncompared {
        Some(why) => format!("{apart}{losses}; {why}"),
        None if lossless => format!("{apart}{losses}: {renders}"),
        None => format!("{apart}{losses}; otherwise {renders}{without}"),
    }
}

/// How much was lost or changed.
fn losses(report: &Report) -> String {
    let count = |fate: EntryKind| report.entries.iter().filter(|entry| entry.fate == fate).count();
    match (count(EntryKind::Lost), count(EntryKind::Changed)) {
        (0, 0) => "nothing is lost".to_owned(),
        (lost, 0) => format!("{lost} lost"),
        (0, changed) => format!("{changed} changed"),
        (lost, changed) => format!("{lost} lost, {changed} changed"),
    }
}

/// Where a result goes.
struct Destination {
    folder: PathBuf,
    /// The name without the ending; that of the prompt if it is missing.
    name: Option<String>,
}

impl Destination {
    fn of(out: &Path, to: To) -> Result<Destination> {
        let text = out.to_string_lossy();
        let name = out.file_name().map(|name| name.to_string_lossy().into_owned());
        if to == To::Template {
            // The folder is the prompt, and its name is the prompt's.
            let absolute = std::path::absolute(out).map_err(|error| files::io_error(&text, &error))?;
            let name = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
            let ends = [To::Sections, To::Prompty, To::Directive].map(To::ending);
            if let Some(ending) = ends.into_iter().find(|end| text.ends_with(end)).filter(|_| !out.is_dir()) {
                let message = format!("--out names a file ending in `{ending}`, but a template is a folder");
                let folder =
                    text.strip_suffix(ending).filter(|stem| !stem.is_empty() && !stem.ends_with('/'));
                let diagnostic = Diagnostic::new(Code::BadInput, message)
                    .hint(format!("name a folder: --out {}", folder.unwrap_or("NAME")));
                return Err(Error::new(ErrorKind::Usage, diagnostic));
            }
            return Ok(Destination { folder: out.to_owned(), name });
        }
        if out.is_dir() || text.ends_with('/') {
            return Ok(Destination { folder: out.to_owned(), name: None });
        }
        let stem =
            name.as_deref().and_then(|name| name.strip_suffix(to.ending())).filter(|stem| !stem.is_empty());
        let misnamed = to == To::Directive && text.ends_with(To::Sections.ending());
        match stem.filter(|_| !misnamed) {
            Some(stem) => {
                let folder = out.parent().unwrap_or(Path::new("")).to_owned();
                Ok(Destination { folder, name: Some(stem.to_owned()) })
            }
            None => {
                let message = format!("--out names a file that does not end in `{}`", to.ending());
                let stem = name.as_deref().and_then(|name| name.split('.').next()).unwrap_or("NAME");
                let better = out.with_file_name(format!("{stem}{}", to.ending()));
                let diagnostic = Diagnostic::new(Code::BadInput, message)
                    .hint(format!("write --out {}, or name an existing folder", better.display()));
                Err(Error::new(ErrorKind::Usage, diagnostic))
            }
        }
    }
}

/// The category of a directive that lies in a folder: the way to it from `.ai/directives`.
fn category(folder: &Path) -> String {
    let Ok(absolute) = std::path::absolute(folder) else { return String::new() };
    let parts: Vec<String> = absolute
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    let found = parts.windows(2).rposition(|pair| pair[0] == ".ai" && pair[1] == "directives");
    found.map_or_else(String::new, |at| parts[at + 2..].join("/"))
}

/// Writes the files, or none of them.
fn write(files: &[&OutFile], folder: &Path, force: bool) -> Result<Vec<String>> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    let there: Vec<bool> = paths.iter().map(|path| path.symlink_metadata().is_ok()).collect();
    if let Some((path, _)) = paths.iter().zip(&there).find(|(_, there)| **there && !force) {
        let message = "the file exists; nothing was written";
        let diagnostic = Diagnostic::new(Code::WouldOverwrite, message)
            .file(path.to_string_lossy())
            .hint("name another path with --out, or overwrite it with --force");
        return Err(Error::new(ErrorKind::Io, diagnostic));
    }
    let mut done: Vec<String> = Vec::new();
    for (index, (file, path)) in files.iter().zip(&paths).enumerate() {
        let name = path.to_string_lossy().into_owned();
        if let Err(error) = files::write_atomic(path, &name, file.text.as_bytes()) {
            // Half a prompt is useless, so the new files are removed.
            for (path, _) in paths[..index].iter().zip(&there).filter(|(_, there)| !**there) {
                let _ = std::fs::remove_file(path);
            }
            return Err(error);
        }
        done.push(name);
    }
    Ok(done)
}
