//! The folder of a cluster, its processes, and their end.

use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster::process::component::Component;
use crate::cluster::process::reaper::Reaper;
use crate::testbed::Tool;

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) folder: PathBuf,
    components: Mutex<Vec<Component>>,
    reaper: Option<Reaper>,
}

/// A program that ended by itself, and the end of its log.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) tool: Tool,
    pub(crate) log: String,
}

impl Running {
    /// A new folder that is removed whatever happens.
    pub(crate) fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("muster-cluster-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&folder)?;
        let reaper = Some(Reaper::watch(&folder)?);
        Ok(Self { folder, components: Mutex::new(Vec::new()), reaper })
    }

    /// Starts a program among the others; the first one leads their group.
    pub(crate) fn spawn(&mut self, tool: Tool, command: Command) -> io::Result<()> {
        let components = self.components.get_mut().expect("nobody panics while holding it");
        let group = components.first().map_or(0, Component::id);
        let component = Component::spawn(tool, command, group, &self.folder)?;
        if components.is_empty() {
            self.reaper.as_mut().expect("it goes with the drop").adopt(component.id())?;
        }
        components.push(component);
        Ok(())
    }

    /// The first program that has exited.
    pub(crate) fn ended(&self) -> Option<Ended> {
        let mut components = self.components.lock().expect("nobody panics while holding it");
        let ended = components.iter_mut().find_map(|one| one.has_ended().then_some(&*one))?;
        Some(Ended { tool: ended.tool, log: ended.tail() })
    }

    /// Process ids by program.
    pub(crate) fn processes(&self) -> Vec<(Tool, u32)> {
        let components = self.components.lock().expect("nobody panics while holding it");
        components.iter().map(|component| (component.tool, component.id())).collect()
    }

    /// The ends of all logs.
    pub(crate) fn logs(&self) -> String {
        let components = self.components.lock().expect("nobody panics while holding it");
        components.iter().map(Component::tail).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = write!(io::stderr(), "{}", self.logs());
        }
        drop(self.reaper.take());
        for component in self.components.get_mut().into_iter().flatten() {
            component.wait();
        }
    }
}
