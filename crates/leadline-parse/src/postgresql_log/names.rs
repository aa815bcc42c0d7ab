//! Statements by name: the verb and the first table, never a literal.

const NAME_LENGTH_MAX: usize = 60;
/// Of a statement; the table is named near its beginning.
const READ_BYTES: usize = 2048;
const VERBS: [&str; 42] = [
    "select",
    "insert",
    "update",
    "delete",
    "merge",
    "with",
    "copy",
    "begin",
    "start",
    "commit",
    "end",
    "rollback",
    "abort",
    "savepoint",
    "release",
    "vacuum",
    "analyze",
    "truncate",
    "lock",
    "create",
    "alter",
    "drop",
    "grant",
    "revoke",
    "reindex",
    "cluster",
    "refresh",
    "call",
    "do",
    "set",
    "show",
    "declare",
    "fetch",
    "close",
    "prepare",
    "execute",
    "deallocate",
    "explain",
    "checkpoint",
    "listen",
    "notify",
    "autovacuum",
];
/// Verbs with a table right after them, longer ones first.
const TABLE_VERBS: [&[&str]; 13] = [
    &["update"],
    &["insert", "into"],
    &["delete", "from"],
    &["merge", "into"],
    &["truncate"],
    &["lock"],
    &["vacuum", "analyze"],
    &["vacuum"],
    &["analyze"],
    &["copy"],
    &["autovacuum:", "vacuum", "analyze"],
    &["autovacuum:", "vacuum"],
    &["autovacuum:", "analyze"],
];

/// The verb of a statement and its first table as people write them; `?` where it begins with no known verb.
pub(super) fn statement_name(query: &[u8]) -> String {
    let query = after_blanks(&query[..query.len().min(READ_BYTES)]);
    if let Some(table) = selected(query) {
        let name = cut(format!("SELECT {table}"));
        return name.replacen("SELECT ", "SELECT ... FROM ", 1);
    }
    for words in TABLE_VERBS {
        if let Some(table) = words_then_table(query, words) {
            return cut(format!("{} {table}", words.join(" ").to_uppercase()));
        }
    }
    let length = word_length(query);
    let word = query[..length].to_ascii_lowercase();
    let is_known = length > 0 && VERBS.iter().any(|verb| verb.as_bytes() == word);
    if is_known {
        String::from_utf8_lossy(&word).to_uppercase()
    } else {
        "?".to_owned()
    }
}

fn cut(mut name: String) -> String {
    name.truncate(NAME_LENGTH_MAX);
    name
}

/// The table of `select ... from only t`, where nothing but names stands before it.
fn selected(query: &[u8]) -> Option<&str> {
    let mut rest = after_word(query, "select")?;
    if !is_blank(*rest.first()?) {
        return None;
    }
    rest = &rest[1..];
    loop {
        if is_blank(*rest.first()?) {
            let table = after_word(&rest[1..], "from")
                .and_then(after_some_blanks)
                .and_then(|after| optional_then_table(after, &["only"]));
            if table.is_some() {
                return table;
            }
        } else if !is_name_byte(rest[0]) && !b".,*()".contains(&rest[0]) {
            return None;
        }
        rest = &rest[1..];
    }
}

fn words_then_table<'a>(query: &'a [u8], words: &[&str]) -> Option<&'a str> {
    let mut rest = query;
    for word in words {
        rest = after_some_blanks(after_word(rest, word)?)?;
    }
    optional_then_table(rest, &["only", "table"])
}

fn optional_then_table<'a>(text: &'a [u8], optional: &[&str]) -> Option<&'a str> {
    optional
        .iter()
        .find_map(|word| table(after_some_blanks(after_word(text, word)?)?))
        .or_else(|| table(text))
}

/// The name that a text begins with, of one part or two, and nothing that goes on after it.
fn table(text: &[u8]) -> Option<&str> {
    let mut length = identifier_length(text)?;
    if text.get(length) == Some(&b'.') {
        length += 1 + identifier_length(&text[length + 1..])?;
    }
    let goes_on = text
        .get(length)
        .is_some_and(|&byte| is_name_byte(byte) || byte == b'.' || byte == b'$');
    let name = (!goes_on).then_some(&text[..length])?;
    std::str::from_utf8(name).ok()
}

fn identifier_length(text: &[u8]) -> Option<usize> {
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    text.first().filter(|byte| begins(byte))?;
    Some(word_length(text))
}

fn word_length(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| is_name_byte(byte)).count()
}

fn after_word<'a>(text: &'a [u8], word: &str) -> Option<&'a [u8]> {
    let start = text.get(..word.len())?;
    start
        .eq_ignore_ascii_case(word.as_bytes())
        .then(|| &text[word.len()..])
}

fn after_some_blanks(text: &[u8]) -> Option<&[u8]> {
    is_blank(*text.first()?).then(|| after_blanks(text))
}

fn after_blanks(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|&&byte| is_blank(byte)).count();
    &text[count..]
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::statement_name;

    #[test]
    fn a_statement_is_named_by_its_verb_and_first_table() {
        for (query, name) in [
            (
                "update pgbench_branches set bbalance = 5",
                "UPDATE pgbench_branches",
            ),
            ("ALTER ROLE x PASSWORD 'secret'", "ALTER"),
            (
                " select *\n\tfrom shop.orders where id = 7",
                "SELECT ... FROM shop.orders",
            ),
            ("select 'x' from t", "SELECT"),
            ("select from t", "SELECT"),
            ("lock table 'x'", "LOCK table"),
            ("truncate table t;", "TRUNCATE t"),
            ("vacuum analyze", "VACUUM analyze"),
            ("insert\n into only.t values (1)", "INSERT INTO only.t"),
            ("COMMIT;", "COMMIT"),
            ("selects", "?"),
            ("", "?"),
            ("delete from a.b.c", "DELETE"),
        ] {
            assert_eq!(statement_name(query.as_bytes()), name, "{query}");
        }
    }
}
