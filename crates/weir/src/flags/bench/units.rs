//! Sizes as they are typed.

const SIZE_UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// A size as it is written in the configuration: `512B`, `50kB`, `5MB`, `1GiB`; or a number of
/// bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number
        .parse()
        .map_err(|_| "a size is a whole number and a unit: 512B, 50kB, 5MB, 1GiB".to_owned())?;
    let unit = if unit.is_empty() { "B" } else { unit };
    let factor = SIZE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let Some(factor) = factor else {
        return Err("units are B, kB, MB, GB (of 1000) and KiB, MiB, GiB (of 1024)".to_owned());
    };
    number.checked_mul(*factor).ok_or_else(|| "larger than Weir can count".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read_as_in_the_configuration() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("50kB"), Ok(50_000));
        assert_eq!(size("5MiB"), Ok(5 << 20));
        for wrong in ["", "kB", "-1B", "1.5MB", "5mb", "99999999999999999GB", "5 MB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
