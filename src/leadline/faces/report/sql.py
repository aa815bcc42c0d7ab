"""SQL without its owner's names: identifiers get aliases, literals and comments go, keywords and operators stay.

A small tokenizer of what PostgreSQL, MySQL, SQL Server and Oracle share. It knows quotes, dollar quotes, escapes,
comments, numbers and identifiers in double quotes, backticks and brackets. What is not closed lasts to the end of the
text, so that a statement that was cut off leaks nothing.

Sources:
    PostgreSQL documentation, 4.1 "Lexical Structure" and appendix C "SQL Key Words"; MySQL reference manual, "Schema
    Object Names"; Transact-SQL reference, "Database Identifiers".
"""

from __future__ import annotations

import re
from collections.abc import Callable

LITERAL = "?"
_KEYWORDS = frozenset(
    """
    abort add all alter analyze and any as asc begin between both by call cascade case cast check close cluster coalesce
    collate column commit concurrently conflict constraint copy create cross current current_date current_timestamp
    cursor database deallocate declare default delete desc distinct do drop else end escape except exclude execute
    exists explain extension fetch filter first following for force foreign from full function grant group grouping
    having if ilike in index inner insert instead intersect interval into is isnull join key last lateral leading left
    like limit listen local lock locked materialized merge mode natural next no not nothing notify notnull nowait null
    nulls of off offset on only or order outer over overlaps owner partition password preceding prepare primary
    procedure public range recursive references refresh reindex release replace restrict returning revoke right role
    rollback row rows savepoint schema select sequence serializable session set share show similar skip start statement
    stdin stdout symmetric system table tablespace temp temporary then ties to top trailing transaction trigger
    truncate type unbounded union unique unknown update user using vacuum values verbose view when where while window
    with within without work true false count sum min max avg
    """.split()
)
_TOKEN = re.compile(
    r"""(?isx)
    (?P<comment> --[^\n]*(?:\n|\Z) | /\*.*?(?:\*/|\Z) )
    | (?P<text> (?:e|b|x|n|u&|_\w+\s?)?'(?:[^'\\]|''|\\.)*(?:'|\Z|\\\Z)
        | \$(?P<tag>[^\W\d]\w*|)\$.*?(?:\$(?P=tag)\$|\Z) )
    | (?P<quoted> (?:u&)?"(?:[^"]|"")*(?:"|\Z) | `(?:[^`]|``)*(?:`|\Z) | \[[^\W\d][^\]\[\n]*(?:\]|\Z) )
    | (?P<number> (?<![\w.$:@])(?:0[xob][\da-f_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)\w* )
    | (?P<parameter> [$:@]\d+\b )
    | (?P<word> [^\W\d][\w$\#]* )
    """
)
_NAME = r"""(?:[^\W\d][\w$\#]*|"[^"]{0,200}"|`[^`]{0,200}`|\[[^\]\[\n]{0,200}\])"""
_NAMES = rf"{_NAME}(?:\s?\.\s?{_NAME})*"
_OBJECTS = (
    r"(?:unlogged\s+|unique\s+|temp(?:orary)?\s+|materialized\s+|or\s+replace\s+|foreign\s+)*"
    r"(?:table|index|view|schema|database|role|user|sequence|function|procedure|trigger|type|extension|subscription)"
)
# Where a statement begins in a text. A verb alone is an English word ("update the firmware"), its shape is not.
_SHAPES = (
    rf"select\s+(?:distinct\s+)?{_NAMES}(?:\s+as\s+{_NAME})?\s+from\s",
    r"""select\s(?=[^\n,*()'"$`]{0,500}[,*()'"$`])(?=[^\n]{0,2000}?\b(?:from|union)\b)""",
    r"""select\s+(?=['\d$*"`(]|e'|\w+\()""",
    rf"(?:insert|replace|merge)\s+into\s+{_NAMES}",
    rf"update\s+(?:only\s+)?{_NAMES}(?:\s+(?:as\s+)?{_NAME})?\s+set\s",
    rf"delete\s+from\s+{_NAMES}",
    rf"with\s+(?:recursive\s+)?{_NAME}\s*(?:\([^)]{{0,1000}}\)\s*)?as\s*(?:not\s+|materialized\s+)*\(",
    rf"truncate\s+table\s+{_NAMES}",
    rf"lock\s+table\s+{_NAMES}(?:\s+in\s|\s*[;,]|\s*\Z)",
    rf"(?:create|alter|drop)\s+{_OBJECTS}\s+{_NAMES}",
    rf"copy\s+{_NAMES}\s*(?:\([^)]{{0,1000}}\)\s*)?(?:from|to)\s+(?:stdin|stdout|program|')",
    r"copy\s*\(",
    rf"call\s+{_NAMES}\s*\(",
    rf"grant\s[\w,\s]{{1,300}}\son\s+{_NAMES}\s+to\s",
    rf"declare\s+{_NAME}\s+cursor\s",
    rf"(?:prepare|execute)\s+{_NAME}\s*(?:\(|as\s)",
    r"explain\s+(?:\(|analyze\s|select\s)",
)
_BEGINS = re.compile(rf"(?<![\w-])(?:{'|'.join(_SHAPES)})", re.IGNORECASE | re.DOTALL)
# A statement of which Leadline itself kept only the verb and the first table.
_SHORT = re.compile(
    rf"(?:SELECT|UPDATE|INSERT\s+INTO|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE|LOCK|VACUUM|ANALYZE|COPY|VACUUM\s+ANALYZE"
    rf"|AUTOVACUUM:\s+VACUUM|AUTOVACUUM:\s+ANALYZE|AUTOVACUUM:\s+VACUUM\s+ANALYZE)\s+{_NAMES}\Z"
)


def sql_start(text: str) -> int:
    """Where a statement begins in a text; its length when there is none.

    >>> sql_start("STATEMENT:  INSERT INTO t VALUES (1)"), sql_start("Update the firmware.")
    (12, 20)
    """
    if _SHORT.match(text):
        return 0
    match = _BEGINS.search(text)
    return match.start() if match is not None else len(text)


def without_names(statement: str, alias: Callable[[str], str]) -> str:
    """A statement with every identifier replaced and every literal as ``?``; comments are left out.

    Args:
        statement: SQL, also one that was cut off.
        alias: gives the replacement of an identifier without its quotes.

    >>> without_names("UPDATE t SET a = 'x' -- y", lambda name: "name-1")
    'UPDATE name-1 SET name-1 = ? '
    """

    def replaced(match: re.Match[str]) -> str:
        kind, token = match.lastgroup, match[0]
        if match["text"] is not None or kind == "number":
            return LITERAL
        if kind == "comment":
            return ""
        if kind == "quoted":
            name = re.sub(r"(?i)^u&", "", token).strip('"`[]')
            return alias(name) if name else token
        if kind == "word" and token.casefold() not in _KEYWORDS:
            return alias(token)
        return token

    return _TOKEN.sub(replaced, statement)
