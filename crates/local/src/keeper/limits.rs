//! Members are held to what they asked for, where the system lets us, by control groups, v2 or v1.
//!
//! Memory is a limit: who uses more is killed, and not somebody else. CPU is a weight: who asked for more gets more where
//! there is not enough for all, and nobody is slowed down while there is.

use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::plan::{MemberPlan, RunPlan};

pub(super) const ROOT: &str = "/sys/fs/cgroup";

/// The control groups of one member. They are removed with it.
#[derive(Debug)]
pub(super) struct Cage {
    groups: Vec<PathBuf>,
    /// Where kills for want of memory are counted.
    kills: Option<PathBuf>,
}

impl Cage {
    /// Puts a process, and all that it will start, where its limits hold. `None` when it has none.
    pub(super) fn new(
        plan: &RunPlan,
        member: &MemberPlan,
        pid: Pid,
    ) -> Result<Option<Self>, String> {
        if member.memory.is_none() && member.cpu_milli.is_none() {
            return Ok(None);
        }
        let name = format!("muster-{}-{}-{}", std::process::id(), plan.run, member.rank);
        let mut cage = Self { groups: Vec::new(), kills: None };
        let root = Path::new(ROOT);
        let made = match root.join("cgroup.controllers").exists() {
            true => cage.unified(&own_group(root), &name, member, pid),
            false => cage.separate(root, &name, member, pid),
        };
        made.map_err(|error| format!("limits are not enforced: {error}"))?;
        Ok(Some(cage))
    }

    fn unified(
        &mut self,
        parent: &Path,
        name: &str,
        member: &MemberPlan,
        pid: Pid,
    ) -> std::io::Result<()> {
        let group = parent.join(name);
        // Parents that hold processes may not hand out controllers; then this fails, and is said.
        let _ = std::fs::write(parent.join("cgroup.subtree_control"), "+memory +cpu");
        std::fs::create_dir(&group)?;
        self.groups.push(group.clone());
        if let Some(memory) = member.memory {
            std::fs::write(group.join("memory.max"), memory.to_string())?;
            let _ = std::fs::write(group.join("memory.swap.max"), "0");
            self.kills = Some(group.join("memory.events"));
        }
        if let Some(milli) = member.cpu_milli {
            // One CPU is the weight that everybody has by default.
            let weight = (milli / 10).clamp(1, 10_000);
            std::fs::write(group.join("cpu.weight"), weight.to_string())?;
        }
        std::fs::write(group.join("cgroup.procs"), pid.as_raw_nonzero().to_string())
    }

    fn separate(
        &mut self,
        root: &Path,
        name: &str,
        member: &MemberPlan,
        pid: Pid,
    ) -> std::io::Result<()> {
        let pid = pid.as_raw_nonzero().to_string();
        if let Some(memory) = member.memory {
            let group = root.join("memory").join(name);
            std::fs::create_dir(&group)?;
            self.groups.push(group.clone());
            std::fs::write(group.join("memory.limit_in_bytes"), memory.to_string())?;
            let _ = std::fs::write(group.join("memory.memsw.limit_in_bytes"), memory.to_string());
            std::fs::write(group.join("cgroup.procs"), &pid)?;
            self.kills = Some(group.join("memory.oom_control"));
        }
        if let Some(milli) = member.cpu_milli {
            let group = root.join("cpu").join(name);
            std::fs::create_dir(&group)?;
            self.groups.push(group.clone());
            let shares = (milli * 1_024 / 1_000).clamp(2, 262_144);
            std::fs::write(group.join("cpu.shares"), shares.to_string())?;
            std::fs::write(group.join("cgroup.procs"), &pid)?;
        }
        Ok(())
    }

    /// Whether a process in it was killed for using too much memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        let text = self.kills.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let count = |text: &str| {
            let kills = text.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
            kills.trim().parse::<u64>().ok()
        };
        text.as_deref().and_then(count).is_some_and(|kills| kills > 0)
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// The group this process is in, where groups are one tree.
fn own_group(root: &Path) -> PathBuf {
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    root.join(path)
}
