//! Grants that concern the sandbox around tools that a model calls.

use super::{Power, Request};
use crate::dialect::tool::{self, Notation};
use crate::error::Result;
use crate::items::{ItemType, SpaceKind, Spaces};

/// The largest file of a tool.
const LARGEST_TOOL: u64 = 4 << 20;

impl Request {
    /// All tools of the project run without the sandbox.
    pub fn unfenced() -> Request {
        let shown = "Tools that a model calls run without the sandbox: they can do everything that you can.";
        Request::new(Power::Unfenced, "unfenced", shown)
    }

    /// A tool of the project may reach these network hosts when a model calls it.
    pub fn hosts(tool: &str, hosts: &[String]) -> Request {
        Request::new(Power::Hosts, format!("hosts of {tool}"), hosts.join("\n"))
    }
}

/// The requests for the network hosts that tools of a project declare. A tool that cannot be read declares none.
pub fn hosts_requests(spaces: &Spaces) -> Result<Vec<Request>> {
    let Some(project) = spaces.space(SpaceKind::Project) else { return Ok(Vec::new()) };
    let mut requests = Vec::new();
    for located in spaces.walk(ItemType::Tool, project)? {
        let Some(notation) = Notation::of_extension(located.extension) else { continue };
        let id = located.id.to_string();
        let tool = located.read(LARGEST_TOOL).and_then(|item| tool::read(&item.source()?, notation));
        let hosts = tool.map(|tool| tool.hosts()).unwrap_or_default();
        if !hosts.is_empty() {
            requests.push(Request::hosts(&id, &hosts));
        }
    }
    Ok(requests)
}
