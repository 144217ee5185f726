//! Keeps the control plane's files private to their owner, whatever the permissions of the directory were.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::Mode;

/// The umask this process was started with.
static STARTED_WITH: OnceLock<u32> = OnceLock::new();

/// Makes all new files of this process private: mode 0600 for files, 0700 for directories. Call it early, before other
/// threads start; workers get the original umask back.
pub fn make_files_private() {
    let before = rustix::process::umask(Mode::from_raw_mode(0o077));
    let _ = STARTED_WITH.set(before.as_raw_mode());
}

/// The umask for workers.
pub(crate) fn umask_of_workers() -> Option<u32> {
    STARTED_WITH.get().copied()
}

/// Makes the data directory, or removes other users' permissions on it and its content.
///
/// # Errors
/// If it belongs to another user, or is shared by all like `/tmp`.
pub fn directory(data: &Path) -> io::Result<()> {
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(data)?;
    let about = std::fs::metadata(data)?;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own {
        return Err(io::Error::other("this directory belongs to another user"));
    }
    if about.mode() & 0o1000 != 0 {
        return Err(io::Error::other("this directory is shared by all users: name one within it"));
    }
    seal(data, 0o700)?;
    private.create(data.join("runs"))?;
    seal(&data.join("runs"), 0o700)?;
    for entry in std::fs::read_dir(data)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            seal(&entry.path(), 0o600)?;
        }
    }
    Ok(())
}

fn seal(path: &Path, mode: u32) -> io::Result<()> {
    let now = std::fs::symlink_metadata(path)?.permissions().mode() & 0o777;
    if now & 0o077 == 0 {
        return Ok(());
    }
    tracing::warn!(path = %path.display(), from = format!("{now:03o}"), "other users could read this, and cannot any more");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_directory_is_made_private_and_tmp_is_refused() {
        let data = std::env::temp_dir().join(format!("muster-private-{}", std::process::id()));
        std::fs::create_dir_all(&data).expect("made");
        std::fs::write(data.join("muster.db"), "").expect("written");
        for (path, mode) in [(data.clone(), 0o755), (data.join("muster.db"), 0o644)] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("opened");
        }
        directory(&data).expect("closed");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").mode() & 0o7777;
        assert_eq!((mode(&data), mode(&data.join("muster.db"))), (0o700, 0o600));
        assert_eq!(mode(&data.join("runs")), 0o700);
        std::fs::set_permissions(&data, PermissionsExt::from_mode(0o1777)).expect("shared");
        directory(&data).expect_err("it is shared");
        assert_eq!(mode(&data), 0o1777);
        std::fs::remove_dir_all(data).expect("removed");
    }
}
