//! Splits the outage model of an offering into a part of its own and parts that it shares with others.
//!
//! An offering is in stock while three things are up: the offering itself, its region, and the provider as a
//! whole. They are independent, so their shares of time up multiply to the offering's share `a`. For two
//! offerings that share some of the three, the correlation of "in stock" is `(b - a) / (1 - a)`, where `b`
//! is the product of what they do *not* share. Two zones of a region share all but the offering itself, two
//! regions share only the provider; the two measured correlations therefore fix all three shares.
//!
//! Up-times are exponential, so the offering's mean up-time is one over the sum of the three rates. All three
//! get the same mean down-time, the one at which that comes out as asked. Then the offering's mean outage comes
//! out as asked, too, because its share of time out does.

use muster_core::time::Span;

use crate::cloud::model::StockModel;

/// Correlation of two zones of one region; 0.43 was measured on spot traces of GPU machines.
const WITHIN_REGION: f64 = 0.4;
/// Correlation of two regions, measured on the same traces.
const BETWEEN_REGIONS: f64 = 0.14;

/// The parts of one offering's outages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Of the offering alone.
    pub(crate) own: StockModel,
    /// Of its whole region.
    pub(crate) region: StockModel,
    /// Of the provider everywhere.
    pub(crate) everywhere: StockModel,
}

impl Parts {
    /// Splits the total outage model of an offering.
    pub(crate) fn of(total: StockModel) -> Self {
        let up = total.share_up();
        let unshared = |correlation: f64| up + correlation * (1.0 - up);
        let own = unshared(WITHIN_REGION);
        let region = unshared(BETWEEN_REGIONS) / own;
        let everywhere = up / unshared(BETWEEN_REGIONS);
        let odds_down = |share: f64| (1.0 - share) / share;
        let odds = [own, region, everywhere].map(odds_down);
        let down = total.mean_up.as_secs_f64() * odds.iter().sum::<f64>();
        let part = |odds: f64| StockModel {
            mean_up: Span::from_secs_f64(down / odds),
            mean_down: Span::from_secs_f64(down),
        };
        let [own, region, everywhere] = odds.map(part);
        Self { own, region, everywhere }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_multiply_to_the_whole() {
        let total = StockModel { mean_up: Span::hours(10), mean_down: Span::hours(2) };
        let Parts { own, region, everywhere } = Parts::of(total);
        let share = own.share_up() * region.share_up() * everywhere.share_up();
        assert!((share - total.share_up()).abs() < 1e-6, "{share}");
        assert!(own.share_up() < region.share_up() && region.share_up() < everywhere.share_up());
        let rate: f64 =
            [own, region, everywhere].iter().map(|part| 1.0 / part.mean_up.as_secs_f64()).sum();
        assert!((1.0 / rate - total.mean_up.as_secs_f64()).abs() < 1.0, "{rate}");
    }

    #[test]
    fn extreme_outage_models_can_be_split() {
        for (up, down) in [(0, 1), (1, 0), (0, 0), (1, 10_000), (10_000, 1)] {
            let Parts { own, region, everywhere } =
                Parts::of(StockModel { mean_up: Span::hours(up), mean_down: Span::hours(down) });
            for part in [own, region, everywhere] {
                assert!((0.0..=1.0).contains(&part.share_up()), "{up} {down}: {part:?}");
            }
        }
    }
}
