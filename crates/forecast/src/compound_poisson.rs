//! The demand of independent gangs over a lead time: a compound Poisson sum of how many arrive and how large they are.

use crate::arrival::Arrival;

/// Sizes are added up in eighths of a node: no GPU node is shared more finely.
const UNIT_MILLI: u32 = 125;
const UNITS_PER_NODE: usize = 8;
/// Above this many gangs in a lead time the probability of no arrival underflows, and the sum is close to its mean.
/// Four standard deviations above the mean are taken instead.
const MANY: f64 = 600.0;

/// Gangs that arrive independently, at a rate, with sizes drawn from earlier arrivals.
#[derive(Clone, PartialEq, Debug)]
pub struct CompoundPoisson {
    /// Sizes in units, ascending, with the share of gangs that have them.
    sizes: Vec<(usize, f64)>,
    /// Gangs expected within one lead time.
    per_lead: f64,
}

impl CompoundPoisson {
    /// So many gangs expected per lead time, sized like `arrivals`.
    pub fn new(arrivals: &[Arrival], per_lead: f64) -> Self {
        let units = |arrival: &Arrival| arrival.nodes_milli.div_ceil(UNIT_MILLI) as usize;
        let mut all: Vec<usize> = arrivals.iter().map(units).collect();
        all.sort_unstable();
        let share = 1.0 / all.len().max(1) as f64;
        let mut sizes: Vec<(usize, f64)> = Vec::new();
        for size in all {
            match sizes.last_mut() {
                Some((last, shares)) if *last == size => *shares += share,
                _ => sizes.push((size, share)),
            }
        }
        Self { sizes, per_lead: per_lead.max(0.0) }
    }
    /// The share of gangs that find a pool of each size sufficient, from no nodes up to `most`.
    ///
    /// A gang is hit if it fits together with the arrivals within a lead time before it (Poisson arrivals see time
    /// averages). The sum of a random number of random sizes follows Panjer's recursion.
    pub fn hit_rates(&self, most: u32) -> Vec<f64> {
        let units = most as usize * UNITS_PER_NODE;
        let taken = self.taken_at_most(units);
        let rate = |nodes: usize| {
            let room = nodes * UNITS_PER_NODE;
            let fits = |&(size, share): &(usize, f64)| {
                if size == 0 {
                    share
                } else {
                    room.checked_sub(size).map_or(0.0, |left| share * taken[left])
                }
            };
            self.sizes.iter().map(fits).sum()
        };
        (0..=most as usize).map(rate).collect()
    }
    /// The smallest pool that hits this share of gangs, at most `most` nodes.
    pub fn for_hit_rate(&self, hit_rate: f64, most: u32) -> u32 {
        if self.sizes.is_empty() {
            return 0; // no arrivals, no misses
        }
        // A billionth is rounding, not a gang.
        let rates = self.hit_rates(most);
        rates.partition_point(|&rate| rate < hit_rate - 1e-9).min(most as usize) as u32
    }
    /// The pool with the least expected cost: a missed gang costs 1, a node kept free for a lead time costs `price`.
    pub fn for_price(&self, price: f64, most: u32) -> u32 {
        let cost =
            |(nodes, rate): (usize, f64)| self.per_lead * (1.0 - rate) + price * nodes as f64;
        let costs = self.hit_rates(most).into_iter().enumerate().map(cost);
        let least = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        least.map_or(0, |(nodes, _)| nodes as u32)
    }
    /// The probability that arrivals within a lead time took at most so many units, for each up to `most`.
    fn taken_at_most(&self, most: usize) -> Vec<f64> {
        if self.per_lead > MANY {
            let moment = |power: i32| -> f64 {
                self.sizes.iter().map(|&(size, share)| share * (size as f64).powi(power)).sum()
            };
            let enough = self.per_lead * moment(1) + 4.0 * (self.per_lead * moment(2)).sqrt();
            return (0..=most)
                .map(|units| if units as f64 >= enough { 1.0 } else { 0.0 })
                .collect();
        }
        let none: f64 =
            self.sizes.iter().filter(|(size, _)| *size == 0).map(|(_, share)| share).sum();
        let mut chance = vec![0.0; most + 1];
        chance[0] = (-self.per_lead * (1.0 - none)).exp();
        for units in 1..=most {
            let reach = self.sizes.iter().take_while(|(size, _)| *size <= units);
            let sum: f64 =
                reach.map(|&(size, share)| size as f64 * share * chance[units - size]).sum();
            chance[units] = self.per_lead / units as f64 * sum;
        }
        let mut total = 0.0;
        for chance in &mut chance {
            total += *chance;
            *chance = total;
        }
        chance
    }
}
