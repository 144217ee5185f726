//! Assembles one gang: sizes its roles, then builds the spec. The rules are in the module's documentation.

use muster_core::constraint::Constraints;
use muster_core::gang::{Closeness, Disruption, GangSpec, Provisioning, Request, RoleSpec};
use muster_core::progress::Scaling;
use serde::Serialize;

use crate::assemble::roles::Role;
use crate::dialects::{Level, Terms};
use crate::foreign::json::MAX_MEMBERS;
use crate::manifest::gang::gang_spec::DEFAULT_QUEUE;
use crate::pod::request::GpuNames;
use crate::workloads::kind::WorkloadRole;
use crate::yaml::names::spell_label;

/// An existing member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its role, if it has one.
    pub role: Option<&'a str>,
    /// Its index within its role.
    pub index: Option<u32>,
    /// Its resource request.
    pub request: &'a Request,
    /// Its scheduling constraints.
    pub constraints: &'a Constraints,
    /// Whether it has finished: it counts towards the minimum, and takes no seat.
    pub done: bool,
}

/// A gang, and the members of each of its roles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembled {
    /// The gang for the planner.
    pub spec: GangSpec,
    /// The unfinished members of each role, as indexes into the given list, sorted by the members' own indexes. A role
    /// may have fewer of them than its `min`: the others do not exist yet.
    pub roles: Vec<Vec<usize>>,
    /// The number of members that the gang is sized for and that do not exist.
    pub absent: u32,
    /// The most members of each role that the owner will create, finished ones included. `None` where no template gives
    /// a number.
    pub wanted: Vec<Option<u32>>,
}

/// Why no gang could be assembled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
pub enum AssembleError {
    /// Members are missing, and their requests are unknown.
    #[error("{exist} of {needed} members exist, and the requests of the others are unknown")]
    Missing {
        /// Existing members, finished ones included.
        exist: u32,
        /// Members that the gang needs to start.
        needed: u32,
    },
    /// Every member has finished.
    #[error("every member has finished")]
    Over,
    /// A template is invalid.
    #[error("{}", .0.join("; "))]
    Template(Vec<String>),
    /// All members together request more than can be counted.
    #[error("all members together request too much `{0}` to count")]
    TooMuch(String),
    /// There are more roles or members than a gang can have.
    #[error("a gang has at most {MAX_ROLES} roles and {MAX_MEMBERS} members")]
    TooMany,
    /// One of several merged groups cannot be assembled.
    #[error("{group}: {why}")]
    Of {
        /// The group.
        group: String,
        /// The reason.
        why: Box<AssembleError>,
    },
    /// Merged groups have different required topology levels.
    #[error(
        "groups that start together must have the same required topology level, and these differ"
    )]
    TopologyConflict,
}

/// The largest number of roles of a gang, as in Muster's own manifests: a seat refers to its role with 16 bits.
const MAX_ROLES: usize = 1_000;

/// Assembles a gang from a group's terms, the existing members, and the templates of its owner if they are known.
pub fn assemble(
    name: &str,
    terms: &Terms,
    members: &[Member<'_>],
    templates: Option<&[WorkloadRole]>,
    gpus: &GpuNames,
) -> Result<Assembled, AssembleError> {
    let mut roles = crate::assemble::roles::of_members(members);
    for template in templates.unwrap_or_default() {
        crate::assemble::roles::add_template(&mut roles, template, gpus)
            .map_err(AssembleError::Template)?;
    }
    crate::assemble::missing_members::fill_up(&mut roles, terms, members.len())?;
    crate::assemble::roles::set_minimums(&mut roles, terms);
    crate::assemble::missing_members::by_resources(&mut roles, terms);
    // A possible growth does not turn finished members into open ones.
    roles.retain(|role| !role.members.is_empty() || role.absent() > 0);
    if roles.is_empty() {
        return Err(AssembleError::Over);
    }
    let most = roles.iter().fold(0, |sum: u32, role| sum.saturating_add(role.most));
    if roles.len() > MAX_ROLES || most > MAX_MEMBERS {
        return Err(AssembleError::TooMany);
    }
    let absent = roles.iter().fold(0, |sum: u32, role| sum.saturating_add(role.absent()));
    let (spec, wanted) = (spec(name, terms), Vec::new());
    let mut assembled = Assembled { spec, roles: Vec::new(), absent, wanted };
    // One template that forbids preemption decides for all: the members start together, and no gang can be preempted
    // for only some of them.
    let mut templates = templates.unwrap_or_default().iter();
    assembled.spec.disruption.never_preempts |=
        templates.any(|role| role.template.never_preempts());
    for role in roles {
        let left = role.most - role.done;
        countable(&role.request, left)?;
        // Role names of other systems may be longer or have other characters than those of a Gang.
        let name = unused(&spell_label(&role.name), &assembled.spec.roles);
        // Some members may have finished while others wait, but a role has at least one member.
        let min = role.min.saturating_sub(role.done).clamp(1, left);
        let Role { request, constraints, members: mut who, wanted, .. } = role;
        who.sort_by_key(|at| (members[*at].index, members[*at].name));
        assembled.wanted.push(wanted);
        assembled.roles.push(who);
        let (name, spread) = (name.into(), Vec::new());
        let role = RoleSpec { name, min, max: left, request, constraints, spread };
        assembled.spec.roles.push(role);
    }
    Ok(assembled)
}

/// The gang without its roles.
pub(super) fn spec(name: &str, terms: &Terms) -> GangSpec {
    let key = |level: &Option<Level>| match level {
        Some(Level::Key(key)) => Some(key.clone()),
        // Only the host knows which level of the topology a tier is; it has replaced the tier by a key if it could.
        Some(Level::Tier(_)) | None => None,
    };
    let required = key(&terms.required).map(Closeness::Required);
    GangSpec {
        name: name.into(),
        queue: terms.queue.clone().unwrap_or_else(|| DEFAULT_QUEUE.into()),
        user: "".into(),
        priority: terms.priority.unwrap_or_default(),
        priority_is_declared: false,
        roles: Vec::new(),
        closeness: required.or_else(|| key(&terms.preferred).map(Closeness::Preferred)),
        provisioning: Provisioning::default(),
        expected_duration: None,
        deadline: None,
        cost_of_waiting: None,
        disruption: Disruption {
            preemptible: terms.preemptible.unwrap_or(true),
            never_preempts: terms.never_preempts,
            ..Disruption::default()
        },
        scaling: Scaling::default(),
    }
}

/// Rejects a role whose members together request more than 63 bits can count.
fn countable(request: &Request, members: u32) -> Result<(), AssembleError> {
    let total = |amount: &u64| u128::from(*amount) * u128::from(members);
    let over = request.amounts.iter().find(|(_, amount)| total(amount) > i64::MAX as u128);
    over.map_or(Ok(()), |(name, _)| Err(AssembleError::TooMuch(name.to_string())))
}

/// The name, or the name with a number that no role has yet.
pub(super) fn unused(name: &str, roles: &[RoleSpec]) -> String {
    let taken = |name: &str| roles.iter().any(|role| *role.name == *name);
    if !taken(name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    numbered.into_iter().find(|name| !taken(name)).unwrap_or_default()
}
