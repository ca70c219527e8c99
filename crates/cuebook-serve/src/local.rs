//! The items of this machine: what the four tools do for whoever serves a project.
//!
//! A call names its project, and by default it is the server's. What is known of a project (what was searched, whose keys are
//! trusted) is kept between calls; all of it notices files that have changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use cuebook::items::load::LoadRequest;
use cuebook::items::search::{SearchRequest, Searcher};
use cuebook::items::sign::SignRequest;
use cuebook::items::{Item, Spaces, load, sign};
use cuebook::trust::Trust;
use cuebook_run::Engine;
use serde_json::{Value as Json, json};

use crate::items::{Arguments, Items, Watch};

/// Executes, searches, loads and signs the items of projects on this machine, in the name of whoever runs it.
pub struct LocalItems {
    engine: Engine,
    spaces: Spaces,
    projects: Mutex<HashMap<PathBuf, Arc<Project>>>,
}

/// What is kept of a project.
struct Project {
    spaces: Spaces,
    trust: Trust,
    searcher: Searcher,
}

/// How many projects are kept.
const MOST_PROJECTS: usize = 64;

impl LocalItems {
    /// The items that a project sees, and those of other projects of the same user.
    pub fn new(spaces: Spaces) -> LocalItems {
        LocalItems { engine: Engine::new(spaces.clone()), spaces, projects: Mutex::default() }
    }

    /// The project that a call is about.
    fn project(&self, arguments: &Arguments) -> Result<Arc<Project>, Json> {
        let given = arguments.get("project_path").and_then(Json::as_str);
        let path = given.map_or(self.spaces.project(), Path::new);
        let wrong = |message: &str| {
            let error = format!("{message}: {}", path.display());
            Err(
                json!({"status": "error", "error": error, "hint": "`project_path` is the absolute path of a folder"}),
            )
        };
        if !path.is_absolute() {
            return wrong("the project's path is not absolute");
        }
        if !path.is_dir() {
            return wrong("the project is no folder");
        }
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = projects.get(path) {
            return Ok(known.clone());
        }
        let spaces = match path == self.spaces.project() {
            true => self.spaces.clone(),
            false => Spaces::new(path, self.spaces.user_folder().as_deref().and_then(Path::parent)),
        };
        let (trust, searcher) = (Trust::new(&spaces), Searcher::new(spaces.clone()));
        let project = Arc::new(Project { spaces, trust, searcher });
        if projects.len() >= MOST_PROJECTS {
            projects.clear();
        }
        projects.insert(path.to_owned(), project.clone());
        Ok(project)
    }

    fn with_project(&self, arguments: &Arguments, answer: impl FnOnce(&Project, &Json) -> Json) -> Json {
        match self.project(arguments) {
            Ok(project) => answer(&project, &Json::Object(arguments.clone())),
            Err(wrong) => wrong,
        }
    }
}

impl Items for LocalItems {
    fn execute(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        let watch = Seconds { watch, began: Instant::now() };
        self.engine.execute_json(&Json::Object(arguments.clone()), &watch)
    }

    fn search(&self, arguments: &Arguments, _: &dyn Watch) -> Json {
        self.with_project(arguments, |project, request| {
            project.searcher.search(&SearchRequest::from_json(request), &project.trust)
        })
    }

    fn load(&self, arguments: &Arguments, _: &dyn Watch) -> Json {
        self.with_project(arguments, |project, request| {
            load::answer(&project.spaces, &project.trust, &LoadRequest::from_json(request))
        })
    }

    fn sign(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        #[expect(clippy::cast_precision_loss, reason = "nobody signs so many items that it shows")]
        let mut progress = |done: usize, all: usize| watch.progress(done as f64, Some(all as f64), "signed");
        self.with_project(arguments, |project, request| {
            let request = SignRequest::from_json(request);
            sign::sign(&project.spaces, &project.trust, &request, jiff::Timestamp::now(), &mut progress)
        })
    }

    fn verify(&self, item: &Item) -> cuebook::Result<()> {
        match self.project(&Arguments::new()) {
            Ok(project) => project.trust.verify(item).map(drop),
            // The server's own folder is gone; then so is the item.
            Err(_) => Ok(()),
        }
    }
}

/// A run says that it goes on, and not how far it is: what is told is how many seconds have passed.
struct Seconds<'w> {
    watch: &'w dyn Watch,
    began: Instant,
}

impl cuebook_run::Watch for Seconds<'_> {
    fn cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }

    fn progress(&self, message: &str) {
        self.watch.progress(self.began.elapsed().as_secs_f64(), None, message);
    }
}
