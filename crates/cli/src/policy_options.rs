//! The policy options of `muster up` and `muster simulate`: `--policy` (the queue order) and `--set NAME=VALUE`.

use muster_plan::{Policy, QueueOrder};

use crate::exit::UsageError;

/// The queue orders that the help lists. All others are accepted as well: they exist for measurements against published
/// results.
const LISTED_ORDERS: [QueueOrder; 5] = [
    QueueOrder::Muster,
    QueueOrder::Fair,
    QueueOrder::Fifo,
    QueueOrder::Easy,
    QueueOrder::Conservative,
];

/// The help of `--policy`.
pub(crate) fn orders_help() -> String {
    format!("The order of the queue: {}", LISTED_ORDERS.map(QueueOrder::name).join(", "))
}

/// The help of `--set`.
pub(crate) fn settings_help() -> String {
    format!("A setting of the policy; may be repeated:\n{}", Policy::settings())
}

/// Applies the values of `--set` to a policy.
pub(crate) fn apply(policy: &mut Policy, settings: &[String]) -> anyhow::Result<()> {
    for setting in settings {
        policy.set(setting).map_err(|why| UsageError(format!("--set: {why}")))?;
    }
    Ok(())
}
