//! An auditor: its own watch, its own books. It sees only what anybody could see, and says where a promise broke.
//!
//! [`watch`] reads the server, [`books`] keeps what was read, and each promise has a file of its own. Nothing of the
//! product is asked, and nothing of its code is used but the reader of quantities. `planted` shows each finding being
//! made, by histories that are not as promised.
//!
//! Not looked at, since it cannot be told from outside: the queues of other dialects, the limits of single users, and who
//! was to be first in line.

mod books;
mod doubts;
mod evicted;
mod free;
mod gangs;
mod observed;
mod owed;
mod partial;
mod planted;
mod pods;
mod pools;
mod queues;
mod ready;
mod room;
mod seen;
mod short;
mod twice;
mod watch;

pub(crate) use gangs::{GANG, LEAST};
pub(crate) use observed::Observed;
pub(crate) use ready::ready_since;
pub(crate) use watch::{Kind, Observer};
