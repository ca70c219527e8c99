//! Measuring how time grows with the size of a shape.

use std::path::Path;
use std::process::Stdio;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

use super::made;
use super::shape::{Project, Shape};

/// Sizes grow until one run takes so many seconds.
const LONG: f64 = 0.4;
/// A size is measured for about so many seconds, at least and at most so often.
const MEASURED: f64 = 0.3;
const LEAST_RUNS: u32 = 2;
const MAX_RUNS: u32 = 16;
/// Beyond the smallest size a run must take so many seconds longer, or the exponent says nothing.
const NOISE: f64 = 0.008;
/// How often a shape is measured again.
const MAX_REPEATS: usize = 2;
/// How many of the largest sizes the exponent is made of.
const SIZES: usize = 3;

/// How the time of a shape grows.
pub struct Growth {
    /// Sizes and seconds of processor time.
    pub points: Vec<(usize, f64)>,
    /// The exponent; `None` if even the largest size takes too little time to say.
    pub exponent: Option<f64>,
}

/// Measures a shape at growing sizes. Noise only adds time: if the exponent is too large, it is measured again, and the shorter
/// time of each size counts.
pub fn growth(program: &Path, shape: &Shape, most: f64) -> Result<Growth, String> {
    let start = seconds(program, shape, shape.least)?;
    let mut points = Vec::new();
    let mut size = (shape.most >> 6).max(shape.least * 2);
    loop {
        let took = seconds(program, shape, size)?;
        points.push((size, took));
        if size * 2 > shape.most || (took - start > LONG && points.len() >= SIZES) || took > 20.0 * LONG {
            break;
        }
        size *= 2;
    }
    let mut exponent = exponent_of(&points, start);
    for _ in 0..MAX_REPEATS {
        if exponent.is_none_or(|exponent| exponent <= most) {
            break;
        }
        let first = points.len().saturating_sub(SIZES);
        for (size, known) in &mut points[first..] {
            *known = known.min(seconds(program, shape, *size)?);
        }
        exponent = exponent_of(&points, start);
    }
    Ok(Growth { points, exponent })
}

/// The exponent of the largest sizes; `None` if fewer than two of them take long enough.
fn exponent_of(points: &[(usize, f64)], start: f64) -> Option<f64> {
    let last = &points[points.len().saturating_sub(SIZES)..];
    let above: Vec<(f64, f64)> = last
        .iter()
        .map(|(size, seconds)| (*size as f64, seconds - start))
        .filter(|(_, seconds)| *seconds > NOISE)
        .collect();
    (above.len() >= 2).then(|| slope(&above))
}

/// The slope of the logarithms, by least squares.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(size, time)| (size.ln(), time.ln())).collect();
    let count = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |(x, y), (size, time)| (x + size / count, y + time / count));
    let (above, below) = logs.iter().fold((0.0, 0.0), |(above, below), (size, time)| {
        (above + (size - x) * (time - y), below + (size - x) * (size - x))
    });
    above / below
}

/// The processor seconds of the fastest run at a size: noise only adds time.
pub fn seconds(program: &Path, shape: &Shape, size: usize) -> Result<f64, String> {
    let (project, arguments) = made(shape, size, program)?;
    let (mut runs, mut total, mut least) = (0, 0.0, f64::INFINITY);
    while runs < MAX_RUNS && (runs < LEAST_RUNS || total < MEASURED) {
        let before = spent_by_children()?;
        run(&project, &arguments, shape, size)?;
        let took = spent_by_children()? - before;
        least = least.min(took);
        total += took;
        runs += 1;
    }
    Ok(least)
}

fn run(project: &Project, arguments: &[String], shape: &Shape, size: usize) -> Result<(), String> {
    let mut command = project.cuebook(arguments);
    let output = command.stdout(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.code() == Some(shape.code) {
        return Ok(());
    }
    let said: String = String::from_utf8_lossy(&output.stderr).chars().take(400).collect();
    Err(format!("{} of size {size} ended with {}: {said}", shape.name, output.status))
}

/// The processor seconds of all programs that this one has waited for.
fn spent_by_children() -> Result<f64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
