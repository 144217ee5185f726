//! Tells errors that pass by themselves from those that do not: a system that has run out of something has it again later.

use std::io::Error;

use rustix::io::Errno;

/// What a system runs out of: handles, processes, memory, room on the disk.
const EXHAUSTED: [Errno; 7] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::AGAIN,
    Errno::NOMEM,
    Errno::NOSPC,
    Errno::DQUOT,
    Errno::NOBUFS,
];

/// Whether an error means "later", and nothing is wrong with what was tried.
pub(crate) fn is_resource_exhaustion(error: &Error) -> bool {
    error.raw_os_error().is_some_and(|code| EXHAUSTED.iter().any(|one| one.raw_os_error() == code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_is_later_and_what_is_missing_is_not() {
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
