//! Merges several groups that start together, or not at all, into one gang.
//!
//! The minimum of a group holds for its own members: each group keeps its roles and their minimums, under names that
//! begin with the group's. Properties of the gang as a whole are derived from all groups:
//!
//! - the queue is that of the first group, in their order, that names one;
//! - the priority is the highest;
//! - the gang is preemptible only if every group is;
//! - the gang preempts others for its priority only if every group does;
//! - the required topology level must be the same for all groups; of preferred levels the first counts.

use crate::assemble::gang::{AssembleError, Assembled, Member, assemble, spec, unused};
use crate::dialects::GroupRef;
use crate::dialects::Terms;
use crate::pod::request::GpuNames;
use crate::yaml::names::spell_label;

/// One of the groups that are merged.
#[derive(Clone, Copy, Debug)]
pub struct MergedGroup<'a> {
    /// Its name in errors.
    pub name: &'a str,
    /// The prefix of its role names, see [`role_prefixes`].
    pub role_prefix: &'a str,
    /// Its terms.
    pub terms: &'a Terms,
    /// Its existing members.
    pub members: &'a [Member<'a>],
}

/// The prefixes of the role names of merged groups: the group's name, with its namespace where several groups have the
/// same name. Missing groups are included, so that prefixes do not change when they appear.
pub fn role_prefixes(groups: &[GroupRef]) -> Vec<String> {
    let role_prefix = |group: &GroupRef| {
        let alike = groups.iter().filter(|other| other.name == group.name).count();
        if alike > 1 { format!("{}-{}", group.namespace, group.name) } else { group.name.clone() }
    };
    groups.iter().map(role_prefix).collect()
}

/// Merges groups into one gang, and returns the group of each of its roles. Members are numbered through all groups,
/// one after another. A group that is over takes no seat.
pub fn merge(
    name: &str,
    groups: &[MergedGroup<'_>],
    gpus: &GpuNames,
) -> Result<(Assembled, Vec<usize>), AssembleError> {
    let (spec, roles, wanted) = (spec(name, &merged_terms(groups)?), Vec::new(), Vec::new());
    let mut merged = Assembled { spec, roles, absent: 0, wanted };
    let (mut before, mut of) = (0, Vec::new());
    for (at, group) in groups.iter().enumerate() {
        let assembled = match assemble(name, group.terms, group.members, None, gpus) {
            Ok(assembled) => Some(assembled),
            Err(AssembleError::Over) => None,
            Err(why) => {
                return Err(AssembleError::Of { group: group.name.to_owned(), why: Box::new(why) });
            }
        };
        for (mut role, members) in
            assembled.iter().flat_map(|one| one.spec.roles.iter().cloned().zip(&one.roles))
        {
            let called = format!("{}-{}", group.role_prefix, role.name);
            role.name = unused(&spell_label(&called), &merged.spec.roles).into();
            merged.spec.roles.push(role);
            merged.wanted.push(None);
            merged.roles.push(members.iter().map(|place| before + place).collect());
            of.push(at);
        }
        merged.absent += assembled.map_or(0, |one| one.absent);
        before += group.members.len();
    }
    if merged.roles.is_empty() {
        return Err(AssembleError::Over);
    }
    Ok((merged, of))
}

/// The terms that hold for the gang as a whole.
fn merged_terms(groups: &[MergedGroup<'_>]) -> Result<Terms, AssembleError> {
    let terms = || groups.iter().map(|group| group.terms);
    let required = terms().next().and_then(|first| first.required.clone());
    if terms().any(|one| one.required != required) {
        return Err(AssembleError::TopologyConflict);
    }
    Ok(Terms {
        queue: terms().find_map(|one| one.queue.clone()),
        priority: terms().filter_map(|one| one.priority).max(),
        required,
        preferred: terms().find_map(|one| one.preferred.clone()),
        preemptible: Some(terms().all(|one| one.preemptible.unwrap_or(true))),
        never_preempts: terms().any(|one| one.never_preempts),
        ..Terms::default()
    })
}
