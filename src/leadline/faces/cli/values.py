"""What every verb's options have in common: numbers are finite, paths are possible. Checked here, once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, get_type_hints

from leadline.core.model.errors import UsageError
from leadline.core.model.numbers import NUMBER_MAX

NAME_BYTES_MAX = 255  # Source: limits.h(0p), NAME_MAX and PATH_MAX of Linux
PATH_BYTES_MAX = 4095
_SHOWN_CHARACTERS = 40
_EMPTY_OPTION = re.compile(r"--[a-z][a-z-]*=")


def refuse_empty(words: Sequence[str]) -> None:
    """Refuse a command line with an empty word, which would mean the current folder where a file is expected.

    Raises:
        UsageError: a word is empty, or an option's value.
    """
    for before, word in pairwise(["", *words]):
        if not word or _EMPTY_OPTION.fullmatch(word):
            option = word.removesuffix("=") or (before if before.startswith("-") else "")
            raise UsageError(
                option or "a word of the command",
                found="an empty text",
                expected="a value",
                advice="Is a variable of your shell empty? For the current folder write `.`.",
            )


def checked(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, which is only called with numbers that are finite and paths that can exist."""

    @wraps(command)
    def call(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - whatever the verb takes
        for name, value in options.items():
            for part in value if isinstance(value, list | tuple) else (value,):
                if isinstance(part, float | int) and not abs(part) <= NUMBER_MAX:
                    shown = f"{part:g}" if isinstance(part, float) else f"a number of {len(str(part))} digits"
                    raise _wrong(command, name, shown, "a finite number of a size that can be meant")
                if isinstance(part, Path):
                    _check_path(command, name, part)
        return command(*arguments, **options)

    return call


def _check_path(command: Callable[..., Any], name: str, path: Path) -> None:
    longest = max((len(os.fsencode(part)) for part in path.parts), default=0)
    whole = len(os.fsencode(path))
    if longest > NAME_BYTES_MAX or whole > PATH_BYTES_MAX:
        length, limit = (whole, PATH_BYTES_MAX) if longest <= NAME_BYTES_MAX else (longest, NAME_BYTES_MAX)
        shown = f"{str(path)[:_SHOWN_CHARACTERS]}..., a name of {length} bytes"
        raise _wrong(command, name, shown, f"at most {limit} bytes")


def _wrong(command: Callable[..., Any], name: str, shown: str, expected: str) -> UsageError:
    return UsageError(_written(command, name), found=shown, expected=expected, advice="See the verb's --help.")


def _written(command: Callable[..., Any], name: str) -> str:
    """The parameter as it is written on the command line."""
    info = next(iter(getattr(get_type_hints(command, include_extras=True).get(name), "__metadata__", ())), None)
    written = next((words for words in getattr(info, "param_decls", None) or () if words.startswith("-")), None)
    if written is None and type(info).__name__ == "ArgumentInfo":
        return getattr(info, "metavar", None) or name.upper()
    return written or f"--{name.replace('_', '-')}"
