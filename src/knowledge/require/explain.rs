//! Why a requirement does not hold, and what would make it hold.
//!
//! NVIDIA's tool names the first alternative alone ("unsatisfied condition: cuda>=12.4"), though the list of driver
//! branches behind it is often the nearer way.

use super::evaluate::{Evaluation, Holds, Subject, evaluate, evaluate_all, holds};
use super::expression::{Alternative, Expression, Property, Term};
use crate::model::{DriverVersion, Knowledge, Release};

/// Of a text with more bounds than any published one has, the rest is not tried.
const MOST_BOUNDS: usize = 256;

/// Why the requirements do not hold for one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation<'a> {
    /// The first alternative of the first requirement that does not hold: the one that NVIDIA's tool names.
    pub first: Alternative<'a>,
    /// That one's alternative which is nearest: a driver update makes it hold, or the fewest of its terms fail.
    pub nearest: Alternative<'a>,
    /// How many alternatives it has.
    pub alternatives: usize,
    /// Terms of the nearest that do not hold.
    pub failing: Vec<Term<'a>>,
    /// What would have to change.
    pub change: Change,
}

/// What would make all requirements hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A newer driver.
    Driver(SmallestDriver),
    /// A driver newer than all that are known here.
    UnknownDriver,
    /// Another GPU; no driver for this one does.
    Gpu,
    /// Nothing: it never holds.
    Nothing,
}

/// The smallest driver with which all requirements hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallestDriver {
    /// It. The first number alone stands for its branch.
    pub version: DriverVersion,
    /// From here on every known driver does; often it itself, else a later one, since branches between them are not
    /// on the list. `None`: the newest does not.
    pub onwards: Option<DriverVersion>,
}

/// Explains the first requirement that does not hold; `None`: there is none.
pub fn explain<'a>(
    expressions: &[Expression<'a>],
    subject: &Subject<'_>,
    knowledge: &Knowledge,
) -> Option<Explanation<'a>> {
    let expression = expressions.iter().find(|e| evaluate(e, subject).is_refused())?;
    let change = change(expressions, subject, knowledge);
    let updated = match &change {
        Change::Driver(smallest) => Some(with_driver(subject, smallest.version.clone(), knowledge)),
        _ => None,
    };
    let failing = |alternative: &Alternative<'a>, subject: &Subject<'_>| -> Vec<Term<'a>> {
        alternative
            .terms
            .iter()
            .filter(|term| matches!(holds(term, subject), Holds::No | Holds::Invalid))
            .copied()
            .collect()
    };
    let nearest = updated
        .and_then(|subject| expression.alternatives.iter().find(|a| failing(a, &subject).is_empty()))
        .or_else(|| expression.alternatives.iter().min_by_key(|a| failing(a, subject).len()))?;
    Some(Explanation {
        first: expression.alternatives.first()?.clone(),
        nearest: nearest.clone(),
        alternatives: expression.alternatives.len(),
        failing: failing(nearest, subject),
        change,
    })
}

fn change(expressions: &[Expression<'_>], subject: &Subject<'_>, knowledge: &Knowledge) -> Change {
    if let Some(smallest) = smallest_driver(expressions, subject, knowledge) {
        return Change::Driver(smallest);
    }
    let beyond = Release::of(&[u32::MAX]);
    let newest = Subject { cuda: Some(beyond.clone()), driver: Some(beyond.clone()), ..subject.clone() };
    let supported = subject.arch.is_none_or(|arch| knowledge.driver_supports(arch, &beyond) != Some(false));
    if supported && evaluate_all(expressions, &newest) == Evaluation::Satisfied {
        return Change::UnknownDriver;
    }
    let any_gpu = Subject { arch: None, brand: None, ..subject.clone() };
    let holds_on = |subject: &Subject<'_>| !evaluate_all(expressions, subject).is_refused();
    let other_gpu = holds_on(&any_gpu)
        || candidates(expressions, &any_gpu, knowledge)
            .into_iter()
            .any(|driver| holds_on(&with_driver(&any_gpu, driver, knowledge)));
    if other_gpu { Change::Gpu } else { Change::Nothing }
}

/// The smallest driver, newer than the subject's, with which all requirements hold for its GPU: of those that
/// toolkits were released with, the first of each major version of CUDA, and those that the requirements name. What
/// is not known of the GPU counts as not met.
pub fn smallest_driver(
    expressions: &[Expression<'_>],
    subject: &Subject<'_>,
    knowledge: &Knowledge,
) -> Option<SmallestDriver> {
    let mut candidates = candidates(expressions, subject, knowledge);
    candidates.retain(|driver| subject.arch.is_none_or(|arch| knowledge.driver_supports(arch, driver) != Some(false)));
    let does = |driver: &DriverVersion| {
        evaluate_all(expressions, &with_driver(subject, driver.clone(), knowledge)) == Evaluation::Satisfied
    };
    let good: Vec<bool> = candidates.iter().map(does).collect();
    let version = candidates.iter().zip(&good).find(|(_, good)| **good)?.0.clone();
    let trailing = good.iter().rev().take_while(|good| **good).count();
    let onwards = candidates.get(candidates.len() - trailing).cloned();
    Some(SmallestDriver { version, onwards })
}

/// Oldest first, each once.
fn candidates(expressions: &[Expression<'_>], subject: &Subject<'_>, knowledge: &Knowledge) -> Vec<DriverVersion> {
    let terms = expressions.iter().flat_map(|e| &e.alternatives).flat_map(|a| &a.terms);
    let bounds = terms.filter_map(|term| match term {
        Term::Comparison { property: Property::Driver, value, .. } => value.parse::<DriverVersion>().ok(),
        _ => None,
    });
    let released = knowledge.toolkits.iter().map(|t| &t.driver).chain(knowledge.majors.iter().map(|m| &m.driver));
    let mut all: Vec<DriverVersion> =
        released.filter_map(|driver| driver.parse().ok()).chain(bounds.take(MOST_BOUNDS)).collect();
    all.retain(|driver| subject.driver.as_ref().is_none_or(|present| driver > present));
    all.sort();
    all.dedup();
    all
}

fn with_driver<'s>(subject: &Subject<'s>, driver: DriverVersion, knowledge: &Knowledge) -> Subject<'s> {
    let cuda = knowledge.offered_by(&driver).map(|answer| answer.value);
    Subject { cuda, driver: Some(driver), arch: subject.arch, brand: subject.brand }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;
    use crate::knowledge::require::parse;
    use proptest::prelude::*;

    fn on(driver: &str, arch: &str, brand: Option<&'static str>) -> Subject<'static> {
        let subject = Subject { arch: arch.parse().ok(), brand, ..Subject::default() };
        with_driver(&subject, driver.parse().unwrap(), &BUILT_IN)
    }

    fn of(text: &str, subject: &Subject<'_>) -> Option<(String, Change)> {
        let expressions = [parse(text).unwrap()];
        explain(&expressions, subject, &BUILT_IN).map(|e| (e.nearest.to_string(), e.change))
    }

    fn driver(version: &str, onwards: &str) -> Change {
        Change::Driver(SmallestDriver { version: version.parse().unwrap(), onwards: onwards.parse().ok() })
    }

    #[test]
    fn the_nearest_alternative_is_that_of_the_smallest_driver() {
        let listed = "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=tesla,driver>=525,driver<526 \
                      brand=tesla,driver>=535,driver<536";
        let v100 = on("530.30.02", "7.0", Some("Tesla"));
        let nearest = "brand=tesla,driver>=535,driver<536".to_owned();
        assert_eq!(of(listed, &v100), Some((nearest, driver("535", "550.54.14"))), "D047");
        let geforce = on("530.30.02", "8.9", Some("GeForce"));
        assert_eq!(of(listed, &geforce), Some(("cuda>=12.4".into(), driver("550.54.14", "550.54.14"))));
        assert_eq!(of(listed, &on("550.54.14", "8.9", None)), None);
    }

    #[test]
    fn it_is_the_driver_not_the_brand() {
        let gtx = on("390.77", "6.1", Some("GeForce"));
        let explained = of("cuda>=10.0 brand=tesla,driver>=384,driver<385", &gtx);
        assert_eq!(explained, Some(("cuda>=10.0".into(), driver("410.48", "410.48"))), "D049");
    }

    #[test]
    fn what_no_driver_changes_is_said() {
        let k80 = on("470.256.02", "3.7", Some("Tesla"));
        assert_eq!(of("cuda>=12.0", &k80).unwrap().1, Change::Gpu);
        assert_eq!(of("arch>=8.0", &on("550.54.14", "7.5", Some("Tesla"))).unwrap().1, Change::Gpu);
        assert_eq!(of("driver<470", &on("550.54.14", "8.9", None)).unwrap().1, Change::Nothing);
        assert_eq!(of("cuda>=10_1", &on("550.54.14", "8.9", None)).unwrap().1, Change::Nothing);
        assert_eq!(of("cuda>=14.0", &on("620.70.06", "9.0", None)).unwrap().1, Change::UnknownDriver);
    }

    #[test]
    fn the_failing_terms_are_those_of_the_nearest() {
        let expressions = [parse("cuda>=11.0").unwrap(), parse("driver>=535,driver<536,brand=tesla").unwrap()];
        let explained = explain(&expressions, &on("550.54.14", "8.9", Some("GeForce")), &BUILT_IN).unwrap();
        let failing: Vec<_> = explained.failing.iter().map(ToString::to_string).collect();
        assert_eq!(failing, ["driver<536", "brand=tesla"]);
        assert_eq!((explained.alternatives, explained.change), (1, Change::Nothing));
    }

    proptest! {
        #[test]
        fn the_smallest_driver_is_one_with_which_all_hold(text in "((cuda|driver)(>=|<|>|=)[1-6][0-9]?[0-9]?(\\.[0-9])?[ ,])*") {
            let expressions = [parse(&text).unwrap()];
            let subject = on("418.39", "7.5", Some("Tesla"));
            if let Some(smallest) = smallest_driver(&expressions, &subject, &BUILT_IN) {
                let there = with_driver(&subject, smallest.version.clone(), &BUILT_IN);
                prop_assert_eq!(evaluate_all(&expressions, &there), Evaluation::Satisfied);
                prop_assert!(smallest.onwards.is_none_or(|onwards| onwards >= smallest.version));
            }
            let _ = explain(&expressions, &subject, &BUILT_IN);
        }
    }
}
