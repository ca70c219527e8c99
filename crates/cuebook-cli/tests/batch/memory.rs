//! The memory of a batch does not grow with its rows.

use crate::setup::Setup;
use crate::support::python_or_skip;

/// Runs a batch, and prints the most memory that it had, in KiB.
const PROGRAM: &str = "import resource, subprocess, sys\n\
subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL)\n\
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n";

fn memory(setup: &Setup, rows: usize) -> u64 {
    let lines: String = (0..rows).map(|row| format!("row-{row},{}\n", "x".repeat(100))).collect();
    setup.project.write("data.csv", format!("question,more\n{lines}"));
    let mut command = setup.project.command("python3", setup.project.path());
    command.args([
        "-c",
        PROGRAM,
        env!("CARGO_BIN_EXE_cuebook"),
        "batch",
        "ask",
        "data.csv",
        "--out",
        "out.jsonl",
        // Several threads wait for each other as the machine decides, up to a limit that 4,000 rows need not reach.
        "--threads",
        "1",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(setup.read("out.jsonl").lines().count(), rows);
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

#[test]
fn ten_times_as_many_rows_need_no_more_memory() {
    let Some(()) = python_or_skip() else { return };
    let setup = Setup::echo();
    let (few, many) = (memory(&setup, 4_000), memory(&setup, 40_000));
    // The larger file alone has 4.4 MB.
    assert!(many < few + 3_000, "{few} KiB for 4,000 rows, {many} KiB for 40,000");
}
