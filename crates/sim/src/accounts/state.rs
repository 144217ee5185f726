//! The states of a purchased machine, and sums by state.

use std::ops::{Index, IndexMut};

use serde::{Serialize, Serializer};

/// The state of a billed machine, or of each of its GPUs. Stopped machines are not billed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// Used by a member.
    Running,
    /// Unused, on a node that is used.
    Stranded,
    /// Ready, and held by an order that waits for the rest of its nodes.
    Gathering,
    /// Launched and not ready yet.
    Booting,
    /// Ready, and not used since it booted: bought proactively, or left over from an order.
    Warm,
    /// Ready and empty again after it was used.
    Idle,
    /// Failed, and not released yet.
    Broken,
}

impl State {
    /// All of them, the most useful first.
    pub const ALL: [Self; 7] = [
        Self::Running,
        Self::Stranded,
        Self::Gathering,
        Self::Booting,
        Self::Warm,
        Self::Idle,
        Self::Broken,
    ];

    /// Its name in figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stranded => "stranded",
            Self::Gathering => "gathering",
            Self::Booting => "booting",
            Self::Warm => "warm",
            Self::Idle => "idle",
            Self::Broken => "broken",
        }
    }
}

/// A sum for each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByState<T>([T; State::ALL.len()]);

impl<T: Copy> ByState<T> {
    /// Every state with its sum, in the order of [`State::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (State, T)> {
        State::ALL.into_iter().zip(self.0)
    }

    /// The same with every sum changed.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> ByState<U> {
        ByState(self.0.map(change))
    }
}

/// A map from names to sums.
impl<T: Copy + Serialize> Serialize for ByState<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(state, sum)| (state.name(), sum)))
    }
}

impl<T> Index<State> for ByState<T> {
    type Output = T;
    fn index(&self, state: State) -> &T {
        &self.0[state as usize]
    }
}

impl<T> IndexMut<State> for ByState<T> {
    fn index_mut(&mut self, state: State) -> &mut T {
        &mut self.0[state as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_sum_of_its_own() {
        let mut sums = ByState::<u64>::default();
        for (i, state) in State::ALL.into_iter().enumerate() {
            sums[state] = i as u64;
        }
        assert!(sums.iter().enumerate().all(|(i, (_, sum))| sum == i as u64), "{sums:?}");
    }
}
