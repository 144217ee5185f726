//! How much room the disk has left for what members print. Below a floor nothing more is kept of it: the control plane
//! writes to the same disk, and needs the rest.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long what was found holds, unless much is written meanwhile.
const LOOK: Duration = Duration::from_millis(500);
/// Bytes after which it is looked again.
const STEP: u64 = 256 << 10;
/// The floor of a small disk, of any disk at most, and of others in parts of a hundred.
const FLOOR_LEAST: u64 = 8 << 20;
const FLOOR_MOST: u64 = 1 << 30;
const FLOOR_PERCENT: u64 = 5;

/// The room on a file system, and how much of it must stay free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Bytes that are free to whoever is not root.
    pub(crate) free: u64,
    /// Bytes that output leaves free.
    pub(crate) floor: u64,
}

impl Room {
    /// The room where a directory is. `None` where the system does not say.
    pub(crate) fn at(directory: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(directory).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Self { free: bytes(found.f_bavail), floor: floor(bytes(found.f_blocks)) })
    }

    /// Whether output may be kept.
    pub(crate) fn is_enough(&self) -> bool {
        self.free > self.floor
    }
}

/// What is left free of so many bytes: a twentieth, between 8 MiB and 1 GiB, and never more than a quarter.
fn floor(total: u64) -> u64 {
    (total / 100 * FLOOR_PERCENT).clamp(FLOOR_LEAST, FLOOR_MOST).min(total / 4)
}

/// Whether there is room, asked by all that write on behalf of one run.
#[derive(Debug)]
pub(crate) struct RoomCheck {
    directory: PathBuf,
    looked: Mutex<Option<(Instant, u64, bool)>>,
}

impl RoomCheck {
    pub(crate) fn of(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), looked: Mutex::new(None) }
    }

    /// Whether so many bytes may be written.
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
    fn a_part_of_every_disk_is_left_free_by_output() {
        let (mib, gib) = (1u64 << 20, 1u64 << 30);
        assert_eq!(floor(16 * mib), 4 * mib);
        assert_eq!(floor(40 * mib), 8 * mib);
        assert_eq!(floor(10 * gib), 10 * gib / 100 * 5);
        assert_eq!(floor(2_000 * gib), gib);
        assert!(!Room { free: gib, floor: gib }.is_enough());
    }
}
