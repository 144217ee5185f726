//! Paths of the real Kubernetes that `cargo xtask testbed` builds.
//!
//! Only names and paths: building is xtask's, starting is `cluster`'s.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Folder of prebuilt programs, as the envtest of Kubernetes' own projects names it.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// Set (and neither empty nor `0`), it makes a skipped test a failed one.
pub const REQUIRE_VARIABLE: &str = "MUSTER_REQUIRE_TESTBED";

/// One program of the test bed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tool {
    Etcd,
    ApiServer,
    ControllerManager,
    Scheduler,
    Kwok,
    Karpenter,
    Helm,
}

impl Tool {
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
        Self::Karpenter,
        Self::Helm,
    ];

    /// The program's file name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Karpenter => "karpenter",
            Self::Helm => "helm",
        }
    }

    /// The path of a prebuilt copy, if the variable names a folder that has one. Never of kwok and Karpenter: they are
    /// of no use without the manifests that our build takes from their modules. Nor of helm, which such folders do not
    /// hold.
    pub fn supplied(self) -> Option<PathBuf> {
        if matches!(self, Self::Kwok | Self::Karpenter | Self::Helm) {
            return None;
        }
        let folder = std::env::var_os(ASSETS_VARIABLE)?;
        Some(PathBuf::from(folder).join(self.name())).filter(|path| path.is_file())
    }

    /// Where our own build puts it.
    pub fn built(self) -> PathBuf {
        programs().join(self.name())
    }

    /// The copy to run: the supplied one before our own.
    pub fn path(self) -> Option<PathBuf> {
        self.supplied().or_else(|| Some(self.built()).filter(|path| path.is_file()))
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The root of this repository.
pub fn workspace() -> &'static Path {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).expect("crates/testkit lies two below the root")
}

/// `target`, wherever cargo was told to put it.
pub fn target() -> PathBuf {
    workspace().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The folder of our own build. It lies in the user's cache and outlives a checkout; its name is a digest of the files
/// under `testbed/`, so two checkouts share one build exactly when they pin the same versions.
pub fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let find = || cache().join("testbed").join(format!("{:016x}", digest(&recipes())));
    FOLDER.get_or_init(find).clone()
}

/// `muster` in the user's cache; `target` for a user without one.
fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.map_or_else(target, |base| base.join("muster"))
}

/// Every pinned version: the module files in each folder of `testbed/` and the list of definitions, in a fixed order.
fn recipes() -> String {
    let root = workspace().join("testbed");
    let entries = std::fs::read_dir(&root).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    folders.sort();
    let files =
        folders.iter().flat_map(|folder| ["go.mod", "go.sum"].map(|name| folder.join(name)));
    let files = files.chain([root.join("definitions.txt")]);
    files.filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

/// FNV-1a: it stays the same from one Rust release to the next, which std's hasher does not promise.
fn digest(text: &str) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Our own programs.
pub fn programs() -> PathBuf {
    folder().join("bin")
}

/// Manifests that belong to a program of another project, taken from its module as it was built.
pub fn manifests(of: Tool) -> PathBuf {
    folder().join("manifests").join(of.name())
}

/// Definitions of other systems' kinds, a folder for each system: `volcano/scheduling.volcano.sh_queues.yaml`.
pub fn definitions() -> PathBuf {
    folder().join("definitions")
}

/// Whether a test that cannot run has failed.
pub fn is_required() -> bool {
    std::env::var(REQUIRE_VARIABLE).is_ok_and(|value| !matches!(value.as_str(), "" | "0"))
}
