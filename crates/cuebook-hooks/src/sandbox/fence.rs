//! The protections.
//!
//! They go up in two steps: what has to be there before the program's process exists ([`Fence::outside`]), and what that
//! process does to itself before it becomes the program ([`Fence::inside`]). A protection that the system refuses is noted,
//! with the system's own words, and the rest continues: the caller decides whether it is enough.

mod end;
#[cfg(target_os = "linux")]
mod identity;
#[cfg(target_os = "linux")]
mod landlock;
mod limits;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
#[path = "fence/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "fence/other.rs"]
mod system;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(target_os = "linux")]
mod view;

pub use system::{Fence, own_network};

use std::path::PathBuf;

use super::Protection;
use super::wire::{Fenced, Order};

/// Why a protection is missing that was not wanted.
const LEFT_OUT: &str = "disabled on request";

/// A fence that stands: what it is made of, and variables that the program's environment needs because of it.
pub type RunningFence = (Fenced, Vec<(&'static str, PathBuf)>);

/// Whether a protection is wanted; if not, that counts as a refusal.
fn wanted(order: &Order, protection: Protection) -> Result<(), String> {
    if order.without.contains(&protection) { Err(LEFT_OUT.into()) } else { Ok(()) }
}
