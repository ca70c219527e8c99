//! A project and a user of their own, with a key that is trusted.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use cuebook::items::{ItemType, SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook_run::{Engine, ExecuteRequest, Fence, Ignore, Settings};
use serde_json::{Map, Value as Json};

pub struct Fixture {
    folders: [tempfile::TempDir; 2],
    key: SigningKey,
    pub engine: Engine,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture::with(Settings::default())
    }

    /// Tools run without the sandbox: only a program whose `main` calls the launcher can fence them in.
    pub fn with(settings: Settings) -> Fixture {
        let settings = Settings { fence: Fence::Off, ..settings };
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let real = |folder: &tempfile::TempDir| folder.path().canonicalize().unwrap();
        let spaces = Spaces::new(&real(&folders[0]), Some(&real(&folders[1])));
        let seed: Vec<u8> = (0..32).collect();
        let key = SigningKey::from_seed(&seed.try_into().unwrap()).unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        Trust::new(&spaces).add(SpaceKind::User, key.public(), "tests", None, now).unwrap();
        Fixture { folders, key, engine: Engine::new(spaces).with_settings(settings) }
    }

    pub fn project(&self) -> PathBuf {
        self.folders[0].path().canonicalize().unwrap()
    }

    pub fn user(&self) -> PathBuf {
        self.folders[1].path().canonicalize().unwrap()
    }

    /// Grants everything that the project asks for.
    pub fn allow(&self) -> &Fixture {
        let spaces = Spaces::new(&self.project(), Some(&self.user()));
        let library = cuebook::library::Library::open(self.project()).with_spaces(spaces);
        let requests = library.requests().unwrap();
        library.grants().unwrap().allow(&requests, jiff::Timestamp::UNIX_EPOCH).unwrap();
        self
    }

    /// Writes a file below the project's `.ai`, signed.
    pub fn signed(&self, path: &str, text: &str) -> &Fixture {
        self.signed_in(&self.project(), path, text)
    }

    pub fn signed_in(&self, root: &Path, path: &str, text: &str) -> &Fixture {
        let extension = path.rsplit('.').next().unwrap();
        let (purpose, now) = (Purpose::at(path).unwrap(), jiff::Timestamp::UNIX_EPOCH);
        let bytes = sign_for(&purpose, extension, text.as_bytes(), &self.key, now).unwrap();
        write(&root.join(".ai").join(path), &bytes);
        self
    }

    /// Writes a file below the project as it is.
    pub fn plain(&self, path: &str, text: &str) -> &Fixture {
        write(&self.project().join(path), text.as_bytes());
        self
    }

    /// A Python program as a tool of the project.
    pub fn python(&self, id: &str, code: &str) -> &Fixture {
        let category = id.rsplit_once('/').map_or("", |(category, _)| category);
        let text = format!(
            "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__executor_id__ = \"rye/core/runtimes/python/script\"\n\
             __category__ = \"{category}\"\n__tool_description__ = \"A test\"\n{code}"
        );
        self.signed(&format!("tools/{id}.py"), &text)
    }

    pub fn tool(&self, id: &str, parameters: Json) -> Json {
        self.run("tool", id, parameters)
    }

    pub fn run(&self, kind: &str, id: &str, parameters: Json) -> Json {
        self.engine.answer(&request(kind, id, parameters), &Ignore).json
    }

    pub fn dry(&self, kind: &str, id: &str, parameters: Json) -> Json {
        let request = ExecuteRequest { dry_run: true, ..request(kind, id, parameters) };
        self.engine.answer(&request, &Ignore).json
    }
}

pub fn request(kind: &str, id: &str, parameters: Json) -> ExecuteRequest {
    let parameters = match parameters {
        Json::Object(map) => map,
        Json::Null => Map::new(),
        other => panic!("{other} is no object"),
    };
    ExecuteRequest { parameters, ..ExecuteRequest::new(ItemType::named(kind).unwrap(), id) }
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
