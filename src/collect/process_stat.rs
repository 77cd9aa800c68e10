//! What the kernel says of a process in one line, `/proc/PID/stat` (proc(5)).

use std::time::Duration;

/// The line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat<'a> {
    /// What the kernel calls it, which may be anything.
    pub(super) name: &'a str,
    /// `R` runs or wants to, `D` sleeps and cannot be woken, `Z` has ended.
    pub(super) state: &'a str,
    /// When it started, in ticks of a hundredth of a second since the machine's start.
    pub(super) started: u64,
    /// How long it has run.
    pub(super) ran: Duration,
}

impl<'a> Stat<'a> {
    /// `None`: it is no such line.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let (before, behind) = line.rsplit_once(") ")?;
        let (_, name) = before.split_once('(')?;
        // the state is the third field of all
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
        Some(Self {
            name,
            state: fields.first()?,
            started: number(22)?,
            ran: Duration::from_millis(number(14)?.saturating_add(number(15)?).saturating_mul(10)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_anything() {
        let numbers: Vec<String> = (4..=24).map(|n| n.to_string()).collect();
        let line = format!("7 (a) R (b)) D {}\n", numbers.join(" "));
        let wanted = Stat { name: "a) R (b)", state: "D", started: 22, ran: Duration::from_millis(290) };
        assert_eq!(Stat::parse(&line), Some(wanted));
        // of a machine that is laid out it is what somebody wrote
        let most = format!("7 (a) D {}", vec![u64::MAX.to_string(); 20].join(" "));
        assert!(Stat::parse(&most).is_some());
        assert_eq!((Stat::parse("7 (a) D 4 5"), Stat::parse("")), (None, None));
    }
}
