//! Expands `${VARIABLE}` and the reserved words `$ncpus`, `$pagesize` and `$mb_memory`.

use std::borrow::Cow;

use crate::environment::Environment;
use crate::error::quoted;
use crate::values::Refusal;

/// Replaces variables and reserved words in `value`. As in fio, a value with a reserved word may be an arithmetic
/// expression: `size=2*$mb_memory`. The value of a variable is not expanded again.
pub(super) fn expand<'v>(value: &'v str, environment: &Environment<'_>) -> Result<Cow<'v, str>, Refusal> {
    if !value.contains('$') {
        return Ok(Cow::Borrowed(value));
    }
    let mut text = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            return Err(Refusal::new("\"${\" without \"}\""));
        };
        let name = &rest[start + 2..start + length];
        let Some(content) = (environment.variable)(name) else {
            let refusal = Refusal::new(format!("the environment variable {} is not set", quoted(name)));
            return Err(refusal.with_hint("set it; it may be empty"));
        };
        text.push_str(&rest[..start]);
        text.push_str(&content);
        rest = &rest[start + length + 1..];
        if text.len() > LENGTH_MAX {
            return Err(Refusal::new("the value is too long after its variables are replaced"));
        }
    }
    text.push_str(rest);
    replace_words(text, environment).map(Cow::Owned)
}

/// Maximum length of a value after replacement, in bytes.
const LENGTH_MAX: usize = 1 << 20;

fn replace_words(mut text: String, environment: &Environment<'_>) -> Result<String, Refusal> {
    let words = [
        ("$ncpus", u64::from(environment.cpus)),
        ("$pagesize", environment.page_bytes),
        ("$mb_memory", environment.memory_mib),
    ];
    let mut replaced = false;
    for (word, number) in words {
        if text.contains(word) {
            text = text.replace(word, &number.to_string());
            replaced = true;
        }
    }
    if replaced && is_expression(&text) {
        let result = sum(&mut text.as_str()).ok_or_else(|| {
            Refusal::new(format!("{} cannot be computed", quoted(&text)))
                .with_hint("whole numbers, + - * / and a result from 0 to 2^64 - 1")
        })?;
        text = result.to_string();
    }
    Ok(text)
}

fn is_expression(text: &str) -> bool {
    text.contains(['+', '-', '*', '/']) && text.bytes().all(|b| b.is_ascii_digit() || b"+-*/ ".contains(&b))
}

fn sum(text: &mut &str) -> Option<u64> {
    let mut total = product(text)?;
    loop {
        match next_operator(text, b"+-") {
            Some(b'+') => total = total.checked_add(product(text)?)?,
            Some(_) => total = total.checked_sub(product(text)?)?,
            None => return text.trim_start().is_empty().then_some(total),
        }
    }
}

fn product(text: &mut &str) -> Option<u64> {
    let mut total = operand(text)?;
    loop {
        match next_operator(text, b"*/") {
            Some(b'*') => total = total.checked_mul(operand(text)?)?,
            Some(_) => total = total.checked_div(operand(text)?)?,
            None => return Some(total),
        }
    }
}

fn operand(text: &mut &str) -> Option<u64> {
    let trimmed = text.trim_start();
    let end = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    *text = &trimmed[end..];
    trimmed[..end].parse().ok()
}

fn next_operator(text: &mut &str, operators: &[u8]) -> Option<u8> {
    let trimmed = text.trim_start();
    let operator = *trimmed.as_bytes().first()?;
    if !operators.contains(&operator) {
        return None;
    }
    *text = &trimmed[1..];
    Some(operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(value: &str) -> Result<String, Refusal> {
        let variable = |name: &str| match name {
            "N" => Some("3".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${N}".to_owned()),
            _ => None,
        };
        let environment = Environment { variable: &variable, cpus: 8, ..Environment::empty() };
        expand(value, &environment).map(Cow::into_owned)
    }

    #[test]
    fn variables_are_replaced_anywhere_and_once() {
        for (value, text) in [
            ("${N}2k", "32k"),
            ("a${N}${N}b${EMPTY}", "a33b"),
            ("$N", "$N"),
            ("${NESTED}", "${N}"),
            ("$ncpus", "8"),
            ("$jobname.$jobnum", "$jobname.$jobnum"),
        ] {
            assert_eq!(expanded(value).as_deref(), Ok(text));
        }
    }

    #[test]
    fn reserved_words_may_be_computed_with() {
        assert_eq!(expanded("2*$ncpus+1").as_deref(), Ok("17"));
        assert_eq!(expanded("1 + 2 * $ncpus / 4").as_deref(), Ok("5"));
        assert!(expanded("$ncpus/0").is_err() && expanded("1-$ncpus").is_err() && expanded("$ncpus**2").is_err());
    }

    #[test]
    fn unset_variables_and_open_braces_are_refused() {
        assert!(expanded("${UNSET}").unwrap_err().message.contains("UNSET"));
        assert!(expanded("${N").is_err());
        assert!(expanded("${}").is_err());
    }
}
