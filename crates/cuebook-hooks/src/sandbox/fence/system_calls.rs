//! Refuses system calls that programs do not need, and that have let programs out of fences before.
//!
//! A list of what is refused, not of what is allowed: a Python of next year may make calls that we have never heard of, and
//! what it may reach with them is settled elsewhere. What is refused says `EPERM`, as if we had no right to it.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// Refused in any case.
const REFUSED: &[i64] = &[
    // Sockets of any kind. A connected pair stays possible (see below): it reaches no other process, and Python's event loops need it.
    libc::SYS_socket,
    // Memory that the limit of a process does not count.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    OPEN_TREE_ATTR,
    // Files by other ways than their paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    // Large and young parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    // Keys.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_acct,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Refused where the user's own files are in sight: Landlock has no rules for what these change.
const REFUSED_WITHOUT_VIEW: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Calls that give a file its mode, and which of their arguments it is. A tool changes files of the project, and a program that
/// runs with the rights of its owner would give other users of the machine what the tool could not reach itself.
const MODES: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that can make a file when they open it, and which of their arguments are the flags; the mode follows.
const OPENING: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// The flags that make a file.
const CREATING: [u64; 2] = [libc::O_CREAT as u64, libc::O_TMPFILE as u64];

/// The bit of a mode that gives a program the rights of its owner.
const SET_USER: u64 = libc::S_ISUID as u64;

// Calls that are too young for the library that names them. The numbers are the same on all systems that we build for.
const QUOTACTL_FD: i64 = 443;
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Flags of `clone` that make namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Types of sockets, but for streams. A pair of these is not bound to each other: datagrams can be sent to any socket in sight.
const UNCONNECTED: [u64; 5] = [0, 2, 3, 4, 5];

/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// What `personality` is asked when it shall only tell.
const ONLY_TELL: u64 = 0xffff_ffff;

/// Refuses them from now on, for this process and all that it becomes.
///
/// A `tool` may open sockets of the internet, in the empty network that it has for itself, and files in memory.
pub fn filter(without_view: bool, tool: bool) -> Result<(), String> {
    let install = || -> Result<(), seccompiler::Error> {
        let (refused, missing) = programs(without_view, tool)?;
        seccompiler::apply_filter(&missing)?;
        seccompiler::apply_filter(&refused)
    };
    install().map_err(|error| format!("seccomp: {error}"))
}

/// The filter that refuses, and the one that pretends that a call does not exist.
fn programs(without_view: bool, tool: bool) -> Result<(BpfProgram, BpfProgram), seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if without_view {
        rules.extend(REFUSED_WITHOUT_VIEW.iter().map(|call| (*call, Vec::new())));
    }
    let if_argument = |index, operator, value: u64| {
        SeccompRule::new(vec![SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)?])
    };
    if tool {
        rules.remove(&libc::SYS_memfd_create);
        let other_than = |domain: libc::c_int| {
            SeccompCondition::new(
                0,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Ne,
                u64::from(domain.cast_unsigned()),
            )
        };
        let others = SeccompRule::new(vec![other_than(libc::AF_INET)?, other_than(libc::AF_INET6)?])?;
        rules.insert(libc::SYS_socket, vec![others]);
    }
    if tool && !without_view {
        for &(call, mode) in MODES {
            rules.insert(call, vec![if_argument(mode, SeccompCmpOp::MaskedEq(SET_USER), SET_USER)?]);
        }
        for &(call, flags) in OPENING {
            let made = CREATING.map(|made| -> Result<_, seccompiler::BackendError> {
                let condition = |index, bits: u64| {
                    SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
                };
                SeccompRule::new(vec![condition(flags, made)?, condition(flags + 1, SET_USER)?])
            });
            rules.insert(call, made.into_iter().collect::<Result<_, _>>()?);
        }
    }
    let clone: Result<Vec<_>, _> = NAMESPACES
        .iter()
        .map(|flag| u64::from(flag.cast_unsigned()))
        .map(|flag| if_argument(0, SeccompCmpOp::MaskedEq(flag), flag))
        .collect();
    rules.insert(libc::SYS_clone, clone?);
    let pairs: Result<Vec<_>, _> =
        UNCONNECTED.iter().map(|kind| if_argument(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), *kind)).collect();
    rules.insert(libc::SYS_socketpair, pairs?);
    // Typing into a user's terminal.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX];
    let ioctl: Result<Vec<_>, _> =
        typing.iter().map(|request| if_argument(1, SeccompCmpOp::Eq, *request)).collect();
    rules.insert(libc::SYS_ioctl, ioctl?);
    // Outliving the launcher.
    let outlive = u64::from(libc::PR_SET_PDEATHSIG.cast_unsigned());
    rules.insert(libc::SYS_prctl, vec![if_argument(0, SeccompCmpOp::Eq, outlive)?]);
    rules.insert(libc::SYS_personality, vec![if_argument(0, SeccompCmpOp::Ne, ONLY_TELL)?]);

    let refused = compile(rules, libc::EPERM)?;
    // Its flags are in memory, where a filter cannot look. If the call does not exist, libraries use the older one.
    let mut missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    if tool {
        missing.insert(libc::SYS_openat2, Vec::new());
    }
    let missing = compile(missing, libc::ENOSYS)?;
    Ok((without_x32(refused), missing))
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: i32,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.cast_unsigned()),
        architecture,
    )?
    .try_into()
}

/// On x86-64 every call has a second number, for programs with short pointers. They are unused, and would go around the
/// list, so they are all refused first.
#[cfg(target_arch = "x86_64")]
fn without_x32(program: BpfProgram) -> BpfProgram {
    use seccompiler::sock_filter;

    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const FIRST_X32: u32 = 0x4000_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut whole = vec![
        // The number of the call is the first of what a filter is shown.
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 0, 1, FIRST_X32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned()),
    ];
    whole.extend(program);
    whole
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32(program: BpfProgram) -> BpfProgram {
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_are_small_enough_for_the_kernel() {
        let (refused, missing) = programs(true, true).unwrap();
        assert!(refused.len() + missing.len() < 4096, "{} instructions", refused.len());
    }

    #[test]
    fn no_call_is_listed_twice() {
        let mut all = [REFUSED, REFUSED_WITHOUT_VIEW].concat();
        let length = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), length);
    }
}
