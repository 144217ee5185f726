//! The start barrier of a distributed job: no member makes progress until all have started.
//!
//! Only simulations without gangs need it: there, each member starts on its own and waits here, on a machine
//! that is paid for.

use muster_core::id::GangId;

/// Jobs by group, and the members that have arrived.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    group_of: Vec<usize>,
    size: Vec<usize>,
    here: Vec<Vec<(GangId, u32)>>,
}

impl Barrier {
    /// `group_of` is the group of each job.
    pub(crate) fn new(group_of: Vec<usize>) -> Self {
        let groups = group_of.iter().max().map_or(0, |last| last + 1);
        let mut size = vec![0; groups];
        for group in &group_of {
            size[*group] += 1;
        }
        Self { group_of, size, here: vec![Vec::new(); groups] }
    }
    /// A member has started. If it is the last of its group, returns the whole group, which can now work.
    pub(crate) fn arrive(&mut self, job: usize, gang: GangId, epoch: u32) -> Vec<(GangId, u32)> {
        let group = self.group_of[job];
        self.here[group].push((gang, epoch));
        if self.here[group].len() == self.size[group] {
            self.here[group].clone()
        } else {
            Vec::new()
        }
    }
    /// A member was stopped. If its group was at work, the work is lost: returns the remaining members, which wait again.
    pub(crate) fn leave(&mut self, job: usize, gang: GangId) -> Vec<GangId> {
        let group = self.group_of[job];
        let at_work = self.here[group].len() == self.size[group];
        self.here[group].retain(|(id, _)| *id != gang);
        let left = self.here[group].iter().map(|(id, _)| *id);
        if at_work { left.collect() } else { Vec::new() }
    }
    /// A member that waits again does so as a new start, so that its earlier end is void.
    pub(crate) fn again(&mut self, job: usize, gang: GangId, epoch: u32) {
        let here = &mut self.here[self.group_of[job]];
        here.iter_mut().filter(|(id, _)| *id == gang).for_each(|entry| entry.1 = epoch);
    }
}
