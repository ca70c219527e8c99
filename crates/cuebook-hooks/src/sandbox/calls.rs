//! The system calls that are `unsafe` to make, and nothing else: each is wrapped so that it is safe where it is used, which
//! is a launcher, a process with a single thread.

#![allow(unsafe_code)]

use std::io;

use rustix::process::Pid;

/// Makes a second process that goes on from here. `None` in the new one.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: a launcher has one thread, so no lock can be held by a thread that does not exist in the child, and the
    // child may go on as any process does.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(pid)) }
}

/// Resets signals that a program may have been started to ignore: what is run here must not depend
/// on whether Cuebook was started in the background.
pub fn usual_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM] {
        // SAFETY: sets no handler, so no code of ours can run at a bad moment.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Closes every descriptor from this number on: whatever was left open by those who started us.
pub fn close_from(first: i32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: takes three numbers. Nothing in this process owns one of these descriptors yet.
        let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
        if done == 0 {
            return Ok(());
        }
    }
    let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    // Collected first: the listing has a descriptor of its own, which is closed by then.
    let open: Vec<i32> = std::fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor >= first)
        .collect();
    for descriptor in open {
        // SAFETY: as above.
        unsafe { libc::close(descriptor) };
    }
    Ok(())
}

/// Turns on the loopback interface of a new network namespace, so that a tool can talk to itself.
#[cfg(target_os = "linux")]
pub fn loopback_up() -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all fields of the structure may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the descriptor is open, and the kernel reads no more than this structure.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw mut request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Leaves namespaces for new ones.
#[cfg(target_os = "linux")]
pub fn unshare(what: rustix::thread::UnshareFlags) -> io::Result<()> {
    debug_assert!(!what.contains(rustix::thread::UnshareFlags::FILES));
    // SAFETY: what can go wrong is a thread that sees another's descriptors. There is one thread, and it keeps its own.
    Ok(unsafe { rustix::thread::unshare_unsafe(what) }?)
}

/// Changes the attributes of a mount; with `recursive` also of every mount below it.
#[cfg(target_os = "linux")]
pub fn mount_setattr(
    mount: std::os::fd::BorrowedFd<'_>,
    recursive: bool,
    set: rustix::mount::MountAttrFlags,
    clear: rustix::mount::MountAttrFlags,
) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    /// `struct mount_attr` of the kernel.
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }

    let attributes =
        Attributes { set: set.bits().into(), clear: clear.bits().into(), propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path ends with a zero byte, and the kernel reads no more of the attributes than the size it gets.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
