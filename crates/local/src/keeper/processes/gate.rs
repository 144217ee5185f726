//! A member before its program: waits at the gate, then replaces itself with the program.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

use crate::system::unix_user;

/// Exit code when the gate was never opened.
const NEVER: u8 = 75;
/// Exit code when the program cannot be executed, as in shells.
const CANNOT: u8 = 126;

/// Waits at the gate, which is standard input, and executes the program. Returns only on failure.
///
/// The first eight bytes on standard output are the time at which it passed the gate, in microseconds since boot; the
/// rest is the program's output.
pub fn gate(command: &[String], as_whom: &MemberIdentity) -> ExitCode {
    if let Err(why) = as_whom.assume() {
        eprintln!("{why}");
        return ExitCode::from(CANNOT);
    }
    // A member must not outlive its keeper.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if !wait_for_ticket() {
        return ExitCode::from(NEVER);
    }
    let mut out = std::io::stdout();
    let passed = out.write_all(&now_us().to_le_bytes()).and_then(|()| out.flush());
    let Some((program, arguments)) = command.split_first() else { return ExitCode::from(CANNOT) };
    if passed.is_ok() {
        let error = Command::new(program).args(arguments).stdin(Stdio::null()).exec();
        eprintln!("{program}: {error}");
    }
    ExitCode::from(CANNOT)
}

/// The identity a member runs with.
#[derive(Clone, Debug, Default)]
pub struct MemberIdentity {
    /// Its umask.
    pub umask: Option<u32>,
    /// Its Unix user, with no privileges of the previous user left.
    pub user: Option<String>,
    /// Its working directory, entered as that user.
    pub directory: Option<std::path::PathBuf>,
}

impl MemberIdentity {
    fn assume(&self) -> Result<(), String> {
        if let Some(umask) = self.umask {
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask & 0o777));
        }
        let Some(user) = &self.user else { return Ok(()) };
        unix_user::become_user(user)?;
        let Some(directory) = &self.directory else { return Ok(()) };
        let failed = |error| format!("{user} cannot run in {}: {error}", directory.display());
        std::env::set_current_dir(directory).map_err(failed)
    }
}

/// Waits for a ticket. Exactly one byte is read: the other bytes on the pipe are for the other members.
fn wait_for_ticket() -> bool {
    let mut ticket = [0u8; 1];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut ticket) {
            Ok(read) => return read == 1,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn now_us() -> u64 {
    muster_clock::since_boot().as_micros() as u64
}
