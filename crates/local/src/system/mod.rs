//! What the host needs of the operating system: clock, disk space, file permissions, environment, threads, users.

pub(crate) mod clock;
pub(crate) mod disk;
pub(crate) mod environment;
pub(crate) mod file_permissions;
pub(crate) mod resource_exhaustion;
pub(crate) mod threads;
pub(crate) mod unix_user;
