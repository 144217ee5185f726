//! Whoever cleans up after a cluster, whatever became of the test that made it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Set, it leaves the folder with its logs behind.
const KEEP_VARIABLE: &str = "MUSTER_KEEP_CLUSTER";

/// Waits until nobody holds the other end of its input, which the system sees to even after a `kill -9`. Then ends
/// the group and removes the folder; those just killed may still be writing, hence the tries.
const SCRIPT: &str = r#"
read -r group
while read -r _; do :; done
[ -z "$group" ] || kill -s KILL -- "-$group"
[ -n "$1" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf -- "$1" && exit 0; sleep 0.2; done
"#;

#[derive(Debug)]
pub(crate) struct Reaper {
    process: Child,
    lifeline: Option<ChildStdin>,
}

impl Reaper {
    pub(crate) fn watch(folder: &Path) -> io::Result<Self> {
        let keep = std::env::var_os(KEEP_VARIABLE).is_some();
        let mut process = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(if keep { Path::new("") } else { folder })
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C or a time limit ends the test's group; this one has to outlive it.
            .process_group(0)
            .spawn()?;
        let lifeline = process.stdin.take();
        Ok(Self { process, lifeline })
    }

    /// The process group to end.
    pub(crate) fn adopt(&mut self, group: u32) -> io::Result<()> {
        let lifeline = self.lifeline.as_mut().expect("it is cut only by the drop");
        writeln!(lifeline, "{group}")
    }
}

/// The same way out as after a crash, so that it is walked in every test.
impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.process.wait();
    }
}
