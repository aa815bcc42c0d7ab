//! Lines as clouds and web pages hand them on: with a dyno's tag, the database's name, and one blank for two.

use memchr::memmem;

use super::messages::digit_count;
use super::text::{
    Envelope, PREFIX_BYTES_MAX, PREFIX_MAX, bracketed, characters, level_before, parted,
};
use super::times::{Days, Stamp, stamp_within};

const SERVER: &[u8] = b"postgres";
/// What the prefix of Heroku's servers has, so that one blank after the level is enough.
const STATE: &[u8] = b"sql_error_code";
/// What the messages begin with that are read, in English and the other languages.
const BEGINS: [&str; 39] = [
    "duration: ",
    "process ",
    "checkpoint",
    "restartpoint ",
    "temporary file: ",
    "automatic ",
    "connection ",
    "parameter \"",
    "statement: ",
    "execute ",
    "database system ",
    "could not ",
    "Dauer: ",
    "Prozess ",
    "Checkpoint",
    "Restart-Punkt ",
    "temporäre Datei: ",
    "automatisches ",
    "Verbindung ",
    "Parameter »",
    "Anweisung: ",
    "durée : ",
    "le processus ",
    "début du ",
    "les points de vérification ",
    "fichier temporaire : ",
    "VACUUM automatique ",
    "ANALYZE automatique ",
    "connexion ",
    "duración: ",
    "el proceso ",
    "empezando ",
    "los puntos de control ",
    "archivo temporal: ",
    "vacuum automático ",
    "conexión ",
    "vacuum agresivo ",
    "análisis automático ",
    "el parámetro ",
];

/// The level and message of a line that has one blank after its level, where that is sure.
pub(super) fn message<'a>(
    rest: &'a [u8],
    days: &Days,
    is_timed: bool,
) -> Option<(usize, &'static [u8], &'a [u8])> {
    let head = &rest[..rest.len().min(PREFIX_BYTES_MAX)];
    let has_state = memmem::find(head, STATE).is_some();
    for colon in memmem::find_iter(head, b": ") {
        let Some((start, level)) = level_before(head, colon) else {
            continue;
        };
        let text = &rest[colon + 2..];
        if characters(&rest[..start]) > PREFIX_MAX || text.starts_with(b" ") {
            return None;
        }
        let is_sure = match level {
            b"LOG" => BEGINS
                .iter()
                .any(|begin| text.starts_with(begin.as_bytes())),
            b"STATEMENT" | b"DETAIL" | b"HINT" | b"CONTEXT" => true,
            _ => false,
        };
        let has_time = || is_timed || stamp_within(&rest[..start], days).is_some();
        return (has_state || (is_sure && has_time())).then_some((start, level, text));
    }
    None
}

/// `app[postgres.123]: [DATABASE] [12-1] ...` after the time, as Heroku prints it.
pub(super) fn dyno<'a>(stamp: Stamp<'a>, rest: &'a [u8]) -> Option<(Envelope<'a>, &'a [u8])> {
    let end = memmem::find(&rest[..rest.len().min(64)], b"]: ")?;
    let open = rest[..end].iter().position(|&byte| byte == b'[')?;
    let (name, process) = dyno_name(&rest[open + 1..end])?;
    let is_name = rest[..open].iter().all(u8::is_ascii_alphanumeric);
    is_name.then(|| parted(stamp, name, process, &rest[end + 3..]))
}

/// The server and its process in `postgres.123` or `app/postgres.123`.
pub(super) fn dyno_name(name: &[u8]) -> Option<(&'static [u8], u64)> {
    let at = memmem::find(name, b"postgres.")?;
    if at > 0 && name[at - 1] != b'/' {
        return None;
    }
    let digits = &name[at + SERVER.len() + 1..];
    if digits.is_empty() || digit_count(digits) != digits.len() {
        return None;
    }
    Some((SERVER, std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// A prefix without the blank before it, which would go on with the line before.
pub(super) fn from_state(rest: &[u8]) -> &[u8] {
    let prefix = rest.trim_ascii_start();
    if prefix.starts_with(STATE) {
        prefix
    } else {
        rest
    }
}

/// What follows the database's name in `[DATABASE] [12-1] `.
pub(super) fn without_database(rest: &[u8]) -> &[u8] {
    let Some(name) = rest.strip_prefix(b"[") else {
        return rest;
    };
    let length = name
        .iter()
        .take_while(|&&byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        .count();
    let is_number = bracketed(&rest[..(length + 2).min(rest.len())]).is_some();
    match name[length..].strip_prefix(b"] ") {
        Some(after) if length > 0 && !is_number && after.starts_with(b"[") => after,
        _ => rest,
    }
}
