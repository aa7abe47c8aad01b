//! JSON files that notice damage: the second line holds a CRC32 of all the others.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::disk;
use super::error::StoreError;

const OPEN: &str = "{\n";
const KEY: &str = "  \"checksum\": \"";
const END: &str = "\",\n";

/// Writes `value`, a structure with fields, into the file `name` of `dir`, whole or not at all.
pub(super) fn write<T: Serialize>(dir: &Path, name: &str, value: &T) -> Result<(), StoreError> {
    let path = dir.join(name);
    let text = serde_json::to_string_pretty(value).map_err(|e| StoreError::damaged(&path, e))?;
    let body = text.strip_prefix(OPEN).unwrap_or(&text);
    let checksum = crc32fast::hash(body.as_bytes());
    let text = format!("{OPEN}{KEY}{checksum:08x}{END}{body}\n");
    disk::replace(dir, name, text.as_bytes())
}

/// What was written; none if there is no such file.
pub(super) fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>, StoreError> {
    let path = dir.join(name);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(StoreError::io(path, e)),
    };
    let parts = String::from_utf8(bytes).ok().and_then(|text| {
        let rest = text.strip_prefix(OPEN)?.strip_prefix(KEY)?;
        let (checksum, body) = rest.split_once(END)?;
        let body = body.strip_suffix('\n')?;
        let checksum = u32::from_str_radix(checksum, 16).ok()?;
        (crc32fast::hash(body.as_bytes()) == checksum).then(|| format!("{OPEN}{body}"))
    });
    let text = parts.ok_or_else(|| StoreError::damaged(&path, "its checksum does not hold"))?;
    let value = serde_json::from_str(&text).map_err(|e| StoreError::damaged(&path, e))?;
    Ok(Some(value))
}
