"""The recorders that run beside every incident: each a tool that people have, each into a file of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from incidents.processes import start, stop

HERE = Path(__file__).resolve().parent
PROCESSES = "postgres|mariadbd|pgbench|sysbench|stress-ng|fio|tar|psql|^dd$|^cp$"
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "S_TIME_FORMAT": "ISO"}


@dataclass(frozen=True)
class Recorder:
    """A tool, the file it writes, and the command; without a file the command itself names one."""

    name: str
    file: str
    command: tuple[str, ...]
    writes_itself: bool = False
    end: signal.Signals = signal.SIGINT  # as a person would, so that it closes its output


GUEST = (
    Recorder("iostat", "iostat.txt", ("iostat", "-x", "-t", "1")),
    Recorder("vmstat", "vmstat.txt", ("vmstat", "-w", "-t", "1")),
    Recorder("mpstat", "mpstat.txt", ("mpstat", "-P", "ALL", "1")),
    Recorder("pidstat", "pidstat.txt", ("pidstat", "-d", "-u", "-h", "-G", PROCESSES, "1")),
    Recorder("sar", "sar.bin", ("sar", "-o", "sar.bin", "1"), writes_itself=True),
    Recorder("psi", "psi.txt", (str(HERE / "psi.sh"), "1"), end=signal.SIGTERM),
)


def postgresql(address: str) -> Recorder:
    """Leadline's own recorder of the server: statistics views every second and the active session history."""
    command = (
        str(Path(sys.executable).with_name("leadline")),
        "collect",
        "postgresql",
        address,
        "--output",
        ".",
        "--every",
        "1",
    )
    return Recorder("postgresql", "pg_stat_database.csv", (*command, "--seconds", "600"), writes_itself=True)


def script(address: str) -> Recorder:
    """What `leadline recorder linux postgresql` prints, as somebody would run it who may install nothing."""
    words = dict(word.split("=", 1) for word in address.split())
    names = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGDATABASE": "dbname"}
    leadline = str(Path(sys.executable).with_name("leadline"))
    line = f"{leadline} recorder linux postgresql -o record.sh && exec sh record.sh"
    login = [f"{name}={words[word]}" for name, word in names.items()]
    return Recorder("script", "record.sh", ("env", *login, "sh", "-c", line), writes_itself=True)


def printed(recorder: Recorder) -> str:
    """The command as a person would type it: the program without its folder."""
    program, *arguments = recorder.command
    return " ".join((Path(program).name, *arguments))


class Running:
    """Recorders at work in a folder of their own; a prefix lets them run under another program, such as faketime."""

    def __init__(self, folder: Path, recorders: Iterable[Recorder], prefix: Sequence[str] = ()) -> None:
        self.folder = folder
        self.recorders = tuple(recorders)
        self._stack = ExitStack()
        environment: Mapping[str, str] = os.environ | ENVIRONMENT
        for recorder in self.recorders:
            command = [*prefix, *_in_folder(folder, recorder)]
            path = folder / f".{recorder.name}.output" if recorder.writes_itself else folder / recorder.file
            with path.open("wb") as file:
                process = start(command, file, environment=environment)
            self._stack.callback(stop, process, recorder.end, 5.0)

    def end(self) -> None:
        """End all; what they wrote is whole afterwards."""
        self._stack.close()
        for path in self.folder.glob(".*.output"):
            path.unlink()


def _in_folder(folder: Path, recorder: Recorder) -> list[str]:
    if not recorder.writes_itself:
        return list(recorder.command)
    return ["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *recorder.command]


def settle(seconds: float = 1.0) -> None:
    """Give recorders the time to begin, or to write the sample they are at."""
    time.sleep(seconds)
