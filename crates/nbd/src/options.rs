//! Parsing the data of options.
//!
//! Used by: `handshake`.
//! Tests: `crates/nbd/tests/handshake.rs`.

use crate::fields::Fields;
use crate::wire::STRING_BYTES_MAX;

/// An error in the data of an option, as the text sent to the client.
pub(crate) type OptionError = &'static str;

/// The data of INFO and GO.
pub(crate) struct RequestedExport<'a> {
    pub name: &'a str,
    /// The requested types of information.
    types: &'a [u8],
}

impl<'a> RequestedExport<'a> {
    pub fn read(data: &'a [u8]) -> Result<RequestedExport<'a>, OptionError> {
        let mut fields = Fields(data);
        let name = string(&mut fields)?;
        let count = fields.u16().ok_or("the number of information requests is missing")?;
        let types = fields.bytes(usize::from(count) * 2).ok_or("fewer information requests than announced")?;
        if !fields.is_empty() {
            return Err("more data than announced");
        }
        Ok(RequestedExport { name, types })
    }

    pub fn wants(&self, info: u16) -> bool {
        self.types.chunks_exact(2).any(|pair| pair == info.to_be_bytes())
    }
}

/// The data of the two options for metadata contexts.
pub(crate) struct Queries<'a> {
    pub name: &'a str,
    pub count: u32,
    queries: &'a [u8],
}

impl<'a> Queries<'a> {
    pub fn read(data: &'a [u8]) -> Result<Queries<'a>, OptionError> {
        let mut fields = Fields(data);
        let name = string(&mut fields)?;
        let count = fields.u32().ok_or("the number of queries is missing")?;
        let queries = fields.0;
        for _ in 0..count {
            string(&mut fields)?;
        }
        if !fields.is_empty() {
            return Err("more data than announced");
        }
        Ok(Queries { name, count, queries })
    }

    /// The queries in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> {
        let mut fields = Fields(self.queries);
        std::iter::from_fn(move || string(&mut fields).ok())
    }
}

/// The name in EXPORT_NAME, which is its whole data.
pub(crate) fn export_name_of_data(data: &[u8]) -> Result<&str, OptionError> {
    validate(data)
}

/// A string with a length prefix.
fn string<'a>(fields: &mut Fields<'a>) -> Result<&'a str, OptionError> {
    let length = fields.u32().ok_or("a string is missing")?;
    let bytes = usize::try_from(length).ok().and_then(|length| fields.bytes(length));
    validate(bytes.ok_or("a string is longer than the option")?)
}

fn validate(bytes: &[u8]) -> Result<&str, OptionError> {
    if bytes.len() > STRING_BYTES_MAX {
        return Err("a string is longer than 4096 bytes");
    }
    if bytes.contains(&0) {
        return Err("a string contains a NUL");
    }
    std::str::from_utf8(bytes).map_err(|_| "a string is not UTF-8")
}
