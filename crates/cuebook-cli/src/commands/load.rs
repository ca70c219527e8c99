//! `cuebook load`

use std::process::ExitCode;

use cuebook::actions::load::{LoadRequest, load};
use cuebook::items::{ItemType, SpaceKind};
use cuebook::trust::Trust;

use crate::args::{LoadArgs, Options};
use crate::output::{Outcome, print_json, print_text, say};

pub fn run(args: &LoadArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let request = LoadRequest {
        item_type: ItemType::from(args.kind).as_str().to_owned(),
        item_id: args.id.clone(),
        source: args.from.map(|space| SpaceKind::from(space).as_str().to_owned()),
        destination: args.to.map(|space| SpaceKind::from(space).as_str().to_owned()),
        replace: args.replace,
    };
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
