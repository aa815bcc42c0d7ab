"""What MySQL's sessions wait for, ten times a second, or its status variables once a second, as a table on stdout.

    python incidents/mysql_history.py history SOCKET
    python incidents/mysql_history.py status SOCKET

The history has the columns of PostgreSQL's (``pg_active_sessions.csv``); a row without a pid says that nobody was
active. One client stays connected; a sample costs the server about a millisecond.

Source: MariaDB documentation, "Performance Schema threads Table", "events_waits_current Table", "INNODB_TRX Table".
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

COLUMNS = (
    "now,pid,datname,backend_type,state,wait_event_type,wait_event,query_id,xact_age_s,query_age_s,blocked_by,query"
)
END = "~ end ~"
# A wait that goes on has no end yet; a session that waits for a row lock is told by InnoDB.
HISTORY = """
SELECT t.processlist_id, COALESCE(t.processlist_db, ''), COALESCE(x.trx_state, ''),
       COALESCE((SELECT w.event_name FROM performance_schema.events_waits_current w
                 WHERE w.thread_id = t.thread_id AND w.end_event_id IS NULL ORDER BY w.event_id DESC LIMIT 1), ''),
       COALESCE(TIMESTAMPDIFF(MICROSECOND, x.trx_started, NOW(6)) / 1e6, '')
FROM performance_schema.threads t
LEFT JOIN information_schema.innodb_trx x ON x.trx_mysql_thread_id = t.processlist_id
WHERE t.type = 'FOREGROUND' AND t.processlist_command <> 'Sleep' AND t.processlist_id <> CONNECTION_ID()
"""


class Client:
    """One session of the ``mariadb`` client that answers again and again."""

    def __init__(self, socket: str) -> None:
        command = ["mariadb", f"--socket={socket}", "--user=root", "--batch", "--skip-column-names", "--unbuffered"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rows(self, query: str) -> Iterator[list[str]]:
        """The rows of a query."""
        asked, answered = self._process.stdin, self._process.stdout
        if asked is None or answered is None:
            return
        asked.write(f"{query.strip()};\nSELECT '{END}';\n")
        asked.flush()
        for line in answered:
            text = line.rstrip("\n")
            if text == END:
                return
            yield text.split("\t")
        sys.exit(0)  # the server is gone


def history(client: Client) -> None:
    """Print who is active and what they wait for."""
    print(COLUMNS, flush=True)
    for now in _every(0.1):
        lines = []
        for pid, database, transaction, event, age in client.rows(HISTORY):
            kind, _, name = event.removeprefix("wait/").partition("/")
            if transaction == "LOCK WAIT":
                kind, name = "lock", "row"
            age_s = "" if age == "NULL" else age
            lines.append(f"{now},{pid},{database},client backend,active,{kind},{name},,{age_s},,,")
        print("\n".join(lines) or f"{now},,,,,,,,,,,", flush=True)


def status(client: Client) -> None:
    """Print a row of every numeric status variable."""
    header: list[str] = []
    for now in _every(1.0):
        cells = {row[0]: row[1] for row in client.rows("SHOW GLOBAL STATUS") if len(row) == 2 and _is_number(row[1])}
        if not header:
            header = sorted(cells)
            print("\t".join(["time", *header]))
        print("\t".join([now, *(cells.get(name, "") for name in header)]), flush=True)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _every(seconds: float) -> Iterator[str]:
    """The time, again and again, at a steady pace; a moment that is over is left out."""
    at = time.monotonic()
    while True:
        yield datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds")
        at = max(at + seconds, time.monotonic())
        time.sleep(max(0.0, at - time.monotonic()))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    {"history": history, "status": status}[sys.argv[1]](Client(sys.argv[2]))
