//! First come, first served.

use super::{Discipline, Overtaking};

/// By age, strictly or not.
pub(super) struct Fifo {
    /// Whether those behind a waiting gang may take what it waits for.
    pub(super) overtake: bool,
}

impl Discipline for Fifo {
    fn overtaking(&self) -> Overtaking {
        if self.overtake { Overtaking::Free } else { Overtaking::Barred }
    }
}
