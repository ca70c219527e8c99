//! Limits of what a process may use.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sandbox::wire::{self, Order};

/// The first Linux that counts the processes of each user namespace on their own.
#[cfg(target_os = "linux")]
const COUNTS_PER_NAMESPACE: (u32, u32) = (5, 14);

/// Limits memory, CPU time, files and open files of each process.
pub fn resources(order: &Order) -> Result<(), String> {
    // Rounded up: a limit of no seconds would end it at once.
    let seconds = order.cpu.as_secs().saturating_add(u64::from(order.cpu.subsec_nanos() > 0));
    let mut failed = None;
    // Runtimes such as Node and Go reserve far more addresses than they use; of a tool only what it can write counts.
    let memory = if order.tool.is_some() { Resource::Data } else { Resource::As };
    let largest_file = if order.tool.is_some() { u64::MAX } else { order.temp_size };
    for (name, resource, limit) in [
        ("memory", memory, order.memory),
        ("CPU time", Resource::Cpu, seconds),
        ("the size of files", Resource::Fsize, largest_file),
        ("open files", Resource::Nofile, order.open_files),
        ("core dumps", Resource::Core, 0),
        ("locked memory", Resource::Memlock, 64 << 10),
    ] {
        if let Err(error) = limit_to(resource, limit) {
            failed.get_or_insert(format!("limit of {name}: {}", wire::plain(&error.into())));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Lowers a limit. One that is lower already stays.
fn limit_to(resource: Resource, limit: u64) -> rustix::io::Result<()> {
    let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    // Both the same: the warning that comes before the end would not reach the first process of a namespace.
    setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })
}

/// Limits the number of processes. Needs a user namespace, or all processes of the user would be counted.
#[cfg(target_os = "linux")]
pub fn processes(order: &Order, identity: &super::identity::Identity) -> Result<(), String> {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy();
    if version(&release).is_none_or(|version| version < COUNTS_PER_NAMESPACE) {
        let (major, minor) = COUNTS_PER_NAMESPACE;
        return Err(format!("Linux {release} does not count processes by namespace; {major}.{minor} does"));
    }
    if !identity.is_counted() {
        return Err("the kernel does not count the processes of root".into());
    }
    // The launcher is in the namespace too, and counts if it is the same user.
    let launcher = u64::from(!identity.nobody);
    limit_to(Resource::Nproc, order.processes + launcher)
        .map_err(|error| format!("limit of processes: {}", wire::plain(&error.into())))
}

/// The first two numbers of a kernel's release.
#[cfg(target_os = "linux")]
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_kernel_is_read_from_its_release() {
        assert_eq!(version("6.18.44-fc-v445"), Some((6, 18)));
        assert_eq!(version("5.4.0"), Some((5, 4)));
        assert_eq!(version("6.1-rc3"), Some((6, 1)));
        assert_eq!(version("unknown"), None);
    }
}
