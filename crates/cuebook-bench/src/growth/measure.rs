//! Measuring how time grows with the size of a shape.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use super::made;
use super::shape::{Project, Shape};

/// Sizes grow until one run takes so many seconds.
const LONG: f64 = 0.4;
/// A size is measured for about so many seconds, and at most so often.
const MEASURED: f64 = 0.3;
const MOST_RUNS: u32 = 16;
/// Beyond the smallest size a run must take so many seconds longer, or the exponent says nothing.
const NOISE: f64 = 0.008;
/// How often a shape is measured again.
const MOST_REPEATS: usize = 2;
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
    for _ in 0..MOST_REPEATS {
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

/// The processor seconds of one run at a size.
pub fn seconds(program: &Path, shape: &Shape, size: usize) -> Result<f64, String> {
    let (project, arguments) = made(shape, size, program)?;
    let (mut runs, mut total) = (0, 0.0);
    let before = Clock::now();
    while runs < MOST_RUNS && (runs == 0 || total < MEASURED) {
        run(&project, &arguments, shape, size)?;
        runs += 1;
        total = before.elapsed();
    }
    Ok(total / f64::from(runs))
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

/// Counts the processor time of the programs that were run, where the system says it, and else the time on the wall.
struct Clock {
    wall: Instant,
    spent: Option<f64>,
}

impl Clock {
    fn now() -> Clock {
        Clock { wall: Instant::now(), spent: spent_by_children() }
    }

    fn elapsed(&self) -> f64 {
        match (self.spent, spent_by_children()) {
            (Some(before), Some(now)) => now - before,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// What all programs together have used that this one has waited for. Linux counts it in hundredths of a second.
fn spent_by_children() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may have spaces; the fields behind it are numbers, and these are the 16th and 17th of all.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / 100.0)
}
