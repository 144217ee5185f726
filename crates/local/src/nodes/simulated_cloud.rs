//! The simulated cloud behind a pool.

use std::collections::BTreeMap;

use muster_api::{Fault, PoolManifest, Provider, SimulatedCloud};
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolSpec;
use muster_core::time::Span;
use muster_sim::cloud::{CloudModel, Scripted, StockModel};

/// A pool, and the cloud model of its provider. Providers that are not simulated get the default model, which answers
/// what they would do.
pub fn cloud_of(manifest: PoolManifest) -> (PoolSpec, CloudModel) {
    let model = match manifest.provider {
        Provider::Simulated(cloud) => model(cloud),
        Provider::Karpenter { .. } | Provider::ProvisioningRequest(_) | Provider::Local => {
            CloudModel::default()
        }
    };
    (manifest.spec, model)
}

fn model(cloud: SimulatedCloud) -> CloudModel {
    let SimulatedCloud { boot, failures, stock_out, in_service, script } = cloud;
    CloudModel {
        launch: boot.launch,
        register: boot.register,
        gpus: boot.gpus,
        sigma: boot.sigma,
        boot_failed: failures.boot_failed,
        gpus_missing: failures.gpus_missing,
        throttled: failures.throttled,
        stock: stock_out
            .map(|stock| StockModel { mean_up: stock.mean_up, mean_down: stock.mean_down }),
        recorded: BTreeMap::new(),
        mean_time_to_failure: in_service.map(|service| service.mean_time_to_failure),
        notice: Span::ZERO,
        script: script
            .into_iter()
            .map(|line| Scripted {
                zone: line.zone,
                claim: line.claim,
                fails: match line.fails {
                    Fault::StockOut => ClaimFailure::StockOut,
                    Fault::BootFailed => ClaimFailure::BootFailed,
                    Fault::GpusMissing => ClaimFailure::GpusMissing,
                },
            })
            .collect(),
    }
}
