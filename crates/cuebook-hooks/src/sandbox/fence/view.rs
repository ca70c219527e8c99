//! A view of the file system in which there is nothing but what the program is given.
//!
//! It is built on an empty file system in memory, which becomes the root; the old root is let go. Everything is shown at its
//! own path and cannot be written, but for a private `/tmp`. What is shown is opened before anything is hidden, so it does
//! not matter where the new root is put together.
//!
//! Small settings of the system are copied: that is quicker than a mount for each.
//!
//! A tool also has folders that it may change. What is guarded in them is shown once more, on top and read-only; what is hidden is
//! covered by an empty folder or file.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
};

use super::identity::Identity;
use crate::sandbox::calls;
use crate::sandbox::wire::{self, Order};

/// What a program needs of the system: its programs and libraries, and how these find each other. None of it need exist.
pub const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ld-musl-x86_64.path",
];

/// The devices that do no harm.
pub const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Places that have something else in the view, so that nothing of the outside can be shown there.
const TAKEN: [&str; 5] = ["/", "/tmp", "/dev", "/proc", "/sys"];

/// Why there is no view.
pub enum Error {
    /// The system does not let us make one.
    Refused(String),
    /// What was asked for cannot be shown.
    Wrong(io::Error),
}

/// Leaves the file system for the view.
pub fn enter(order: &Order, identity: &Identity) -> Result<(), Error> {
    let plan = Plan::new(order)?;
    let devices: Vec<(&str, OwnedFd)> =
        DEVICES.iter().filter_map(|device| Some((*device, tree(Path::new(device)).ok()?))).collect();
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(refused("make mounts private"))?;
    let base =
        ["/tmp", "/usr", "/"].map(Path::new).into_iter().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
    mount_memory(base, "mode=0755,size=8m,nr_inodes=4k").map_err(refused("mount a new root"))?;
    let built = build(base, order, identity, plan, devices);
    if built.is_err() {
        let _ = rustix::mount::unmount(base, UnmountFlags::DETACH);
    }
    built
}

/// Puts the view together below `base`, and makes it the root.
fn build(
    base: &Path,
    order: &Order,
    identity: &Identity,
    plan: Plan,
    devices: Vec<(&str, OwnedFd)>,
) -> Result<(), Error> {
    let at = |path: &str| base.join(&path[1..]);
    let made = refused("fill the new root");
    let make = || -> io::Result<()> {
        for folder in ["/tmp", "/proc", "/dev", "/etc"] {
            std::fs::create_dir(at(folder))?;
        }
        for (device, _) in &devices {
            std::fs::write(at(device), "")?;
        }
        std::os::unix::fs::symlink("/proc/self/fd", at("/dev/fd"))?;
        for (number, stream) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
            std::os::unix::fs::symlink(format!("/proc/self/fd/{number}"), at("/dev").join(stream))?;
        }
        std::os::unix::fs::symlink("/tmp", at("/dev/shm"))
    };
    make().map_err(made)?;
    // Before what is shown, some of which may lie below.
    // Files that are empty take memory too.
    let files = if order.tool.is_some() { "256k" } else { "16k" };
    mount_memory(&at("/tmp"), &format!("mode=1777,size={},nr_inodes={files}", order.temp_size))
        .map_err(refused("mount /tmp"))?;
    plan.carry_out(base, identity)?;
    // A place for it, before nothing can be written any more.
    let covered = order.hidden().next().is_some();
    if covered {
        std::fs::write(at(EMPTY), "").map_err(refused("fill the new root"))?;
    }

    let root = open(base).map_err(refused("open the new root"))?;
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let readonly = MountAttrFlags::MOUNT_ATTR_RDONLY;
    let nothing = MountAttrFlags::empty();
    calls::mount_setattr(root.as_fd(), true, quiet | readonly, nothing).map_err(refused("mount_setattr"))?;
    let temp = open(&at("/tmp")).map_err(refused("open /tmp"))?;
    calls::mount_setattr(temp.as_fd(), false, nothing, readonly).map_err(refused("mount_setattr of /tmp"))?;
    for (device, tree) in &devices {
        let flags = readonly | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        calls::mount_setattr(tree.as_fd(), false, flags, nothing)
            .map_err(refused("mount_setattr of devices"))?;
        attach(tree, &at(device)).map_err(refused("show devices"))?;
    }
    plan.open_up(base)?;
    mount_processes(&at("/proc"));

    let pivot = || -> io::Result<()> {
        std::env::set_current_dir(base)?;
        // The old root comes to lie over the new one, and is taken off.
        rustix::process::pivot_root(".", ".")?;
        rustix::mount::unmount(".", UnmountFlags::DETACH)?;
        std::env::set_current_dir("/")
    };
    pivot().map_err(refused("pivot_root"))
}

/// Shows the processes of the namespace. Where that is refused (inside many containers), the program goes without.
fn mount_processes(at: &Path) {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // Only processes, nothing of the rest of the system: kernels before 5.8 do not know how.
    for options in [c"subset=pid", c""] {
        if rustix::mount::mount("proc", at, "proc", flags, options).is_ok() {
            return;
        }
    }
}

/// A folder or a file to show.
enum ShownPath {
    Folder(OwnedFd),
    File(OwnedFd),
    /// The bytes of a small file.
    Copy(Vec<u8>),
}

impl ShownPath {
    fn new(path: &Path) -> io::Result<ShownPath> {
        let metadata = path.metadata()?;
        if metadata.is_file()
            && metadata.len() <= SMALL
            && path.starts_with("/etc")
            && let Ok(bytes) = std::fs::read(path)
        {
            return Ok(ShownPath::Copy(bytes));
        }
        tree(path).map(if metadata.is_dir() { ShownPath::Folder } else { ShownPath::File })
    }

    /// Shows it at a path of the new root.
    fn put(&self, at: &Path) -> io::Result<()> {
        if let Some(parent) = at.parent() {
            std::fs::create_dir_all(parent)?;
        }
        match self {
            ShownPath::Copy(bytes) => std::fs::write(at, bytes),
            ShownPath::Folder(opened) => {
                std::fs::create_dir_all(at)?;
                attach(opened, at)
            }
            ShownPath::File(opened) => {
                std::fs::write(at, "")?;
                attach(opened, at)
            }
        }
    }
}

/// Bytes of a file of settings that is small enough to be copied.
const SMALL: u64 = 16 << 10;

/// An empty file, to cover others with.
const EMPTY: &str = "/dev/.empty";

/// What is to be shown.
struct Plan {
    /// Trees of files, by their real paths.
    trees: Vec<(PathBuf, ShownPath)>,
    /// Those that may be changed.
    writable: Vec<PathBuf>,
    /// Trees on top of these that may not.
    guarded: Vec<(PathBuf, OwnedFd)>,
    /// What looks empty, and whether it is a folder.
    hidden: Vec<(PathBuf, bool)>,
    /// Other names for places.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Plan {
    fn new(order: &Order) -> Result<Plan, Error> {
        let mut places = Vec::new();
        let mut links = Vec::new();
        for path in SYSTEM.map(Path::new) {
            match path.read_link() {
                Ok(target) => links.push((path.to_owned(), target)),
                Err(_) if path.exists() => places.push(path.to_owned()),
                Err(_) => {}
            }
        }
        let mut writable = Vec::new();
        let changed = order.writable().map(|path| (path, true));
        for (path, may_change) in order.readable().map(|path| (path, false)).chain(changed) {
            let wrong =
                |error| Error::Wrong(wire::explain(error, format_args!("cannot show {}", path.display())));
            if !path.is_absolute() {
                return Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute")));
            }
            let real = path.canonicalize().map_err(wrong)?;
            let taken = TAKEN.iter().any(|taken| real == Path::new(taken));
            if taken || ["/dev", "/proc", "/sys"].iter().any(|folder| real.starts_with(folder)) {
                return Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, "the program has its own")));
            }
            if real != path {
                links.push((path.to_owned(), real.clone()));
            }
            if may_change {
                writable.push(real.clone());
            }
            places.push(real);
        }
        // By number of parts, so that what contains others comes first and these are there already.
        places.sort_by_key(|path| path.components().count());
        let mut trees: Vec<(PathBuf, ShownPath)> = Vec::new();
        for path in places {
            let is_shown = trees.iter().any(|(shown, _)| path.starts_with(shown));
            if is_shown && (!writable.contains(&path) || trees.iter().any(|(shown, _)| *shown == path)) {
                continue;
            }
            let shown = ShownPath::new(&path).map_err(refused(format!("open_tree of {}", path.display())))?;
            trees.push((path, shown));
        }
        let mut guarded = Vec::new();
        for path in order.guarded() {
            let (real, _) = plain(path).map_err(Error::Wrong)?;
            let opened = tree(&real).map_err(refused(format!("open_tree of {}", path.display())))?;
            guarded.push((real, opened));
        }
        let hidden: io::Result<Vec<_>> = order.hidden().map(plain).collect();
        Ok(Plan { trees, writable, guarded, hidden: hidden.map_err(Error::Wrong)?, links })
    }

    /// Lets the folders be changed that may be, and covers what may not, after everything was made read-only.
    fn open_up(&self, base: &Path) -> Result<(), Error> {
        let readonly = MountAttrFlags::MOUNT_ATTR_RDONLY;
        let quiet = readonly | MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let nothing = MountAttrFlags::empty();
        for path in &self.writable {
            let failed = refused(format!("open {} for changes", path.display()));
            let mount = open(&below(base, path)).map_err(&failed)?;
            // A file system below that was read-only before stays so; that keeps nothing else from being changed.
            if calls::mount_setattr(mount.as_fd(), true, nothing, readonly).is_err() {
                calls::mount_setattr(mount.as_fd(), false, nothing, readonly)
                    .map_err(refused(format!("open {} for changes", path.display())))?;
            }
        }
        for (path, tree) in &self.guarded {
            let failed = || refused(format!("guard {}", path.display()));
            calls::mount_setattr(tree.as_fd(), true, quiet, nothing).map_err(failed())?;
            attach(tree, &below(base, path)).map_err(failed())?;
        }
        for (path, is_folder) in &self.hidden {
            let failed = || refused(format!("hide {}", path.display()));
            let at = below(base, path);
            if *is_folder {
                mount_memory(&at, "mode=0555,size=4k,nr_inodes=1").map_err(failed())?;
                let mount = open(&at).map_err(failed())?;
                calls::mount_setattr(mount.as_fd(), false, quiet, nothing).map_err(failed())?;
            } else {
                let empty = tree(&below(base, Path::new(EMPTY))).map_err(failed())?;
                calls::mount_setattr(empty.as_fd(), false, quiet, nothing).map_err(failed())?;
                attach(&empty, &at).map_err(failed())?;
            }
        }
        Ok(())
    }

    fn carry_out(&self, base: &Path, identity: &Identity) -> Result<(), Error> {
        let shown = |path: &Path| self.trees.iter().any(|(tree, _)| path.starts_with(tree));
        for (path, tree) in &self.trees {
            tree.put(&below(base, path)).map_err(refused(format!("show {}", path.display())))?;
        }
        for (path, target) in &self.links {
            // A path that leads through another link is there already.
            let passes_link = path.ancestors().any(|part| below(base, part).is_symlink());
            if !shown(path) && !passes_link {
                let failed = refused(format!("link {}", path.display()));
                let link = below(base, path);
                link.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(&failed)?;
                std::os::unix::fs::symlink(target, link).map_err(&failed)?;
            }
        }
        let (uid, gid) = (identity.uid.as_raw(), identity.gid.as_raw());
        for (path, text) in [
            ("/etc/passwd", format!("sandbox:x:{uid}:{gid}:sandbox:/tmp:/bin/sh\n")),
            ("/etc/group", format!("sandbox:x:{gid}:\n")),
        ] {
            if !shown(Path::new(path)) {
                std::fs::write(below(base, Path::new(path)), text).map_err(refused("write /etc"))?;
            }
        }
        Ok(())
    }
}

/// The real path of something that is no link, and whether it is a folder. A link could be replaced inside of the fence, because
/// nothing can be mounted on it.
fn plain(path: &Path) -> io::Result<(PathBuf, bool)> {
    let wrong = |error| wire::explain(error, format_args!("cannot guard {}", path.display()));
    let metadata = path.symlink_metadata().map_err(wrong)?;
    if metadata.is_symlink() {
        return Err(wrong(io::Error::new(io::ErrorKind::InvalidInput, "it is a link")));
    }
    Ok((path.canonicalize().map_err(wrong)?, metadata.is_dir()))
}

/// An absolute path, below another.
fn below(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

/// A copy of the tree of mounts at a path, attached nowhere yet.
fn tree(path: &Path) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Attaches a tree at a path.
fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(rustix::mount::move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// A handle on what is mounted at a path.
fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Mounts an empty file system in memory.
fn mount_memory(at: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(
        "tmpfs",
        at,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        options.as_c_str(),
    )?)
}

/// Says what was refused.
fn refused<E: Into<io::Error>>(what: impl std::fmt::Display) -> impl Fn(E) -> Error {
    move |error| Error::Refused(format!("{what}: {}", wire::plain(&error.into())))
}
