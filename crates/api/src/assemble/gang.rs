//! A gang of what is known of it: its group's terms, the members that exist, and the templates of those that do
//! not yet.
//!
//! The rules, in the order they are applied, with the complaint each of them answers:
//!
//! 1. Members of one role that ask for the same are interchangeable; so are members without a role that do. Two
//!    shapes under one role name are two roles.
//! 2. A gang is sized before its members exist: by its owner's templates, else by the shape of the members there
//!    are, else by `minResources`. Operators make members in stages, and some none at all until there is room
//!    (kubedl#180: a gang waits for a launcher that waits for the gang; KAI#500: a miscounted RayCluster starts
//!    in part).
//! 3. What a group says of each role wins over what it says of all members together, which still holds. A minimum
//!    equal to all members makes every role rigid. A lower one takes from the role with most members first, where
//!    there is a worker to spare and not a master.
//! 4. A minimum of one with `minResources` of more is a gang of `minResources`: Spark, and leaders that start
//!    before their workers, would else be gangs of one. What the members there are do not account for is asked
//!    for by members of no name.
//! 5. A member that is done counts towards the minimum, and takes no place (k/k#142330: after one index of a Job
//!    is done, the replacement of another is never scheduled; KAI PR#2012: gangs evicted for being almost done).
//! 6. Whoever is still short of its minimum is not guessed at: it is said how many exist and how many are needed
//!    (koordinator#2480: no word about missing members).

use muster_core::constraint::Constraints;
use muster_core::gang::{Closeness, Disruption, GangSpec, Provisioning, Request, RoleSpec};
use muster_core::work::Scaling;
use serde::Serialize;

use crate::assemble::roles::Role;
use crate::dialects::terms::{Level, Terms};
use crate::foreign::json::MAX_MEMBERS;
use crate::manifest::gang::gang_spec::DEFAULT_QUEUE;
use crate::pod::request::GpuNames;
use crate::workloads::kind::WorkloadRole;
use crate::yaml::names::spell_label;

/// A member that exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// The part it plays, where somebody says so.
    pub role: Option<&'a str>,
    /// Which one of its role it is.
    pub index: Option<u32>,
    /// What it takes.
    pub request: &'a Request,
    /// Where it may run.
    pub constraints: &'a Constraints,
    /// Whether it has done its work: it counts, and takes no place.
    pub done: bool,
}

/// A gang, and who is who in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembled {
    /// The gang as the planner takes it.
    pub spec: GangSpec,
    /// The members of each role that are not done, by their place in the list given, first index first. A role
    /// may have fewer of them than its `min`: the others do not exist yet.
    pub roles: Vec<Vec<usize>>,
    /// How many members it is sized for that do not exist.
    pub absent: u32,
    /// How many members of each role its owner is to make at most, those that are done among them. `None` where no template
    /// says so.
    pub wanted: Vec<Option<u32>>,
}

/// Why there is no gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, thiserror::Error)]
pub enum Unassembled {
    /// Members are missing, and nothing says what they will be like.
    #[error("{exist} of {needed} members exist, and nothing says what the others will need")]
    Missing {
        /// Members there are, those that are done among them.
        exist: u32,
        /// Members it does not start without.
        needed: u32,
    },
    /// Every member is done.
    #[error("every member is done")]
    Over,
    /// A template cannot be used.
    #[error("{}", .0.join("; "))]
    Template(Vec<String>),
    /// All members together ask for more than can be counted.
    #[error("all members together ask for too much `{0}` to count")]
    TooMuch(String),
    /// There are more roles or members than a gang can have.
    #[error("a gang has at most {MAX_ROLES} roles and {MAX_MEMBERS} members")]
    TooMany,
    /// One of several groups that start together is no gang.
    #[error("{group}: {why}")]
    Of {
        /// Which one.
        group: String,
        /// Why not.
        why: Box<Unassembled>,
    },
    /// Groups that start together must each be gathered somewhere, and not in the same way.
    #[error("groups that start together are gathered as one, and these do not ask for the same")]
    Apart,
}

/// Roles one gang can have, as in Muster's own manifests: a seat names its role with 16 bits.
const MAX_ROLES: usize = 1_000;

/// Makes a gang of a group's terms, the members that exist, and the templates of its owner if they are known.
pub fn assemble(
    name: &str,
    terms: &Terms,
    members: &[Member<'_>],
    templates: Option<&[WorkloadRole]>,
    gpus: &GpuNames,
) -> Result<Assembled, Unassembled> {
    let mut roles = crate::assemble::roles::of_members(members);
    for template in templates.unwrap_or_default() {
        crate::assemble::roles::add_template(&mut roles, template, gpus)
            .map_err(Unassembled::Template)?;
    }
    crate::assemble::missing_members::fill_up(&mut roles, terms, members.len())?;
    crate::assemble::roles::set_minimums(&mut roles, terms);
    crate::assemble::missing_members::by_resources(&mut roles, terms);
    // That there could be more of them does not make members of those that are done.
    roles.retain(|role| !role.members.is_empty() || role.absent() > 0);
    if roles.is_empty() {
        return Err(Unassembled::Over);
    }
    let most = roles.iter().fold(0, |sum: u32, role| sum.saturating_add(role.most));
    if roles.len() > MAX_ROLES || most > MAX_MEMBERS {
        return Err(Unassembled::TooMany);
    }
    let absent = roles.iter().fold(0, |sum: u32, role| sum.saturating_add(role.absent()));
    let (spec, wanted) = (spec(name, terms), Vec::new());
    let mut assembled = Assembled { spec, roles: Vec::new(), absent, wanted };
    // One who says so speaks for all: they start together, and nobody can be stopped for some of them.
    let mut templates = templates.unwrap_or_default().iter();
    assembled.spec.disruption.gentle |= templates.any(|role| role.template.is_gentle());
    for role in roles {
        let left = role.most - role.done;
        countable(&role.request, left)?;
        // What others call a role may be more than a role of a Gang may be called.
        let name = unused(&spell_label(&role.name), &assembled.spec.roles);
        // Some may be done while others wait, but a role of none is no role.
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
        // Which level a tier is, only who knows the tree can say; it comes here as a key when somebody did.
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
            gentle: terms.gentle,
            ..Disruption::default()
        },
        scaling: Scaling::default(),
    }
}

/// Refuses a role whose members together ask for more than 63 bits can count.
fn countable(request: &Request, members: u32) -> Result<(), Unassembled> {
    let total = |amount: &u64| u128::from(*amount) * u128::from(members);
    let over = request.amounts.iter().find(|(_, amount)| total(amount) > i64::MAX as u128);
    over.map_or(Ok(()), |(name, _)| Err(Unassembled::TooMuch(name.to_string())))
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
