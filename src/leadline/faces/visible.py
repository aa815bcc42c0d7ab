"""Names made visible: what a terminal would obey, or a reader not see, as a mark of one cell.

Names come from recordings, archives and servers. An escape in one could clear the screen or write a false verdict, a
direction mark could show a line the wrong way round.

Source: ECMA-48 (control functions); Unicode 15.1, section 23 (direction marks, zero-width characters), block 2400.
"""

from __future__ import annotations

import json
import re
from typing import Any

SUBSTITUTE = "\N{REPLACEMENT CHARACTER}"
# Controls but for tab and newline, soft hyphen, Arabic letter mark, Mongolian vowel separator, zero-width characters,
# marks, embeddings and isolates of direction, line and paragraph separators, invisible operators, variation selectors'
# tags, interlinear marks, byte order mark, lone surrogates.
_HIDDEN = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_SURROGATES = "\\ud800-\\udfff"
ODD = re.compile(f"[{_HIDDEN}{_SURROGATES}]")
_ODD_IN_PAGE = re.compile(f"[{_HIDDEN}]")


def _mark(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "\N{SYMBOL FOR DELETE}" if code == 0x7F else SUBSTITUTE


def visible(text: str) -> str:
    r"""A text with every character that a terminal would obey, or not show, as a mark; tabs and newlines stay.

    >>> visible("vm\x1b[2J\u202eexe.\u2066txt")
    'vm␛[2J�exe.�txt'
    """
    return ODD.sub(_mark, text)


def visible_in_page(text: str) -> str:
    """The same for an HTML page, which shows the bytes of names that are no Unicode in its own way."""
    return _ODD_IN_PAGE.sub(_mark, text)


def one_line(text: str) -> str:
    r"""A text that cannot begin a line of its own.

    >>> one_line("vm1\nVerdict: all is well")
    'vm1␤Verdict: all is well'
    """
    return visible(text).replace("\n", "\N{SYMBOL FOR NEWLINE}")


def escaped_json(document: Any, indent: int | None = 2) -> str:  # noqa: ANN401 - plain data
    r"""A JSON document in which such characters stand as ``\uXXXX``: the same data, nothing a terminal obeys."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    return ODD.sub(lambda match: json.dumps(match[0])[1:-1], text)
