//! Settings of a policy by name, as every host takes them from its user.

use muster_core::time::Span;

use super::Policy;

/// A setting, and how it is read.
struct Setting {
    name: &'static str,
    what: &'static str,
    set: fn(&mut Policy, &str) -> Result<(), String>,
}

/// Everything that can be set, in reading order.
const ALL: [Setting; 11] = [
    Setting {
        name: "failover",
        what: "in which order offerings are tried: by-cost or as-listed",
        set: |policy, text| {
            policy.failover = text.parse().map_err(|_| "by-cost or as-listed".to_owned())?;
            Ok(())
        },
    },
    Setting {
        name: "top-ups",
        what: "how often one order may have a failed claim replaced",
        set: |policy, text| number(text, 0, 100, &mut policy.top_ups),
    },
    Setting {
        name: "retries",
        what: "how often a claim that the provider puts off is retried",
        set: |policy, text| number(text, 0, 100, &mut policy.retries),
    },
    Setting {
        name: "avoid",
        what: "how long an offering is avoided after its first failure",
        set: |policy, text| span(text, &mut policy.avoid_base),
    },
    Setting {
        name: "avoid-most",
        what: "the longest time an offering is avoided",
        set: |policy, text| span(text, &mut policy.avoid_max),
    },
    Setting {
        name: "cool-off",
        what: "how long a gang whose orders keep failing pauses",
        set: |policy, text| span(text, &mut policy.cool_off),
    },
    Setting {
        name: "mix-kinds",
        what: "kinds of nodes among which the cheapest mix is computed exactly",
        set: |policy, text| {
            let mut kinds = 0;
            number(text, 0, 1_000, &mut kinds)?;
            policy.mix_budget = kinds as usize;
            Ok(())
        },
    },
    Setting {
        name: "searches",
        what: "for how many gangs victims are searched, in one cycle",
        set: |policy, text| number(text, 0, 10_000, &mut policy.searches),
    },
    Setting {
        name: "urgency",
        what: "how many times a delay counts against the loss of victims of lower priority",
        set: |policy, text| number(text, 1, 10_000, &mut policy.urgency),
    },
    Setting {
        name: "rotation-overhead",
        what: "what rotation of time slices may cost, in thousandths of a slice",
        set: |policy, text| number(text, 1, 1_000, &mut policy.rotation_overhead),
    },
    Setting {
        name: "settle-in",
        what: "how long a gang that was resized is not made larger",
        set: |policy, text| span(text, &mut policy.settle_in),
    },
];

fn number(text: &str, least: u32, most: u32, of: &mut u32) -> Result<(), String> {
    let read = text.parse().ok().filter(|number| (least..=most).contains(number));
    *of = read.ok_or_else(|| format!("a number from {least} to {most}"))?;
    Ok(())
}

fn span(text: &str, of: &mut Span) -> Result<(), String> {
    *of = text.parse().map_err(|_| "a time such as 90s, 5m or 2h".to_owned())?;
    Ok(())
}

impl Policy {
    /// Sets what `NAME=VALUE` says.
    ///
    /// # Errors
    /// Says what the name or the value should be; the policy is as it was then.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("`{text}` is not NAME=VALUE"));
        };
        let Some(setting) = ALL.iter().find(|setting| setting.name == name.trim()) else {
            let names: Vec<&str> = ALL.iter().map(|setting| setting.name).collect();
            return Err(format!("there is no setting `{name}`; there are {}", names.join(", ")));
        };
        (setting.set)(self, value.trim())
            .map_err(|wanted| format!("{name} is {wanted}, not `{value}`"))
    }

    /// All settings and what they are, a line each.
    pub fn settings() -> String {
        let width = ALL.iter().map(|setting| setting.name.len()).max().unwrap_or(0);
        let line = |Setting { name, what, .. }: &Setting| format!("  {name:width$}  {what}");
        ALL.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::Failover;
    use crate::policy::settings::*;

    #[test]
    fn every_setting_is_read_and_errors_say_what_is_expected() {
        let mut policy = Policy::default();
        for text in ["failover=as-listed", "top-ups = 0", "urgency=3", "settle-in=90s", "avoid=1m"]
        {
            policy.set(text).expect(text);
        }
        assert_eq!(
            (policy.failover, policy.top_ups, policy.urgency, policy.settle_in, policy.avoid_base),
            (Failover::AsListed, 0, 3, Span::secs(90), Span::mins(1))
        );
        let before = policy.clone();
        let said = |text: &str| policy.clone().set(text).expect_err(text);
        assert_eq!(said("urgency"), "`urgency` is not NAME=VALUE");
        assert_eq!(said("urgency=0"), "urgency is a number from 1 to 10000, not `0`");
        assert_eq!(said("cool-off=soon"), "cool-off is a time such as 90s, 5m or 2h, not `soon`");
        assert!(said("haste=1").starts_with("there is no setting `haste`; there are failover, "));
        assert_eq!(policy, before);
    }

    #[test]
    fn each_setting_has_a_line() {
        assert_eq!(Policy::settings().lines().count(), ALL.len());
    }
}
