//! The fence, tried from within: each test runs a small program in the real launcher and looks at what it could do.

#![cfg(target_os = "linux")]

mod fenced;

use fenced::skip;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cuebook::library::SandboxLevel;
use cuebook_hooks::sandbox::{Ending, Protection};
use fenced::{Fenced, attempts, whole_fence};

#[test]
fn requests_replies_and_prints_stay_apart() {
    let Some(test) = Fenced::python(
        "import os
print('hello')
os.write(2, b'there')
request = os.read(3, 100)
os.write(4, b'got ' + request)
raise SystemExit(3)",
    ) else {
        return;
    };
    let ran = test.request("a request").run();
    assert_eq!(ran.replied, "got a request");
    assert!(ran.printed.contains("hello") && ran.printed.contains("there"), "{ran:?}");
    assert_eq!(ran.ending, Ending::Exited(3));
}

#[test]
fn a_missing_program_or_folder_is_an_error() {
    let error = Fenced::program("/nowhere/at/all").try_start().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(error.to_string(), "cannot start /nowhere/at/all: No such file or directory");
    let error = Fenced::program("/etc/passwd").try_start().unwrap_err();
    assert_eq!(error.to_string(), "cannot start /etc/passwd: Permission denied");
    let error = Fenced::program("/usr/bin/true").readable("/nowhere").try_start().unwrap_err();
    assert_eq!(error.to_string(), "cannot show /nowhere: No such file or directory");
    let mut test = Fenced::program("/usr/bin/true");
    test.profile.folder = "/nowhere".into();
    let error = test.try_start().unwrap_err();
    assert_eq!(error.to_string(), "cannot start in /nowhere: No such file or directory");
    if whole_fence() {
        let error = Fenced::program("/usr/bin/true").readable("/").try_start().unwrap_err();
        assert_eq!(error.to_string(), "cannot show /: the program has its own");
    }
}

#[test]
fn it_sees_only_what_it_is_given() {
    let given = tempfile::tempdir().unwrap();
    std::fs::write(given.path().join("note"), "a note").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("secret"), "a secret").unwrap();
    let Some(test) = attempts(
        "
given, elsewhere, home = sys.argv[1:]
read = lambda path: open(path).read()
attempt('given', read, given + '/note')
attempt('secret', read, elsewhere + '/secret')
attempt('shadow', read, '/etc/shadow')
on_the_way = lambda path: any((shown + '/').startswith(path.rstrip('/') + '/') for shown in (given, sys.base_prefix))
beside = lambda folder: sorted(name for name in os.listdir(folder) if not on_the_way(os.path.join(folder, name)))
attempt('home', lambda: beside(home) if os.path.exists(home) else [])
attempt('sys', os.listdir, '/sys')
attempt('root', lambda: sorted(set(beside('/')) - {'bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32', 'nix', 'usr', 'tmp'}))
attempt('etc', lambda: sorted(set(os.listdir('/etc')) - {'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives', 'localtime'}))
attempt('temp', beside, '/tmp')
attempt('processes', lambda: [name for name in os.listdir('/proc') if name.isdigit()])
attempt('user', lambda: __import__('pwd').getpwuid(os.getuid()).pw_dir)
attempt('host', lambda: os.uname().nodename)
attempt('devices', lambda: (open('/dev/null', 'w').write('x'), len(open('/dev/urandom', 'rb').read(8))))
",
    ) else {
        return;
    };
    if !whole_fence() {
        return;
    }
    let home = std::env::var("HOME").unwrap_or_else(|_| "/root".into());
    let ran =
        test.argument(given.path()).argument(elsewhere.path()).argument(&home).readable(given.path()).run();
    assert_eq!(
        ran.replied.lines().collect::<Vec<_>>(),
        [
            "given worked a note",
            "secret FileNotFoundError",
            "shadow FileNotFoundError",
            "home worked []",
            "sys FileNotFoundError",
            "root worked ['dev', 'etc', 'proc']",
            "etc worked ['group', 'passwd']",
            "temp worked []",
            "processes worked ['1']",
            "user worked /tmp",
            "host worked sandbox",
            "devices worked (1, 8)",
        ],
        "{ran:?}"
    );
}

#[test]
fn it_writes_only_to_a_temporary_folder_that_vanishes() {
    let given = tempfile::tempdir().unwrap();
    let mark = given.path().file_name().unwrap().to_str().unwrap().to_owned();
    let Some(test) = attempts(
        "
given, mark = sys.argv[1:]
def write(path):
    with open(path, 'w') as file: return file.write('x')
attempt('temp', write, '/tmp/mark-' + mark)
attempt('shm', write, '/dev/shm/mark-' + mark)
attempt('given', write, given + '/mark')
attempt('chmod', os.chmod, given, 0o777)
attempt('root', write, '/mark')
attempt('usr', write, '/usr/mark')
attempt('etc', write, '/etc/passwd')
def fill():
    for number in range(100): open(f'/tmp/{number}', 'wb').write(bytes(1 << 20))
attempt('fill', fill)
",
    ) else {
        return;
    };
    if !whole_fence() {
        return;
    }
    let ran = test.argument(given.path()).argument(&mark).readable(given.path()).run();
    let expected = "temp worked 1\nshm worked 1\ngiven OSError\nchmod OSError\nroot OSError\nusr OSError\netc OSError\nfill OSError\n";
    // A file system that cannot be written says so before it looks at rights, or after; both are a refusal.
    assert_eq!(ran.replied.replace("PermissionError", "OSError"), expected, "{ran:?}");
    assert!(!Path::new("/tmp").join(format!("mark-{mark}")).exists());
    assert!(!given.path().join("mark").exists());
}

#[test]
fn there_is_no_network() {
    let Some(test) = attempts(
        "
import socket
attempt('internet', socket.socket)
attempt('unix', socket.socket, socket.AF_UNIX)
attempt('netlink', socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)
attempt('pair', lambda: len(socket.socketpair()))
import asyncio
async def nothing(): return 'done'
attempt('asyncio', lambda: asyncio.run(nothing()))
",
    ) else {
        return;
    };
    for without in [
        &[][..],
        &[Protection::Network],
        &[Protection::View, Protection::Processes, Protection::ProcessLimit],
    ] {
        let ran = test.clone().without(without).run();
        assert_eq!(
            ran.replied,
            "internet PermissionError\nunix PermissionError\nnetlink PermissionError\npair worked 2\nasyncio worked done\n"
        );
    }
}

#[test]
fn a_worker_gets_only_given_variables_and_files() {
    let Some(mut test) = attempts(
        "
reply(sorted(os.environ.items()))
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
reply([number for number in range(60) if is_open(number)])
attempt('stdin', lambda: sys.stdin.read() == '')
",
    ) else {
        return;
    };
    if !whole_fence() {
        return;
    }
    test.profile.environment = vec![("LC_ALL".into(), "C.UTF-8".into()), ("ODD".into(), "a=b\nc".into())];
    let ran = test.run();
    let expected = "[('LC_ALL', 'C.UTF-8'), ('ODD', 'a=b\\nc')]\n[0, 1, 2, 3, 4]\nstdin worked True\n";
    assert_eq!(ran.replied, expected, "{ran:?}");
}

#[test]
fn other_processes_are_out_of_reach_and_no_rights_are_left() {
    let Some(test) = attempts(
        "
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), '')
parent = int(sys.argv[1])
attempt('parent', os.getppid)
attempt('kill', os.kill, parent, signal.SIGTERM)
attempt('kill-all', lambda: os.kill(-1, 0))
attempt('ptrace', lambda: (_ for _ in ()).throw(PermissionError) if libc.ptrace(16, parent, 0, 0) < 0 and ctypes.get_errno() == 1 else None)
def become_root():
    try: os.setuid(0)
    except OSError: raise PermissionError
attempt('setuid', become_root)
attempt('mount', lambda: libc.mount(b'x', b'/tmp', b'tmpfs', 0, 0) == -1 and ctypes.get_errno())
attempt('unshare', lambda: libc.unshare(0x10000000) == -1 and ctypes.get_errno())
attempt('prctl', lambda: libc.prctl(1, 0, 0, 0, 0) == -1 and ctypes.get_errno())
if os.uname().machine == 'x86_64':
    attempt('clone-user', call, 56, 0x10000000 | 17, 0, 0, 0, 0)
    attempt('clone3', lambda: libc.syscall(435, 0, 0) == -1 and ctypes.get_errno())
    attempt('x32', call, 0x40000000 + 39)
status = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
reply('nnp', status['NoNewPrivs'].strip(), 'seccomp', status['Seccomp'].strip())
reply('caps', int(status['CapPrm'], 16) & ~4, int(status['CapEff'], 16) & ~4)
",
    ) else {
        return;
    };
    if !whole_fence() {
        return;
    }
    let ran = test.argument(std::process::id().to_string()).run();
    let mut expected = vec![
        "parent worked 0",
        "kill ProcessLookupError",
        "kill-all ProcessLookupError",
        "ptrace PermissionError",
        "setuid PermissionError",
        "mount worked 1",
        "unshare worked 1",
        "prctl worked 1",
    ];
    if cfg!(target_arch = "x86_64") {
        expected.extend(["clone-user PermissionError", "clone3 worked 38", "x32 PermissionError"]);
    }
    expected.extend(["nnp 1 seccomp 2", "caps 0 0"]);
    assert_eq!(ran.replied.lines().collect::<Vec<_>>(), expected, "{ran:?}");
}

#[test]
fn a_fork_bomb_runs_into_the_limit() {
    let Some(mut test) = attempts(
        "
import time
def bomb():
    for number in range(1000):
        if os.fork() == 0: time.sleep(60)
    return 'never stopped'
attempt('bomb', bomb)
",
    ) else {
        return;
    };
    if !whole_fence() {
        return;
    }
    test.profile.processes = 16;
    assert_eq!(test.run().replied, "bomb BlockingIOError\n");
}

#[test]
fn memory_and_cpu_time_and_open_files_are_limited() {
    let Some(mut test) = attempts(
        "
attempt('memory', lambda: len(bytearray(1 << 30)))
attempt('files', lambda: [open('/dev/null') for _ in range(1000)])
attempt('size', lambda: open(os.environ.get('TMPDIR', '/tmp') + '/big', 'wb').truncate(1 << 40))
while True: pass
",
    ) else {
        return;
    };
    test.profile.memory = 512 << 20;
    test.profile.cpu = Duration::from_secs(1);
    let ran = test.run();
    assert_eq!(ran.replied, "memory MemoryError\nfiles OSError\nsize OSError\n", "{ran:?}");
    assert_eq!(ran.ending, Ending::Signal(9));
}

#[test]
fn git_works_in_a_repository_that_it_is_given() {
    let has_git = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_git {
        return skip::missing_peer("git is missing");
    }
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q", "-b", "trunk"]);
    git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"]);
    let mut test = Fenced::program("/bin/sh").readable(folder.path());
    test.profile.folder = folder.path().to_owned();
    test.profile.arguments =
        ["-c", "git rev-parse --abbrev-ref HEAD >&4; git log --format=%s >&4; git status --short >&4"]
            .map(Into::into)
            .to_vec();
    // As root the program is nobody, and git refuses repositories of others unless they are marked as safe. These
    // variables tell it, without a file; the others keep it from the user's and the system's settings, which are not there.
    test.profile.environment.extend(
        [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "safe.directory"),
            ("GIT_CONFIG_VALUE_0", "*"),
        ]
        .map(|(name, value)| (name.into(), value.into())),
    );
    // git need not be where the system keeps its programs.
    for (name, value) in &mut test.profile.environment {
        if name == "PATH" {
            *value = "/usr/local/bin:/usr/bin:/bin".into();
        }
    }
    let ran = test.run();
    assert_eq!((ran.replied.as_str(), ran.printed.as_str()), ("trunk\nfirst\n", ""));
}

#[test]
fn without_a_view_nothing_else_can_be_read_or_written_either() {
    let given = tempfile::tempdir().unwrap();
    std::fs::write(given.path().join("note"), "a note").unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("secret"), "a secret").unwrap();
    let Some(test) = attempts(
        "
import tempfile
given, elsewhere, parent = sys.argv[1:]
read = lambda path: open(path).read()
def write(path):
    with open(path, 'w') as file: return file.write('x')
attempt('given', read, given + '/note')
attempt('secret', read, elsewhere + '/secret')
attempt('shadow', read, '/etc/shadow')
attempt('environ', read, f'/proc/{parent}/environ')
attempt('list', os.listdir, elsewhere)
attempt('write', write, elsewhere + '/mark')
attempt('write-given', write, given + '/mark')
attempt('truncate', os.truncate, elsewhere + '/secret', 0)
attempt('chmod', os.chmod, elsewhere + '/secret', 0o777)
attempt('utime', os.utime, elsewhere + '/secret')
attempt('temp', lambda: tempfile.NamedTemporaryFile(delete=False).name.startswith(os.environ['TMPDIR']))
attempt('home', lambda: write(os.path.expanduser('~/file')))
attempt('kill', os.kill, int(parent), 0)
attempt('other-temp', write, '/tmp/mark')
reply(os.environ['TMPDIR'])
",
    ) else {
        return;
    };
    let arguments =
        [given.path().to_str().unwrap(), elsewhere.path().to_str().unwrap(), &std::process::id().to_string()];
    let test = arguments.iter().fold(test, |test, argument| test.argument(*argument)).readable(given.path());
    let two = [Protection::View, Protection::Processes];
    let three = [Protection::View, Protection::Processes, Protection::ProcessLimit];
    for without in [&two[..], &three[..]] {
        let ran = test.clone().without(without).run();
        assert_eq!(ran.report.level(), SandboxLevel::Reduced, "{:?}", ran.report);
        let missing: Vec<Protection> = ran.report.missing.iter().map(|(protection, _)| *protection).collect();
        assert!(without.iter().all(|left_out| missing.contains(left_out)), "{missing:?}");
        assert_eq!(ran.report.why_missing(Protection::View), Some("disabled on request"));
        let (replied, temp) = ran.replied.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(
            replied.lines().collect::<Vec<_>>(),
            [
                "given worked a note",
                "secret PermissionError",
                "shadow PermissionError",
                "environ PermissionError",
                "list PermissionError",
                "write PermissionError",
                "write-given PermissionError",
                "truncate PermissionError",
                "chmod PermissionError",
                "utime PermissionError",
                "temp worked True",
                "home worked 1",
                "kill PermissionError",
                "other-temp PermissionError",
            ],
            "{ran:?}"
        );
        assert!(temp.starts_with("/tmp/cuebook-") && !Path::new(temp).exists(), "{temp} is left behind");
    }
}

#[test]
fn each_missing_protection_is_reported() {
    for protection in Protection::ALL {
        let ran = Fenced::program("/usr/bin/true").without(&[protection]).run();
        assert_eq!(ran.report.why_missing(protection), Some("disabled on request"), "{protection:?}");
        assert_eq!(ran.ending, Ending::Exited(0), "{protection:?} {}", ran.printed);
    }
}

#[test]
fn places_within_others_and_links_to_places_can_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("note"), "a note").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&inner, &link).unwrap();
    let Some(test) =
        attempts("for path in sys.argv[1:]: attempt('read', lambda: open(path + '/note').read())")
    else {
        return;
    };
    if !whole_fence() {
        return;
    }
    let test = test.argument(&inner).argument(&link);
    let both = test.clone().readable(&inner).readable(folder.path()).run();
    assert_eq!(both.replied, "read worked a note\nread worked a note\n", "{both:?}");
    let linked = test.clone().readable(&link).run();
    assert_eq!(linked.replied, "read worked a note\nread worked a note\n", "{linked:?}");
    let one = test.readable(&inner).run();
    assert_eq!(one.replied, "read worked a note\nread FileNotFoundError\n", "{one:?}");
}
