"""Sessions of MySQL and MariaDB: which are at work, and what the state of one says that it waits for.

Source: MySQL 8.4 reference manual, "Thread Command Values" and "General Thread States"; MariaDB documentation,
"Thread States".
"""

from __future__ import annotations

import re

# Commands and users in small letters: sessions that do nothing, and those that serve no client.
IDLE = frozenset({"sleep", "delayed insert"})
BACKGROUND = frozenset(
    {"daemon", "binlog dump", "binlog dump gtid", "connect", "slave_io", "slave_sql", "slave_worker"}
)
SYSTEM = frozenset({"system user", "event_scheduler"})
# What a state is a wait for, the first that fits. Source: MySQL reference manual, "General Thread States".
_STATES = (
    (
        "lock",
        re.compile(r"waiting for .*\block\b|locked$|system lock|user lock|waiting for table$|waiting for tables", re.I),
    ),
    ("replication", re.compile(r"waiting for semi-?sync|waiting for .*slave|waiting for .*replica|wsrep", re.I)),
    (
        "commit",
        re.compile(r"waiting for handler commit|query end|commit|binlog|flushing|waiting for prior transaction", re.I),
    ),
    ("temp", re.compile(r"copying to tmp table on disk|converting heap|removing tmp table", re.I)),
    ("client", re.compile(r"writing to net|sending to client|reading from net", re.I)),
)


def wait_of(state: str) -> str:
    """The kind of wait that a state is; empty for none.

    >>> wait_of("Waiting for table metadata lock"), wait_of("Sending data")
    ('lock', '')
    """
    return next((name for name, pattern in _STATES if pattern.search(state)), "")


_QUOTED = re.compile(
    r"(?P<literal>'(?:[^']|'')*(?:'|\Z)|\"(?:[^\"]|\"\")*(?:\"|\Z))"
    r"|(?P<comment>#[^\n]*|--(?=\s|\Z)[^\n]*|/\*.*?(?:\*/|\Z))|`(?P<name>[^`]*)(?:`|\Z)",
    re.DOTALL,
)


def plain_statement(query: str) -> str:
    """A statement in the forms that all databases share: no quotes round names, ``?`` for texts, no comments.

    MySQL writes texts between double quotes, too. Where a backslash leaves the end of a text unknown, the statement
    ends before the first text.

    >>> plain_statement('select `id` from `t` where a = "x" # me')
    'select id from t where a = ?'
    >>> plain_statement("update t set a = 'x" + chr(92) + "' secret'")
    'update t set a = ?'
    """
    if "\\" in query:
        first = re.search(r"['\"#\\]|--|/\*", query)
        query = f"{query[: first.start()]}?" if first is not None else query
    return _QUOTED.sub(lambda match: "?" if match["literal"] else match["name"] or " ", query).strip()
