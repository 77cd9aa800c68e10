//! A fact that was seen, or the reason why it was not.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a fact is not known: which one, where it was looked for, and what stood in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// The fact's name as in the JSON report, for example `host.gpus`.
    pub fact: String,
    /// Where it was looked for: a path, a system call, a program's interface.
    pub source: String,
    /// What stood in the way, in a few words.
    pub reason: String,
}

impl Unknown {
    /// An unseen fact.
    pub fn new(fact: impl Into<String>, source: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { fact: fact.into(), source: source.into(), reason: reason.into() }
    }
}

impl Unknown {
    /// The fact was left out by the one who asks: the check that needs it was not asked, and counts as neither known
    /// nor unknown.
    pub fn was_not_asked(&self) -> bool {
        matches!(self.reason.as_str(), NOT_STATED | ONLY_CONFIGURATION)
    }
}

/// Where a reader looked and what stood in its way; it does not know which fact that leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// A path, a system call.
    pub source: String,
    /// What stood in the way, in a few words.
    pub reason: String,
}

impl Unseen {
    /// Something that could not be read.
    pub fn new(source: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { source: source.into(), reason: reason.into() }
    }

    /// The fact that this leaves open.
    pub fn leaves_open(self, fact: impl Into<String>) -> Unknown {
        Unknown { fact: fact.into(), source: self.source, reason: self.reason }
    }
}

/// The reason of a fact that was left out to save time, and is looked at as soon as a check names it.
pub const LEFT_OUT: &str = "not looked at by the hook";

/// The reason of a fact of a machine that is stated, not read: nobody stated it. A check that needs it was not asked.
pub const NOT_STATED: &str = "not stated";

/// The reason for a kernel's log that lies in no file: a machine with a journal alone.
pub const NO_LOG_FILE: &str = "no log file of the kernel's is there";

/// The reason for an image's files where only its configuration was to be looked at: what needs them was not asked.
pub const ONLY_CONFIGURATION: &str = "only its configuration was looked at";

/// A fact, as far as it could be seen.
///
/// Absence is knowledge: "no such module" is `Known(None)`. `Unknown` means that nobody could look,
/// and a check that needs the fact ends as unknown too, by `?` on [`Observed::known`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Observed<T> {
    /// It was seen.
    Known(T),
    /// It could not be seen.
    Unknown(Unknown),
}

impl<T> Observed<T> {
    /// An unseen fact.
    pub fn unknown(fact: impl Into<String>, source: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Unknown(Unknown::new(fact, source, reason))
    }

    /// The fact, or the reason why it is not known, ready for `?`.
    pub fn known(&self) -> Result<&T, Unknown> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Unknown(unknown) => Err(unknown.clone()),
        }
    }

    /// The fact if it was seen, and `None` if it could not be; an error only where nobody has looked yet.
    /// Whoever asked the check then looks, and asks it again.
    pub fn looked_at(&self) -> Result<Option<&T>, Unknown> {
        match self {
            Self::Known(value) => Ok(Some(value)),
            Self::Unknown(unknown) if unknown.reason == LEFT_OUT => Err(unknown.clone()),
            Self::Unknown(_) => Ok(None),
        }
    }

    /// The same, borrowed.
    pub fn as_ref(&self) -> Observed<&T> {
        match self {
            Self::Known(value) => Observed::Known(value),
            Self::Unknown(unknown) => Observed::Unknown(unknown.clone()),
        }
    }

    /// The fact, made into another.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Self::Known(value) => Observed::Known(make(value)),
            Self::Unknown(unknown) => Observed::Unknown(unknown),
        }
    }

    /// The fact if it was seen. For explanations, never for verdicts.
    pub fn seen(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T> From<Result<T, Unknown>> for Observed<T> {
    fn from(result: Result<T, Unknown>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(unknown) => Self::Unknown(unknown),
        }
    }
}

impl<T: Default> Default for Observed<T> {
    fn default() -> Self {
        Self::Known(T::default())
    }
}

/// In the report an unseen fact is `null`; the reason stands in the report's `unknown` list.
impl<T: Serialize> Serialize for Observed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Unknown(_) => serializer.serialize_none(),
        }
    }
}

/// A fact that is `null`, or is not there, was not seen; which one it is, only the reader knows.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Observed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seen = Option::deserialize(deserializer)?;
        Ok(seen.map_or_else(|| Self::unknown("", "", ""), Self::Known))
    }
}

/// A list of which single elements may have been unreadable.
///
/// One word that a newer engine knows and this program does not must not lose the other elements:
/// what is there can be used, and only a statement about what is *not* there needs the whole list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<T> {
    /// The elements that could be read, in their order.
    pub items: Vec<T>,
    /// The others, each with its place and reason.
    pub unread: Vec<Unknown>,
}

impl<T> Parts<T> {
    /// A list that was read completely.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, unread: Vec::new() }
    }

    /// The list, if every element of it was readable: needed to say that something is absent.
    pub fn all(&self) -> Result<&[T], Unknown> {
        match self.unread.first() {
            None => Ok(&self.items),
            Some(unknown) => Err(unknown.clone()),
        }
    }
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self::whole(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(fact: &Observed<u32>) -> Result<bool, Unknown> {
        Ok(*fact.known()? > 1)
    }

    #[test]
    fn a_question_mark_on_an_unseen_fact_carries_its_reason_out() {
        assert_eq!(judged(&Observed::Known(2)), Ok(true));
        let unseen = Observed::unknown("host.gpus", "/proc", "not mounted");
        assert_eq!(judged(&unseen).unwrap_err().reason, "not mounted");
    }

    #[test]
    fn a_fact_that_was_left_out_is_asked_for_and_one_that_cannot_be_seen_is_not() {
        assert_eq!(Observed::Known(2).looked_at(), Ok(Some(&2)));
        assert_eq!(Observed::<u32>::unknown("host.cdi", "/etc/cdi", "refused").looked_at(), Ok(None));
        assert!(Observed::<u32>::unknown("host.cdi", "/etc/cdi", LEFT_OUT).looked_at().is_err());
    }

    #[test]
    fn absence_needs_the_whole_list() {
        let mut list = Parts::whole(vec![1, 2]);
        assert_eq!(list.all().map(<[_]>::len), Ok(2));
        list.unread.push(Unknown::new("container.devices", "/linux/devices/2", "no type"));
        assert!(list.all().is_err());
        assert_eq!(list.items, [1, 2]);
    }

    #[test]
    fn what_nobody_asked_for_is_told_from_what_nobody_saw() {
        let because = |reason: &str| Unknown::new("host.gpus", "the command line", reason).was_not_asked();
        assert_eq!((because(NOT_STATED), because(ONLY_CONFIGURATION), because("refused")), (true, true, false));
    }

    #[test]
    fn an_unseen_fact_is_null_in_the_report() {
        let unseen: Observed<u32> = Observed::unknown("a", "b", "c");
        assert_eq!(serde_json::to_value(&unseen).unwrap(), serde_json::Value::Null);
        let read: Observed<u32> = serde_json::from_str("null").unwrap();
        assert!(read.known().is_err());
        assert_eq!(serde_json::from_str::<Observed<u32>>("3").unwrap(), Observed::Known(3));
    }
}
