//! Arrivals as the forecaster sees them: when a gang was submitted, and how many free nodes it took.

use std::collections::VecDeque;

use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// The arrival of one gang.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arrival {
    /// When it was submitted.
    pub at: Time,
    /// How much of the free nodes it took or would have taken, in thousandths of a node: whole nodes if it opened
    /// them, nothing if it fitted beside others. A gang that needs no free node is a hit with any pool.
    pub nodes_milli: u32,
}

/// The arrivals within the last lead time: nodes they took from the pool are not replaced yet.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LeadWindow {
    recent: VecDeque<Arrival>,
    sum_milli: u64,
}

impl LeadWindow {
    /// How many nodes had to be free one lead time ago for this gang to be hit: its own, and those of all gangs that
    /// arrived since.
    ///
    /// This makes gangs all or nothing: one number per gang, and a pool of that size or a miss.
    pub(crate) fn need(&mut self, arrival: Arrival, lead: Span) -> u32 {
        while let Some(first) = self.recent.front()
            && arrival.at.since(first.at) >= lead
        {
            self.sum_milli -= u64::from(first.nodes_milli);
            self.recent.pop_front();
        }
        self.sum_milli += u64::from(arrival.nodes_milli);
        self.recent.push_back(arrival);
        u32::try_from(self.sum_milli.div_ceil(1_000)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn need_includes_arrivals_within_one_lead_time() {
        let mut window = LeadWindow::default();
        let mut need = |secs: u64, nodes_milli| {
            let at = Time::ZERO + Span::secs(secs);
            window.need(Arrival { at, nodes_milli }, Span::secs(250))
        };
        assert_eq!(need(0, 9_000), 9);
        assert_eq!(need(100, 125), 10, "component of a node is a node");
        assert_eq!(need(200, 125), 10, "and holds what is left of it");
        assert_eq!(need(250, 1_000), 2, "what was taken a lead ago is replaced");
    }
}
