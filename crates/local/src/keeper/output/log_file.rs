//! Log files of members: one per stream, rotated when full.
//!
//! No worker ever waits for a disk: when the disk is full, or nearly, output is dropped with one warning. A mark in the
//! log says how many bytes are missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::keeper::files;
use crate::keeper::output::disk_room::RoomCheck;
use crate::keeper::run_plan::Limits;

/// Delay after a failed write before the next attempt.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(5);

/// A file that is rotated when full.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    limits: Limits,
    file: Option<std::fs::File>,
    written: u64,
    failed: Option<std::time::Instant>,
    room_check: Arc<RoomCheck>,
    /// Bytes dropped since the last successful write.
    dropped: u64,
}

impl LogFile {
    pub(crate) fn new(path: PathBuf, limits: Limits, room_check: Arc<RoomCheck>) -> Self {
        Self { path, limits, file: None, written: 0, failed: None, room_check, dropped: 0 }
    }

    /// Writes some bytes, or returns the error; only the first of several in a row.
    fn write(&mut self, bytes: &[u8]) -> Option<std::io::Error> {
        if self.failed.is_some_and(|at| at.elapsed() < AGAIN) {
            self.dropped += bytes.len() as u64;
            return None;
        }
        let kept = match self.room_check.allows(bytes.len() as u64) {
            true => self.mark_gap().and_then(|()| self.try_write(bytes)),
            false => Err(std::io::Error::other("the disk is nearly full")),
        };
        match kept {
            Ok(()) => {
                self.failed = None;
                None
            }
            Err(error) => {
                self.dropped += bytes.len() as u64;
                self.file = None;
                let first = self.failed.replace(std::time::Instant::now()).is_none();
                first.then_some(error)
            }
        }
    }

    /// Writes into the log how many bytes are missing there.
    fn mark_gap(&mut self) -> std::io::Result<()> {
        if self.dropped == 0 {
            return Ok(());
        }
        let mark = format!("\n[muster: {} bytes were not kept: the disk was full]\n", self.dropped);
        self.try_write(mark.as_bytes())?;
        self.dropped = 0;
        Ok(())
    }

    fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        use std::io::Write;
        if self.file.is_some() && self.written >= self.limits.file_bytes {
            self.rotate()?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = std::fs::File::options().append(true).create(true).open(&self.path)?;
                self.written = file.metadata()?.len();
                self.file.insert(file)
            }
        };
        file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> std::io::Result<()> {
        self.file = None;
        for older in (1..self.limits.files).rev() {
            let from = rotated_path(&self.path, older);
            if from.exists() {
                std::fs::rename(from, rotated_path(&self.path, older + 1))?;
            }
        }
        match self.limits.files {
            0 => std::fs::remove_file(&self.path),
            _ => std::fs::rename(&self.path, rotated_path(&self.path, 1)),
        }
    }
}

/// The path of a rotated file; 1 is the newest of them.
pub(crate) fn rotated_path(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The log file of a member's stream.
pub(crate) fn log_path(directory: &Path, rank: u32, stderr: bool) -> PathBuf {
    let stream = if stderr { "err" } else { "out" };
    directory.join(files::LOGS).join(format!("{rank}.{stream}"))
}

/// Reads the time at which a member passed the gate. `None` if it never did.
pub(crate) async fn read_gate_time(stream: &mut (impl AsyncRead + Unpin)) -> Option<u64> {
    let mut stamp = [0u8; 8];
    stream.read_exact(&mut stamp).await.ok()?;
    Some(u64::from_le_bytes(stamp))
}

/// Copies a stream to its log file until all writers have closed it.
pub(crate) async fn copy_to_log(
    mut stream: impl AsyncRead + Unpin,
    mut page: LogFile,
    warn: Arc<dyn Fn(String) + Send + Sync>,
) {
    let mut buffer = vec![0u8; 16 << 10];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => {
                // A gap at the end is marked there, if there is room for it.
                let _ = page.mark_gap();
                return;
            }
            Ok(read) => {
                if let Some(error) = page.write(&buffer[..read]) {
                    let path = page.path.display();
                    warn(format!("what is printed is not kept: {path}: {error}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room_check() -> Arc<RoomCheck> {
        Arc::new(RoomCheck::of(&std::env::temp_dir()))
    }

    #[test]
    fn full_log_files_are_rotated_and_the_oldest_is_deleted() {
        let directory = std::env::temp_dir().join(format!("muster-print-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("0.out");
        let mut page = LogFile::new(path.clone(), Limits { file_bytes: 4, files: 2 }, room_check());
        for word in ["aaaa", "bbbb", "cccc", "dd"] {
            assert!(page.write(word.as_bytes()).is_none());
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(read(&path), "dd");
        assert_eq!(read(&rotated_path(&path, 1)), "cccc");
        assert_eq!(read(&rotated_path(&path, 2)), "bbbb");
        assert!(!rotated_path(&path, 3).exists());
        std::fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn full_disk_is_reported_once() {
        let path = PathBuf::from("/dev/full");
        let mut page = LogFile::new(path, Limits::default(), room_check());
        assert!(page.write(b"lost").is_some());
        assert!(page.write(b"lost").is_none());
    }

    #[test]
    fn gap_in_a_log_names_the_missing_bytes() {
        let directory = std::env::temp_dir().join(format!("muster-gap-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("0.out");
        std::os::unix::fs::symlink("/dev/full", &path).expect("a full device");
        let mut page = LogFile::new(path.clone(), Limits::default(), room_check());
        assert!(page.write(b"lost").is_some());
        std::fs::remove_file(&path).expect("removed");
        page.failed = None;
        assert!(page.write(b"kept\n").is_none());
        let text = std::fs::read_to_string(&path).expect("a log");
        assert_eq!(text, "\n[muster: 4 bytes were not kept: the disk was full]\nkept\n");
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
