//! Measures what all processes of a program use together. The kernel limits each of them, and counts no sum without a control
//! group, which ordinary users cannot make.
//!
//! A program can exceed the limit between two measurements, by what it can touch in that time; then it ends.

use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::wire::Order;

/// The time between two measurements of several processes.
const BUSY: Duration = Duration::from_millis(40);
/// The same for a single process, which the kernel limits exactly.
const QUIET: Duration = Duration::from_millis(250);

/// Measures the processes of one program.
pub struct Measure {
    #[cfg(target_os = "linux")]
    system: Option<std::os::fd::OwnedFd>,
    memory: u64,
    processes: u64,
    quiet: bool,
    next: Instant,
}

/// The system's list of processes, out of the way of the descriptors that a program expects.
#[cfg(target_os = "linux")]
fn list_of_processes() -> Option<std::os::fd::OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open("/proc", flags, Mode::empty()).ok()?;
    rustix::io::fcntl_dupfd_cloexec(opened, 10).ok()
}

impl Measure {
    /// Measures by the limits of an order. Opens the list of processes, which the program's own view hides later.
    pub fn new(order: &Order) -> Measure {
        Measure {
            #[cfg(target_os = "linux")]
            system: list_of_processes(),
            memory: order.total_memory,
            processes: order.processes,
            quiet: true,
            // A program that ends before this was too short to use much.
            next: Instant::now() + BUSY,
        }
    }

    /// The time until the next measurement.
    pub fn pause(&self) -> Duration {
        let pause = if self.quiet { QUIET } else { BUSY };
        self.next.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), pause)
    }

    /// The limit that all processes together exceed. Measures only when it is time.
    pub fn exceeded(&mut self, first: Pid) -> Option<String> {
        if Instant::now() < self.next {
            return None;
        }
        let (memory, processes) = self.sum(first);
        self.quiet = processes <= 1;
        self.next = Instant::now() + if self.quiet { QUIET } else { BUSY };
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        if memory > self.memory {
            return Some(format!("{} MiB of memory; the limit is {} MiB", mib(memory), mib(self.memory)));
        }
        (processes > self.processes)
            .then(|| format!("{processes} processes and threads; the limit is {}", self.processes))
    }

    #[cfg(not(target_os = "linux"))]
    fn sum(&self, _: Pid) -> (u64, u64) {
        (0, 0)
    }

    /// Bytes of memory, and the number of processes and threads.
    #[cfg(target_os = "linux")]
    fn sum(&self, first: Pid) -> (u64, u64) {
        let (mut memory, mut count) = (0, 0);
        let mut waiting = vec![first.as_raw_nonzero().get()];
        // Without a namespace of processes, orphans become children of the launcher.
        waiting.extend(self.children(std::process::id().cast_signed()));
        waiting.sort_unstable();
        waiting.dedup();
        while let Some(pid) = waiting.pop() {
            let Some(status) = self.read(&format!("{pid}/status")) else { continue };
            let number = |name: &str| -> u64 {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
            };
            memory += ["RssAnon:", "RssShmem:", "VmSwap:"].into_iter().map(number).sum::<u64>() << 10;
            let threads = number("Threads:");
            count += threads;
            // Enough to know that it is too many.
            if count > self.processes {
                break;
            }
            match threads {
                0 | 1 => waiting.extend(self.children(pid)),
                _ => waiting.extend(self.threads(pid).flat_map(|thread| self.children_of(pid, thread))),
            }
        }
        (memory, count)
    }

    #[cfg(target_os = "linux")]
    fn children(&self, pid: i32) -> Vec<i32> {
        self.children_of(pid, pid)
    }

    #[cfg(target_os = "linux")]
    fn children_of(&self, pid: i32, thread: i32) -> Vec<i32> {
        let text = self.read(&format!("{pid}/task/{thread}/children")).unwrap_or_default();
        text.split_whitespace().filter_map(|child| child.parse().ok()).collect()
    }

    #[cfg(target_os = "linux")]
    fn threads(&self, pid: i32) -> impl Iterator<Item = i32> {
        use rustix::fs::{Mode, OFlags};
        let folder = self.system.as_ref().and_then(|system| {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::openat(system, format!("{pid}/task"), flags, Mode::empty()).ok()?;
            rustix::fs::Dir::new(folder).ok()
        });
        let entries = folder.into_iter().flatten().filter_map(Result::ok);
        entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok())
    }

    #[cfg(target_os = "linux")]
    fn read(&self, path: &str) -> Option<String> {
        use rustix::fs::{Mode, OFlags};
        use std::io::Read as _;
        let file =
            rustix::fs::openat(self.system.as_ref()?, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let mut text = String::new();
        std::fs::File::from(file.ok()?).take(1 << 20).read_to_string(&mut text).ok()?;
        Some(text)
    }
}
