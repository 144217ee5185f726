//! Several groups that start together, or not at all, as one gang.
//!
//! What a group says of how many it needs holds for its own members: each keeps its roles and their minimums, under names
//! that begin with the group's. What can only be said of a gang as a whole is said by all of them:
//!
//! - the queue is that of the first group, in their order, that names one;
//! - the priority is the highest;
//! - all of it may be stopped for others only if every group may;
//! - others are stopped for its priority only if every group would have that;
//! - all of it is gathered where every group must be, which therefore must be the same for all; where it should be, the
//!   first that says so counts.

use crate::assemble::gang::{Assembled, Member, Unassembled, assemble, spec, unused};
use crate::dialects::dialect::GroupRef;
use crate::dialects::terms::Terms;
use crate::pod::request::GpuNames;
use crate::yaml::names::spell_label;

/// One of the groups that start together.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What is said of it when it is no gang.
    pub name: &'a str,
    /// What its roles are called by, see [`labels`].
    pub label: &'a str,
    /// What it asks for.
    pub terms: &'a Terms,
    /// Its members that exist.
    pub members: &'a [Member<'a>],
}

/// What the roles of groups that start together begin with: the group's name, and its namespace too where others are called
/// alike. Whoever is missing is among them, so that nobody is called otherwise for it.
pub fn labels(groups: &[GroupRef]) -> Vec<String> {
    let label = |group: &GroupRef| {
        let alike = groups.iter().filter(|other| other.name == group.name).count();
        if alike > 1 { format!("{}-{}", group.namespace, group.name) } else { group.name.clone() }
    };
    groups.iter().map(label).collect()
}

/// Makes one gang of groups that start together, and says of which group each of its roles is. Places of members are
/// counted through all groups, one after another. A group that is over takes no place.
pub fn unite(
    name: &str,
    sides: &[Side<'_>],
    gpus: &GpuNames,
) -> Result<(Assembled, Vec<usize>), Unassembled> {
    let (spec, roles, wanted) = (spec(name, &joint(sides)?), Vec::new(), Vec::new());
    let mut united = Assembled { spec, roles, absent: 0, wanted };
    let (mut before, mut of) = (0, Vec::new());
    for (at, side) in sides.iter().enumerate() {
        let assembled = match assemble(name, side.terms, side.members, None, gpus) {
            Ok(assembled) => Some(assembled),
            Err(Unassembled::Over) => None,
            Err(why) => {
                return Err(Unassembled::Of { group: side.name.to_owned(), why: Box::new(why) });
            }
        };
        for (mut role, members) in
            assembled.iter().flat_map(|one| one.spec.roles.iter().cloned().zip(&one.roles))
        {
            let called = format!("{}-{}", side.label, role.name);
            role.name = unused(&spell_label(&called), &united.spec.roles).into();
            united.spec.roles.push(role);
            united.wanted.push(None);
            united.roles.push(members.iter().map(|place| before + place).collect());
            of.push(at);
        }
        united.absent += assembled.map_or(0, |one| one.absent);
        before += side.members.len();
    }
    if united.roles.is_empty() {
        return Err(Unassembled::Over);
    }
    Ok((united, of))
}

/// What all groups together ask for, of what is asked for a gang as a whole.
fn joint(sides: &[Side<'_>]) -> Result<Terms, Unassembled> {
    let terms = || sides.iter().map(|side| side.terms);
    let required = terms().next().and_then(|first| first.required.clone());
    if terms().any(|one| one.required != required) {
        return Err(Unassembled::Apart);
    }
    Ok(Terms {
        queue: terms().find_map(|one| one.queue.clone()),
        priority: terms().filter_map(|one| one.priority).max(),
        required,
        preferred: terms().find_map(|one| one.preferred.clone()),
        preemptible: Some(terms().all(|one| one.preemptible.unwrap_or(true))),
        gentle: terms().any(|one| one.gentle),
        ..Terms::default()
    })
}
