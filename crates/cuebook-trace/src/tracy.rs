//! A `.tracy` file per trace, which viewers of Prompty open.
//!
//! ```json
//! {"runtime": "cuebook", "version": "0.1.0", "trace": {"name": "render", "__time": {"start": "…", "end": "…", "duration": 0.4},
//!  "signature": "cuebook.render", "inputs": {}, "result": "…", "__frames": [], "__usage": {}}}
//! ```
//!
//! Times are ISO 8601 in UTC, durations milliseconds. An error is a frame's `result`: `{exception, message}`. Traces hold
//! what people said to a model, so only their owner may read the files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cuebook::files::temporary_beside;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{Backend, Frame};

/// So many traces of one name and one millisecond find a name.
const MAX_OF_ONE_NAME: usize = 10_000;
/// Longer names are cut, as file systems have their limits.
const LONGEST_NAME: usize = 80;

/// Writes a `.tracy` file for every trace.
#[derive(Debug, Clone)]
pub struct Tracy {
    folder: PathBuf,
}

impl Tracy {
    /// Writes into a folder, which is made when the first trace ends.
    pub fn new(folder: impl Into<PathBuf>) -> Tracy {
        Tracy { folder: folder.into() }
    }

    /// Writes a trace and says where.
    pub fn write(&self, root: &Frame) -> io::Result<PathBuf> {
        let mut folders = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        folders.recursive(true).create(&self.folder)?;
        let document = json!({
            "runtime": "cuebook",
            "version": env!("CARGO_PKG_VERSION"),
            "trace": document(root),
        });
        let mut text = serde_json::to_vec_pretty(&document)?;
        text.push(b'\n');
        let name = format!(
            "{}.{}",
            file_name(root.prompt().unwrap_or(&root.name)),
            root.start.strftime("%Y%m%dT%H%M%S.%3fZ")
        );
        let temporary = temporary_beside(&self.folder.join(&name));
        let written = write_new(&temporary, &text).and_then(|()| self.publish(&temporary, &name));
        // Published by a link, it still has its first name; and what failed must not stay.
        let _ = fs::remove_file(&temporary);
        written
    }

    /// Gives a whole file its name. A file that has the name already is never replaced.
    fn publish(&self, temporary: &Path, name: &str) -> io::Result<PathBuf> {
        for count in 1..=MAX_OF_ONE_NAME {
            let suffix = if count == 1 { String::new() } else { format!("-{count}") };
            let path = self.folder.join(format!("{name}{suffix}.tracy"));
            match fs::hard_link(temporary, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // Some file systems know no links. A rename may replace, so it looks first.
                Err(_) if path.symlink_metadata().is_err() => {
                    return fs::rename(temporary, &path).map(|()| path);
                }
                Err(_) => {}
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many traces of one name in one millisecond"))
    }
}

impl Backend for Tracy {
    fn name(&self) -> String {
        format!("the folder {}", self.folder.display())
    }

    fn finished(&self, root: &Frame) -> io::Result<()> {
        self.write(root).map(|_| ())
    }
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(path)?;
    file.write_all(text)?;
    file.flush()
}

/// The id of a prompt as a name that every file system takes.
fn file_name(id: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || c == '-' || c == '_' || c == '.' { c } else { '_' };
    let name: String = id.trim_start_matches('.').chars().map(safe).collect();
    let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
    if name.is_empty() { "trace".to_owned() } else { name.to_owned() }
}

fn document(frame: &Frame) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), json!(frame.name));
    let millis = frame.duration.as_micros() as f64 / 1000.0;
    out.insert(
        "__time".into(),
        json!({"start": iso(frame.start), "end": iso(frame.end()), "duration": millis}),
    );
    // What a reader looks for first, in the order of the format; then the rest.
    for name in ["signature", "inputs"] {
        if let Some(value) = frame.fields.get(name) {
            out.insert(name.into(), value.clone());
        }
    }
    if let Some(result) = frame.error().or_else(|| frame.fields.get("result").cloned()) {
        out.insert("result".into(), result);
    }
    for (name, value) in &frame.fields {
        // A field may not pass for a part of the format.
        let name =
            if name == "name" || name.starts_with("__") { format!("field.{name}") } else { name.clone() };
        out.entry(name).or_insert_with(|| value.clone());
    }
    if !frame.frames.is_empty() {
        out.insert("__frames".into(), frame.frames.iter().map(document).collect());
    }
    if frame.left_out > 0 {
        out.insert("__cut".into(), json!(format!("{} frames left out", frame.left_out)));
    }
    if let Some(usage) = frame.usage {
        let usage = json!({"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total});
        out.insert("__usage".into(), usage);
    }
    Value::Object(out)
}

fn iso(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_prompts_become_names_of_files() {
        assert_eq!(file_name("team/greeting"), "team_greeting");
        assert_eq!(file_name("../../etc/passwd"), "_.._etc_passwd");
        assert_eq!(file_name(".hidden"), "hidden");
        assert_eq!(file_name(""), "trace");
        assert_eq!(file_name("größe"), "größe");
        assert_eq!(file_name(&"é".repeat(100)).len(), LONGEST_NAME);
    }
}
