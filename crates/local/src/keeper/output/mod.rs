//! Output of members: log files, and the disk space that is left for them.

pub(crate) mod disk_room;
pub(crate) mod log_file;
