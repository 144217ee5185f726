//! Handles a disk that fills up: keeps a reserve for writes on a full disk, and refuses new work while the disk is
//! nearly full.
//!
//! Output of workers stops at a floor (`keeper::output::disk_room`). Below a quarter of that floor the control plane
//! refuses new work; when a write fails all the same, the reserve is released so that events can be recorded. It is
//! allocated again when there is room.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::FallocateFlags;

use crate::keeper::output::disk_room::Room;

/// The file that is deleted when the disk is full.
const RESERVE: &str = "reserve";
/// Its size, where the disk is not small.
const RESERVE_MOST: u64 = 16 << 20;

/// Why new work is refused, if it is. Shared by the control plane and all request threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble(Arc<RwLock<Option<String>>>);

impl Trouble {
    /// Why new work is refused.
    pub(crate) fn why(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses new work for this reason, or accepts it again. Changes are logged.
    pub(crate) fn set(&self, why: Option<String>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &why) {
            (None, Some(why)) => tracing::error!("{why}"),
            (Some(_), None) => tracing::info!("there is room on the disk again: new work is taken"),
            _ => {}
        }
        *known = why;
    }
}

/// The disk of a data directory.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    data: PathBuf,
    pub(crate) trouble: Trouble,
}

impl Disk {
    pub(crate) fn of(data: &Path) -> Self {
        Self { data: data.to_owned(), trouble: Trouble::default() }
    }

    /// Called before the first write: on a full disk the reserve is the room to start with.
    pub(crate) fn release_reserve_if_full(&self) {
        if Room::at(&self.data).is_some_and(is_low) {
            self.release_reserve();
        }
    }

    /// A write has failed.
    pub(crate) fn report_full(&self, error: &dyn std::fmt::Display) {
        self.release_reserve();
        let data = self.data.display();
        self.trouble.set(Some(format!(
            "nothing can be written in {data} ({error}): what is known can be read and gangs that run go on; nothing new \
             is taken until there is room"
        )));
    }

    /// Checks the free space: refuses new work if there is little, and allocates the reserve if there is enough.
    pub(crate) fn check(&self) {
        let Some(room) = Room::at(&self.data) else { return };
        let was = self.trouble.why();
        if is_low(room) || (was.is_some() && room.free < room.floor / 2) {
            let (free, data) = (room.free >> 20, self.data.display());
            let why = || {
                format!(
                    "the disk of {data} is full ({free} MiB left): nothing new is taken until there is room"
                )
            };
            self.trouble.set(Some(was.unwrap_or_else(why)));
            return;
        }
        self.trouble.set(None);
        self.keep_reserve(room);
    }

    fn release_reserve(&self) {
        if std::fs::remove_file(self.data.join(RESERVE)).is_ok() {
            tracing::warn!("the disk is full: the reserve is given up");
        }
    }

    fn keep_reserve(&self, room: Room) {
        let path = self.data.join(RESERVE);
        let size = RESERVE_MOST.min(room.floor / 4);
        if path.exists() || room.free < room.floor {
            return;
        }
        let kept = std::fs::File::create(&path).and_then(|file| {
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size)?;
            Ok(())
        });
        if let Err(error) = kept {
            let _ = std::fs::remove_file(path);
            tracing::warn!(%error, "no reserve can be kept for the day the disk is full");
        }
    }
}

/// Whether there is so little room that the control plane needs all of it.
fn is_low(room: Room) -> bool {
    room.free < room.floor / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_is_allocated_and_released_when_a_write_fails() {
        let data = std::env::temp_dir().join(format!("muster-reserve-{}", std::process::id()));
        std::fs::create_dir_all(&data).expect("a directory");
        let disk = Disk::of(&data);
        disk.check();
        assert_eq!(disk.trouble.why(), None);
        let size = data.join(RESERVE).metadata().expect("a reserve").len();
        assert!(size > 0 && size <= RESERVE_MOST, "{size}");
        disk.report_full(&"no room");
        assert!(!data.join(RESERVE).exists());
        assert!(disk.trouble.why().is_some_and(|why| why.contains("no room")));
        disk.check();
        assert_eq!(disk.trouble.why(), None, "there is room");
        assert!(data.join(RESERVE).exists());
        std::fs::remove_dir_all(data).expect("removed");
    }
}
