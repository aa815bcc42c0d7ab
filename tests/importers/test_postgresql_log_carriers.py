"""The server's log as carriers hand it on: syslog and clouds, months and messages of other languages, lost blanks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import postgresql_log
from tests.importers.test_postgresql_log import lines, of, values

CARRIERS = {
    "papertrail": "Nov 20 10:00:0{s} host app/postgres.500: [SHOP] [{n}-1]  sql_error_code = 00000 ",
    "heroku": "2025-11-20T10:00:0{s}.123456+00:00 app[postgres.500]: [DATABASE] [{n}-1]  sql_error_code = 00000 ",
    "logplex": "<134>1 2025-11-20T10:00:0{s}Z host app postgres.500 - - [SHOP] [{n}-1] sql_error_code = 00000 ",
    "journal in French": "nov. 20 10:00:0{s} db01 postgres[500]: [500] ",
    "short-iso": "2025-11-20T10:00:0{s}+0000 db01 postgres[500]: [{n}-1] ",
    "short-full": "Thu 2025-11-20 10:00:0{s} UTC db01 postgres[500]: [{n}-1] ",
    "compose": "postgres_1  | 2025-11-20 10:00:0{s}.000 UTC [500] ",
    "kubernetes": "2025-11-20T10:00:0{s}.123456789Z stdout F 2025-11-20 10:00:0{s}.000 UTC [500] ",
    "RDS": "2025-11-20 10:00:0{s} UTC:10.0.0.7(40312):app@shop:[500]:",
    "Cloud SQL": "2025-11-20 10:00:0{s}.000 UTC [500]: [{n}-1] db=shop,user=app ",
}


@pytest.mark.parametrize("blanks", ["  ", " "])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_lines_that_a_carrier_handed_on(tmp_path: Path, carrier: str, blanks: str) -> None:
    head = CARRIERS[carrier]
    texts = (
        (1, "LOG:  process 500 acquired ShareLock on transaction 7 after 4390.609 ms"),
        (3, "LOG:  duration: 4852.300 ms  statement: COMMIT"),
        (5, "STATEMENT:  UPDATE jobs SET locked_at = $1"),
    )
    text = "".join(f"{head.format(s=s, n=n)}{said}\n" for n, (s, said) in enumerate(texts, 1))
    text = text if blanks == "  " else text.replace("  ", " ")
    capture = of(tmp_path, text, Request(date="2025-11-20", timezone="UTC"))
    waits, commits = values(capture, "db_lock_wait_ms"), values(capture, "db_logged_commit_ms")
    assert (waits[0], len(waits)) == (4390.609, 5)
    assert (commits[2], len(commits)) == (4852.3, 5)


@pytest.mark.parametrize(
    ("printed", "month"),
    [("Mär", 3), ("Dez", 12), ("févr.", 2), ("août", 8), ("ene", 1), ("set", 9), ("paź", 10), ("мая", 5), ("gen", 1)],
)
def test_months_of_other_languages(tmp_path: Path, printed: str, month: int) -> None:
    line = f"{printed} 20 10:00:01 db01 postgres[500]: [3-1] LOG:  checkpoint starting: time\n"
    capture = of(tmp_path, line, Request(date="2025-12-31", timezone="UTC"))
    (group,) = capture.of("db_checkpoints_timed_per_s")
    assert datetime.fromtimestamp(group.times_ns[0] / 1e9 - 1, UTC).month == month


# As PostgreSQL 15 wrote them with lc_messages = de_DE, fr_FR and es_ES.
TRANSLATED = {
    "German": (
        "LOG:  Dauer: 357.456 ms  Anweisung: create table t(i int)",
        "FEHLER:  konnte Datei »base/1/2« nicht erweitern: Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
        "LOG:  Prozess 55 wartet immer noch auf ShareLock-Sperre auf Transaktion 99 nach 200,122 ms",
        "LOG:  Prozess 55 erlangte ShareLock-Sperre auf Transaktion 99 nach 1093,772 ms",
        "LOG:  Checkpoint komplett: 2368 Puffer geschrieben (14.5%); 0 WAL-Datei(en) hinzugefügt, 1 entfernt, 0"
        " wiederverwendet; Schreiben=0,125 s, Sync=3,087 s, gesamt=3,335 s; sync. Dateien=45, längste=1,025 s,"
        " Durchschnitt=0.002 s; Entfernung=29913 kB, Schätzung=29913 kB",
        "LOG:  Checkpoints passieren zu oft (alle 9 Sekunden)",
        "LOG:  temporäre Datei: Pfad »base/pgsql_tmp/pgsql_tmp9.0«, Größe 2100000",
    ),
    "French": (
        "LOG:  durée : 357.456 ms, instruction : create table t(i int)",
        "ERREUR:  n'a pas pu étendre le fichier « base/1/2 » : Aucun espace disponible sur le périphérique",
        "LOG:  le processus 55 est toujours en attente de ShareLock sur transaction 99 après 200.122 ms",
        "LOG:  le processus 55 a acquis ShareLock sur transaction 99 après 1093.772 ms",
        "LOG:  checkpoint terminé : a écrit 2368 tampons (14.5%); 0 fichiers WAL ajoutés, 1 supprimés, 0 recyclés ;"
        " écriture=0.125 s, synchronisation=3.087 s, total=3.335 s; fichiers synchronisés=45, plus long=1.025 s,"
        " moyenne=0.002 s; distance=29913 kB, estimation=29913 kB",
        "LOG:  les points de vérification (checkpoints) arrivent trop fréquemment\n\t(toutes les 9 secondes)",
        "LOG:  fichier temporaire : chemin « base/pgsql_tmp/pgsql_tmp9.0 », taille 2100000",
    ),
    "Spanish": (
        "LOG:  duración: 357.456 ms  sentencia: create table t(i int)",
        "ERROR:  no se pudo extender el archivo «base/1/2»: No queda espacio en el dispositivo",
        "LOG:  el proceso 55 aún espera ShareLock en transacción 99 después de 200.122 ms",
        "LOG:  el proceso 55 adquirió ShareLock en transacción 99 después de 1093.772 ms",
        "LOG:  checkpoint completado: se escribió 2368 buffers (14.5%); 0 archivo(s) WAL añadido(s), 1 eliminado(s), 0"
        " reciclado(s); escritura=0.125 s, sincronización=3.087 s, total=3.335 s; archivos sincronizados=45, más"
        " largo=1.025 s, promedio=0.002 s; distancia=29913 kB, estimado=29913 kB",
        "LOG:  los puntos de control están ocurriendo con demasiada frecuencia (cada 9 segundos)",
        "LOG:  archivo temporal: ruta «base/pgsql_tmp/pgsql_tmp9.0», tamaño 2100000",
    ),
}


@pytest.mark.parametrize("language", TRANSLATED)
def test_messages_of_other_languages(tmp_path: Path, language: str) -> None:
    duration, full, waits, acquired, complete, often, spilled = TRANSLATED[language]
    texts = ((1.0, duration), (2.0, full), (3.2, waits), (4.1, acquired), (8.0, complete), (9.0, often), (9.5, spilled))
    capture = of(tmp_path, lines(*texts))
    sums = {metric: round(float(np.nansum(capture.of(metric)[0].values)), 3) for metric in (
        "db_logged_statement_ms", "db_errors_per_s", "db_out_of_space_errors_per_s", "db_lock_wait_ms",
        "db_checkpoint_write_ms", "db_checkpoint_apart_ms", "db_temp_bytes_per_s")}  # fmt: skip
    assert list(sums.values()) == [357.456, 1, 1, 1293.894, 125, 9000, 2_100_000]
    assert np.nanmax(values(capture, "db_checkpoint_sync_longest_ms")) == 1025


def test_a_paste_of_a_cloud_without_times_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "papertrail.txt"
    path.write_text("app postgres.500 - - [SHOP] [8-1] sql_error_code = 00000 LOG: duration: 4852.300 ms\n" * 3)
    source = Source("papertrail.txt", path)
    assert postgresql_log.sniff(source) >= 90
    with pytest.raises(InputError, match="no line with a time, and 3 with a level"):
        postgresql_log.read(source, Request())


def test_a_wait_that_ends_with_the_first_line_began_before_it(tmp_path: Path) -> None:
    capture = of(tmp_path, lines((31.7, "LOG:  process 9 acquired ShareLock on transaction 7 after 20500.000 ms")))
    counts = values(capture, "db_logged_lock_waits_count")
    assert len(counts) == 21
    assert sum(counts) == pytest.approx(20.5)
