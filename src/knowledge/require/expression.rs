//! The grammar: blanks part alternatives, commas part the terms of one, a term is a name, an operator, a value.
//!
//! No parentheses, no quotes, no blanks within a term. `dsl.c` goes through the text from left to right and stops
//! where the outcome is settled, so that a term it cannot read matters only where it gets there. Hence such a term
//! is kept as it stands, and nothing here fails but for size: the text is the image's, and may be anything.

use std::fmt;

/// Longer texts are not read. The longest that NVIDIA has published has 2,500 bytes.
const MOST_BYTES: usize = 16 << 10;
/// Nor are those with more terms.
const MOST_TERMS: usize = 1024;

/// The text is larger than anything that is meant as a requirement; what it says is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// A requirement: it holds if one of its alternatives does, or if there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression<'a> {
    /// In the order of the text.
    pub alternatives: Vec<Alternative<'a>>,
}

/// It holds if all its terms do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative<'a> {
    /// In the order of the text. Empty where the text has commas alone: that ends the evaluation and decides
    /// nothing.
    pub terms: Vec<Term<'a>>,
}

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term<'a> {
    /// A property of the machine against a value.
    Comparison {
        /// What is compared.
        property: Property,
        /// How.
        operator: Operator,
        /// With what: a version, or a brand's name.
        value: &'a str,
    },
    /// No name, operator and value that belong together: where it is reached, the whole expression is invalid.
    Unreadable(&'a str),
}

/// What a term speaks of. Case does not matter in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// The CUDA that the driver offers.
    Cuda,
    /// The driver's version.
    Driver,
    /// The GPU's compute capability.
    Arch,
    /// The GPU's brand.
    Brand,
}

impl Property {
    const ALL: [Self; 4] = [Self::Cuda, Self::Driver, Self::Arch, Self::Brand];

    /// Its name in the text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Driver => "driver",
            Self::Arch => "arch",
            Self::Brand => "brand",
        }
    }

    /// It is the GPU's, not the driver's.
    pub const fn is_of_gpu(self) -> bool {
        matches!(self, Self::Arch | Self::Brand)
    }
}

/// How a property is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Operator {
    /// In the order in which `dsl.c` tries them.
    const ALL: [Self; 6] =
        [Self::Equal, Self::NotEqual, Self::Less, Self::LessOrEqual, Self::Greater, Self::GreaterOrEqual];

    /// As it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// Reads a requirement.
pub fn parse(text: &str) -> Result<Expression<'_>, TooLarge> {
    if text.len() > MOST_BYTES {
        return Err(TooLarge);
    }
    let mut terms = 0;
    let alternatives = text
        .split(' ')
        .filter(|alternative| !alternative.is_empty())
        .map(|alternative| {
            let terms_of: Vec<Term<'_>> = alternative.split(',').filter(|t| !t.is_empty()).map(term).collect();
            terms += terms_of.len();
            Alternative { terms: terms_of }
        })
        .collect();
    if terms > MOST_TERMS { Err(TooLarge) } else { Ok(Expression { alternatives }) }
}

fn term(text: &str) -> Term<'_> {
    comparison(text).unwrap_or(Term::Unreadable(text))
}

fn comparison(text: &str) -> Option<Term<'_>> {
    let is_sign = |c: char| "<>=!".contains(c);
    let (name, rest) = text.split_at(text.find(is_sign)?);
    let (sign, value) = rest.split_at(rest.find(|c| !is_sign(c))?);
    // by prefix: a lone `!` is `!=`
    let operator = Operator::ALL.into_iter().find(|operator| operator.sign().starts_with(sign))?;
    let property = Property::ALL.into_iter().find(|property| name.eq_ignore_ascii_case(property.name()))?;
    let ordered = !matches!(operator, Operator::Equal | Operator::NotEqual);
    if property == Property::Brand && ordered {
        return None;
    }
    Some(Term::Comparison { property, operator, value })
}

impl fmt::Display for Expression<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, alternative) in self.alternatives.iter().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{alternative}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Alternative<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str(",");
        }
        for (place, term) in self.terms.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            write!(f, "{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Comparison { property, operator, value } => {
                write!(f, "{}{}{value}", property.name(), operator.sign())
            }
            Self::Unreadable(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_read_is_printed_in_one_form() {
        for (text, printed) in [
            ("cuda>=12.4", "cuda>=12.4"),
            ("CUDA>=12.3  BRAND=Tesla,,driver<471 ", "cuda>=12.3 brand=Tesla,driver<471"),
            ("driver!470 , foo>=1", "driver!=470 , foo>=1"),
            ("cuda==12 cuda>= >=1 brand>x \u{fc}", "cuda==12 cuda>= >=1 brand>x \u{fc}"),
            ("", ""),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), printed, "{text:?}");
        }
    }

    #[test]
    fn what_no_name_operator_and_value_make_is_kept_unread() {
        for text in ["cuda", "cuda>=", ">=1", "cuda==1", "cuda=>1", "foo=1", "brand>=tesla", "brand<x", "\tcuda>=1"] {
            assert_eq!(parse(text).unwrap().alternatives[0].terms, [Term::Unreadable(text)], "{text:?}");
        }
        let mixed = parse("driver>=x").unwrap();
        assert!(matches!(mixed.alternatives[0].terms[0], Term::Comparison { value: "x", .. }), "its value comes later");
    }

    #[test]
    fn what_is_too_large_to_be_meant_is_not_read() {
        assert_eq!(parse(&"x".repeat(MOST_BYTES + 1)), Err(TooLarge));
        assert_eq!(parse(&"x ".repeat(MOST_TERMS + 1)), Err(TooLarge));
        assert!(parse(&"x ".repeat(MOST_TERMS)).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_parse_and_print_agree(text in "\\PC{0,60}|[a-dCUDA<>=!, .0-9]{0,60}") {
            let read = parse(&text).unwrap();
            let printed = read.to_string();
            let again = parse(&printed).unwrap();
            prop_assert_eq!(&again, &read);
            prop_assert_eq!(again.to_string(), printed);
        }
    }
}
