//! The run plan: what a keeper is to run, as the control plane wrote it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::keeper::files;
use crate::keeper::processes::cgroup::RunCgroup;
use crate::system::clock::Anchor;

/// One run of a gang.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct RunPlan {
    /// The gang, `namespace/name`.
    pub gang: Arc<str>,
    /// The run's number.
    pub run: u64,
    /// The gang's number among all gangs ever submitted.
    #[serde(default)]
    pub uid: i64,
    /// Every member, by rank.
    pub members: Vec<MemberPlan>,
    /// The role whose end is the end of the gang; all members when absent.
    pub ends_with: Option<Arc<str>>,
    /// The time limit in milliseconds.
    pub time_limit_ms: Option<u64>,
    /// The grace period between the stop signal and the kill.
    pub grace_ms: u64,
    /// Limits on their output.
    pub limits: Limits,
    /// The Unix user of its members; that of the keeper when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<Arc<str>>,
    /// The umask of its members; that of the keeper when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// The control group of the run, where the system grants one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<RunCgroup>,
    /// The clock that the keeper synchronizes with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Anchor>,
}

/// Limits on one output stream of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Rotated files beside the current one.
    pub files: u32,
}

/// Maximum output of one run in bytes.
const RUN_BYTES: u64 = 1 << 30;
/// Minimum size of one log file.
const PAGE_LEAST: u64 = 16 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 16 << 20, files: 3 }
    }
}

impl Limits {
    /// Limits for each of this many members: together no more than the limit of a run.
    pub(crate) fn for_members(members: u64) -> Self {
        let most = Self::default();
        // Two streams each, with all their files.
        let rotated_log = members.max(1).saturating_mul(2 * (u64::from(most.files) + 1));
        Self { file_bytes: (RUN_BYTES / rotated_log).clamp(PAGE_LEAST, most.file_bytes), ..most }
    }
}

/// One member process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct MemberPlan {
    /// Its rank among all members.
    pub rank: u32,
    /// Its role.
    pub role: Arc<str>,
    /// The node it is on.
    pub node: Arc<str>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory; that of the control plane when absent.
    pub directory: Option<String>,
    /// Its environment, beside that of the control plane.
    pub env: BTreeMap<String, String>,
    /// Its memory limit in bytes.
    pub memory: Option<u64>,
    /// Its CPU share in millicores.
    pub cpu_milli: Option<u64>,
    /// Its MPI host, where `mpirun` may start ranks beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
}

/// A member as a host in the MPI hostfile.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Host {
    /// Its name there.
    pub name: String,
    /// Its ranks.
    pub slots: u32,
}

impl RunPlan {
    /// Reads the plan in a directory.
    pub(crate) fn read(directory: &Path) -> std::io::Result<Self> {
        let text = std::fs::read(directory.join(files::PLAN))?;
        serde_json::from_slice(&text).map_err(std::io::Error::other)
    }

    /// Writes the plan into a new directory, or finds it there. A directory with another run's plan is left alone: the
    /// work of that run would be attributed to this gang.
    pub(crate) fn write(&self, directory: &Path) -> std::io::Result<()> {
        let path = directory.join(files::PLAN);
        if path.exists() {
            let known = Self::read(directory)?;
            if (&known.gang, known.run, known.uid) == (&self.gang, self.run, self.uid) {
                return Ok(());
            }
            let why = format!("{} is the run of another gang, {}", directory.display(), known.gang);
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, why));
        }
        std::fs::create_dir_all(directory.join(files::LOGS))?;
        self.replace(directory)
    }

    /// Overwrites the plan.
    pub(crate) fn replace(&self, directory: &Path) -> std::io::Result<()> {
        let part = directory.join("run.json.part");
        std::fs::write(&part, serde_json::to_vec(self).map_err(std::io::Error::other)?)?;
        std::fs::File::open(&part)?.sync_all()?;
        std::fs::rename(part, directory.join(files::PLAN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_limit_of_a_run_holds_for_any_number_of_members() {
        for members in [1, 8, 64, 1_024] {
            let Limits { file_bytes, files } = Limits::for_members(members);
            let all = file_bytes * (u64::from(files) + 1) * 2 * members;
            assert!(all <= RUN_BYTES && file_bytes >= PAGE_LEAST, "{members}: {all}");
        }
        assert_eq!(Limits::for_members(4), Limits::default(), "few keep what they always did");
    }

    #[test]
    fn run_directory_of_another_gang_is_not_reused() {
        let directory = std::env::temp_dir().join(format!("muster-plan-{}", std::process::id()));
        let plan = RunPlan {
            gang: "team/a".into(),
            run: 1,
            uid: 1,
            members: Vec::new(),
            ends_with: None,
            time_limit_ms: None,
            grace_ms: 0,
            limits: Limits::default(),
            run_as: None,
            umask: None,
            group: None,
            clock: None,
        };
        plan.write(&directory).expect("written");
        plan.write(&directory).expect("it is there");
        let error = RunPlan { uid: 2, ..plan }.write(&directory).expect_err("another's");
        assert!(error.to_string().contains("the run of another gang, team/a"), "{error}");
        std::fs::remove_dir_all(directory).expect("removed");
    }
}
