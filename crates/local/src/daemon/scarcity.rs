//! Running out of something is "later", never the end of a gang.
//!
//! A keeper that cannot be started for want of file handles, processes, memory or disk is started again after a pause that
//! doubles each time. Its gang keeps its seats, nothing of it has run, and no try is counted.

use std::time::Duration;

use super::Daemon;
use super::deeds::Deed;
use super::{Input, seats};

/// The first pause, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Errors of the system that pass: EMFILE, ENFILE, EAGAIN, ENOMEM, ENOSPC, EDQUOT.
const PASSING: [i32; 6] = {
    use rustix::io::Errno;
    [
        Errno::MFILE.raw_os_error(),
        Errno::NFILE.raw_os_error(),
        Errno::AGAIN.raw_os_error(),
        Errno::NOMEM.raw_os_error(),
        Errno::NOSPC.raw_os_error(),
        Errno::DQUOT.raw_os_error(),
    ]
};

/// Whether what failed may go well once there is more of something, by what the standard library says of the error.
pub(crate) fn is_passing(why: &str) -> bool {
    let number = why.rsplit_once("(os error ").and_then(|(_, rest)| rest.split_once(')'));
    number.is_some_and(|(number, _)| number.parse().is_ok_and(|error| PASSING.contains(&error)))
}

impl Daemon {
    /// Starts the keeper of a run later.
    pub(super) fn launch_later(&mut self, run: u64, why: &str) {
        let (first, longest) = PAUSES;
        let pause = self.scarce.get(&run).map_or(first, |last| (*last * 2).min(longest));
        if self.scarce.insert(run, pause).is_none()
            && let Some(name) = self.runs.get(&run).cloned()
        {
            let what = format!("its members are started later: {why}");
            self.say(&name, "Delayed", what, true);
        }
        tracing::warn!(run, why, ?pause, "a keeper is started later");
        let inputs = self.inputs.clone();
        self.runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = inputs.send(Input::LaunchAgain { run });
        });
    }

    /// There may be room again for the keeper of a run.
    pub(super) fn launch_again(&mut self, run: u64) {
        let Some(name) = self.runs.get(&run).cloned() else {
            self.scarce.remove(&run);
            return;
        };
        let directory = self.run_directory(run);
        let Some(gang) = self.gangs.get(&name) else { return };
        let Some(mine) = gang.run.as_ref().filter(|mine| mine.number == run) else { return };
        if mine.told_to_stop {
            // Nothing of it has run, and nothing will.
            self.scarce.remove(&run);
            return self.keeper_gone(run, 0, None);
        }
        let plan = seats::plan(&self.ground(), gang, &mine.seats, (run, &directory));
        self.deeds.push(Deed::Launch(Box::new(plan), directory));
    }
}

#[cfg(test)]
mod tests {
    use super::is_passing;

    #[test]
    fn want_of_something_passes_and_a_missing_program_does_not() {
        let error = |number| std::io::Error::from_raw_os_error(number).to_string();
        for number in [24, 23, 11, 12, 28] {
            assert!(is_passing(&format!("member 3 (w) cannot be started: {}", error(number))));
        }
        for why in [error(2), error(13), "their keeper was gone".to_owned(), String::new()] {
            assert!(!is_passing(&why), "{why}");
        }
    }
}
