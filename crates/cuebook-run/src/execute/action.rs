//! Runs the four actions.

use cuebook::actions::load::LoadRequest;
use cuebook::actions::search::SearchRequest;
use cuebook::actions::sign::SignRequest;
use cuebook::actions::{load, sign};
use serde_json::{Map, Value as Json};

use crate::actions::Action;
use crate::engine::Engine;
use crate::watch::Watch;

impl Action {
    /// Does it.
    pub fn run(self, engine: &Engine, arguments: &Map<String, Json>, watch: &dyn Watch) -> Json {
        let request = Json::Object(arguments.clone());
        if self == Action::Execute {
            return engine.execute_json(&request, watch);
        }
        let allowed =
            engine.settings().allowance.as_ref().map_or(Ok(()), |known| known.check(self, arguments));
        let project =
            allowed.and_then(|()| engine.project_of(arguments.get("project_path").and_then(Json::as_str)));
        let project = match project {
            Ok(project) => project,
            Err(error) => return Action::refusal(&error),
        };
        match self {
            Action::Search => project.searcher().search(&SearchRequest::from_json(&request), project.trust()),
            Action::Load => load::answer(&project.spaces, project.trust(), &LoadRequest::from_json(&request)),
            Action::Sign | Action::Execute => {
                let request = SignRequest::from_json(&request);
                let mut progress =
                    |done: usize, all: usize| watch.progress(&format!("signed {done} of {all}"));
                sign::sign(&project.spaces, project.trust(), &request, jiff::Timestamp::now(), &mut progress)
            }
        }
    }
}
