"""JSON documents in a text that may hold several of them and other lines besides.

Tools print warnings before their report, one report after another, or are stopped in the middle of one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leadline.core.model.errors import InputError

NUMBER_MAX = 2.0**63  # more nanoseconds than 292 years, more bytes than any device has
_OPENING = re.compile(r"^[ \t\ufeff]*({)", re.MULTILINE)
_BETWEEN = re.compile(r"[\s,]*")
_NOT_A_NUMBER = re.compile(r"(?<=:)(\s*)-?(?:nan|inf)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON value and the line it begins on."""

    value: Any
    line: int


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a text, whether the last was cut off, and the text around them."""

    documents: list[Document]
    cut: bool
    other_text: str


def json_documents(text: str, name: str, made_of: Callable[[dict[str, Any]], Any] | None = None) -> Documents:
    """Every JSON object that begins a line, with the text between them.

    ``nan`` and ``inf``, which C programs print and JSON does not have, are read as NaN.

    Args:
        text: the whole file.
        name: what errors call it.
        made_of: what each object becomes as soon as it is read, so that only one document at a time is held as read.

    Raises:
        InputError: a document is damaged. One that runs into the end of the file after a whole one only sets ``cut``.
    """
    text = _NOT_A_NUMBER.sub(r"\1NaN", text)
    decoder = json.JSONDecoder(object_hook=made_of)
    documents: list[Document] = []
    around: list[str] = []
    position = line = 0
    cut = False
    while (opening := _OPENING.search(text, position)) is not None:
        begin = opening.start(1)
        around.append(text[position:begin])
        line += text.count("\n", position, begin)
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            if documents and _ran_out(text, error):
                cut = True
                position = len(text)
                break
            raise _bad_json(name, line, error) from error
        documents.append(Document(value, line + 1))
        line += text.count("\n", begin, end)
        position = end
    around.append(text[position:])
    return Documents(documents, cut, "\n".join(around))


def json_array(text: str, name: str) -> tuple[list[Document], bool]:
    """The elements of a JSON array that may have been cut off while it was written, and whether it was.

    Args:
        text: the whole file, which begins with ``[``.
        name: what errors call it.

    Raises:
        InputError: an element is damaged, or none is whole.
    """
    text = _NOT_A_NUMBER.sub(r"\1NaN", text)
    decoder = json.JSONDecoder()
    documents: list[Document] = []
    line = 0
    position = counted = text.index("[") + 1
    while True:
        between = _BETWEEN.match(text, position)
        position = position if between is None else between.end()
        if position >= len(text) or text[position] == "]":
            return documents, position >= len(text)
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            if documents and _ran_out(text, error):
                return documents, True
            raise _bad_json(name, line, error) from error
        documents.append(Document(value, line + 1))


def object_in(holder: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under a key; an empty one where there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def number_in(holder: dict[str, Any], key: str) -> float:
    """The number under a key as a float; NaN where there is none, or none of a size any tool measures."""
    value = holder.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < NUMBER_MAX:
        return math.nan
    return float(value)


def _ran_out(text: str, error: Exception) -> bool:
    """Whether the parser wanted more text than there is, as it does where the writing stopped."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    rest = text[error.pos :]
    return not rest.strip() or ("\n" not in rest.strip() and not rest.endswith("\n"))


def _bad_json(name: str, line: int, error: Exception) -> InputError:
    at = error.lineno if isinstance(error, json.JSONDecodeError) else line + 1
    return InputError(
        f"{name}:{at}",
        found="damaged JSON",
        expected="whole JSON documents",
        advice="Copy the file again, or record it again.",
    )
