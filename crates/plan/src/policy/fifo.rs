//! First come, first served.

use super::{Discipline, Overtaking};

/// By age, strictly or not.
pub(super) struct Fifo {
    /// Whether gangs behind one that waits may take what it waits for.
    pub(super) overtake: bool,
}

impl Discipline for Fifo {
    fn overtaking(&self) -> Overtaking {
        if self.overtake { Overtaking::Free } else { Overtaking::Barred }
    }
}
