//! Groups members into roles, and computes the size and the minimum of each role.

use std::collections::BTreeMap;

use muster_core::constraint::Constraints;
use muster_core::gang::Request;

use crate::assemble::gang::Member;
use crate::dialects::Terms;
use crate::foreign::json::MAX_MEMBERS;
use crate::pod::request::GpuNames;
use crate::workloads::kind::WorkloadRole;

/// The role name of members without a role.
const NAMELESS: &str = "member";

/// A role under construction.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) name: String,
    /// Whether the name was given by a member or a template.
    pub(crate) named: bool,
    pub(crate) request: Request,
    pub(crate) constraints: Constraints,
    /// Existing unfinished members.
    pub(crate) members: Vec<usize>,
    /// The number of finished members.
    pub(crate) done: u32,
    /// The planned number of members, finished ones included.
    pub(crate) count: u32,
    /// The largest number of members, finished ones included.
    pub(crate) most: u32,
    /// The number of members that its template gives, finished ones included.
    pub(crate) wanted: Option<u32>,
    /// The minimum that its template gives.
    pub(crate) hint: Option<u32>,
    /// The minimum number of members.
    pub(crate) min: u32,
}

impl Role {
    /// A role of `count` members, of which none exists.
    pub(crate) fn of(name: &str, count: u32, request: Request, constraints: Constraints) -> Self {
        Self {
            name: name.to_owned(),
            named: true,
            request,
            constraints,
            members: Vec::new(),
            done: 0,
            count,
            most: count,
            wanted: None,
            hint: None,
            min: count,
        }
    }
    /// Adds members that do not exist.
    pub(crate) fn grow(&mut self, more: u32) {
        self.count = self.count.saturating_add(more).min(MAX_MEMBERS);
        self.most = self.most.max(self.count);
    }
    /// The number of planned members that do not exist.
    pub(crate) fn absent(&self) -> u32 {
        self.count.saturating_sub(self.done).saturating_sub(self.members.len() as u32)
    }
}

/// The planned number of members of all roles.
pub(crate) fn all(roles: &[Role]) -> u32 {
    roles.iter().fold(0, |sum, role| sum.saturating_add(role.count))
}

/// The role with the most members; the first of several.
pub(crate) fn largest(roles: &mut [Role]) -> Option<&mut Role> {
    roles.iter_mut().rev().max_by_key(|role| role.count)
}

/// One role per role name and request, or per request for members without a role, in order of appearance.
pub(crate) fn of_members(members: &[Member<'_>]) -> Vec<Role> {
    let mut places = BTreeMap::new();
    let mut roles: Vec<Role> = Vec::new();
    for (at, member) in members.iter().enumerate() {
        let name = member.role.filter(|name| !name.is_empty());
        let place =
            *places.entry((name, member.request, member.constraints)).or_insert_with(|| {
                let (request, constraints) = (member.request.clone(), member.constraints.clone());
                let role = Role::of(name.unwrap_or(NAMELESS), 0, request, constraints);
                roles.push(Role { named: name.is_some(), ..role });
                roles.len() - 1
            });
        let role = &mut roles[place];
        role.grow(1);
        if member.done {
            role.done += 1;
        } else {
            role.members.push(at);
        }
    }
    roles
}

/// Adds the members of a template that do not exist yet.
///
/// They are assumed to be like the existing members of their role, since admission will change them in the same way.
/// Members without a role belong to this one if their requests are equal; constraints are not compared, because
/// admission adds tolerations.
pub(crate) fn add_template(
    roles: &mut Vec<Role>,
    template: &WorkloadRole,
    gpus: &GpuNames,
) -> Result<(), Vec<String>> {
    let request = template.template.request(&template.annotations, gpus)?;
    let constraints = template.template.constraints()?;
    for role in roles.iter_mut().filter(|role| !role.named && role.request == request) {
        role.name.clone_from(&template.name);
        role.named = true;
    }
    let exist = roles.iter().filter(|role| role.name == template.name);
    let exist = exist.fold(0, |sum: u32, role| sum.saturating_add(role.count));
    let place = roles.iter().position(|role| role.name == template.name).unwrap_or_else(|| {
        roles.push(Role::of(&template.name, 0, request, constraints));
        roles.len() - 1
    });
    let done = roles.iter().filter(|role| role.name == template.name).map(|role| role.done);
    let done = done.fold(0, u32::saturating_add);
    let role = &mut roles[place];
    role.grow(template.count.saturating_sub(exist));
    // Members beyond the template's count came later: the gang does not wait for them.
    let beyond = exist.saturating_sub(done) > template.count;
    role.hint = template.min.or(beyond.then_some(template.count.saturating_add(done)));
    let more = template.max.unwrap_or(0).saturating_sub(template.count.max(exist));
    role.most = role.most.max(role.count.saturating_add(more)).min(MAX_MEMBERS);
    want(roles, template);
    Ok(())
}

/// Sets the number of members that a template gives for each role of its name. With several requests under one name,
/// the later roles have as many as exist, and the first has the rest.
fn want(roles: &mut [Role], template: &WorkloadRole) {
    let exist = |role: &Role| role.done + role.members.len() as u32;
    let mine = roles.iter().filter(|role| role.name == template.name);
    let others = mine.skip(1).map(exist).fold(0, u32::saturating_add);
    let mine = roles.iter_mut().filter(|role| role.name == template.name);
    for (at, role) in mine.enumerate() {
        let rest = template.count.saturating_sub(others);
        role.wanted = Some(if at == 0 { rest } else { exist(role) });
    }
}

/// Sets the minimum of each role.
pub(crate) fn set_minimums(roles: &mut [Role], terms: &Terms) {
    let mut left = terms.min;
    for (name, min) in &terms.min_by_role {
        let mut mine: Vec<&mut Role> =
            roles.iter_mut().filter(|role| *role.name == **name).collect();
        if !mine.is_empty() {
            lower(&mut mine, *min);
            left = left.map(|left| left.saturating_sub(*min));
        }
    }
    let is_free = |role: &Role| !terms.min_by_role.iter().any(|(name, _)| **name == *role.name);
    let mut free: Vec<&mut Role> = roles.iter_mut().filter(|role| is_free(role)).collect();
    match left {
        Some(min) => lower(&mut free, min),
        None => free.iter_mut().for_each(|role| role.min = role.hint.unwrap_or(role.count)),
    }
    raise(roles, terms.min.unwrap_or(0));
}

/// Raises the low minimums of roles until they add up to the minimum of all members, the largest role first.
fn raise(roles: &mut [Role], min: u32) {
    let mut short = roles.iter().fold(min, |short, role| short.saturating_sub(role.min));
    let mut order: Vec<&mut Role> = roles.iter_mut().collect();
    order.sort_by_key(|role| std::cmp::Reverse(role.count));
    for role in order {
        let more = role.count.saturating_sub(role.min).min(short);
        role.min += more;
        short -= more;
    }
}

/// Distributes a minimum over roles: each keeps all its members except those that can be spared, which are taken first
/// from roles whose template gives a minimum, then from the largest. No role goes below one.
fn lower(roles: &mut [&mut Role], min: u32) {
    let all = roles.iter().fold(0, |sum: u32, role| sum.saturating_add(role.count));
    let mut spare = all.saturating_sub(min);
    for role in roles.iter_mut() {
        (role.min, role.most) = (role.count, role.count);
        if let Some(hint) = role.hint {
            spare_from(role, hint, &mut spare);
        }
    }
    roles.sort_by_key(|role| std::cmp::Reverse(role.count));
    for role in roles.iter_mut() {
        spare_from(role, 1, &mut spare);
    }
}

fn spare_from(role: &mut Role, least: u32, spare: &mut u32) {
    let less = role.min.saturating_sub(least.max(1)).min(*spare);
    role.min -= less;
    *spare -= less;
}
