//! What threads cost: a turn without its model and its tools, a thousand threads that wait, and a whole thread against Rye OS in
//! Python. The model is a scripted server at a port of this machine; writes are durable, on the disk that has the build folder.

mod against;
mod memory;
mod overhead;
mod peer;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook_mock::{Api, Mock};
use tempfile::TempDir;

pub use memory::be_a_crowd;

/// Greets a person: the same file for the peer, which wants a provider by its name and a tool that the thread may call.
pub(crate) const DIRECTIVE: &str = "# Greet\n\nGreets a person.\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    \
    <description>Greets a person</description>\n    <category>bench</category>\n    <author>bench</author>\n    \
    <model tier=\"fast\" provider=\"anthropic\"/>\n    <limits turns=\"50\" tokens=\"1000000\" />\n    <permissions>\n      <execute>\n        \
    <tool>rye.file-system.read</tool>\n        <directive>bench.*</directive>\n      </execute>\n    </permissions>\n  </metadata>\n  \
    <inputs>\n    <input name=\"who\" type=\"string\" required=\"true\">Whom</input>\n  </inputs>\n  <outputs>\n    \
    <output name=\"greeting\" type=\"string\">The greeting</output>\n  </outputs>\n</directive>\n```\n\n\
    <process>\n  <step name=\"greet\">Greet {input:who}.</step>\n</process>\n";

/// Prints the rows.
pub fn run() -> Result<(), Box<dyn Error>> {
    overhead::run()?;
    memory::run()?;
    against::run()
}

/// A project and a user on the disk of the build folder, who know one provider: the scripted server.
pub(crate) struct TestProject {
    pub(crate) project: TempDir,
    pub(crate) user: TempDir,
}

impl TestProject {
    pub(crate) fn new(mock: &Mock) -> Result<TestProject, Box<dyn Error>> {
        let folder = folder()?;
        let place =
            TestProject { project: tempfile::tempdir_in(&folder)?, user: tempfile::tempdir_in(&folder)? };
        let spaces = place.spaces();
        let key = SigningKey::generate()?;
        let now = "2026-02-26T00:00:00Z".parse()?;
        Trust::new(&spaces).add(SpaceKind::User, key.public(), "me", Some(&key), now)?;
        let write = |path: PathBuf, bytes: &[u8]| -> std::io::Result<()> {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            std::fs::write(path, bytes)
        };
        let purpose = Purpose::at("directives/bench/greet.md").ok_or("no purpose")?;
        let directive = sign_for(&purpose, "md", DIRECTIVE.as_bytes(), &key, now)?;
        write(place.project.path().join(".ai/directives/bench/greet.md"), &directive)?;
        let provider = mock.provider_yaml(Api::Anthropic).replace("name: mock\n", "name: anthropic\n");
        let provider = provider.replace("key: MOCK_KEY\n", "");
        write(place.user.path().join(".ai/config/providers/anthropic.yaml"), provider.as_bytes())?;
        // Files that have just been written are looked at more closely than others.
        std::thread::sleep(Duration::from_millis(50));
        Ok(place)
    }

    pub(crate) fn spaces(&self) -> Spaces {
        Spaces::new(self.project.path(), Some(self.user.path()))
    }
}

/// A folder on the disk of the build folder: the usual one for such files may lie in memory.
fn folder() -> Result<PathBuf, Box<dyn Error>> {
    let here = std::env::current_exe()?;
    let target = here.ancestors().nth(2).ok_or("the benchmark is not in a build folder")?;
    let folder = target.join("tmp");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// What is at most as long for so many of a hundred.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
