//! The rights matrix: which role may do what to which kind of object.
//!
//! Routes and hosts both use this table, so a kind inside a request body is checked by the same rule as a kind in the
//! path.

use crate::auth::access::RequiredRole;
use crate::{Caller, Kind, Refused};

/// An operation on an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// See the object, without values of environment variables.
    Look,
    /// See the values of its environment variables.
    ReadValues,
    /// Read the output of its members.
    ReadLogs,
    /// Create it or change it.
    Change,
    /// Remove it.
    Remove,
}

/// The kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A gang of a queue.
    Gang,
    /// A queue.
    Queue,
    /// A pool.
    Pool,
    /// A node.
    Node,
    /// The levels of the topology.
    Topology,
    /// An order of nodes.
    Order,
}

/// The role that is required.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Any role.
    Viewer,
    /// The role `user` for the queue of the object, or `admin`.
    UserOfQueue,
    /// The role `admin`.
    Admin,
}

/// The matrix: a row per kind; the columns are look, read values, read logs, change, remove.
const MATRIX: [(Subject, [Needs; 5]); 6] = {
    use Needs::{Admin as A, UserOfQueue as U, Viewer as V};
    [
        (Subject::Gang, [V, U, U, U, U]),
        (Subject::Queue, [V, V, A, A, A]),
        (Subject::Pool, [V, V, A, A, A]),
        (Subject::Node, [V, V, A, A, A]),
        (Subject::Topology, [V, V, A, A, A]),
        (Subject::Order, [V, V, A, A, A]),
    ]
};

/// The required role. Kinds without a row are for admins.
pub fn needs(verb: Verb, subject: Subject) -> Needs {
    let row = MATRIX.iter().find(|(of, _)| *of == subject);
    row.map_or(Needs::Admin, |(_, row)| row[verb as usize])
}

impl Caller {
    /// Checks whether the caller may do this; `queue` is the queue of a gang.
    ///
    /// # Errors
    /// With the caller's name and the operation that is not allowed.
    pub fn check(&self, verb: Verb, subject: Subject, queue: Option<&str>) -> Result<(), Refused> {
        let name = &self.name;
        let needs = needs(verb, subject);
        let allowed = match needs {
            Needs::Viewer => true,
            Needs::UserOfQueue => queue.is_some_and(|queue| self.may_use(queue)),
            Needs::Admin => self.is_admin(),
        };
        if allowed {
            return Ok(());
        }
        let what = match verb {
            Verb::Look => "see",
            Verb::ReadValues => "see the environment values of",
            Verb::ReadLogs => "read the logs of",
            Verb::Change => "change",
            Verb::Remove => "remove",
        };
        Err(Refused::Forbidden(match (needs, queue) {
            (Needs::UserOfQueue, Some(queue)) => {
                format!("{name} may not {what} a gang of queue {queue}: it is no user of it")
            }
            _ => format!("{name} may not {what} a {subject:?}: only admins may"),
        }))
    }
}

impl From<Kind> for Subject {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Gang => Self::Gang,
            Kind::Queue => Self::Queue,
            Kind::Pool => Self::Pool,
            Kind::Node => Self::Node,
            Kind::Order => Self::Order,
        }
    }
}

/// The role that a route requires for this operation. The host checks the queue of a gang.
pub(crate) fn route(verb: Verb, kind: Kind) -> RequiredRole {
    match needs(verb, kind.into()) {
        Needs::Viewer => RequiredRole::Viewer,
        Needs::UserOfQueue => RequiredRole::User,
        Needs::Admin => RequiredRole::Admin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rights;

    #[test]
    fn every_kind_has_a_matrix_row_and_users_change_only_gangs() {
        let user =
            Caller { rights: Rights::User(["research".into()].into()), ..Caller::admin("ada") };
        let viewer = Caller { rights: Rights::Viewer, ..Caller::admin("eve") };
        let all = [Subject::Queue, Subject::Pool, Subject::Node, Subject::Topology, Subject::Order];
        for subject in all {
            assert!(MATRIX.iter().any(|(of, _)| *of == subject), "{subject:?}");
            for verb in [Verb::Change, Verb::Remove, Verb::ReadLogs] {
                for caller in [&user, &viewer] {
                    let refused = caller.check(verb, subject, Some("research")).unwrap_err();
                    assert!(refused.to_string().contains("only admins may"), "{refused}");
                }
                assert_eq!(Caller::admin("root").check(verb, subject, None), Ok(()));
            }
        }
        for verb in [Verb::ReadValues, Verb::ReadLogs, Verb::Change, Verb::Remove] {
            assert_eq!(user.check(verb, Subject::Gang, Some("research")), Ok(()));
            assert!(user.check(verb, Subject::Gang, Some("sales")).is_err());
            assert!(user.check(verb, Subject::Gang, None).is_err());
            assert!(viewer.check(verb, Subject::Gang, Some("research")).is_err());
        }
        assert_eq!(viewer.check(Verb::Look, Subject::Gang, Some("research")), Ok(()));
    }
}
