"""Write the manual pages: ``python -m scripts.man``. One for ``leadline`` and one for each verb, from its help.

The pages are not committed: they cannot differ from the code. Wheels and the bundle have them in ``share/man/man1``.

Source: man-pages(7), "Sections"; man(7).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from leadline import __version__
from leadline.faces.cli.completion import verb_words
from leadline.faces.cli.main import build_app

_EXIT = (
    ("0", "It is done, and nothing is at or above --fail-on."),
    ("1", "Something is at or above --fail-on."),
    ("2", "The command cannot be understood."),
    ("3", "A recording or file cannot be read."),
    ("4", "A program or package is missing or failed: see leadline-doctor(1)."),
    ("130", "Ctrl-C ended it."),
)
_OFTEN_MEANT = ("leadline", "leadline-explain", "leadline-doctor")


def pages() -> dict[str, str]:
    """Name of each page, such as ``leadline-bench-run.1`` -> its text in roff."""
    app = typer.main.get_command(build_app())
    assert isinstance(app, TyperGroup)
    words = verb_words()
    return {f"{page_name(typed)}.1": _page(typed, command, words[typed].verbs) for typed, command in _commands(app)}


def page_name(typed: str) -> str:
    """The name of the page of a verb: ``bench run`` is leadline-bench-run."""
    return "-".join(("leadline", *typed.split()))


def _commands(command: TyperCommand | TyperGroup, typed: str = "") -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    yield typed, command
    if not isinstance(command, TyperGroup):
        return
    context = command.context_class(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert isinstance(below, TyperCommand | TyperGroup)
        yield from _commands(below, f"{typed} {name}".strip())


def _page(typed: str, command: TyperCommand | TyperGroup, verbs: Mapping[str, str]) -> str:
    context = command.context_class(command, info_name=f"leadline {typed}".strip())
    paragraphs = re.split(r"\n{2,}", cleandoc(command.help or ""))
    summary = " ".join(paragraphs[0].split()).rstrip(".")
    name = page_name(typed)
    lines = [
        f'.TH "{name.upper()}" 1 "" "leadline {__version__}" "Leadline"',
        *(".SH NAME", rf"{_text(name)} \- {_text(summary)}"),
        *(
            ".SH SYNOPSIS",
            rf"\fB{_text(f'leadline {typed}'.strip())}\fR {_text(' '.join(command.collect_usage_pieces(context)))}",
        ),
    ]
    if paragraphs[1:]:
        lines += [".SH DESCRIPTION", *_joined(paragraphs[1:])]
    if verbs:
        lines += [".SH COMMANDS"]
        for verb, line in verbs.items():
            lines += [
                ".TP",
                rf"\fB{_text(verb)}\fR",
                rf"{_text(line)}: {_text(page_name(f'{typed} {verb}'.strip()))}(1)",
            ]
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        records = [p.get_help_record(context) for p in command.get_params(context) if p.param_type_name == kind]
        shown = [record for record in records if record is not None]
        if shown:
            lines += [f".SH {title}"]
        for words, meaning in shown:
            lines += [".TP", rf"\fB{_text(words)}\fR", _text(" ".join(meaning.split())) or r"\&"]
    lines += [".SH EXIT STATUS"]
    for status, meaning in _EXIT:
        lines += [".TP", rf"\fB{status}\fR", _text(meaning)]
    lines += _examples(str(command.epilog or ""))
    group = page_name(typed.rpartition(" ")[0])
    others = dict.fromkeys(other for other in (group, *_OFTEN_MEANT) if other != name)
    lines += [".SH SEE ALSO", ", ".join(f"{_text(other)}(1)" for other in others)]
    return "\n".join(lines) + "\n"


def _joined(paragraphs: list[str]) -> list[str]:
    """Paragraphs, filled by the reader's terminal."""
    return [line for text in paragraphs for line in (".PP", _text(" ".join(text.split())))]


def _examples(epilog: str) -> list[str]:
    """The examples below a help, as they are typed."""
    typed = [line for line in epilog.splitlines() if line.strip() and line.startswith(" ")]
    if not typed:
        return []
    return [".SH EXAMPLES", ".nf", *(_text(line.strip()) for line in typed), ".fi"]


def _text(text: str) -> str:
    """Text as roff takes it: no request at the beginning of a line, a hyphen that can be copied."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return rf"\&{escaped}" if escaped.startswith(".") else escaped


def write(folder: Path) -> int:
    """Write all pages into a folder; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = pages()
    for name, text in written.items():
        (folder / name).write_text(text, encoding="utf-8")
    return len(written)


def main() -> None:
    """Write the pages into the folder that is named, else into ``man``."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "man")
    print(f"{folder}: {write(folder)} manual pages")


if __name__ == "__main__":
    main()
