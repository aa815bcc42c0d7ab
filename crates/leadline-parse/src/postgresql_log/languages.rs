//! The server's levels and messages in German, French and Spanish, put into the English words that are read.
//!
//! Only what is read has its words here, as the server's catalogues have them since version 9.6.

use std::borrow::Cow;

use memchr::memmem;

/// A level as printed, and in English.
const LEVELS: [(&str, &[u8]); 20] = [
    ("FEHLER", b"ERROR"),
    ("PANIK", b"PANIC"),
    ("WARNUNG", b"WARNING"),
    ("HINWEIS", b"NOTICE"),
    ("TIPP", b"HINT"),
    ("ANFRAGE", b"QUERY"),
    ("ZUSAMMENHANG", b"CONTEXT"),
    ("ANWEISUNG", b"STATEMENT"),
    ("ERREUR", b"ERROR"),
    ("ATTENTION", b"WARNING"),
    ("DÉTAIL", b"DETAIL"),
    ("ASTUCE", b"HINT"),
    ("REQUÊTE", b"QUERY"),
    ("CONTEXTE", b"CONTEXT"),
    ("INSTRUCTION", b"STATEMENT"),
    ("DETALLE", b"DETAIL"),
    ("CONSULTA", b"QUERY"),
    ("CONTEXTO", b"CONTEXT"),
    ("SENTENCIA", b"STATEMENT"),
    ("SUGERENCIA", b"HINT"),
];

/// The begin of a message as printed, and in English: `%` is what both have, `~` are blanks. Longer ones stand first.
const MESSAGES: [(&str, &str); 49] = [
    ("Dauer: % ms  Anweisung: ", "duration: % ms  statement: "),
    ("Dauer: % ms  Ausführen ", "duration: % ms  execute "),
    ("Checkpoint beginnt:", "checkpoint starting:"),
    ("Restart-Punkt beginnt:", "restartpoint starting:"),
    (
        "Checkpoint komplett:% Schreiben=% s, Sync=% s,%längste=% s",
        "checkpoint complete:% write=% s, sync=% s,%longest=% s",
    ),
    (
        "Restart-Punkt komplett:% Schreiben=% s, Sync=% s,%längste=% s",
        "restartpoint complete:% write=% s, sync=% s,%longest=% s",
    ),
    (
        "Checkpoints passieren zu oft (alle % Sekunde",
        "checkpoints are occurring too frequently (% second",
    ),
    (
        "temporäre Datei: Pfad »%«, Größe ",
        "temporary file: path \"%\", size ",
    ),
    (
        "Prozess % wartet immer noch auf %-Sperre auf % nach % ms",
        "process % still waiting for % on % after % ms",
    ),
    (
        "Prozess % erlangte %-Sperre auf % nach % ms",
        "process % acquired % on % after % ms",
    ),
    ("Verbindung empfangen: ", "connection received: "),
    (
        "Parameter »%« auf »%« gesetzt",
        "parameter \"%\" changed to \"%\"",
    ),
    (
        "Parameter »%« wurde aus Konfigurationsdatei entfernt, wird auf Standardwert zurückgesetzt",
        "parameter \"%\" removed from configuration file, reset to default",
    ),
    (
        "automatisches Vacuum der Tabelle »%«%verstrichen: % s",
        "automatic vacuum of table \"%\"%elapsed: % s",
    ),
    (
        "automatisches aggressives Vacuum der Tabelle »%«%verstrichen: % s",
        "automatic aggressive vacuum of table \"%\"%elapsed: % s",
    ),
    (
        "automatisches Analysieren der Tabelle »%«%verstrichen: % s",
        "automatic analyze of table \"%\"%elapsed: % s",
    ),
    (
        "durée : % ms, instruction : ",
        "duration: % ms  statement: ",
    ),
    (
        "durée : % ms  instruction : ",
        "duration: % ms  statement: ",
    ),
    ("durée : % ms  exécute ", "duration: % ms  execute "),
    ("début du checkpoint :", "checkpoint starting:"),
    ("début du restartpoint :", "restartpoint starting:"),
    (
        "checkpoint terminé :% écriture=% s, synchronisation=% s,%plus long=% s",
        "checkpoint complete:% write=% s, sync=% s,%longest=% s",
    ),
    (
        "restartpoint terminé :% écriture=% s, synchronisation=% s,%plus long=% s",
        "restartpoint complete:% write=% s, sync=% s,%longest=% s",
    ),
    (
        "les points de vérification (checkpoints) arrivent trop fréquemment~(toutes les % seconde",
        "checkpoints are occurring too frequently (% second",
    ),
    (
        "fichier temporaire : chemin « % », taille ",
        "temporary file: path \"%\", size ",
    ),
    (
        "le processus % est toujours en attente de % sur % après % ms",
        "process % still waiting for % on % after % ms",
    ),
    (
        "le processus % a acquis % sur % après % ms",
        "process % acquired % on % after % ms",
    ),
    ("connexion reçue : ", "connection received: "),
    (
        "paramètre « % » modifié par « % »",
        "parameter \"%\" changed to \"%\"",
    ),
    (
        "paramètre « % » supprimé du fichier de configuration ;~réinitialisation à la valeur par défaut",
        "parameter \"%\" removed from configuration file, reset to default",
    ),
    (
        "VACUUM automatique de la table « % »%temps passé : % s",
        "automatic vacuum of table \"%\"%elapsed: % s",
    ),
    (
        "VACUUM automatique agressif de la table « % »%temps passé : % s",
        "automatic aggressive vacuum of table \"%\"%elapsed: % s",
    ),
    (
        "ANALYZE automatique de la table « % »%temps passé : % s",
        "automatic analyze of table \"%\"%elapsed: % s",
    ),
    ("duración: % ms  sentencia: ", "duration: % ms  statement: "),
    ("duración: % ms  ejecutar ", "duration: % ms  execute "),
    ("empezando checkpoint:", "checkpoint starting:"),
    ("empezando restartpoint:", "restartpoint starting:"),
    (
        "checkpoint completado:% escritura=% s, sincronización=% s,%más largo=% s",
        "checkpoint complete:% write=% s, sync=% s,%longest=% s",
    ),
    (
        "los puntos de control están ocurriendo con demasiada frecuencia (cada % segundo",
        "checkpoints are occurring too frequently (% second",
    ),
    (
        "archivo temporal: ruta «%», tamaño ",
        "temporary file: path \"%\", size ",
    ),
    (
        "el proceso % aún espera % en % después de % ms",
        "process % still waiting for % on % after % ms",
    ),
    (
        "el proceso % adquirió % en % después de % ms",
        "process % acquired % on % after % ms",
    ),
    ("conexión recibida: ", "connection received: "),
    (
        "vacuum automático de la tabla «%»%transcurrido: % s",
        "automatic vacuum of table \"%\"%elapsed: % s",
    ),
    (
        "vacuum agresivo automático de la tabla «%»%transcurrido: % s",
        "automatic aggressive vacuum of table \"%\"%elapsed: % s",
    ),
    (
        "análisis automático de la tabla «%»%transcurrido: % s",
        "automatic analyze of table \"%\"%elapsed: % s",
    ),
    (
        "el parámetro «%» fue cambiado a «%»",
        "parameter \"%\" changed to \"%\"",
    ),
    (
        "parámetro «%» eliminado del archivo de configuración, volviendo al valor por omisión",
        "parameter \"%\" removed from configuration file, reset to default",
    ),
    (
        "restartpoint completado:% escritura=% s, sincronización=% s,%más largo=% s",
        "restartpoint complete:% write=% s, sync=% s,%longest=% s",
    ),
];

/// What the system says of a full disk or a quota.
pub(super) const NO_SPACE: [&str; 8] = [
    "No space left on device",
    "Disk quota exceeded",
    "Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
    "Der zugewiesene Plattenplatz (Quota) ist überschritten",
    "Aucun espace disponible sur le périphérique",
    "Débordement du quota d'espace disque",
    "No queda espacio en el dispositivo",
    "Se ha excedido la cuota de disco",
];

/// The level that a word of another language is.
pub(super) fn level_of(word: &[u8]) -> Option<&'static [u8]> {
    LEVELS
        .into_iter()
        .find(|(printed, _)| printed.as_bytes() == word)
        .map(|(_, level)| level)
}

/// A message with an English begin, where it is one of those that are read.
pub(super) fn english(text: &[u8]) -> Cow<'_, [u8]> {
    let may_begin = |printed: &str| {
        let first = printed.as_bytes().first();
        first == text.first() || matches!(first, Some(b'%' | b'~'))
    };
    MESSAGES
        .iter()
        .filter(|(printed, _)| may_begin(printed)) // nearly all lines are in English, and begin otherwise
        .find_map(|(printed, in_english)| put_into(text, printed.as_bytes(), in_english.as_bytes()))
        .map_or(Cow::Borrowed(text), Cow::Owned)
}

fn put_into(text: &[u8], printed: &[u8], in_english: &[u8]) -> Option<Vec<u8>> {
    let mut rest = text;
    let mut kept: Vec<&[u8]> = Vec::new();
    for (place, part) in printed.split(|&byte| byte == b'%').enumerate() {
        if place > 0 {
            let length = place_of(rest, part)?;
            kept.push(&rest[..length]);
            rest = &rest[length..];
        }
        rest = after(rest, part)?;
    }
    let mut whole = Vec::with_capacity(text.len());
    for (place, part) in in_english.split(|&byte| byte == b'%').enumerate() {
        if let Some(before) = place.checked_sub(1) {
            whole.extend_from_slice(&with_point(kept.get(before)?));
        }
        whole.extend_from_slice(part);
    }
    whole.extend_from_slice(rest);
    Some(whole)
}

/// How far a part of a message is: what stands before it.
fn place_of(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(text.len());
    }
    let first = part.split(|&byte| byte == b'~').next()?;
    memmem::find(text, first)
}

/// What follows a part of a message; None where it does not begin with it.
fn after<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    let mut rest = text;
    for (place, word) in part.split(|&byte| byte == b'~').enumerate() {
        if place > 0 {
            rest = rest.trim_ascii_start();
        }
        rest = rest.strip_prefix(word)?;
    }
    Some(rest)
}

/// A number with a point where it has a comma; all else as it is.
fn with_point(text: &[u8]) -> Cow<'_, [u8]> {
    let mut parts = text.splitn(2, |&byte| byte == b',');
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    match (parts.next(), parts.next()) {
        (Some(whole), Some(fraction)) if is_digits(whole) && is_digits(fraction) => {
            Cow::Owned([whole, fraction].join(&b'.'))
        }
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{english, level_of};

    #[test]
    fn messages_have_an_english_begin() {
        for (printed, expected) in [
            (
                "Prozess 7 wartet immer noch auf ShareLock-Sperre auf Transaktion 99 nach 1000,123 ms",
                "process 7 still waiting for ShareLock on Transaktion 99 after 1000.123 ms",
            ),
            (
                "durée : 4852.300 ms, instruction : COMMIT",
                "duration: 4852.300 ms  statement: COMMIT",
            ),
            (
                "les points de vérification (checkpoints) arrivent trop fréquemment\n\t(toutes les 9 secondes)",
                "checkpoints are occurring too frequently (9 seconds)",
            ),
            (
                "Checkpoint komplett: 3 Puffer geschrieben (0.0%); Schreiben=1,250 s, Sync=17,164 s, gesamt=18,5 s; \
                 sync. Dateien=2, längste=3,812 s, Durchschnitt=0.019 s",
                "checkpoint complete: 3 Puffer geschrieben (0.0%); write=1.250 s, sync=17.164 s, gesamt=18,5 s; \
                 sync. Dateien=2, longest=3.812 s, Durchschnitt=0.019 s",
            ),
            ("Dauer: x", "Dauer: x"),
            ("checkpoint starting: time", "checkpoint starting: time"),
        ] {
            let text = english(printed.as_bytes()).into_owned();
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
        assert_eq!(level_of("DÉTAIL".as_bytes()), Some(b"DETAIL".as_slice()));
    }
}
