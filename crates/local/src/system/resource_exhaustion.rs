//! Classifies errors: a system that is out of a resource may have it again later, so the operation can be retried.

use std::io::Error;

use rustix::io::Errno;

/// Errors for exhausted resources: file descriptors, processes, memory, disk space.
const EXHAUSTED: [Errno; 7] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::AGAIN,
    Errno::NOMEM,
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::NOBUFS,
];

/// Whether an error means "later", with nothing wrong in the operation itself.
pub(crate) fn is_resource_exhaustion(error: &Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.iter().any(|one| one.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exhausted_resources_are_retriable_and_missing_files_are_not() {
        // EMFILE, EAGAIN, ENOMEM and ENOSPC; then ENOENT and EACCES.
        for code in [24, 11, 12, 28] {
            assert!(is_resource_exhaustion(&Error::from_raw_os_error(code)), "{code}");
        }
        for code in [2, 13] {
            assert!(!is_resource_exhaustion(&Error::from_raw_os_error(code)), "{code}");
        }
        assert!(!is_resource_exhaustion(&Error::other("no such gang")));
    }
}
