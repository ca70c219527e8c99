//! Where the body of a streamed answer goes: into the answer as events, or into a file of the project.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use cuebook::chat::reply::Sse;
use cuebook::hooks::HttpResponse;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use serde_json::{Map, Value as Json, json};

use super::{Call, runtime};
use crate::anchor::bad_runtime;
use crate::config::{Encoding, Values};
use crate::fence;
use crate::watch::Watch;

/// The most bytes of a file.
const MAX_FILE: u64 = 1 << 30;
/// The most characters of an event that are shown while it streams.
const SHOWN: usize = 200;

/// Takes a body as it arrives.
pub(crate) enum Sink {
    Events(Events),
    File(ToFile),
}

/// The events of a body: those of an event stream, or else its lines.
pub(crate) struct Events {
    sse: Sse,
    /// What came after the last complete line.
    line: Vec<u8>,
    events: Vec<Json>,
    bytes: usize,
    most: usize,
    failed: Option<Error>,
}

/// A file that takes the place of an older one when the body is complete.
pub(crate) struct ToFile {
    /// As the tool names it.
    name: String,
    /// The folder that it is in. It stays the same one if another process moves it or puts a link in its place.
    folder: OwnedFd,
    target: OsString,
    temporary: OsString,
    file: File,
    bytes: u64,
    failed: Option<io::Error>,
}

impl Sink {
    /// The sink that a configuration names; none if it does not stream.
    pub(crate) fn of(
        values: &Values<'_>,
        call: &Call<'_>,
        last: &crate::chain::Element,
    ) -> Result<Option<Sink>> {
        let streams = values.config.get("mode").and_then(Json::as_str) == Some("stream");
        let sink = values.config.get("sink").filter(|sink| !sink.is_null());
        let wrong =
            |message: &str, hint: &str| bad_runtime(runtime(call).or(Some(last)), message.to_owned(), hint);
        match (streams, sink) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(wrong("`sink` needs `mode: stream`", "add mode: stream, or remove sink")),
            (true, None) => Ok(Some(Sink::events(call.settings.output))),
            (true, Some(Json::String(name))) if name == "events" => {
                Ok(Some(Sink::events(call.settings.output)))
            }
            (true, Some(Json::Object(sink)))
                if sink.len() == 1 && sink.get("file").is_some_and(Json::is_string) =>
            {
                let name = values.text(sink["file"].as_str().unwrap_or_default(), Encoding::Plain);
                Ok(Some(Sink::File(ToFile::create(call.project, name)?)))
            }
            (true, Some(_)) => Err(wrong(
                "`sink` is neither events nor a file",
                "write sink: events, or sink: {file: out.json}",
            )),
        }
    }

    fn events(most: usize) -> Sink {
        let (line, events) = (Vec::new(), Vec::new());
        Sink::Events(Events { sse: Sse::with_limit(most), line, events, bytes: 0, most, failed: None })
    }

    /// Takes a part of the body. Says whether it wants more.
    pub(crate) fn take(&mut self, answer: &HttpResponse, bytes: &[u8], watch: &dyn Watch) -> bool {
        match self {
            Sink::Events(events) => events.take(answer, bytes, watch),
            Sink::File(file) => file.take(bytes, watch),
        }
    }

    /// What the answer says of it.
    pub(crate) fn finish(self) -> Result<Map<String, Json>> {
        let said = match self {
            Sink::Events(events) => json!({"events": events.finish()?}),
            Sink::File(file) => {
                let (name, bytes) = file.finish()?;
                json!({"file": name, "bytes": bytes})
            }
        };
        Ok(said.as_object().cloned().unwrap_or_default())
    }
}

impl Events {
    fn take(&mut self, answer: &HttpResponse, bytes: &[u8], watch: &dyn Watch) -> bool {
        self.bytes += bytes.len();
        if self.bytes > self.most {
            let message = format!("the streamed answer is larger than {} bytes", self.most);
            let hint = "stream into a file: sink: {file: …}";
            let diagnostic = Diagnostic::new(Code::HttpFailed, message).hint(hint);
            self.failed = Some(Error::new(ErrorKind::Execute, diagnostic));
            return false;
        }
        if is_event_stream(answer) {
            for event in self.sse.feed(bytes) {
                match event {
                    Ok(event) if event.is_done() => {}
                    Ok(event) => self.note(event.data, watch),
                    Err(error) => {
                        self.failed = Some(error);
                        return false;
                    }
                }
            }
            return true;
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.note_line(watch);
            }
        }
        true
    }

    fn note_line(&mut self, watch: &dyn Watch) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned();
        if !text.is_empty() {
            self.note(text, watch);
        }
    }

    fn note(&mut self, text: String, watch: &dyn Watch) {
        watch.progress(&text.chars().take(SHOWN).collect::<String>());
        self.events.push(serde_json::from_str(&text).unwrap_or(Json::String(text)));
    }

    fn finish(mut self) -> Result<Vec<Json>> {
        self.note_line(&crate::watch::Ignore);
        self.failed.map_or(Ok(self.events), Err)
    }
}

/// Whether an answer is a stream of server-sent events.
pub(crate) fn is_event_stream(answer: &HttpResponse) -> bool {
    let is_type = |(name, value): &&(String, String)| {
        name == "content-type" && value.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
    };
    answer.headers.iter().find(is_type).is_some()
}

impl ToFile {
    fn create(project: &Path, name: String) -> Result<ToFile> {
        let (folder, target) = place(project, &name)?;
        let temporary = files::temporary_beside(Path::new(&target)).into_os_string();
        let opened = || -> io::Result<File> {
            if let Ok(found) = rustix::fs::statat(&folder, &target, AtFlags::SYMLINK_NOFOLLOW)
                && !rustix::fs::FileType::from_raw_mode(found.st_mode).is_file()
            {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(rustix::fs::openat(&folder, &temporary, flags, Mode::from_raw_mode(0o666))?.into())
        };
        let file = opened().map_err(|error| files::write_error(&name, &error))?;
        Ok(ToFile { name, folder, target, temporary, file, bytes: 0, failed: None })
    }

    fn take(&mut self, bytes: &[u8], watch: &dyn Watch) -> bool {
        self.bytes += bytes.len() as u64;
        let written = match self.bytes > MAX_FILE {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {MAX_FILE} bytes"))),
            false => self.file.write_all(bytes),
        };
        self.failed = written.err();
        watch.progress(&format!("{} bytes", self.bytes));
        self.failed.is_none()
    }

    fn finish(mut self) -> Result<(String, u64)> {
        let failed = self.failed.take();
        let done = failed.map_or(Ok(()), Err).and_then(|()| self.file.sync_all());
        let moved = || rustix::fs::renameat(&self.folder, &self.temporary, &self.folder, &self.target);
        done.and_then(|()| moved().map_err(io::Error::from))
            .map_err(|error| files::write_error(&self.name, &error))?;
        Ok((self.name.clone(), self.bytes))
    }
}

impl Drop for ToFile {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = rustix::fs::unlinkat(&self.folder, &self.temporary, AtFlags::empty());
    }
}

/// Opens the folder of a sink's file and gives the file's name in it: inside the project, behind no link, and in nothing that
/// carries trust. Each folder is opened from the one above it, so no other process can lead the way elsewhere.
fn place(project: &Path, name: &str) -> Result<(OwnedFd, OsString)> {
    let outside = |why: &str| {
        let message = format!("`{name}` {why}");
        let hint = "let `sink.file` be a path inside the project, as in downloads/orders.json";
        Error::new(ErrorKind::Execute, Diagnostic::new(Code::OutsideProject, message).hint(hint))
    };
    let path = Path::new(name);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let Some(target) = path.file_name().filter(|_| is_inside) else {
        return Err(outside("is outside the project"));
    };
    // A repository deeper in the project carries trust as well.
    let in_repository = path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"));
    if in_repository || fence::carries_trust(project, &project.join(path)) {
        return Err(outside("is a protected path, which decides what Cuebook trusts"));
    }
    let failed = |error: rustix::io::Errno| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => outside("leads through a link or a file"),
        error => files::write_error(name, &error.into()),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::openat(CWD, project, flags, Mode::empty()).map_err(failed)?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let part = part.as_os_str();
        match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        folder =
            rustix::fs::openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(failed)?;
    }
    Ok((folder, target.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_lies_in_the_project_and_in_nothing_that_carries_trust() {
        let (project, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = project.path().canonicalize().unwrap();
        std::fs::create_dir(root.join(".ai")).unwrap();
        for (link, to) in [("away", other.path()), ("inner", &root.join(".ai"))] {
            std::os::unix::fs::symlink(to, root.join(link)).unwrap();
        }
        assert_eq!(place(&root, "a/b.json").unwrap().1, "b.json");
        assert!(root.join("a").is_dir());
        for name in [
            "",
            "/etc/x",
            "../x",
            "a/../../x",
            ".ai/x",
            "CUEBOOK.TOML",
            ".env",
            ".git/config",
            "away/x",
            "inner/x",
            "inner/new/x",
            "a/.git/config",
        ] {
            assert_eq!(place(&root, name).unwrap_err().code(), Code::OutsideProject, "{name}");
        }
        assert!(!other.path().join("x").exists() && !root.join(".ai/new").exists());
    }

    #[test]
    fn a_folder_that_is_swapped_for_a_link_leads_a_sink_nowhere() {
        let (project, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = project.path();
        let mut sink = ToFile::create(root, "out/orders.json".to_owned()).unwrap();
        std::fs::rename(root.join("out"), root.join("moved")).unwrap();
        std::os::unix::fs::symlink(other.path(), root.join("out")).unwrap();
        assert!(sink.take(b"[1]", &crate::watch::Ignore));
        assert_eq!(sink.finish().unwrap(), ("out/orders.json".to_owned(), 3));
        assert_eq!(std::fs::read(root.join("moved/orders.json")).unwrap(), b"[1]");
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
        // The next one sees the link, and one in the place of the file is not followed either.
        assert!(ToFile::create(root, "out/orders.json".to_owned()).is_err());
        std::os::unix::fs::symlink(other.path().join("x"), root.join("moved/link.json")).unwrap();
        assert!(ToFile::create(root, "moved/link.json".to_owned()).is_err());
    }

    #[test]
    fn events_are_lines_or_those_of_an_event_stream() {
        let take = |kind: &str, parts: &[&str]| {
            let headers = vec![("content-type".to_owned(), kind.to_owned())];
            let answer = HttpResponse { status: 200, url: String::new(), headers, body: String::new() };
            let mut sink = Sink::events(1000);
            for part in parts {
                assert!(sink.take(&answer, part.as_bytes(), &crate::watch::Ignore));
            }
            Json::Object(sink.finish().unwrap())["events"].clone()
        };
        let streamed = take("text/event-stream", &["data: {\"n\"", ":1}\n\ndata: x\n\ndata: [DONE]\n\n"]);
        assert_eq!(streamed, json!([{"n": 1}, "x"]));
        assert_eq!(
            take("application/x-ndjson", &["{\"n\":1}\n{\"n\"", ":2}\n\nlast"]),
            json!([{"n": 1}, {"n": 2}, "last"])
        );
    }
}
