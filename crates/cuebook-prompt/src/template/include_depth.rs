//! The limit on the depth of includes, for engines whose includes are known when a template is compiled.

use std::collections::{HashMap, VecDeque};

use super::jinja::names::Names;
use super::unit::Unit;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};

/// Goes through the templates breadth first, so that the first one beyond the limit is found by its shortest way. `links` has the
/// template that each reference of a template leads to.
pub(super) fn check_depth(
    units: &[Unit],
    names: &[Names],
    links: &[Vec<Option<u32>>],
    limit: usize,
) -> Result<()> {
    let mut depth: HashMap<u32, usize> = HashMap::from([(0, 0)]);
    let mut queue = VecDeque::from([0_u32]);
    while let Some(unit) = queue.pop_front() {
        let level = depth[&unit] + 1;
        for (reference, target) in names[unit as usize].references.iter().zip(&links[unit as usize]) {
            let Some(target) = target.filter(|target| !depth.contains_key(target)) else { continue };
            if level > limit {
                let message = format!("templates include each other more than {limit} deep");
                let diagnostic = Diagnostic::new(Code::TooDeep, message)
                    .at(units[unit as usize].source().place(reference.range.clone()))
                    .hint(Hint::run(
                        "flatten the includes, or raise `limits.include_depth` in cuebook.toml, and grant it",
                        "cuebook allow",
                    ));
                return Err(Error::new(ErrorKind::Limit, diagnostic));
            }
            depth.insert(target, level);
            queue.push_back(target);
        }
    }
    Ok(())
}
