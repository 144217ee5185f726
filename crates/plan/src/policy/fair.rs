//! Fair share: the queue with the least of its share goes first, whatever its gangs are like.

use super::Discipline;

/// Queues by share, gangs of a queue by age.
pub(super) struct Fair;

impl Discipline for Fair {
    fn by_share(&self) -> bool {
        true
    }
}
