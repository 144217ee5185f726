//! Assembles a gang from what is known of it: its group's terms, the existing members, and the templates of those that
//! do not exist yet.
//!
//! The rules, in the order in which they are applied, with the reports that motivate them:
//!
//! 1. Members of one role with equal requests are interchangeable; so are members without a role. Two requests under
//!    one role name make two roles.
//! 2. A gang is sized before its members exist: by its owner's templates, else by the requests of the existing members,
//!    else by `minResources`. Operators create members in stages, and some create none until there is capacity
//!    (kubedl#180: a gang waits for a launcher that waits for the gang; KAI#500: a miscounted RayCluster starts in
//!    part).
//! 3. A group's minimum for a role overrides its minimum for all members, which still holds. A minimum equal to the
//!    number of all members makes every role rigid. A lower one is taken from the role with the most members first,
//!    which can spare a worker where a master cannot be spared.
//! 4. A minimum of one with larger `minResources` is a gang of `minResources`: Spark, and leaders that start before
//!    their workers, would otherwise be gangs of one. Members without a name request what the existing members do not
//!    account for.
//! 5. A finished member counts towards the minimum, and takes no seat (k/k#142330: after one index of a Job has
//!    finished, the replacement of another is never scheduled; KAI PR#2012: gangs evicted for being almost finished).
//! 6. A gang that is still short of its minimum is not guessed at: the error gives the number of existing and of needed
//!    members (koordinator#2480: no message about missing members).

mod gang;
mod roles;

mod missing_members;

mod merge;

pub use gang::{AssembleError, Assembled, Member, assemble};
pub use merge::{MergedGroup, merge, role_prefixes};
