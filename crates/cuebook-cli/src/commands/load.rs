//! `cuebook load`

use std::process::ExitCode;

use cuebook::actions::load::{LoadRequest, load};
use cuebook::dialect::skill::{SKILL_FILE, SkillFile, SkillFolder};
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::{ItemType, SpaceKind};
use cuebook::library::{Root, RootKind};
use cuebook::trust::Trust;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::{Map, Value as Json, json};

use super::skills;
use crate::args::{LoadArgs, Options};
use crate::output::{Outcome, print_json, print_text, say};

/// The folders that get copies of skills.
const PROJECT_SKILLS: &str = "skills";
const USER_SKILLS: &str = ".agents/skills";

pub fn run(args: &LoadArgs, options: &Options) -> Outcome {
    match args.kind.item() {
        Some(kind) => item(kind, args, options),
        None => skill(args, options),
    }
}

fn item(kind: ItemType, args: &LoadArgs, options: &Options) -> Outcome {
    if args.file.is_some() {
        let diagnostic = Diagnostic::new(Code::BadInput, "only a skill has several files");
        let hint = format!("load the item: cuebook load {} {}", kind.as_str(), args.id);
        return Err(Error::new(ErrorKind::Usage, diagnostic.hint(hint)).into());
    }
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let mut request = LoadRequest::new(kind, &args.id).replace(args.replace);
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

/// Prints a file of a skill, or copies the skill. A signed skill that was changed is refused.
fn skill(args: &LoadArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let (skill, space) = skill_in(&book, &args.id, args.from.map(SpaceKind::from))?;
    skill.signature(book.library().trust())?;
    if let Some(to) = args.to.map(SpaceKind::from) {
        return copy(&book, &skill, space, to, args.replace, options);
    }
    let path = args.file.as_deref().unwrap_or(SKILL_FILE);
    let Some(bytes) = skill.read(path)? else {
        let paths = skill.paths()?;
        let near = did_you_mean(&nearest(path, paths.iter().map(String::as_str)));
        let hint = near.unwrap_or_else(|| format!("its files: {}", paths.join(", ")));
        let diagnostic = Diagnostic::new(Code::ItemNotFound, format!("the skill has no file `{path}`"));
        return Err(Error::new(ErrorKind::ItemNotFound, diagnostic.file(skill.shown()).hint(hint)).into());
    };
    let text = String::from_utf8_lossy(&bytes);
    if options.json {
        let mut object = document(&skill, space)?;
        object["file"] = json!(path);
        object["content"] = json!(text);
        print_json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The skill of a name, in a space if one is wanted.
fn skill_in(book: &Book, id: &str, wanted: Option<SpaceKind>) -> Result<(SkillFolder, SpaceKind)> {
    let Some(wanted) = wanted else {
        let skill = skills::named(book, id)?;
        return Ok((skill, space_of(&book.find(id)?.candidate.root)));
    };
    let candidates = match book.library().candidates(id, false) {
        Ok(candidates) => candidates,
        Err(error) => return Err(skills::named(book, id).err().unwrap_or(error)),
    };
    let limit = book.library().file_limit()?;
    for candidate in candidates.iter().filter(|candidate| space_of(&candidate.root) == wanted) {
        if let Some(skill) = SkillFolder::of(candidate, limit)? {
            return Ok((skill, wanted));
        }
    }
    let message = format!("no skill of the {} space has the name `{id}`", wanted.as_str());
    let diagnostic = Diagnostic::new(Code::ItemNotFound, message).hint("leave out --from");
    Err(Error::new(ErrorKind::ItemNotFound, diagnostic))
}

fn copy(
    book: &Book,
    skill: &SkillFolder,
    space: SpaceKind,
    to: SpaceKind,
    replace: bool,
    options: &Options,
) -> Outcome {
    let library = book.library();
    let (root, folder, shown) = match to {
        SpaceKind::Project => (library.root(), PROJECT_SKILLS, PROJECT_SKILLS.to_owned()),
        _ => {
            let home = library.spaces().home().ok_or_else(|| {
                let diagnostic = Diagnostic::new(Code::BadInput, "there is no user space to copy to");
                Error::new(ErrorKind::Usage, diagnostic.hint("set USER_SPACE to a folder"))
            })?;
            (home, USER_SKILLS, format!("~/{USER_SKILLS}"))
        }
    };
    let target = root.join(folder);
    if to == SpaceKind::Project {
        files::stays_inside(root, &target.join(skill.name()), &shown)?;
    }
    // A skill that is in this space already is not copied.
    let copied = match space == to {
        true => None,
        false => Some(skill.copy_to(&target, &shown, replace)?),
    };
    let place = copied.as_deref().unwrap_or(skill.folder()).display().to_string();
    if options.json {
        let mut object = document(skill, space)?;
        if copied.is_some() {
            object["copied_to"] = json!(to.as_str());
            object["destination_path"] = json!(place);
        }
        print_json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    match copied {
        Some(_) => say(format_args!("copied to {place}")),
        None => say(format_args!("the skill is already at {place}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The skill as scripts see it.
fn document(skill: &SkillFolder, space: SpaceKind) -> Result<Json> {
    let file = |(path, file): (String, SkillFile)| (path, json!({"size": file.size, "sha256": file.sha256}));
    let files: Map<String, Json> = skill.files()?.into_iter().map(file).collect();
    Ok(json!({
        "status": "success",
        "name": skill.name(),
        "description": skill.description(),
        "metadata": skill.front_matter(),
        "path": skill.folder(),
        "source": space.as_str(),
        "files": files,
    }))
}

/// The space of a skill. Packs belong to the project.
fn space_of(root: &Root) -> SpaceKind {
    match root.kind {
        RootKind::Configured if root.name.starts_with("~/") => SpaceKind::User,
        RootKind::Space(kind) => kind,
        _ => SpaceKind::Project,
    }
}
