//! Faults that tests inject by name: a gang at which the host panics, or hangs. Not in builds without tests.

use std::time::Duration;

/// One fault and the gang it strikes at, written `panic:NAMESPACE/NAME`, `pod:..`, `plan:..` or `stall:..`.
#[derive(Clone, Debug)]
pub struct Fault {
    at: FaultPoint,
    name: String,
}

/// Where a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultPoint {
    /// When a gang is reconciled.
    Gang,
    /// When a pod is observed.
    Pod,
    /// When the planner is given a gang.
    Plan,
    /// When a gang is reconciled: the host hangs.
    Stall,
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (at, name) = text.split_once(':').ok_or("not KIND:NAMESPACE/NAME")?;
        let at = match at {
            "panic" => FaultPoint::Gang,
            "pod" => FaultPoint::Pod,
            "plan" => FaultPoint::Plan,
            "stall" => FaultPoint::Stall,
            other => return Err(format!("no fault is called {other}")),
        };
        Ok(Self { at, name: name.to_owned() })
    }
}

/// Panics, or hangs, if one of these faults is to strike here.
pub(crate) fn strike(faults: &[Fault], at: FaultPoint, name: &str) {
    for fault in faults.iter().filter(|fault| fault.name == name) {
        if fault.at == at {
            panic!("a fault was injected at {name}");
        }
        if at == FaultPoint::Gang && fault.at == FaultPoint::Stall {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

/// The gangs that make the planner panic.
pub(crate) fn of_planner(faults: &[Fault]) -> impl Iterator<Item = &str> {
    faults.iter().filter(|fault| fault.at == FaultPoint::Plan).map(|fault| &*fault.name)
}
