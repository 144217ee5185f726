//! Required topology spread (`DoNotSchedule`): keeps every domain of a topology key within `maxSkew` of the emptiest.
//!
//! `rule` applies a pod's spread rules to a gang, `domains` counts the pods of each domain as Kubernetes does, and
//! `distribute` assigns members to domains.
//!
//! Deliberately not here: `ScheduleAnyway`, which is a preference (`constraints::preferred`).

pub(crate) mod rule;

pub(crate) mod distribute;
pub(crate) mod domains;
