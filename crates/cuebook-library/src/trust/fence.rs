//! Grants that concern the sandbox around tools that a model calls.

use super::{Power, Request, interpreter_request};
use crate::error::Result;
use crate::items::{ItemType, SpaceKind, Spaces};
use crate::limits::FILE_BYTES;
use crate::notation::tool::{self, Notation};

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

/// The requests of a project's tools: network hosts that they declare, and programs of the project that they start. A tool that
/// cannot be read asks for nothing.
pub fn tool_requests(spaces: &Spaces) -> Result<Vec<Request>> {
    let Some(project) = spaces.space(SpaceKind::Project) else { return Ok(Vec::new()) };
    let mut requests = Vec::new();
    for located in spaces.walk(ItemType::Tool, project)? {
        let Some(notation) = Notation::of_extension(located.extension) else { continue };
        let id = located.id.to_string();
        let tool = located.read(FILE_BYTES).and_then(|item| tool::read(&item.source()?, notation));
        let Ok(tool) = tool else { continue };
        let hosts = tool.hosts();
        if !hosts.is_empty() {
            requests.push(Request::hosts(&id, &hosts));
        }
        let program = tool.program().map(|program| spaces.project().join(program));
        if let Some(program) = program.filter(|program| program.is_file()) {
            requests.extend(interpreter_request(spaces.project(), &program)?);
        }
    }
    Ok(requests)
}
