//! What a launcher and the process that started it say to each other, on the socket that is the launcher's stdin.
//!
//! A message is its length in four bytes (little-endian) and that many bytes of JSON. The program inherits the same socket
//! for its requests, so all that must be trusted is said before the program starts:
//!
//! ```text
//! parent → launcher   Order
//! launcher → parent   MapIds          only as root: asks for numbers of users
//! parent → launcher   Mapped
//! launcher → parent   Proxy           only for a tool with a proxy: the socket that it listens on
//! launcher → parent   Input           only for a tool that is fed: the pipe to its standard input
//! launcher → parent   Ready           before the program starts
//! launcher → parent   Started, or at any time Failed
//! launcher → parent   Exceeded        only for a tool, which does not inherit the socket
//! ```

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Profile, Protection, Tool};

/// The longest message. An order names a few hundred paths at most.
const LONGEST: usize = 4 << 20;

/// What is to run: a [`Profile`] as it travels.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    program: Text,
    arguments: Vec<Text>,
    environment: Vec<(Text, Text)>,
    readable: Vec<Text>,
    folder: Text,
    pub memory: u64,
    pub processes: u64,
    pub open_files: u64,
    pub temp_size: u64,
    pub cpu: Duration,
    pub without: Vec<Protection>,
    pub total_memory: u64,
    pub tool: Option<ToolOrder>,
}

/// A [`Tool`] as it travels. Its input follows the order, byte by byte.
#[derive(Debug, Serialize, Deserialize)]
pub struct ToolOrder {
    writable: Vec<Text>,
    guarded: Vec<Text>,
    hidden: Vec<Text>,
    pub input: u64,
    pub is_fed: bool,
    pub proxy: bool,
    pub required: Vec<Protection>,
}

impl ToolOrder {
    fn new(tool: &Tool) -> ToolOrder {
        let texts = |paths: &[PathBuf]| paths.iter().map(Text::new).collect();
        ToolOrder {
            writable: texts(&tool.writable),
            guarded: texts(&tool.guarded),
            hidden: texts(&tool.hidden),
            input: tool.input.len() as u64,
            is_fed: tool.is_fed,
            proxy: tool.proxy,
            required: tool.required.clone(),
        }
    }
}

/// What a launcher says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromLauncher {
    /// It is in a user namespace of its own and needs numbers of users and groups, which only its parent may give.
    MapIds,
    /// The socket that the tool's proxy listens on follows, with one byte.
    Proxy,
    /// The end of a pipe that the tool reads as its standard input follows, with one byte.
    Input,
    /// The tool was ended because it exceeded this limit.
    Exceeded(String),
    /// The fence stands, and the program is about to start.
    Ready(Ready),
    /// The program runs.
    Started,
    /// It could not be started.
    Failed(Failed),
}

/// A fence that stands.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// The number of the program, as its parent's parent sees it.
    pub pid: i32,
    pub fenced: Fenced,
}

/// What the fence is made of.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Fenced {
    pub missing: Vec<(Protection, String)>,
    /// The private temporary folder, where it is not a file system of its own that vanishes by itself.
    pub temp: Option<Text>,
}

/// Why the program could not be started.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    message: String,
    kind: Kind,
}

/// What the parent answers to [`FromLauncher::MapIds`]: whether it could.
#[derive(Debug, Serialize, Deserialize)]
pub struct Mapped(pub Result<(), String>);

/// The kinds of errors that a caller may want to tell apart.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    NotFound,
    PermissionDenied,
    Unsupported,
    Other,
}

impl Failed {
    pub fn new(error: &io::Error) -> Failed {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => Kind::NotFound,
            io::ErrorKind::PermissionDenied => Kind::PermissionDenied,
            io::ErrorKind::Unsupported => Kind::Unsupported,
            _ => Kind::Other,
        };
        Failed { message: plain(error), kind }
    }

    pub fn into_error(self) -> io::Error {
        let kind = match self.kind {
            Kind::NotFound => io::ErrorKind::NotFound,
            Kind::PermissionDenied => io::ErrorKind::PermissionDenied,
            Kind::Unsupported => io::ErrorKind::Unsupported,
            Kind::Other => io::ErrorKind::Other,
        };
        io::Error::new(kind, self.message)
    }
}

/// Adds what was being done to what the system said. The kind of the error stays.
pub fn explain(error: impl Into<io::Error>, what: impl std::fmt::Display) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{what}: {}", plain(&error)))
}

/// What the system said, without Rust's `(os error 1)`.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

impl Order {
    pub fn new(profile: &Profile) -> Order {
        Order {
            program: Text::new(&profile.program),
            arguments: profile.arguments.iter().map(Text::new).collect(),
            environment: profile.environment.iter().map(|(n, v)| (Text::new(n), Text::new(v))).collect(),
            readable: profile.readable.iter().map(Text::new).collect(),
            folder: Text::new(&profile.folder),
            memory: profile.memory,
            processes: profile.processes,
            open_files: profile.open_files,
            temp_size: profile.temp_size,
            cpu: profile.cpu,
            without: profile.without.clone(),
            total_memory: profile.total_memory,
            tool: profile.tool.as_ref().map(ToolOrder::new),
        }
    }

    pub fn program(&self) -> &Path {
        self.program.path()
    }

    pub fn arguments(&self) -> impl Iterator<Item = &OsStr> {
        self.arguments.iter().map(|text| text.0.as_os_str())
    }

    pub fn environment(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.environment.iter().map(|(name, value)| (name.0.as_os_str(), value.0.as_os_str()))
    }

    pub fn readable(&self) -> impl Iterator<Item = &Path> {
        self.readable.iter().map(Text::path)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Folders that a tool may change.
    pub fn writable(&self) -> impl Iterator<Item = &Path> {
        self.tool.iter().flat_map(|tool| &tool.writable).map(Text::path)
    }

    /// What a tool may read and not change.
    pub fn guarded(&self) -> impl Iterator<Item = &Path> {
        self.tool.iter().flat_map(|tool| &tool.guarded).map(Text::path)
    }

    /// What a tool sees empty.
    pub fn hidden(&self) -> impl Iterator<Item = &Path> {
        self.tool.iter().flat_map(|tool| &tool.hidden).map(Text::path)
    }
}

/// A name that need not be Unicode: a string where it is, else its bytes.
#[derive(Debug, Clone)]
pub struct Text(OsString);

impl Text {
    pub fn new(text: impl AsRef<OsStr>) -> Text {
        Text(text.as_ref().to_owned())
    }

    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    pub fn into_path(self) -> PathBuf {
        self.0.into()
    }
}

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_bytes().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Unicode(String),
            Bytes(Vec<u8>),
        }
        Ok(Text(match Form::deserialize(deserializer)? {
            Form::Unicode(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes),
        }))
    }
}

/// Sends a message, in one write so that it is not torn.
pub fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).map_err(|_| io::ErrorKind::InvalidInput)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&frame)
}

/// Sends a descriptor, with one byte.
pub fn send_descriptor(to: &std::os::unix::net::UnixStream, descriptor: &impl AsFd) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    buffer.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(to, &[io::IoSlice::new(b"x")], &mut buffer, SendFlags::empty())?;
    Ok(())
}

/// Receives a descriptor, with one byte.
pub fn receive_descriptor(from: &std::os::unix::net::UnixStream) -> io::Result<OwnedFd> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    rustix::net::recvmsg(from, &mut [io::IoSliceMut::new(&mut byte)], &mut buffer, flags)?;
    let received = buffer.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    received.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no descriptor arrived"))
}

/// Receives a message, and reads not a byte more.
pub fn receive<M: DeserializeOwned>(mut from: impl Read) -> io::Result<M> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_leaves_the_next_one_in_the_pipe() {
        let mut pipe = Vec::new();
        send(&mut pipe, &Mapped(Err("no".into()))).unwrap();
        pipe.extend(b"rest");
        let mut from = pipe.as_slice();
        let Mapped(answer) = receive(&mut from).unwrap();
        assert_eq!(answer.unwrap_err(), "no");
        assert_eq!(from, b"rest");
    }

    #[test]
    fn a_name_that_is_not_unicode_survives_the_journey() {
        for bytes in [b"plain".to_vec(), b"\xff/\xfe".to_vec(), "grün".into()] {
            let json = serde_json::to_string(&Text(OsString::from_vec(bytes.clone()))).unwrap();
            let back: Text = serde_json::from_str(&json).unwrap();
            assert_eq!(back.0.as_bytes(), bytes);
        }
    }

    #[test]
    fn a_message_that_claims_to_be_huge_is_refused() {
        assert!(receive::<Mapped>([0xff, 0xff, 0xff, 0xff, b'{'].as_slice()).is_err());
    }
}
