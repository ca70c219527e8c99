//! How the time of commands grows with their input: `cuebook-bench growth [--json] [NAME…]`.
//!
//! Each shape is an input that can be made in any size. The real program runs on it at growing sizes, and the growth exponent is
//! the slope of log time over log size: 1 is linear, 2 is quadratic. The exit code is 1 if an exponent is above 1.2.
//!
//! Time is processor time of the program, so that a busy machine changes little, less the time of the same shape at its
//! smallest size, so that starting the program does not count.

mod files;
mod measure;
mod messages;
mod prompts;
mod shape;
mod threads;

use std::error::Error;
use std::path::Path;

use serde_json::{Value as Json, json};

use self::measure::Growth;
use self::shape::Shape;
use crate::place;

pub use self::shape::Project;

/// The largest growth exponent that is allowed.
const MAX: f64 = 1.2;

/// All shapes.
fn shapes() -> Vec<Shape> {
    [prompts::shapes(), messages::shapes(), files::shapes(), threads::shapes()].concat()
}

/// Measures all shapes, or those whose names contain one of the words that are given.
pub fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let as_json = words.iter().any(|word| word == "--json");
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with("--")).collect();
    let program = place::program()?;
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for shape in shapes() {
        if !wanted.is_empty() && !wanted.iter().any(|word| shape.name.contains(word.as_str())) {
            continue;
        }
        let growth = match measure::growth(&program, &shape, MAX) {
            Ok(growth) => growth,
            Err(error) => {
                eprintln!("{error}");
                failed.push(shape.name);
                continue;
            }
        };
        if !as_json {
            println!("{}", line(&shape, &growth));
        }
        if growth.exponent.is_some_and(|exponent| exponent > MAX) {
            failed.push(shape.name);
        }
        rows.push(row(&shape, &growth));
    }
    if as_json {
        let document = json!({"most": MAX, "shapes": rows, "failed": failed});
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("these grow faster than n^{MAX}, or failed: {}", failed.join(", ")).into())
}

fn line(shape: &Shape, growth: &Growth) -> String {
    let exponent = match growth.exponent {
        Some(exponent) => format!("{exponent:5.2}{}", if exponent > MAX { " !" } else { "  " }),
        None => "    -  ".to_owned(),
    };
    let times: Vec<String> =
        growth.points.iter().map(|(size, seconds)| format!("{size}: {:.0} ms", seconds * 1e3)).collect();
    format!("{exponent} {:34} {:10} {}", shape.name, shape.command, times.join(", "))
}

fn row(shape: &Shape, growth: &Growth) -> Json {
    let points: Vec<Json> =
        growth.points.iter().map(|(size, seconds)| json!({"size": size, "seconds": seconds})).collect();
    json!({"name": shape.name, "command": shape.command, "exponent": growth.exponent, "points": points})
}

/// Makes a shape at a size and gives the project with the arguments of the command.
fn made(shape: &Shape, size: usize, program: &Path) -> Result<(Project, Vec<String>), String> {
    let project = Project::new(program)?;
    let arguments = (shape.make)(&project, size)?;
    Ok((project, arguments))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Commands without input that grows, or whose work another command does: `mcp`, `run`, `watch` and `worker` render, and threads are
    /// measured by what they leave behind.
    const WITHOUT: [&str; 15] = [
        "allow",
        "completions",
        "doctor",
        "help",
        "init",
        "lsp",
        "mcp",
        "mock",
        "providers",
        "run",
        "schema",
        // No command: what `sign` and `verify` do with a skill.
        "skills",
        "studio",
        "watch",
        "worker",
    ];

    #[test]
    fn the_shapes_cover_every_command() {
        let shapes = shapes();
        assert!(shapes.len() >= 40, "{}", shapes.len());
        let names: BTreeSet<&str> = shapes.iter().map(|shape| shape.name).collect();
        assert_eq!(names.len(), shapes.len(), "two shapes have one name");
        let covered: BTreeSet<&str> = shapes.iter().map(|shape| shape.command).chain(WITHOUT).collect();
        let list = include_str!("../../cuebook-cli/src/commands.rs");
        let modules = list.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        let missing: Vec<&str> = modules.filter(|module| !covered.contains(module)).collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn every_shape_works_at_its_smallest_size() {
        let program = place::program().unwrap();
        let mut failed = Vec::new();
        for shape in shapes() {
            match made(&shape, shape.least, &program) {
                Ok((project, arguments)) => {
                    let output = project.cuebook(&arguments).output().unwrap();
                    let said = String::from_utf8_lossy(&output.stderr);
                    if output.status.code() != Some(shape.code) {
                        failed.push(format!("{} {arguments:?}: {} {said}", shape.name, output.status));
                    }
                }
                Err(error) => failed.push(format!("{}: {error}", shape.name)),
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    /// Shapes whose work once grew with the square of their size: see M6 in the test `security` of `cuebook-cli`.
    const ONCE_QUADRATIC: [&str; 10] = [
        "checked sets",
        "absent variables, explained",
        "flat sections, explained",
        "flat sections, converted",
        "unknown values",
        "tools, compared",
        "names of a .prompt",
        "picoschema",
        "picoschema, rendered",
        "packs in the lockfile",
    ];

    /// The processor time of a command counts, not the time on the clock, and four times the input may cost eight times as much: a
    /// busy machine changes neither much. Quadratic work costs sixteen times as much.
    #[test]
    fn four_times_the_input_is_not_eight_times_the_work() {
        let program = place::program().unwrap();
        let mut failed = Vec::new();
        for shape in shapes().iter().filter(|shape| ONCE_QUADRATIC.contains(&shape.name)) {
            let spent = |size: usize| {
                let runs = (0..3).map(|_| processor_seconds(shape, size, &program));
                runs.fold(f64::INFINITY, f64::min)
            };
            let start = spent(shape.least);
            let (small, large) = (spent(shape.most / 4) - start, spent(shape.most) - start);
            // Below a fiftieth of a second the start of the program decides.
            if large > 8.0 * small.max(0.02) {
                failed.push(format!("{}: {small:.3} s, then {large:.3} s", shape.name));
            }
        }
        assert!(failed.is_empty(), "{}", failed.join("\n"));
    }

    /// The processor seconds of a command on a shape, as bash counts them.
    fn processor_seconds(shape: &Shape, size: usize, program: &Path) -> f64 {
        let (project, arguments) = made(shape, size, program).unwrap();
        let script = "TIMEFORMAT='%3U %3S'; time \"$0\" \"$@\" > /dev/null 2> /dev/null";
        let line: Vec<String> = ["-c", script, &program.to_string_lossy()].map(str::to_owned).into();
        let output = project.command("bash", &[line, arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(shape.code), "{} of size {size}", shape.name);
        let times = String::from_utf8(output.stderr).unwrap();
        times.split_whitespace().map(|time| time.replace(',', ".").parse::<f64>().unwrap()).sum()
    }

    #[test]
    fn the_page_has_a_row_for_every_shape() {
        let page = include_str!("../../../docs/src/reference/growth.md");
        let mut rows: Vec<(&str, &str)> = Vec::new();
        for row in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
            let mut cells = row.split(" | ");
            let (name, command) = (cells.next().unwrap(), cells.next().unwrap());
            rows.push((name.trim_start_matches("| "), command.trim_matches('`')));
        }
        let mut expected: Vec<(&str, &str)> =
            shapes().iter().map(|shape| (shape.name, shape.command)).collect();
        rows.sort_unstable();
        expected.sort_unstable();
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_exponent_is_the_slope_of_the_logarithms() {
        let points = |power: f64| [100.0_f64, 200.0, 400.0].map(|size| (size, size.powf(power)));
        assert!((measure::slope(&points(1.0)) - 1.0).abs() < 1e-9);
        assert!((measure::slope(&points(2.0)) - 2.0).abs() < 1e-9);
    }
}
