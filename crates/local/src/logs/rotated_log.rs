//! Reads the log files of one stream, from the oldest to the current one, a piece at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::keeper::output::log_file::rotated_path;

/// Bytes read and returned at once, at most.
const PART: usize = 64 << 10;

/// A stream that is read. Files that are rotated meanwhile stay open until they are read to the end: nothing is missed
/// or returned twice.
pub(crate) struct RotatedLog {
    path: PathBuf,
    /// Open files, oldest first.
    open: VecDeque<File>,
    /// The inode of the newest file so far.
    latest: Option<u64>,
    /// A partial line.
    rest: Vec<u8>,
}

impl RotatedLog {
    /// Opens the log files of a stream; positioned at the last lines, if only those are wanted.
    pub(crate) fn open(path: PathBuf, tail: Option<usize>) -> Self {
        let mut rotated_log = Self { path, open: VecDeque::new(), latest: None, rest: Vec::new() };
        rotated_log.find_more();
        if let Some(lines) = tail {
            rotated_log.skip_to(lines);
        }
        rotated_log
    }

    /// Opens files that were added since.
    fn find_more(&mut self) {
        let mut found: VecDeque<(u64, File)> = VecDeque::new();
        // Newest first: a file that is rotated in between is then seen twice, and not missed.
        for number in 0.. {
            let path =
                if number == 0 { self.path.clone() } else { rotated_path(&self.path, number) };
            let Some((inode, file)) = open(&path) else {
                if number == 0 { continue } else { break }
            };
            if Some(inode) == self.latest {
                break;
            }
            if found.iter().all(|(known, _)| *known != inode) {
                found.push_front((inode, file));
            }
        }
        self.latest = found.back().map(|(inode, _)| *inode).or(self.latest);
        self.open.extend(found.into_iter().map(|(_, file)| file));
    }

    /// Skips all but the last lines, reading only as much as they take.
    fn skip_to(&mut self, lines: usize) {
        let (mut ends, mut last) = (0, true);
        for at in (0..self.open.len()).rev() {
            let file = &mut self.open[at];
            let Ok(mut end) = file.seek(SeekFrom::End(0)) else { continue };
            while end > 0 {
                let begin = end.saturating_sub(PART as u64);
                let mut block = vec![0; (end - begin) as usize];
                if file
                    .seek(SeekFrom::Start(begin))
                    .and_then(|_| file.read_exact(&mut block))
                    .is_err()
                {
                    break;
                }
                for (offset, byte) in block.iter().enumerate().rev() {
                    // A last line counts with or without a line break.
                    let counts = *byte == b'\n' && !std::mem::take(&mut last);
                    last = false;
                    ends += usize::from(counts);
                    if lines == 0 || ends == lines {
                        let after = if lines == 0 { end } else { begin + offset as u64 + 1 };
                        let _ = file.seek(SeekFrom::Start(after));
                        self.open.drain(..at);
                        return;
                    }
                }
                end = begin;
            }
            let _ = file.rewind();
        }
    }

    /// The next piece: whole lines, if any is complete. With `over`, also a partial one.
    pub(crate) fn next(&mut self, over: bool) -> Option<Vec<u8>> {
        loop {
            let read = match self.open.front_mut() {
                Some(file) => read_some(file, &mut self.rest),
                None => 0,
            };
            if read == 0 {
                let rotated_log = self.open.len();
                if rotated_log > 1 {
                    self.open.pop_front();
                    continue;
                }
                self.find_more();
                if self.open.len() > rotated_log {
                    // Only now is it certain that the previous file is complete: it is read once more.
                    continue;
                }
                return (over && !self.rest.is_empty()).then(|| std::mem::take(&mut self.rest));
            }
            if let Some(at) = self.rest.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.rest.split_off(at + 1);
                return Some(std::mem::replace(&mut self.rest, rest));
            }
            if self.rest.len() >= PART {
                return Some(std::mem::take(&mut self.rest));
            }
        }
    }
}

fn open(path: &Path) -> Option<(u64, File)> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((about.ino(), file))
}

/// Reads more from the current position; returns the number of bytes.
fn read_some(file: &mut File, text: &mut Vec<u8>) -> usize {
    let before = text.len();
    let _ = file.take((PART - before.min(PART - 1)) as u64).read_to_end(text);
    text.len() - before
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("muster-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).expect("a directory");
            Self(path)
        }

        fn page(&self) -> PathBuf {
            self.0.join("0.out")
        }

        fn print(&self, text: &str) {
            let file = File::options().append(true).create(true).open(self.page());
            file.expect("a page").write_all(text.as_bytes()).expect("written");
        }

        fn turn_over(&self) {
            for number in (1..3).rev() {
                let _ = std::fs::rename(
                    rotated_path(&self.page(), number),
                    rotated_path(&self.page(), number + 1),
                );
            }
            std::fs::rename(self.page(), rotated_path(&self.page(), 1)).expect("turned over");
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn all(rotated_log: &mut RotatedLog, over: bool) -> String {
        let mut text = Vec::new();
        while let Some(more) = rotated_log.next(over) {
            text.extend(more);
        }
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn followed_log_yields_each_line_once_across_rotations() {
        let place = Place::new("pages-follow");
        let mut rotated_log = RotatedLog::open(place.page(), None);
        assert_eq!(all(&mut rotated_log, false), "", "there is no page yet");
        place.print("one\ntw");
        assert_eq!(all(&mut rotated_log, false), "one\n");
        place.print("o\nthree\n");
        place.turn_over();
        place.print("four\n");
        place.turn_over();
        place.print("five\nsi");
        assert_eq!(all(&mut rotated_log, false), "two\nthree\nfour\nfive\n");
        assert_eq!(all(&mut rotated_log, true), "si", "half a line, when no more will come");
    }

    #[test]
    fn tail_returns_the_last_lines_across_files() {
        let place = Place::new("pages-tail");
        let last = |lines| all(&mut RotatedLog::open(place.page(), Some(lines)), true);
        assert_eq!(last(1), "");
        place.print("a\nb\n");
        place.turn_over();
        place.print("c\nd");
        let found = [last(0), last(1), last(2), last(3), last(4), last(9)];
        assert_eq!(found, ["", "d", "c\nd", "b\nc\nd", "a\nb\nc\nd", "a\nb\nc\nd"]);
        place.print("\n");
        assert_eq!([last(1), last(2)], ["d\n", "c\nd\n"]);
    }
}
