//! Processor time of processes, as Linux counts it.

use std::fs;

/// The system counts in hundredths of a second.
const TICKS: f64 = 100.0;

/// The name of a process, its own processor time and that of its children that have ended, in seconds.
fn read(pid: u32) -> Option<(String, f64, f64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses, and may have spaces and parentheses itself.
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((name, (ticks(11)? + ticks(12)?) / TICKS, (ticks(13)? + ticks(14)?) / TICKS))
}

/// The processor time of a process without its children, in seconds; `None` where the system does not say it.
pub fn of(pid: u32) -> Option<f64> {
    read(pid).map(|(_, own, _)| own)
}

/// The processor time of a process and of its children that have ended.
pub fn with_children(pid: u32) -> Option<f64> {
    read(pid).map(|(_, own, children)| own + children)
}

/// The processor time of all processes of this name and their children that have ended.
pub fn of_all(name: &str) -> Option<f64> {
    let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let times: Vec<f64> = pids
        .filter_map(read)
        .filter(|(found, ..)| found == name)
        .map(|(_, own, children)| own + children)
        .collect();
    (!times.is_empty()).then(|| times.iter().sum())
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_used_the_processor() {
        let pid = std::process::id();
        let before = super::of(pid).unwrap();
        let began = std::time::Instant::now();
        while super::of(pid).unwrap() < before + 0.02 {
            assert!(began.elapsed().as_secs() < 60, "no processor time is counted");
        }
        assert!(super::with_children(pid).unwrap() >= super::of(pid).unwrap());
        assert!(super::of_all("no such name").is_none());
    }
}
