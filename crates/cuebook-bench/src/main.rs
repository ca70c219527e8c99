//! Benchmarks: ours and the peers', side by side in one run.
//!
//! Machines are noisy, so every row is a ratio of two measurements that take turns, and each measurement is the best of
//! many rounds: noise only ever adds.

mod attribution;
mod measure;

fn main() {
    attribution::run();
}
