//! Shapes of libraries, packs and signed items.

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{ContentDigest, SigningKey, Trust};
use jiff::Timestamp;

use super::shape::{Project, Shape, each, words};

pub fn shapes() -> Vec<Shape> {
    vec![
        Shape::new("prompts of a library, listed", "list", 8_000, |project, size| {
            library(project, size)?;
            words("list")
        }),
        Shape::new("prompts of a library, checked", "check", 4_000, |project, size| {
            library(project, size)?;
            words("check")
        }),
        Shape::new("prompts of a library, as typed Python", "stubs", 4_000, |project, size| {
            library(project, size)?;
            words("stubs")
        }),
        Shape::new("one prompt among many", "candidates", 8_000, |project, size| {
            library(project, size)?;
            words("candidates p1")
        }),
        Shape::new("a choice among many", "resolve", 4_000, |project, size| {
            library(project, size)?;
            words("resolve p1 prompts/p1")
        }),
        Shape::new("unknown prompt among many", "render", 8_000, |project, size| {
            library(project, size)?;
            words("render prompt")
        })
        .code(1),
        Shape::new("a pack of many prompts", "pack", 1_000, |project, size| {
            let ids: Vec<String> = (0..size).map(|n| format!("\"p{n}\"")).collect();
            let manifest = format!(
                "{{\"pack_id\": \"many\", \"version\": \"1.0.0\", \"prompts\": [{}]}}",
                ids.join(", ")
            );
            project.write("pack/pack.json", manifest)?;
            for n in 0..size {
                project.write(&format!("pack/prompts/p{n}/template.md"), "Hi")?;
            }
            project.prepare("cuebook", &["pack", "install", "pack", "--yes"])?;
            words("pack list")
        }),
        Shape::new("a locked pack of many prompts", "packages", 1_000, |project, size| {
            project.write(
                "pack/pack.json",
                "{\"pack_id\": \"many\", \"version\": \"1.0.0\", \"prompts\": []}",
            )?;
            for n in 0..size {
                project.write(&format!("pack/prompts/p{n}/template.md"), "Hi")?;
            }
            project.prepare("cuebook", &["add", "pack"])?;
            words("sync --frozen")
        }),
        Shape::new("packs in the lockfile", "packages", 1_000, |project, size| {
            let mut lock = "version = 1\n".to_owned();
            for n in 0..size {
                lock += &locked_pack(project, n)?;
            }
            project.write("cuebook.lock", lock)?;
            words("sync --frozen")
        }),
        Shape::new("signed directives", "verify", 2_000, |project, size| {
            directives(project, size)?;
            sign(project)?;
            words("verify")
        }),
        Shape::new("directives to sign", "sign", 2_000, |project, size| {
            directives(project, size)?;
            project.prepare("cuebook", &["keys", "generate"])?;
            words("sign directive many/*")
        }),
        Shape::new("items to search", "search", 4_000, |project, size| {
            directives(project, size)?;
            words("search number")
        }),
        Shape::new("a long directive", "load", 4_000, |project, size| {
            long_directive(project, size)?;
            sign(project)?;
            words("load directive many/long")
        }),
        Shape::new("a directive with many inputs", "execute", 2_000, |project, size| {
            long_directive(project, size)?;
            sign(project)?;
            words("execute directive many/long --dry-run")
        }),
        Shape::new("rows of a file", "batch", 20_000, |project, size| {
            project.write("prompts/greet/template.md", "Hello {{ name }}, {{ city }}.\n")?;
            let rows: String = (0..size).map(|n| format!("Person {n},Town {n}\n")).collect();
            project.write("people.csv", format!("name,city\n{rows}"))?;
            words("batch greet people.csv")
        }),
        Shape::new("knowledge", "search", 4_000, |project, size| {
            for n in 0..size {
                let text =
                    format!("---\nname: k{n}\ntitle: Fact {n}\ncategory: facts\n---\n\nFact number {n}.\n");
                project.write(&format!(".ai/knowledge/facts/k{n}.md"), text)?;
            }
            words("search fact")
        }),
        Shape::new("one key among trusted keys", "keys", 2_000, |project, size| {
            keys(project, size).map_err(|error| error.to_string())?;
            words("keys list")
        }),
        Shape::new("trusted keys", "trust", 2_000, |project, size| {
            keys(project, size).map_err(|error| error.to_string())?;
            words("trust list")
        }),
    ]
}

/// A key of the user, and so many others that the user trusts.
fn keys(project: &Project, size: usize) -> cuebook::Result<()> {
    let spaces = Spaces::new(&project.root(), Some(&project.home()));
    let trust = Trust::new(&spaces);
    let own = SigningKey::generate()?;
    own.save(&spaces, false)?;
    trust.add(SpaceKind::User, own.public(), "me", Some(&own), Timestamp::UNIX_EPOCH)?;
    for n in 0..size {
        let other = SigningKey::generate()?;
        trust.add(SpaceKind::User, other.public(), &format!("o{n}"), Some(&own), Timestamp::UNIX_EPOCH)?;
    }
    Ok(())
}

/// Installs a pack, and gives its entry in the lockfile.
fn locked_pack(project: &Project, n: usize) -> Result<String, String> {
    let folder = format!("user_data/packs/p{n}");
    let manifest = format!("{{\"pack_id\": \"p{n}\", \"version\": \"1.0.0\", \"prompts\": []}}");
    project.write(&format!("{folder}/pack.json"), manifest)?;
    project.write(&format!("{folder}/prompts/p{n}/template.md"), "Hi")?;
    let content = ContentDigest::of(&project.root().join(&folder), &folder, u64::MAX);
    let content = content.map_err(|error| error.to_string())?;
    let digest = content.digest();
    let files: String =
        content.files().map(|file| format!("\"{}\" = \"{}\"\n", file.path, file.sha256)).collect();
    Ok(format!(
        "\n[[package]]\nname = \"p{n}\"\ntype = \"pack\"\nversion = \"1.0.0\"\nsource = \"../p{n}\"\n\
         digest = \"{digest}\"\n\n[package.files]\n{files}"
    ))
}

fn library(project: &Project, size: usize) -> Result<(), String> {
    for n in 0..size {
        project.write(&format!("prompts/p{n}/template.md"), format!("Hi {{{{ name{n} }}}}!"))?;
    }
    Ok(())
}

fn directive(name: &str, inputs: &str, steps: &str) -> String {
    format!(
        "# {name}\n\nSays a number.\n\n```xml\n<directive name=\"{name}\" version=\"1.0.0\">\n  <metadata>\n    \
         <description>Says a number</description>\n    <category>many</category>\n    <author>bench</author>\n  </metadata>\n  \
         <inputs>\n{inputs}  </inputs>\n  <outputs>\n    <output name=\"said\">What was said</output>\n  </outputs>\n\
         </directive>\n```\n\n<process>\n{steps}</process>\n"
    )
}

fn directives(project: &Project, size: usize) -> Result<(), String> {
    for n in 0..size {
        let text = directive(&format!("d{n}"), "", &format!("  <step name=\"say\">Say {n}.</step>\n"));
        project.write(&format!(".ai/directives/many/d{n}.md"), text)?;
    }
    Ok(())
}

fn sign(project: &Project) -> Result<(), String> {
    project.prepare("cuebook", &["keys", "generate"])?;
    project.prepare("cuebook", &["sign", "directive", "many/*"])
}

fn long_directive(project: &Project, size: usize) -> Result<(), String> {
    let inputs = each(size, |n| format!("    <input name=\"v{n}\" default=\"x\">Value {n}</input>\n"));
    let steps = each(size, |n| format!("  <step name=\"s{n}\">Say {{input:v{n}}}.</step>\n"));
    project.write(".ai/directives/many/long.md", directive("long", &inputs, &steps))
}
