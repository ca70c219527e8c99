//! `cuebook load`

use std::process::ExitCode;

use cuebook::actions::load::{LoadRequest, load};
use cuebook::items::SpaceKind;
use cuebook::trust::Trust;

use crate::args::{LoadArgs, Options};
use crate::output::{Outcome, print_json, print_text, say};

pub fn run(args: &LoadArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let mut request = LoadRequest::new(args.kind.into(), &args.id).replace(args.replace);
    request.source = args.from.map(SpaceKind::from);
    request.destination = args.to.map(SpaceKind::from);
    let loaded = load(&spaces, &trust, &request)?;
    if options.json {
        print_json(&loaded.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    match &loaded.copy {
        Some((_, path)) => say(format_args!("copied to {}", path.display())),
        None => print_text(&String::from_utf8_lossy(&loaded.item.bytes))?,
    }
    Ok(ExitCode::SUCCESS)
}
