//! Members that do not exist and have no template.

use muster_core::constraint::{Constraints, Toleration};
use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::Request;
use muster_core::resource::CPU;

use crate::assemble::gang::Unassembled;
use crate::assemble::roles::{Role, all, largest};
use crate::dialects::terms::Terms;
use crate::foreign::json::MAX_MEMBERS;
use crate::pod::totals::Totals;

/// What members are called of whom only their sum is known.
const REST: &str = "rest";
const PODS: &str = "pods";

/// Adds the members the group's minimum speaks of beyond those known: like those that exist, or, where the group
/// says what all take together and that is something else, each an equal part of what is left of it.
pub(crate) fn fill_up(
    roles: &mut Vec<Role>,
    terms: &Terms,
    exist: usize,
) -> Result<(), Unassembled> {
    let (mut strangers, mut stranger) = (0, REST);
    for (role, min) in &terms.min_by_role {
        let mine = roles.iter().filter(|known| *known.name == **role);
        let short =
            min.saturating_sub(mine.fold(0, |sum: u32, role| sum.saturating_add(role.count)));
        match roles.iter_mut().find(|known| *known.name == **role) {
            Some(role) => role.grow(short),
            None if short > 0 => {
                stranger = if strangers == 0 { role } else { REST };
                strangers += short;
            }
            None => {}
        }
    }
    let needed = terms.min.unwrap_or(0).max(terms.total.unwrap_or(0));
    let known = all(roles);
    let missing = needed.saturating_sub(known).max(strangers);
    if missing == 0 && known > 0 {
        return Ok(());
    }
    let left = left_of(roles, terms, |role| role.count);
    // Those of a role nobody has seen are like nobody that exists.
    let like = strangers == 0;
    match (largest(roles), left) {
        (Some(role), None) if like => role.grow(missing),
        (Some(role), Some(left)) if like && accounts_for(&role.request, missing, left.clone()) => {
            role.grow(missing);
        }
        (_, Some(left)) => {
            // A lone minimum of one says nothing about how many there will be.
            let count = if needed > 1 || strangers > 0 { missing } else { 0 };
            let name = if missing == strangers { stranger } else { REST };
            add_rest(roles, name, &left, count);
        }
        _ => {
            let exist = u32::try_from(exist).unwrap_or(u32::MAX);
            return Err(Unassembled::Missing {
                exist,
                needed: known.saturating_add(missing).max(1),
            });
        }
    }
    Ok(())
}

/// Makes `minResources` the gang where the minimum is one member, and that one is not all of it.
pub(crate) fn by_resources(roles: &mut Vec<Role>, terms: &Terms) {
    if terms.min.is_none_or(|min| min > 1) || !terms.min_by_role.is_empty() {
        return;
    }
    let Some(mut left) = left_of(roles, terms, |role| role.min) else { return };
    let mut order: Vec<&mut Role> = roles.iter_mut().collect();
    order.sort_by_key(|role| std::cmp::Reverse(role.count));
    for role in order {
        let more = times(&left, &role.request).min(role.count - role.min);
        role.min += more;
        left.without(&role.request, more);
    }
    left.amounts.remove(PODS);
    if !left.is_zero() && !is_crumbs(roles, &left) {
        // Who takes no device says nothing of those that do.
        let devices = left.gpus.values().any(|milli| *milli > 0);
        let speaks_of_it = |role: &&mut Role| !devices || role.request.gpu.is_some();
        let like = largest(roles).filter(speaks_of_it);
        let like = like.map_or(0, |role| times(&left, &role.request));
        add_rest(roles, REST, &left, like);
    }
}

/// Whether what is left is less than anybody takes of anything, where there are several by whom to tell: their sum was
/// rounded, and nobody is to come for the rest.
fn is_crumbs(roles: &[Role], left: &Totals) -> bool {
    let devices = left.gpus.values().any(|milli| *milli > 0);
    let is_less = |role: &Role| {
        let takes = |name| role.request.amounts.get(name).copied().unwrap_or(0);
        left.amounts.iter().all(|(name, amount)| *amount == 0 || *amount < takes(name))
    };
    !devices && all(roles) > 1 && roles.iter().all(is_less)
}

/// What is left of `minResources` when the members counted have had theirs; `None` when nothing is.
fn left_of(roles: &[Role], terms: &Terms, members: fn(&Role) -> u32) -> Option<Totals> {
    let mut left = terms.min_resources.clone()?;
    for role in roles {
        left.without(&role.request, members(role));
    }
    let only_pods = left.gpus.values().all(|milli| *milli == 0)
        && left.amounts.iter().all(|(name, amount)| **name == *PODS || *amount == 0);
    (!only_pods).then_some(left)
}

/// Whether so many members like this take all that is left.
fn accounts_for(request: &Request, members: u32, mut left: Totals) -> bool {
    left.without(request, members);
    left.is_zero()
}

/// How many members like this take all that is left, of what they take at all.
fn times(left: &Totals, request: &Request) -> u32 {
    let mut most = 0;
    for (name, each) in request.amounts.iter().filter(|(name, each)| ***name != *PODS && **each > 0)
    {
        most = most.max(left.amounts.get(name).copied().unwrap_or(0).div_ceil(*each));
    }
    if let Some(gpu) = &request.gpu {
        let milli = left.gpus.get(&gpu.resource).copied().unwrap_or(0);
        most = most.max(milli.div_ceil(request.gpu_milli().max(1)));
    }
    u32::try_from(most).unwrap_or(MAX_MEMBERS).min(MAX_MEMBERS)
}

/// Adds members that take all of this together. With no number given they are as small as can be, since a real
/// member is never smaller than a device or a core: where those fit, the real ones most likely do.
fn add_rest(roles: &mut Vec<Role>, name: &str, left: &Totals, count: u32) {
    let devices: u64 = left.gpus.values().map(|milli| milli.div_ceil(WHOLE.into())).sum();
    let listed = |resource: &str| left.amounts.get(resource).copied().unwrap_or(0);
    let guessed = match (listed(PODS), devices) {
        (pods, _) if pods > 1 => pods,
        (_, 0) => listed(CPU).div_ceil(1_000),
        (_, devices) => devices,
    };
    let count = if count > 0 { u64::from(count) } else { guessed };
    let count = count.clamp(1, u64::from(MAX_MEMBERS)) as u32;
    let pattern = largest(roles).map(|role| (role.request.gpu.clone(), role.constraints.clone()));
    let each = |amount: u64| amount.div_ceil(u64::from(count));
    let amounts: Vec<_> =
        left.amounts.iter().map(|(of, amount)| (of.clone(), each(*amount))).collect();
    let mut request = Request { amounts: amounts.into_iter().collect(), gpu: None };
    request.amounts.insert(PODS.into(), 1);
    let mut kinds = left.gpus.iter().filter(|(_, milli)| **milli > 0).peekable();
    if kinds.peek().is_none() {
        let constraints = pattern.clone().unwrap_or_default().1;
        roles.push(Role::of(name, count, request.clone(), constraints));
    }
    for (resource, milli) in kinds {
        // Where those without devices may run says nothing of where those with devices may.
        let has_such =
            |gpu: &Option<GpuRequest>| gpu.as_ref().is_some_and(|gpu| gpu.resource == *resource);
        let like = pattern.clone().filter(|(gpu, _)| has_such(gpu));
        let constraints = like.map_or_else(|| tolerant(resource), |(_, constraints)| constraints);
        for (members, gpu) in shares(resource, *milli, count) {
            let request = Request { gpu, ..request.clone() };
            roles.push(Role::of(name, members, request, constraints.clone()));
        }
    }
}

/// So many devices shared out among so many members: some have one more than others, none has a part of one
/// unless all that is wanted is parts.
fn shares(
    resource: &std::sync::Arc<str>,
    milli: u64,
    count: u32,
) -> Vec<(u32, Option<GpuRequest>)> {
    let gpu = |count: u64, share: u16| {
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        (count > 0).then(|| GpuRequest { resource: resource.clone(), count, share })
    };
    let whole = u64::from(WHOLE);
    let part = milli.div_ceil(u64::from(count));
    if part < whole && !milli.is_multiple_of(whole) {
        return vec![(count, gpu(1, part as u16))];
    }
    let devices = milli.div_ceil(whole);
    let (few, more) = (devices / u64::from(count), (devices % u64::from(count)) as u32);
    let both = [(more, gpu(few + 1, WHOLE)), (count - more, gpu(few, WHOLE))];
    both.into_iter().filter(|(members, _)| *members > 0).collect()
}

/// Nobody said what they tolerate. Nodes with GPUs are commonly tainted with the name of the resource, and
/// admission commonly lets those past who ask for it.
fn tolerant(resource: &std::sync::Arc<str>) -> Constraints {
    let toleration = Toleration { key: Some(resource.clone()), value: None, effect: None };
    Constraints { tolerations: vec![toleration], ..Constraints::default() }
}
