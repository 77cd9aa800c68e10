//! An amount of memory as people write it.

/// `2GiB`, `512 MiB`, `2G`, `1500MB`, or bytes alone; `None`: it is none, or more than there can be.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (letter, rest) = unit.split_at(unit.chars().next().map_or(0, char::len_utf8));
    let power = ["", "k", "m", "g", "t"].iter().position(|known| *known == letter);
    let (base, power): (u64, usize) = match (power, rest) {
        (Some(power), "" | "i" | "ib") => (1024, power),
        (Some(power), "b") if power > 0 => (1000, power),
        (None, "") if letter == "b" => (1, 0),
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(base.checked_pow(u32::try_from(power).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn amounts() {
        for (text, expected) in [
            ("2GiB", Some(2 << 30)),
            ("512 MiB", Some(512 << 20)),
            ("2g", Some(2 << 30)),
            ("3Gi", Some(3 << 30)),
            ("1500MB", Some(1_500_000_000)),
            ("4096", Some(4096)),
            ("4096B", Some(4096)),
            ("0", Some(0)),
            ("", None),
            ("GiB", None),
            ("2 light years", None),
            ("2GiBs", None),
            ("-1", None),
            ("1.5GiB", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
