//! Ends a program and what it has started.

use rustix::process::{Pid, Signal};

/// Ends one process; if it is the first of a namespace, all that are in there end with it.
#[cfg(target_os = "linux")]
pub fn process(pid: Pid) {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}

/// Ends all descendants of this process, of which `program` is left to be waited for. They may make more while we look, so we
/// look until there are none.
#[cfg(target_os = "linux")]
pub fn descendants(program: Pid) {
    use rustix::process::{WaitOptions, getpid, waitpid};
    use std::collections::HashMap;

    let ourselves = getpid();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while std::time::Instant::now() < deadline {
        let Ok(parents) = parents() else { return };
        let descends = |mut pid: i32, parents: &HashMap<i32, (i32, bool)>| {
            // A loop cannot be, but numbers are reused while we read.
            for _ in 0..parents.len() {
                match parents.get(&pid) {
                    Some((parent, _)) if *parent == ourselves.as_raw_nonzero().get() => return true,
                    Some((parent, _)) => pid = *parent,
                    None => return false,
                }
            }
            false
        };
        let mut alive = 0;
        for (pid, (_, zombie)) in &parents {
            if !descends(*pid, &parents) {
                continue;
            }
            let Some(pid) = Pid::from_raw(*pid) else { continue };
            if *zombie {
                if pid != program {
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
            } else {
                alive += 1;
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        if alive == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The parent of each process, and whether the process is a mere entry that waits to be noticed.
#[cfg(target_os = "linux")]
fn parents() -> std::io::Result<std::collections::HashMap<i32, (i32, bool)>> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The second field is a name in parentheses, which may contain anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let zombie = matches!(fields.next()?, "Z" | "X");
        Some((pid, (fields.next()?.parse().ok()?, zombie)))
    };
    Ok(std::fs::read_dir("/proc")?.filter_map(entry).collect())
}

/// Ends the program's group. What has left the group is not found.
#[cfg(not(target_os = "linux"))]
pub fn group(pid: Pid) {
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}
