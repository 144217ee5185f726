//! A member before it is one: waits at the gate, then becomes the program it is to run.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

/// Returned when the gate was never opened.
const NEVER: u8 = 75;
/// Returned when the program cannot be run, as shells do.
const CANNOT: u8 = 126;

/// Waits at the gate, which is standard input, and becomes the program. Returns only when it does not.
///
/// The first eight bytes on standard output are the instant it went through, in microseconds since the system was started;
/// the rest is the program's.
pub fn gate(command: &[String], as_whom: &AsWhom) -> ExitCode {
    if let Err(why) = as_whom.assume() {
        eprintln!("{why}");
        return ExitCode::from(CANNOT);
    }
    // Who is left alone by its keeper must not run on.
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

/// As whom a member runs.
#[derive(Clone, Debug, Default)]
pub struct AsWhom {
    /// What is taken from the rights of files it makes.
    pub umask: Option<u32>,
    /// A Unix user, of whom there is nothing left of the one before.
    pub user: Option<String>,
    /// Where it runs; that user goes there itself.
    pub directory: Option<std::path::PathBuf>,
}

impl AsWhom {
    fn assume(&self) -> Result<(), String> {
        if let Some(umask) = self.umask {
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask & 0o777));
        }
        let Some(user) = &self.user else { return Ok(()) };
        crate::system::unix_user::become_user(user)?;
        let Some(directory) = &self.directory else { return Ok(()) };
        let failed = |error| format!("{user} cannot run in {}: {error}", directory.display());
        std::env::set_current_dir(directory).map_err(failed)
    }
}

/// Waits for a ticket. Exactly one byte is read: the others on the pipe are for the others.
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
