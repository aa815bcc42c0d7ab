"""What people put around a recording when they paste it, taken off before any importer looks.

Indentation, quotes and fences of mails and web pages, colours of terminals, a prompt with the command above the output,
a host's name before each line. What is left is the text as the tool printed it, in one piece per command; what was
taken off is said, because a paste is not the file that the tool wrote.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MOST = 0.8  # Judgement: of the lines, where a prefix belongs to all of them and some were lost
PROMPT_LINE_MAX, CALL_LINE_MAX = 2000, 200  # characters of a line with a prompt, and without one
ROUNDS_MAX = 3  # a fence in a quoted mail, and the other way round
HEAD_LINES = 200  # that are looked at for a prefix; the rest of a long file is like them
_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][AB012])")
_ENTITY = re.compile(r"&(?:gt|lt|amp|nbsp|quot|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
_PRE = re.compile(r"<(pre|code)\b[^>\n]{0,200}>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:span|b|i|br|code|p|div|font)\b[^>\n]{0,200}>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```[^\n`]*|~~~)[ \t]*$|\[/?code[^\]\n]{0,20}\]", re.MULTILINE | re.IGNORECASE)
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+")
_HOST = re.compile(r"^([A-Za-z][\w.-]{1,62}(?::| \|) )")
_SURE = frozenset({"colours", "fences"})
_PRINTED = frozenset({"progress", "Domain", "Average", "Device", "Threads", "Thread", "STAT"})  # by tools, no hosts
# Programs whose output is a recording: a line that calls one of them is a command, not a value.
TOOLS = frozenset(
    "iostat vmstat mpstat pidstat sar sadf top atop htop free uptime dstat dool nmon fio ioping esxtop resxtop zpool "
    "pgbench pg_test_fsync sysbench psql mysql virsh pveperf xentop ceph lsblk df mount dmsetup nfsiostat netstat ss "
    "iotop collectl perf blktrace biolatency biosnoop ext4slower offcputime vsish esxcli hdparm dd iperf3 numastat "
    "Get-Stat typeperf cat tail head kubectl docker nvidia-smi getenforce sestatus systeminfo fsutil powercfg "
    "chronyc w32tm wrk wrk2 Get-NetAdapterRss Get-NetAdapterAdvancedProperty Get-SpeculationControlSettings".split()
)
_WITH_INTERVAL = frozenset({"iostat", "vmstat", "mpstat", "pidstat", "sar", "dstat", "dool"})
_BEFORE = frozenset({"sudo", "time", "nice", "watch", "env", "nohup", "taskset", "stdbuf", "script", "-n"})
_PROMPT = re.compile(
    r"^(?P<prompt>\s*(?:\([\w.-]+\) ?)?(?:"
    r"\[[\w.-]+@[\w.-]+[^\]\n]{0,80}\][$#%]"  # [root@db01 ~]#
    r"|[\w.-]+@[\w.-]+(?::| )[^\n$#%>]{0,80}[$#%>]"  # root@db01:~#
    r"|[\w.-]{1,63}:[~/][^\n$#%>]{0,80}[$#%>]"  # db01:/var #
    r"|(?P<windows>(?:PS )?[A-Za-z]:\\[^\n>]{0,120}>)"  # C:\> and PS C:\>; cmd has no blank behind it
    r"|mysql>|MariaDB \[[^\]\n]{0,64}\]>|\w{1,63}[=-][>#]|SQL>"  # clients of databases
    r"|[\w.-]{1,40}[$#]"  # db01#
    r"|[$#%>]))"
    r"(?:(?(windows)[ \t]*|[ \t]+)(?P<command>\S[^\n]*))?\s*$"
)
_SQL = re.compile(r"(?:SELECT|SHOW|EXPLAIN|WITH|TABLE|CALL|EXEC|DESCRIBE)\s+\S", re.IGNORECASE)
# Two looks at Oracle's views in one session are two moments of one recording, prompts and all.
_OF_ONE_SESSION = re.compile(r"\b(?:g?v\$|dba_hist_)\w", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"^\w+=\S*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """The output of one command.

    Attributes:
        text: as the tool printed it.
        command: that printed it; empty where it is not there.
    """

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Undressed:
    """A text without its dress.

    Attributes:
        pieces: the outputs in it, in order.
        taken_off: what was around it, in words.
    """

    pieces: tuple[Piece, ...]
    taken_off: tuple[str, ...]

    @property
    def is_sure(self) -> bool:
        """Whether it is dressed for sure: outputs of several commands, fences or colours, which no tool's file has."""
        outputs = [piece for piece in self.pieces if piece.command and not _OF_ONE_SESSION.search(piece.command)]
        return len(outputs) > 1 or not _SURE.isdisjoint(self.taken_off)


def undressed(text: str) -> Undressed | None:
    """A text without its dress; None where it has none."""
    taken_off: list[str] = []
    text = text.replace("\r\n", "\n")
    for _ in range(ROUNDS_MAX):
        before = text
        for name, take_off in _STEPS:
            bare = take_off(text)
            if bare != text:
                taken_off += [name] if name not in taken_off else []
                text = bare
        if text == before:
            break
    pieces = _pieces(text)
    if any(piece.command for piece in pieces):
        taken_off.append("command lines")
        pieces = tuple(Piece(_without_indentation(piece.text), piece.command) for piece in pieces)
    if not taken_off:
        return None
    return Undressed(tuple(piece for piece in pieces if piece.text.strip()), tuple(taken_off))


def _without_colours(text: str) -> str:
    return _COLOUR.sub("", text) if "\x1b" in text else text


def _without_markup(text: str) -> str:
    """The preformatted parts of a web page, or a text whose signs are written as entities."""
    blocks = [block for block in _preformatted(text) if "\n" in block]
    if blocks:
        return "\n".join(html.unescape(_TAG.sub("", block)) for block in blocks) + "\n"
    if _ENTITY.search(text) and not text.lstrip().startswith("<"):
        return html.unescape(text).replace("\u00a0", " ")
    return text.replace("\u00a0", " ")


def _preformatted(text: str) -> Iterator[str]:
    """What stands between the tags of preformatted text, the outer ones."""
    lowered, end = text.lower(), 0
    missing: set[str] = set()
    for match in _PRE.finditer(text):
        tag = match[1].lower()
        if match.start() < end or tag in missing:
            continue
        close = lowered.find(f"</{tag}>", match.end())
        if close < 0:
            missing.add(tag)
            continue
        yield text[match.end() : close]
        end = close


def _without_fences(text: str) -> str:
    """What stands between fences; what stands outside is what somebody wrote about it. Fences may stand in fences."""
    inside, end = [], 0
    opening: re.Match[str] | None = None
    for mark in _FENCE.finditer(text):
        if opening is None:
            opening = mark
        elif _kind_of_fence(opening) == _kind_of_fence(mark):
            inside.append(text[opening.end() : mark.start()])
            opening, end = None, mark.end()
    if opening is not None:
        inside.append(text[opening.end() :])
    if not end and opening is None:
        return text
    kept = "\n".join(part.strip("\n") for part in inside if part.strip())
    return _without_fences(f"{kept}\n") if kept else text


def _kind_of_fence(mark: re.Match[str]) -> str:
    return mark[0].strip()[:3].lower().replace("[/c", "[co")


def _without_quotes(text: str) -> str:
    lines = text.splitlines(keepends=True)
    marked = [line for line in lines[:HEAD_LINES] if line.strip()]
    quoted = sum(_QUOTE.match(line) is not None for line in marked)
    if not marked or quoted < MOST * len(marked) or len(marked) < 2:
        return text
    return "".join(_QUOTE.sub("", line) if line.strip() else line for line in lines)


def _without_host(text: str) -> str:
    """Lines without the name before each, as tools print it that ask many machines."""
    lines = text.splitlines(keepends=True)
    marked = [line for line in lines[:HEAD_LINES] if line.strip()]
    matches = (match for line in marked if (match := _HOST.match(line)) is not None)
    heads = Counter(match[1] for match in matches if match[1].rstrip(": |") not in _PRINTED)
    head, count = heads.most_common(1)[0] if heads else ("", 0)
    if len(marked) < 3 or count < MOST * len(marked):
        return text
    return "".join(line.removeprefix(head) for line in lines)


def _without_indentation(text: str) -> str:
    """Lines without the blanks that all of them begin with; the first may have lost its own."""
    lines = text.splitlines(keepends=True)
    marked = [line for line in lines if line.strip()]
    if len(marked) < 2:
        return text
    first = next(place for place, line in enumerate(lines) if line.strip())
    widths = [len(line) - len(line.lstrip(" \t")) for line in marked]
    is_first_lost = widths[0] == 0 and len(marked) > 3 and min(widths[1:]) >= 2
    width = min(widths[1:] if is_first_lost else widths)
    if not width:
        return text
    bare = (line[width:] if line.strip() else line.lstrip(" \t") for line in lines)
    return "".join(
        line if is_first_lost and place == first else cut
        for place, (line, cut) in enumerate(zip(lines, bare, strict=True))
    )


def command_in(line: str) -> str | None:
    """The command that a line calls; empty for a prompt alone, None where it is no such line."""
    match = _PROMPT.match(line) if len(line) < PROMPT_LINE_MAX else None
    if match is not None:
        command = match["command"]
        if command is None:
            return "" if line.strip() not in {">", "%"} else None
        return command if _tool_of(command) or _SQL.match(command) else None
    words = line.split() if len(line) < CALL_LINE_MAX else []
    return line.strip() if len(words) > 1 and words[0] in TOOLS and line[0] != " " and _is_call(words) else None


def _is_call(words: list[str]) -> bool:
    """Whether words are a program with options, their values, numbers and files, and nothing else before a pipe."""
    has_option, after_option = words[0] in _WITH_INTERVAL, False
    for word in words[1:]:
        if word[0] in "|>":
            break
        is_option = word[0] == "-" and len(word) > 1
        if not (is_option or after_option or word[0].isdigit() or word[0] == "/"):
            return False
        has_option, after_option = has_option or is_option, is_option
    return has_option


def _tool_of(command: str) -> str | None:
    """The program of a command line that prints a recording."""
    for word in command.split():
        name = word.rsplit("/", 1)[-1]
        if name in TOOLS:
            return name
        if name not in _BEFORE and _ASSIGNMENT.match(word) is None and not word.startswith("-"):
            return None
    return None


def _pieces(text: str) -> tuple[Piece, ...]:
    """The outputs between command lines; behind a prompt that called one of the tools any line is one."""
    lines = text.splitlines(keepends=True)
    prompts = {match["prompt"] for line in lines if command_in(line) and (match := _PROMPT.match(line)) is not None}
    pieces: list[Piece] = []
    command, output = "", []
    for line in lines:
        match = _PROMPT.match(line) if len(line) < PROMPT_LINE_MAX else None
        called = command_in(line)
        if called is None and match is not None and match["prompt"] in prompts - {"#", ">", "%"}:
            called = match["command"] or ""
        if called is None:
            output.append(line)
            continue
        pieces.append(Piece("".join(output), command))
        command, output = called, []
    pieces.append(Piece("".join(output), command))
    return tuple(pieces)


_STEPS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("colours", _without_colours),
    ("markup", _without_markup),
    ("fences", _without_fences),
    ("quote marks", _without_quotes),
    ("a name before each line", _without_host),
    ("indentation", _without_indentation),
)
