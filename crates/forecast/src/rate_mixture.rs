//! A rate as a weighted mixture of component rates, with weights learned online.
//!
//! Each component is an estimate of how often something happens ("as often as in the last hour", "as often as at this
//! hour of the day"). At each event every component gets credit for its share of the rate; over time every component
//! accumulates the events it expected. Its weight is credit over expected: the step of expectation maximisation for a
//! sum of Poisson processes, done once for each event.

use serde::{Deserialize, Serialize};

/// Weights of `N` components.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RateMixture {
    weights: Vec<f64>,
    credit: Vec<f64>,
    expected: Vec<f64>,
}

impl RateMixture {
    /// Weights before any observation. `priors` are credits already given, so larger priors are slower to be
    /// outweighed.
    pub(crate) fn new(priors: &[f64]) -> Self {
        let strength: f64 = priors.iter().sum();
        Self {
            weights: priors.iter().map(|prior| prior / strength).collect(),
            credit: priors.to_vec(),
            expected: vec![strength; priors.len()],
        }
    }
    /// The rate that all components together give.
    pub(crate) fn rate(&self, components: &[f64]) -> f64 {
        self.weights.iter().zip(components).map(|(weight, component)| weight * component).sum()
    }
    /// Observes an event; these were the component rates before it.
    pub(crate) fn observe(&mut self, components: &[f64]) {
        let rate = self.rate(components);
        if rate > 0.0 {
            for ((credit, weight), component) in
                self.credit.iter_mut().zip(&self.weights).zip(components)
            {
                *credit += weight * component / rate;
            }
        }
    }
    /// Advances time by `secs` with these component rates.
    pub(crate) fn advance(&mut self, components: &[f64], secs: f64) {
        for (i, component) in components.iter().enumerate() {
            self.expected[i] += component * secs;
            self.weights[i] = self.credit[i] / self.expected[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_that_predicts_events_gains_weight() {
        let mut mixture = RateMixture::new(&[1.0, 1.0]);
        for i in 0..1_000 {
            // The first component knows that every tenth second counts; the second only knows how many there are.
            let components = [if i % 10 == 0 { 1.0 } else { 0.0 }, 0.1];
            if i % 10 == 0 {
                mixture.observe(&components);
            }
            mixture.advance(&components, 1.0);
        }
        assert!(mixture.rate(&[1.0, 0.1]) > 0.9, "{mixture:?}");
        assert!(mixture.rate(&[0.0, 0.1]) < 0.02, "{mixture:?}");
    }
}
