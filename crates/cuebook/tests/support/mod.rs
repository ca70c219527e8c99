//! A project in a temporary folder.

#![allow(dead_code, missing_docs)] // Each test binary uses a part of it.

use std::fs;
use std::path::PathBuf;

use cuebook::items::Spaces;
use cuebook::variables::FixedClock;
use cuebook::{Book, Context, Error, Rendered, UnknownVariables, Variables};
use serde_json::Value as Json;

pub struct Project {
    folder: tempfile::TempDir,
    /// What its user granted and approved is stored here, and not in the home folder of who runs the tests.
    user: tempfile::TempDir,
}

impl Project {
    pub fn new() -> Project {
        Project { folder: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() }
    }

    /// A project with one prompt `p` that is a template and nothing else.
    pub fn with_template(template: &str) -> Project {
        Project::new().file("prompts/p/template.md", template)
    }

    pub fn file(self, path: &str, text: &str) -> Project {
        self.write(path, text);
        self
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Grants everything that the project asks for.
    pub fn allow(&self) {
        let book = self.book();
        let requests = book.library().requests().unwrap();
        book.library().grants().unwrap().allow(&requests, jiff::Timestamp::UNIX_EPOCH).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// A book whose clock stands at half past three on 20 February 2026 in Tokyo.
    pub fn book(&self) -> Book {
        Book::open(self.folder.path())
            .with_spaces(Spaces::new(self.folder.path(), Some(self.user.path())))
            .with_paths(true)
            .with_clock(FixedClock::at("2026-02-20T15:30:00+09:00[Asia/Tokyo]").unwrap())
    }

    pub fn render(&self, prompt: &str, variables: Json) -> Result<Rendered, Error> {
        // Many tests give one set of values to several templates.
        let context = Context { unknown: UnknownVariables::Ignore, ..Context::default() };
        self.book().render(prompt, &values(variables), &context)
    }

    pub fn text(&self, prompt: &str, variables: Json) -> String {
        self.render(prompt, variables).unwrap_or_else(|error| panic!("{error}")).into_text()
    }

    pub fn error(&self, prompt: &str, variables: Json) -> Error {
        match self.render(prompt, variables) {
            Ok(rendered) => panic!("rendered {:?}", rendered.text()),
            Err(error) => error,
        }
    }
}

pub fn values(json: Json) -> Variables {
    Variables::from_json(json.as_object().unwrap())
}
