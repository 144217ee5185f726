//! Faults that tests inject by name: a gang at which the host panics, or hangs. Not in builds without tests.

use std::time::Duration;

/// One fault and the gang it strikes at, written `panic:NAMESPACE/NAME`, `pod:..`, `plan:..` or `stall:..`.
#[derive(Clone, Debug)]
pub struct Fault {
    at: Spot,
    name: String,
}

/// Where a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spot {
    /// When a gang is reconciled.
    Gang,
    /// When a pod is taken in.
    Pod,
    /// When the planner is shown a gang.
    Plan,
    /// When a gang is reconciled, and then for ever.
    Stall,
}

impl std::str::FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (at, name) = text.split_once(':').ok_or("not KIND:NAMESPACE/NAME")?;
        let at = match at {
            "panic" => Spot::Gang,
            "pod" => Spot::Pod,
            "plan" => Spot::Plan,
            "stall" => Spot::Stall,
            other => return Err(format!("no fault is called {other}")),
        };
        Ok(Self { at, name: name.to_owned() })
    }
}

/// Panics, or hangs, if one of these faults is to strike here.
pub(crate) fn strike(faults: &[Fault], at: Spot, name: &str) {
    for fault in faults.iter().filter(|fault| fault.name == name) {
        if fault.at == at {
            panic!("a fault was injected at {name}");
        }
        if at == Spot::Gang && fault.at == Spot::Stall {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

/// The gangs whose sight makes the planner panic.
pub(crate) fn of_planner(faults: &[Fault]) -> impl Iterator<Item = &str> {
    faults.iter().filter(|fault| fault.at == Spot::Plan).map(|fault| &*fault.name)
}
