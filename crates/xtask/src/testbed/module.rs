//! The Go modules under `testbed/`, and when what was built of one is still right.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use muster_testkit::testbed::{self, Tool};

/// One folder of `testbed/`. A module each, because each pins versions the others would fight over.
pub(super) struct Module {
    /// The folder, and the name shown.
    pub(super) name: &'static str,
    /// The Go module whose version is the programs' version.
    pub(super) main: &'static str,
    pub(super) programs: &'static [Program],
    stamps: &'static [Stamp],
    /// Folders and files of the Go module that are needed at run time: for which tool, and where in the module.
    pub(super) manifests: &'static [(Tool, &'static str)],
}

pub(super) struct Program {
    pub(super) tool: Tool,
    pub(super) package: &'static str,
}

/// A Go variable that holds the version, and what of it.
type Stamp = (&'static str, fn(&str) -> String);

/// Smallest last: the compile cache is shared, and Kubernetes fills most of it.
pub(super) const MODULES: &[Module] = &[
    Module {
        name: "kubernetes",
        main: "k8s.io/kubernetes",
        programs: &[
            Program { tool: Tool::ApiServer, package: "k8s.io/kubernetes/cmd/kube-apiserver" },
            Program {
                tool: Tool::ControllerManager,
                package: "k8s.io/kubernetes/cmd/kube-controller-manager",
            },
            Program { tool: Tool::Scheduler, package: "k8s.io/kubernetes/cmd/kube-scheduler" },
        ],
        // What the server answers at /version. Feature gates and API versions are looked up by it.
        stamps: &[
            ("k8s.io/component-base/version.gitVersion", str::to_owned),
            ("k8s.io/component-base/version.gitMajor", |version| part(version, 0)),
            ("k8s.io/component-base/version.gitMinor", |version| part(version, 1)),
            ("k8s.io/component-base/version.gitTreeState", |_| "clean".to_owned()),
            ("k8s.io/client-go/pkg/version.gitVersion", str::to_owned),
        ],
        manifests: &[],
    },
    Module {
        name: "etcd",
        main: "go.etcd.io/etcd/server/v3",
        programs: &[Program { tool: Tool::Etcd, package: "go.etcd.io/etcd/server/v3" }],
        stamps: &[],
        manifests: &[],
    },
    Module {
        name: "kwok",
        main: "sigs.k8s.io/kwok",
        programs: &[Program { tool: Tool::Kwok, package: "sigs.k8s.io/kwok/cmd/kwok" }],
        stamps: &[],
        manifests: &[
            (Tool::Kwok, "kustomize/rbac/role.yaml"),
            (Tool::Kwok, "kustomize/rbac/role_binding.yaml"),
            (Tool::Kwok, "kustomize/stage/node/fast/node-initialize.yaml"),
            (
                Tool::Kwok,
                "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
            ),
            (Tool::Kwok, "kustomize/stage/pod/fast/pod-complete.yaml"),
            (Tool::Kwok, "kustomize/stage/pod/fast/pod-delete.yaml"),
            (Tool::Kwok, "kustomize/stage/pod/fast/pod-ready.yaml"),
        ],
    },
    Module {
        name: "karpenter",
        main: "sigs.k8s.io/karpenter",
        programs: &[Program { tool: Tool::Karpenter, package: "sigs.k8s.io/karpenter/kwok" }],
        stamps: &[("sigs.k8s.io/karpenter/pkg/operator.Version", |version| {
            version.trim_start_matches('v').to_owned()
        })],
        manifests: &[
            (Tool::Karpenter, "kwok/charts/crds/autoscaling.x-k8s.io_capacitybuffers.yaml"),
            (Tool::Karpenter, "kwok/charts/crds/karpenter.sh_nodeclaims.yaml"),
            (Tool::Karpenter, "kwok/charts/crds/karpenter.sh_nodeoverlays.yaml"),
            (Tool::Karpenter, "kwok/charts/crds/karpenter.sh_nodepools.yaml"),
            (Tool::Karpenter, "kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml"),
        ],
    },
    Module {
        name: "helm",
        main: "helm.sh/helm/v4",
        programs: &[Program { tool: Tool::Helm, package: "helm.sh/helm/v4/cmd/helm" }],
        stamps: &[("helm.sh/helm/v4/internal/version.version", str::to_owned)],
        manifests: &[],
    },
];

/// One number of a version: `v1.37.1` has 1, 37 and 1.
fn part(version: &str, nth: usize) -> String {
    version.trim_start_matches('v').split('.').nth(nth).unwrap_or_default().to_owned()
}

impl Module {
    pub(super) fn folder(&self) -> PathBuf {
        testbed::workspace().join("testbed").join(self.name)
    }

    /// As the module file requires it, such as `v1.37.1`.
    pub(super) fn version(&self) -> String {
        let text = fs::read_to_string(self.folder().join("go.mod")).unwrap_or_default();
        requirements(&text).get(self.main).map_or_else(|| "unknown".to_owned(), ToString::to_string)
    }

    /// The programs to build here: those that are not supplied.
    pub(super) fn wanted(&self) -> Vec<&'static Program> {
        self.programs.iter().filter(|program| program.tool.supplied().is_none()).collect()
    }

    /// Symbols are left out: they double the size, and these programs are not debugged.
    pub(super) fn link_flags(&self) -> String {
        let version = self.version();
        let stamps =
            self.stamps.iter().map(|(variable, of)| format!(" -X {variable}={}", of(&version)));
        std::iter::once("-s -w".to_owned()).chain(stamps).collect()
    }

    /// Everything that decides what is built, word for word: no hash to trust, and a difference can be read. Go's
    /// own version is left out, so that what is built is of use where there is no Go.
    fn recipe(&self) -> String {
        let read = |name| fs::read_to_string(self.folder().join(name)).unwrap_or_default();
        let programs: Vec<&str> = self.wanted().iter().map(|program| program.package).collect();
        let manifests: Vec<&str> = self.manifests.iter().map(|(_, path)| *path).collect();
        [programs.join(" "), manifests.join(" "), self.link_flags(), read("go.mod"), read("go.sum")]
            .join("\n")
    }

    fn recipe_file(&self) -> PathBuf {
        testbed::folder().join(format!("{}.recipe", self.name))
    }

    /// Whether all wanted programs are there and were built by the recipe of today.
    pub(super) fn is_current(&self) -> bool {
        self.wanted().iter().all(|program| program.tool.built().is_file())
            && fs::read_to_string(self.recipe_file()).is_ok_and(|built| built == self.recipe())
    }

    pub(super) fn mark_current(&self) -> std::io::Result<()> {
        fs::write(self.recipe_file(), self.recipe())
    }
}

/// Every Go module that a module file requires, with its version. Go compiles under that version even if another
/// replaces it.
fn requirements(go_mod: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for line in go_mod.lines() {
        let words: Vec<&str> =
            line.trim().trim_start_matches("require ").split_whitespace().collect();
        if let [name, version, ..] = words[..]
            && version.starts_with('v')
        {
            found.insert(name, version);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_all_forms_a_module_file_has() {
        let go_mod = "module m\n\nrequire a.io/one v1.2.3\n\nrequire (\n\tb.io/two v0.4.0 // indirect\n)\n\n\
            replace (\n\tb.io/two => b.io/two v0.4.1\n)\n";
        let found: Vec<(&str, &str)> = requirements(go_mod).into_iter().collect();
        assert_eq!(found, [("a.io/one", "v1.2.3"), ("b.io/two", "v0.4.0")]);
    }

    /// Karpenter asks for newer ones than Kubernetes does, so the packages above them are compiled twice.
    const NEWER_FOR_KARPENTER: [&str; 2] = ["github.com/google/gnostic-models", "go.uber.org/zap"];

    /// What two modules share is compiled once only if it is the same version in both.
    #[test]
    fn modules_agree_on_what_they_share() {
        let read = |module: &Module| fs::read_to_string(module.folder().join("go.mod")).unwrap();
        let [first, others @ ..] = MODULES else { unreachable!("there are modules") };
        let text = read(first);
        let theirs = requirements(&text);
        for other in others {
            for (name, version) in requirements(&read(other)) {
                // `v0.0.0` is what Kubernetes calls those of its parts that are replaced in any case.
                let same = theirs.get(name).is_none_or(|one| [version, "v0.0.0"].contains(one));
                assert!(
                    same || NEWER_FOR_KARPENTER.contains(&name),
                    "{name} is {version} in {} and {} in {}",
                    other.name,
                    theirs[name],
                    first.name
                );
            }
        }
    }

    #[test]
    fn every_tool_is_built_by_one_module_and_stamped_with_a_known_version() {
        for tool in Tool::ALL {
            let builders =
                MODULES.iter().flat_map(|module| module.programs).filter(|p| p.tool == tool);
            assert_eq!(builders.count(), 1, "{tool}");
        }
        for module in MODULES {
            assert!(
                module.version().starts_with('v'),
                "{} has no version in its go.mod",
                module.name
            );
        }
        assert_eq!(part("v1.37.1", 1), "37");
    }
}
