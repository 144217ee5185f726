//! `muster crds`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use muster_api::crd::{Definition, definitions};

use crate::figures::count;
use crate::stdout;
use crate::yaml;

/// Print the CustomResourceDefinitions of Muster's kinds, to be applied to a Kubernetes cluster.
///
/// They are generated from the types that read manifests, so they always agree with this program. The Helm chart
/// includes them; this is for installations without it, and for editors that check YAML by schema.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    /// Write one file per kind into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// The output format of the definitions.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Documents, one after another
    Yaml,
    /// One list
    Json,
}

const EXAMPLES: &str = "\
Examples:
  muster crds | kubectl apply --server-side -f -
  muster crds -o json | jq '.items[].metadata.name'
  muster crds --dir charts/muster/crds                  one file per kind";

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let definitions = definitions();
    if let Some(dir) = &args.dir {
        return write(&definitions, dir, args.output);
    }
    match args.output {
        Output::Yaml => definitions.iter().for_each(|definition| {
            stdout::write(&format!("---\n{}", yaml::document(&definition.object)));
        }),
        Output::Json => {
            let items: Vec<_> = definitions.iter().map(|definition| &definition.object).collect();
            let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": items });
            stdout::line(format_args!("{list:#}"));
        }
    }
    Ok(())
}

fn write(definitions: &[Definition], dir: &Path, output: Output) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    for definition in definitions {
        let (ending, text) = match output {
            Output::Yaml => ("yaml", yaml::document(&definition.object)),
            Output::Json => ("json", format!("{:#}\n", definition.object)),
        };
        let path = dir.join(format!("{}.{ending}", definition.plural));
        std::fs::write(&path, text)
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    stdout::line(format_args!("{} written to {}", count(definitions.len(), "file"), dir.display()));
    Ok(())
}
