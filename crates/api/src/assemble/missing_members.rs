//! Adds members that do not exist and have no template.

use muster_core::constraint::{Constraints, Toleration};
use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::Request;
use muster_core::resource::CPU;

use crate::assemble::gang::AssembleError;
use crate::assemble::roles::{Role, all, largest};
use crate::dialects::Terms;
use crate::foreign::json::MAX_MEMBERS;
use crate::pod::totals::Totals;

/// The role name of members of which only the total request is known.
const REST: &str = "rest";
const PODS: &str = "pods";

/// Adds the members that the group's minimum requires beyond the known ones. They are like those that exist, or, where
/// `minResources` asks for something else, each takes an equal part of what is left of it.
pub(crate) fn fill_up(
    roles: &mut Vec<Role>,
    terms: &Terms,
    exist: usize,
) -> Result<(), AssembleError> {
    let (mut unseen, mut stranger) = (0, REST);
    for (role, min) in &terms.min_by_role {
        let mine = roles.iter().filter(|known| *known.name == **role);
        let short =
            min.saturating_sub(mine.fold(0, |sum: u32, role| sum.saturating_add(role.count)));
        match roles.iter_mut().find(|known| *known.name == **role) {
            Some(role) => role.grow(short),
            None if short > 0 => {
                stranger = if unseen == 0 { role } else { REST };
                unseen += short;
            }
            None => {}
        }
    }
    let needed = terms.min.unwrap_or(0).max(terms.total.unwrap_or(0));
    let known = all(roles);
    let missing = needed.saturating_sub(known).max(unseen);
    if missing == 0 && known > 0 {
        return Ok(());
    }
    let left = left_of(roles, terms, |role| role.count);
    // Members of a role that has no existing member yet are unlike those that exist.
    let like = unseen == 0;
    match (largest(roles), left) {
        (Some(role), None) if like => role.grow(missing),
        (Some(role), Some(left)) if like && accounts_for(&role.request, missing, left.clone()) => {
            role.grow(missing);
        }
        (_, Some(left)) => {
            // A minimum of one says nothing about the number of members.
            let count = if needed > 1 || unseen > 0 { missing } else { 0 };
            let name = if missing == unseen { stranger } else { REST };
            add_rest(roles, name, &left, count);
        }
        _ => {
            let exist = u32::try_from(exist).unwrap_or(u32::MAX);
            return Err(AssembleError::Missing {
                exist,
                needed: known.saturating_add(missing).max(1),
            });
        }
    }
    Ok(())
}

/// Sizes the gang by `minResources` where the minimum is one member, and that member is not all of it.
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
    if !left.is_zero() && !is_rounding_rest(roles, &left) {
        // A member without devices says nothing about the size of those with devices.
        let devices = left.gpus.values().any(|milli| *milli > 0);
        let speaks_of_it = |role: &&mut Role| !devices || role.request.gpu.is_some();
        let like = largest(roles).filter(speaks_of_it);
        let like = like.map_or(0, |role| times(&left, &role.request));
        add_rest(roles, REST, &left, like);
    }
}

/// Whether what is left is less than any member requests of any resource, given several members to compare with: their
/// sum was rounded, and no member is to come for the rest.
fn is_rounding_rest(roles: &[Role], left: &Totals) -> bool {
    let devices = left.gpus.values().any(|milli| *milli > 0);
    let is_less = |role: &Role| {
        let takes = |name| role.request.amounts.get(name).copied().unwrap_or(0);
        left.amounts.iter().all(|(name, amount)| *amount == 0 || *amount < takes(name))
    };
    !devices && all(roles) > 1 && roles.iter().all(is_less)
}

/// What is left of `minResources` after the counted members; `None` if nothing is.
fn left_of(roles: &[Role], terms: &Terms, members: fn(&Role) -> u32) -> Option<Totals> {
    let mut left = terms.min_resources.clone()?;
    for role in roles {
        left.without(&role.request, members(role));
    }
    let only_pods = left.gpus.values().all(|milli| *milli == 0)
        && left.amounts.iter().all(|(name, amount)| **name == *PODS || *amount == 0);
    (!only_pods).then_some(left)
}

/// Whether this many members with this request take all that is left.
fn accounts_for(request: &Request, members: u32, mut left: Totals) -> bool {
    left.without(request, members);
    left.is_zero()
}

/// How many members with this request take all that is left, of the resources that they request.
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

/// Adds members that take all of this together. Without a given number they are as small as possible, since a real
/// member is never smaller than a device or a core: where these fit, the real ones most likely do.
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
        // Where members without devices may run says nothing about members with devices.
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

/// Distributes devices over members: some get one more than others, and none gets a part of a device unless only parts
/// are requested.
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

/// Their tolerations are unknown. Nodes with GPUs are commonly tainted with the name of the resource, and admission
/// commonly adds the toleration to pods that request it.
fn tolerant(resource: &std::sync::Arc<str>) -> Constraints {
    let toleration = Toleration { key: Some(resource.clone()), value: None, effect: None };
    Constraints { tolerations: vec![toleration], ..Constraints::default() }
}
