//! Checks how much disk space is left for the output of members. Below a floor no more output is kept: the control
//! plane writes to the same disk, and needs the rest.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a result is cached, unless much is written meanwhile.
const LOOK: Duration = Duration::from_millis(500);
/// Bytes written before the next check.
const STEP: u64 = 256 << 10;
/// The floor: at least, at most, and as a percentage of the disk.
const FLOOR_LEAST: u64 = 8 << 20;
const FLOOR_MOST: u64 = 1 << 30;
const FLOOR_PERCENT: u64 = 5;

/// The free space of a file system, and the floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Bytes that are free for users other than root.
    pub(crate) free: u64,
    /// Bytes that output leaves free.
    pub(crate) floor: u64,
}

impl Room {
    /// The space where a directory is. `None` if the system does not report it.
    pub(crate) fn at(directory: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(directory).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Self { free: bytes(found.f_bavail), floor: floor(bytes(found.f_blocks)) })
    }

    /// Whether output may be written.
    pub(crate) fn is_enough(&self) -> bool {
        self.free > self.floor
    }
}

/// The floor of a disk: a twentieth, between 8 MiB and 1 GiB, and never more than a quarter.
fn floor(total: u64) -> u64 {
    (total / 100 * FLOOR_PERCENT).clamp(FLOOR_LEAST, FLOOR_MOST).min(total / 4)
}

/// A cached check, shared by all writers of one run.
#[derive(Debug)]
pub(crate) struct RoomCheck {
    directory: PathBuf,
    looked: Mutex<Option<(Instant, u64, bool)>>,
}

impl RoomCheck {
    pub(crate) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), looked: Mutex::new(None) }
    }

    /// Whether this many bytes may be written.
    pub(crate) fn allows(&self, bytes: u64) -> bool {
        let Ok(mut looked) = self.looked.lock() else { return true };
        if let Some((at, written, enough)) = looked.as_mut()
            && at.elapsed() < LOOK
            && *written + bytes < STEP
        {
            *written += bytes;
            return *enough;
        }
        let enough = Room::at(&self.directory).is_none_or(|room| room.is_enough());
        *looked = Some((Instant::now(), bytes, enough));
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_leaves_a_floor_of_every_disk_free() {
        let (mib, gib) = (1u64 << 20, 1u64 << 30);
        assert_eq!(floor(16 * mib), 4 * mib);
        assert_eq!(floor(40 * mib), 8 * mib);
        assert_eq!(floor(10 * gib), 10 * gib / 100 * 5);
        assert_eq!(floor(2_000 * gib), gib);
        assert!(!Room { free: gib, floor: gib }.is_enough());
    }
}
