//! `--set NAME=VALUE`: settings of the policy.

use muster_plan::{Policy, QueueOrder};

use crate::exit::Misused;

/// Who goes first.
pub(crate) fn orders() -> String {
    format!("How the queue is ordered: {}", QueueOrder::names())
}

/// What can be set.
pub(crate) fn help() -> String {
    format!("A setting of the policy; may be repeated:\n{}", Policy::settings())
}

/// Sets what was asked for.
pub(crate) fn apply(policy: &mut Policy, settings: &[String]) -> anyhow::Result<()> {
    for setting in settings {
        policy.set(setting).map_err(|why| Misused(format!("--set: {why}")))?;
    }
    Ok(())
}
