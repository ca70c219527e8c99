//! Rules for files by Landlock: a second wall behind the view, and the first where it is missing.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::view::{DEVICES, SYSTEM};
use crate::sandbox::wire::Order;

/// The first version that keeps files from being cut short (Linux 6.2). With an older one files are not safe.
const ENOUGH: ABI = ABI::V3;

/// The version whose rules for files we know (Linux 6.10).
const FILES: ABI = ABI::V5;

/// Lets this process and all that it becomes read what it is given and write to its temporary folder only. `temp` is that
/// folder if there is no view; in a view everything that can be seen may be read.
pub fn restrict(order: &Order, temp: Option<&Path>) -> Result<(), String> {
    match try_restrict(order, temp) {
        Ok(RulesetStatus::NotEnforced) => {
            Err("Landlock: this kernel does not support it, or it is turned off".into())
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("Landlock: {error} (needs Linux 6.2 or newer, and may be turned off)")),
    }
}

fn try_restrict(order: &Order, temp: Option<&Path>) -> Result<RulesetStatus, RulesetError> {
    let read = AccessFs::from_read(FILES);
    let all = AccessFs::from_all(FILES);
    let mut ruleset = Ruleset::default();
    if temp.is_some() {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ENOUGH))?
            .set_compatibility(CompatLevel::BestEffort);
    }
    ruleset = ruleset.handle_access(all)?;
    // A tool may use the loopback interface of its own empty network.
    if order.tool.is_none() {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let rules = ruleset.scope(Scope::from_all(ABI::V6))?.create()?;
    let rules = match temp {
        None => rules
            .add_rules(path_beneath_rules(["/"], read))?
            .add_rules(path_beneath_rules(["/tmp", "/dev"], all))?
            .add_rules(path_beneath_rules(order.writable(), all))?,
        Some(temp) => rules
            .add_rules(path_beneath_rules(SYSTEM, read))?
            .add_rules(path_beneath_rules(order.readable(), read))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile | AccessFs::WriteFile))?
            .add_rules(path_beneath_rules([temp], all))?,
    };
    Ok(rules.restrict_self()?.ruleset)
}
