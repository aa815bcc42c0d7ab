"""Statements of databases by name: the verb and the first table, and their text without literals.

A name tells which work it is and holds no value that a user typed; a text without literals tells its shape.
"""

from __future__ import annotations

import re
from functools import lru_cache

QUERY_CHARACTERS = 60
TEXT_CHARACTERS = 400  # Judgement: enough to find a statement in an application by
UNKNOWN = "?"

_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?(?![\w.$])"
# A verb and the table right after it. No quote, dollar or comment may come before the table, so it is no literal.
_TABLE = re.compile(
    r"\s*(?P<verb>update|insert\s+into|replace\s+into|delete\s+from|merge\s+into|truncate|lock|vacuum\s+analyze|vacuum|analyze|copy|"
    r"autovacuum:\s+(?:vacuum\s+analyze|vacuum|analyze))\s+(?:only\s+|table\s+)?(?P<table>" + _NAME + ")",
    re.IGNORECASE | re.ASCII,
)
_SELECT = re.compile(
    r"\s*(?P<verb>select)\s[\w\s.,*()]*?\sfrom\s+(?:only\s+)?(?P<table>" + _NAME + ")", re.IGNORECASE | re.ASCII
)
_VERB = re.compile(
    r"\s*(?P<verb>select|insert|update|delete|merge|with|copy|begin|start|commit|end|rollback|abort|savepoint|release|"
    r"vacuum|analyze|truncate|lock|create|alter|drop|grant|revoke|reindex|cluster|refresh|call|do|set|show|declare|fetch|"
    r"close|prepare|execute|deallocate|explain|checkpoint|listen|notify|autovacuum|replace|load|optimize|repair|check|"
    r"flush|kill|rename|xa)\b",
    re.IGNORECASE | re.ASCII,
)


_IS_NAME = re.compile(r"\?|[A-Z][A-Z:]*(?: [A-Z][A-Z]*)*(?: " + _NAME + ")?", re.ASCII)


@lru_cache(maxsize=4096)
def statement_name(query: str) -> str:
    """The verb of a statement and its first table; never a literal. ``?`` where the beginning is no known verb.

    >>> statement_name("update pgbench_branches set bbalance = 5"), statement_name("ALTER ROLE x PASSWORD 'secret'")
    ('UPDATE pgbench_branches', 'ALTER')
    """
    match = _TABLE.match(query) or _SELECT.match(query)
    if match is not None:
        return f"{' '.join(match['verb'].upper().split())} {match['table']}"[:QUERY_CHARACTERS]
    verb = _VERB.match(query)
    return verb["verb"].upper() if verb is not None else "?"


def shown_name(name: str) -> str:
    """The name of a statement as people write it.

    >>> shown_name("SELECT orders"), shown_name("INSERT INTO bulk"), shown_name("COMMIT")
    ('SELECT ... FROM orders', 'INSERT INTO bulk', 'COMMIT')
    """
    verb, _, table = name.partition(" ")
    return f"SELECT ... FROM {table}" if verb == "SELECT" and table else name


def is_name(text: str) -> bool:
    """Whether a text is the name of a statement as `statement_name` writes it."""
    return _IS_NAME.fullmatch(text) is not None


# A quoted text or a comment that is cut off before its end goes to the end.
_LITERAL = re.compile(
    r"(?P<comment>/\*.*?(?:\*/|\Z)|--[^\n]*)"
    r"|(?P<literal>(?:\b[eEbBxXnN]|\b[uU]&)?'(?:[^'\\]|''|\\.)*(?:'|\Z)"
    r"|\$(?P<tag>[A-Za-z_]\w*)?\$.*?(?:\$(?P=tag)\$|\$\$|\Z)"
    r"|(?<![\w.$])[-+]?(?:\d[\w.]*|\.\d+))"
    r'|(?P<quoted>"(?:[^"]|"")*(?:"|\Z))',
    re.DOTALL,
)
_PARAMETERS = re.compile(r"\(\s*\?(?:\s*,\s*\?)+\s*\)")


@lru_cache(maxsize=4096)
def normalised(query: str) -> str:
    """The text of a statement in one line, with ``?`` for every literal and without comments.

    >>> normalised("select * from t where a = 'x''y' and b in (1, 2.5) -- me")
    'select * from t where a = ? and b in (?)'
    """
    if "\\" in query:  # whether it escapes depends on a setting of the server, so a literal's end is not known
        return statement_name(query)
    plain = _LITERAL.sub(lambda match: match["quoted"] or ("?" if match["literal"] else " "), query)
    return _PARAMETERS.sub("(?)", " ".join(plain.split()))[:TEXT_CHARACTERS]
