//! Parsing helpers for text formats: words, numbers, times.

/// Text that is parsed from the left. Each method returns `None` if the next text does not match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) const fn new(text: &'a [u8]) -> Words<'a> {
        Words { rest: text }
    }

    /// The remaining text, without leading blanks.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.trim_ascii_start()
    }

    /// The next word up to a blank.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.trim_ascii_start();
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    /// A word that is a decimal number.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        decimal(self.word()?)
    }

    /// Skips this word.
    #[inline]
    pub(crate) fn expect(&mut self, word: &[u8]) -> Option<()> {
        (self.word()? == word).then_some(())
    }
}

/// A decimal number.
#[inline]
pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0u64, |value, &letter| {
        let digit = letter.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// A 32-bit decimal number.
#[inline]
pub(crate) fn decimal_u32(text: &[u8]) -> Option<u32> {
    decimal(text)?.try_into().ok()
}

/// A number with decimals, in units of 10^-9. Further decimals are truncated.
#[inline]
pub(crate) fn decimal_nanos(text: &[u8]) -> Option<u64> {
    let (whole, decimals) = match text.iter().position(|&letter| letter == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let whole = if whole.is_empty() { 0 } else { decimal(whole)? };
    let mut nanos = 0;
    for index in 0..9 {
        nanos =
            nanos * 10 + u64::from(decimals.get(index).copied().unwrap_or(b'0').checked_sub(b'0').filter(|d| *d < 10)?);
    }
    if decimals.iter().any(|letter| !letter.is_ascii_digit()) {
        return None;
    }
    whole.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// A length in 512-byte sectors, converted to bytes.
#[inline]
pub(crate) fn sectors_as_bytes(text: &[u8]) -> Option<u32> {
    u32::try_from(decimal(text)?.checked_mul(512)?).ok()
}

/// The text between the first opening and the last closing bracket.
pub(crate) fn in_brackets(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii();
    let end = memchr::memrchr(b']', text)?;
    text.strip_prefix(b"[").and_then(|text| text.get(..end.checked_sub(1)?))
}
