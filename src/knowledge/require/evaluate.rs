//! Whether a requirement holds, as `dsl.c` finds it.

use super::expression::{Expression, Operator, Property, Term};
use crate::model::{ComputeCapability, CudaVersion, DriverVersion};

/// A term that is false is put together with blanks in a buffer of this size for the message, and invalid if it
/// does not fit (`EXPR_MAX`).
const BUFFER: usize = 128;

/// What a requirement is held against. What is `None` is not known; to NVIDIA's tool, where it has no answer, the
/// same: a term about it counts as true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The CUDA that the driver offers, `12.2`.
    pub cuda: Option<CudaVersion>,
    /// The driver's version.
    pub driver: Option<DriverVersion>,
    /// The GPU's compute capability.
    pub arch: Option<ComputeCapability>,
    /// The GPU's brand, in libnvidia-container's words: `Tesla`, `GeForce`, …, `Unknown`.
    pub brand: Option<&'a str>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation<'a> {
    /// It holds.
    Satisfied,
    /// It holds if a term about this property counts as true, which is not known here; if it does not, the outcome
    /// may be another.
    SatisfiedUnlessUnknown(Property),
    /// It does not hold.
    Unsatisfied,
    /// The evaluation got to a term that it cannot read.
    Invalid(Term<'a>),
}

impl Evaluation<'_> {
    /// NVIDIA's tool would refuse, whatever is not known.
    pub fn is_refused(self) -> bool {
        matches!(self, Self::Unsatisfied | Self::Invalid(_))
    }
}

/// Evaluates one requirement.
pub fn evaluate<'a>(expression: &Expression<'a>, subject: &Subject<'_>) -> Evaluation<'a> {
    // the first alternative that holds if what is not known does
    let mut open = None;
    let mut decided = Evaluation::Satisfied;
    for alternative in &expression.alternatives {
        if alternative.terms.is_empty() {
            // commas alone end it and leave what was found before
            break;
        }
        match all(&alternative.terms, subject) {
            found @ (Evaluation::Satisfied | Evaluation::Invalid(_)) => {
                decided = found;
                break;
            }
            found @ Evaluation::SatisfiedUnlessUnknown(_) => {
                open = open.or(Some(found));
                decided = Evaluation::Unsatisfied;
            }
            Evaluation::Unsatisfied => decided = Evaluation::Unsatisfied,
        }
    }
    // what decided after an open alternative decides only if that one is false
    if decided == Evaluation::Satisfied { decided } else { open.unwrap_or(decided) }
}

/// One alternative. Where a term about something unknown stands before an invalid one, it is false or invalid: it
/// does not hold.
fn all<'a>(terms: &[Term<'a>], subject: &Subject<'_>) -> Evaluation<'a> {
    let mut open = None;
    for term in terms {
        match holds(term, subject) {
            Holds::Yes => {}
            Holds::No => return Evaluation::Unsatisfied,
            Holds::Unknown(property) => open = open.or(Some(property)),
            Holds::Invalid if open.is_some() => return Evaluation::Unsatisfied,
            Holds::Invalid => return Evaluation::Invalid(*term),
        }
    }
    open.map_or(Evaluation::Satisfied, Evaluation::SatisfiedUnlessUnknown)
}

/// Evaluates all that a container declares: the first that does not hold, or the first that is open.
pub fn evaluate_all<'a, 'e>(
    expressions: impl IntoIterator<Item = &'e Expression<'a>>,
    subject: &Subject<'_>,
) -> Evaluation<'a>
where
    'a: 'e,
{
    let mut open = Evaluation::Satisfied;
    for expression in expressions {
        match evaluate(expression, subject) {
            unless @ Evaluation::SatisfiedUnlessUnknown(_) if open == Evaluation::Satisfied => open = unless,
            Evaluation::Satisfied | Evaluation::SatisfiedUnlessUnknown(_) => {}
            refused => return refused,
        }
    }
    open
}

/// Whether one term holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    Unknown(Property),
    Invalid,
}

pub(super) fn holds(term: &Term<'_>, subject: &Subject<'_>) -> Holds {
    let Term::Comparison { property, operator, value } = *term else { return Holds::Invalid };
    let version = match property {
        Property::Cuda => subject.cuda.as_ref().map(|v| compare(v.as_str(), operator, value)),
        Property::Driver => subject.driver.as_ref().map(|v| compare(v.as_str(), operator, value)),
        Property::Arch => subject.arch.map(|arch| compare(&arch.to_string(), operator, value)),
        Property::Brand => {
            subject.brand.map(|brand| Some(brand.eq_ignore_ascii_case(value) == (operator == Operator::Equal)))
        }
    };
    match version {
        None => Holds::Unknown(property),
        Some(None) => Holds::Invalid,
        Some(Some(true)) => Holds::Yes,
        Some(Some(false)) => {
            let printed = property.name().len() + operator.sign().len() + value.len() + 2;
            if printed >= BUFFER { Holds::Invalid } else { Holds::No }
        }
    }
}

/// `dsl_compare_version`: number by number; what one has more is nothing if it is dots and zeros. `None`: not
/// versions.
fn compare(ours: &str, operator: Operator, value: &str) -> Option<bool> {
    let is_version = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !is_version(ours) || !is_version(value) {
        return None;
    }
    let (mut x, mut y) = (ours, value);
    while !x.is_empty() && !y.is_empty() {
        let (n, m) = (number(&mut x)?, number(&mut y)?);
        if n != m {
            return Some(match operator {
                Operator::Equal => false,
                Operator::NotEqual => true,
                Operator::Less | Operator::LessOrEqual => n < m,
                Operator::Greater | Operator::GreaterOrEqual => n > m,
            });
        }
    }
    let more = |text: &str| !text.trim_start_matches(['.', '0']).is_empty();
    let (x, y) = (more(x), more(y));
    Some(match operator {
        Operator::Equal => !x && !y,
        Operator::NotEqual => x || y,
        Operator::LessOrEqual => !x,
        Operator::GreaterOrEqual => !y,
        Operator::Less => !x && y,
        Operator::Greater => x && !y,
    })
}

/// The number that a text begins with, and the text behind it and its dots. The largest number of C's counts as an
/// overflow.
fn number(text: &mut &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest.trim_start_matches('.');
    digits.parse().ok().filter(|n| *n != u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::require::parse;
    use proptest::prelude::*;

    fn subject(cuda: &str, driver: &str, arch: &str, brand: Option<&'static str>) -> Subject<'static> {
        Subject { cuda: cuda.parse().ok(), driver: driver.parse().ok(), arch: arch.parse().ok(), brand }
    }

    fn of(text: &str, subject: &Subject<'_>) -> String {
        match evaluate(&parse(text).unwrap(), subject) {
            Evaluation::Satisfied => "yes".to_owned(),
            Evaluation::SatisfiedUnlessUnknown(property) => property.name().to_owned(),
            Evaluation::Unsatisfied => "no".to_owned(),
            Evaluation::Invalid(term) => format!("invalid {term}"),
        }
    }

    #[test]
    fn versions_are_compared_number_by_number() {
        for (ours, sign, value, expected) in [
            ("470.57", "<", "471", Some(true)),
            ("471.0", "=", "471", Some(true)),
            ("471", "=", "471.0.00", Some(true)),
            ("471.1", ">", "471", Some(true)),
            ("471", "<", "471.0.1", Some(true)),
            ("12.10", ">=", "12.9", Some(true)),
            ("12.2", ">=", "12..2", Some(true)),
            ("12.2", "!=", "12.2", Some(false)),
            ("12.2", ">=", "12.2x", None),
            ("12.2", ">=", ".12", None),
            ("12.2", ">=", "18446744073709551615", None),
            ("12.2", ">=", "11.18446744073709551615", Some(true)),
        ] {
            let text = format!("driver{sign}{value}");
            let Term::Comparison { operator, .. } = parse(&text).unwrap().alternatives[0].terms[0] else { panic!() };
            assert_eq!(compare(ours, operator, value), expected, "{ours} {text}");
        }
    }

    #[test]
    fn it_stops_where_the_outcome_is_settled() {
        let t4 = subject("12.4", "550.54.15", "7.5", Some("Tesla"));
        for (text, expected) in [
            ("cuda>=12.4 foo>=1", "yes"),
            ("cuda>=12.5 foo>=1", "invalid foo>=1"),
            ("cuda>=12.5,foo>=1", "no"),
            ("cuda>=12.4,foo>=1", "invalid foo>=1"),
            ("foo=1 cuda>=12.4", "invalid foo=1"),
            ("", "yes"),
            (" , cuda>=13", "yes"),
            ("cuda>=13 , cuda>=12", "no"),
            ("brand=tesla,arch>=7.5", "yes"),
            ("BRAND!=tesla", "no"),
            ("driver!550", "yes"),
            ("cuda>=10_1", "invalid cuda>=10_1"),
        ] {
            assert_eq!(of(text, &t4), expected, "{text}");
        }
        let long = format!("brand={}", "x".repeat(130));
        assert!(of(&long, &t4).starts_with("invalid"), "its message would not fit");
        assert_eq!(of(&long.replace('=', "!="), &t4), "yes");
    }

    #[test]
    fn what_is_not_known_decides_nothing_by_itself() {
        let unknown = subject("12.2", "535.161.08", "", None);
        for (text, expected) in [
            ("cuda>=12.0 brand=tesla", "yes"),
            ("brand=tesla cuda>=12.0", "yes"),
            ("cuda>=12.8 brand=tesla,driver>=535,driver<536", "brand"),
            ("cuda>=12.8 brand=tesla,driver>=550,driver<551", "no"),
            ("brand=tesla foo=1", "brand"),
            ("brand=tesla,foo=1", "no"),
            ("arch>=8.0,brand=tesla", "arch"),
            ("brand=tesla ,", "brand"),
        ] {
            assert_eq!(of(text, &unknown), expected, "{text}");
        }
        assert_eq!(of("cuda>=99,driver>=x", &Subject::default()), "cuda");
    }

    #[test]
    fn all_must_hold() {
        let t4 = subject("12.4", "550.54.15", "7.5", None);
        let of = |texts: &[&'static str]| {
            let all: Vec<_> = texts.iter().map(|t| parse(t).unwrap()).collect();
            evaluate_all(&all, &t4)
        };
        assert_eq!(of(&[]), Evaluation::Satisfied);
        assert_eq!(of(&["cuda>=12", "brand=x"]), Evaluation::SatisfiedUnlessUnknown(Property::Brand));
        assert_eq!(of(&["brand=x", "cuda>=13", "foo=1"]), Evaluation::Unsatisfied);
        assert_eq!(of(&["foo=1", "cuda>=13"]), Evaluation::Invalid(Term::Unreadable("foo=1")));
    }

    proptest! {
        #[test]
        fn any_text_is_evaluated_without_a_panic(text in "\\PC{0,60}|(cuda|driver|arch|brand|[<>=!, .0-9x])*") {
            if let Ok(expression) = parse(&text) {
                let some = subject("12.4", "550.54.15", "7.5", None);
                let _ = evaluate(&expression, &some);
                let _ = evaluate(&expression, &Subject::default());
                let printed = expression.to_string();
                let again = parse(&printed).unwrap();
                prop_assert_eq!(evaluate(&again, &some), evaluate(&expression, &some));
            }
        }

        #[test]
        fn lower_bounds_hold_on_every_newer_driver(
            bounds in proptest::collection::vec((prop_oneof![Just("cuda"), Just("driver")], any::<bool>(), 1u32..700, 0u32..100), 1..5),
            driver in (300u32..700, 0u32..100), newer in (0u32..50, 0u32..100),
        ) {
            let text: Vec<_> = bounds.iter().map(|(name, open, a, b)| {
                let a = if *name == "cuda" { a % 14 } else { *a };
                format!("{name}{}{a}.{b}", if *open { ">" } else { ">=" })
            }).collect();
            let text = text.join(if driver.1 % 2 == 0 { " " } else { "," });
            let expression = parse(&text).unwrap();
            let on = |driver: String| {
                let driver: DriverVersion = driver.parse().unwrap();
                let cuda = crate::knowledge::BUILT_IN.offered_by(&driver).map(|a| a.value);
                evaluate(&expression, &Subject { cuda, driver: Some(driver), ..Subject::default() })
            };
            let (old, new) = (on(format!("{}.{}", driver.0, driver.1)), on(format!("{}.{}", driver.0 + newer.0, driver.1 + newer.1)));
            prop_assert!(old != Evaluation::Satisfied || new == Evaluation::Satisfied, "{} {:?} {:?}", text, old, new);
        }
    }
}
