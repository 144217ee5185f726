//! The controller as a process of its own, so that it can be killed like one.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use muster_testkit::cluster::{Cluster, Role};

use crate::proxy::Proxy;

/// A running controller; it is killed when this is dropped.
pub(crate) struct Controller {
    child: Child,
    log: std::path::PathBuf,
}

impl Controller {
    /// Starts one under Muster's own rights.
    pub(crate) fn start(cluster: &Cluster, args: &[&str]) -> Self {
        Self::run(cluster, &cluster.kubeconfig(Role::Muster), args, &[])
    }

    /// Starts one that knows the server only through a proxy.
    pub(crate) fn behind(proxy: &Proxy, cluster: &Cluster, args: &[&str]) -> Self {
        Self::run(cluster, proxy.kubeconfig(), args, &[])
    }

    /// Starts one that finds these in its environment.
    pub(crate) fn start_within(cluster: &Cluster, args: &[&str], env: &[(String, String)]) -> Self {
        Self::run(cluster, &cluster.kubeconfig(Role::Muster), args, env)
    }

    fn run(cluster: &Cluster, kubeconfig: &Path, args: &[&str], env: &[(String, String)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = cluster.folder().join(format!("controller-{count}.log"));
        let file = File::create(&log).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_muster-controller"))
            .args(args)
            .env("KUBECONFIG", kubeconfig)
            .env("MUSTER_LOG", "muster_kube=debug")
            .envs(env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a log"))
            .stderr(file)
            .spawn()
            .expect("the controller starts");
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its memory that is in use, and the most it ever was, in MiB.
    pub(crate) fn memory_mib(&self) -> (u64, u64) {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let kib = |name: &str| line(name)?.split_whitespace().next()?.parse::<u64>().ok();
        let mib = |name: &str| kib(name).map_or(u64::MAX, |kib| kib >> 10);
        (mib("VmRSS:"), mib("VmHWM:"))
    }

    /// Kills it without a word.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// Tells it to end, and whether it ended in good order.
    pub(crate) fn stop(mut self) -> bool {
        self.signal("-TERM") && self.child.wait().is_ok_and(|end| end.success())
    }

    /// Gives it no time to do anything, until it is resumed.
    pub(crate) fn pause(&self) {
        assert!(self.signal("-STOP"), "it is there");
    }

    pub(crate) fn resume(&self) {
        assert!(self.signal("-CONT"), "it is there");
    }

    fn signal(&self, signal: &str) -> bool {
        let id = self.child.id().to_string();
        let told = Command::new("kill").args([signal, &id]).status();
        told.is_ok_and(|told| told.success())
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Whether it has ended in good order.
    pub(crate) fn succeeded(&mut self) -> bool {
        self.child.wait().is_ok_and(|end| end.success())
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            let log = self.log();
            let from = log.len().saturating_sub(12_000);
            let from = (from..log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(0);
            eprintln!("---- the controller's log\n{}", &log[from..]);
        }
    }
}
