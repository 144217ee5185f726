//! A rate made of parts, and how much each part is to be believed.
//!
//! Each part is a guess of how often something happens ("as often as in the last hour", "as often as at this hour
//! of the day"). When it happens, every part gets credit for its share in having foreseen it; over time every part
//! is held to what it promised. Its weight is credit over promise: the step of expectation maximisation for a sum
//! of Poisson processes, done once for each event as it comes.

use serde::{Deserialize, Serialize};

/// Weights of `N` parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RateMixture {
    weights: Vec<f64>,
    credit: Vec<f64>,
    expected: Vec<f64>,
}

impl RateMixture {
    /// Weights before anything was seen. `priors` are credits already given, so the larger they are, the longer it
    /// takes to be taught otherwise.
    pub(crate) fn new(priors: &[f64]) -> Self {
        let strength: f64 = priors.iter().sum();
        Self {
            weights: priors.iter().map(|prior| prior / strength).collect(),
            credit: priors.to_vec(),
            expected: vec![strength; priors.len()],
        }
    }
    /// The rate that all parts together give.
    pub(crate) fn rate(&self, components: &[f64]) -> f64 {
        self.weights.iter().zip(components).map(|(weight, component)| weight * component).sum()
    }
    /// It happened, and these were the parts before.
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
    /// So much time passes with these parts.
    pub(crate) fn pass(&mut self, components: &[f64], secs: f64) {
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
    fn the_part_that_foresees_is_believed() {
        let mut mixture = RateMixture::new(&[1.0, 1.0]);
        for i in 0..1_000 {
            // The first part knows that every tenth second counts; the second only knows how many there are.
            let components = [if i % 10 == 0 { 1.0 } else { 0.0 }, 0.1];
            if i % 10 == 0 {
                mixture.observe(&components);
            }
            mixture.pass(&components, 1.0);
        }
        assert!(mixture.rate(&[1.0, 0.1]) > 0.9, "{mixture:?}");
        assert!(mixture.rate(&[0.0, 0.1]) < 0.02, "{mixture:?}");
    }
}
