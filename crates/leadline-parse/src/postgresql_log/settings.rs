//! Parameters whose value was changed while the server ran, as it says when it has read its configuration anew.

use memchr::{memchr, memmem, memrchr};

use super::entries::Entry;
use super::locks::Moment;
use super::messages::is_word;

/// Changes that are kept; a log has a few of them each week.
const CHANGES_MAX: usize = 65_536;
const NAME_BYTES_MAX: usize = 128;
const VALUE_BYTES_MAX: usize = 1024;
/// What a name has in it whose value may be a secret.
const SECRET: [&[u8]; 4] = [b"password", b"conninfo", b"command", b"key"];

/// A parameter that got another value.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingChange {
    /// When the server said so.
    pub moment: Moment,
    /// Its name.
    pub name: String,
    /// Its value as it was written; None where it was reset to its default, or may be a secret.
    pub value: Option<String>,
    /// Whether it was reset to its default.
    pub is_reset: bool,
}

/// Adds the change that an entry tells of, where it tells of one.
pub(super) fn take(changes: &mut Vec<SettingChange>, entry: &Entry) {
    if entry.level != b"LOG" || changes.len() >= CHANGES_MAX {
        return;
    }
    if let Some((name, value)) = changed(&entry.text) {
        changes.push(SettingChange {
            moment: (entry.zone_index, entry.seconds()),
            name: String::from_utf8_lossy(name).into_owned(),
            value: value
                .filter(|_| !is_secret(name))
                .map(|value| String::from_utf8_lossy(value).into_owned()),
            is_reset: value.is_none(),
        });
    }
}

/// Name and value in `parameter "commit_delay" changed to "50000"`, the name alone in `parameter "commit_delay" removed
/// from configuration file, reset to default`.
fn changed(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let rest = text.strip_prefix(b"parameter \"")?;
    let length = memchr(b'"', rest).filter(|length| (1..=NAME_BYTES_MAX).contains(length))?;
    let (name, rest) = (&rest[..length], &rest[length + 1..]);
    if !name.iter().all(|&byte| is_word(byte) || byte == b'.') {
        return None;
    }
    let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
    if line == b" removed from configuration file, reset to default" {
        return Some((name, None));
    }
    let value = line.strip_prefix(b" changed to \"")?;
    let end = memrchr(b'"', value)?;
    Some((name, Some(&value[..end.min(VALUE_BYTES_MAX)])))
}

fn is_secret(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET
        .iter()
        .any(|part| memmem::find(&name, part).is_some())
}

#[cfg(test)]
mod tests {
    use super::{changed, take};
    use crate::postgresql_log::entries::Entry;

    #[test]
    fn a_change_has_a_name_and_a_value() {
        let of = |text: &'static str| changed(text.as_bytes());
        assert_eq!(
            of("parameter \"commit_delay\" changed to \"50000\""),
            Some((b"commit_delay".as_slice(), Some(b"50000".as_slice())))
        );
        assert_eq!(
            of("parameter \"app.name\" changed to \"a \"b\"\""),
            Some((b"app.name".as_slice(), Some(b"a \"b\"".as_slice())))
        );
        assert_eq!(
            of("parameter \"commit_delay\" removed from configuration file, reset to default"),
            Some((b"commit_delay".as_slice(), None))
        );
        for text in [
            "parameter \"port\" cannot be changed without restarting the server",
            "parameter \"\" changed to \"1\"",
            "parameter \"a b\" changed to \"1\"",
            "parameter \"a\" changed to \"",
            "parameter \"a",
            "received SIGHUP, reloading configuration files",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_is_not_kept() {
        let mut changes = Vec::new();
        for name in [
            "primary_conninfo",
            "archive_command",
            "ssl_key_file",
            "my.PassWord",
        ] {
            let text = format!("parameter \"{name}\" changed to \"hush\"").into_bytes();
            let entry = Entry {
                level: b"LOG",
                text,
                ..Entry::default()
            };
            take(&mut changes, &entry);
        }
        assert_eq!(changes.len(), 4);
        assert!(
            changes
                .iter()
                .all(|change| change.value.is_none() && !change.is_reset)
        );
    }
}
