"""What a watch is doing now, as plain data: for ``watch status``, which is another process, and for the live page."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.core.io.outputs import Output
from leadline.core.io.private import private_folder
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.errors import UsageError
from leadline.core.model.finding import iso

if TYPE_CHECKING:
    from leadline.app.watch.watching import Watch
    from leadline.stores.incidents import LiveIncident

FILE = "state.json"
SCHEMA = "leadline.watch/1"
RECENT_DAYS = 7
EVENTS_SHOWN = 20
LATE_S = 60.0  # a state that is as old is of a watch that hangs or has ended


def state_of(watch: Watch) -> dict[str, Any]:
    """The state of a watch; times are ISO 8601 UTC."""
    now_ns = time.time_ns()
    capture = watch.window.capture
    span = capture.span_ns()
    status = watch.stored
    closed = [
        one for one in watch.incidents.between(now_ns - RECENT_DAYS * 86_400 * NS_PER_S, now_ns) if not one.is_open
    ]
    return {
        "schema": SCHEMA,
        "time": iso(now_ns),
        "began": iso(watch.began_ns),
        "process": os.getpid(),
        "sources": [source.health.to_dict() for source in watch.sources],
        "left_out": watch.files.left_out,
        "series": capture.series_count,
        "samples": watch.sample_count,
        "samples_lost": watch.lost_count,
        "window": None if span is None else {"start": iso(span[0]), "end": iso(span[1])},
        "judged": {"time": iso(watch.judged.time_ns), "duration_s": round(watch.judged.duration_s, 3)},
        "store": {
            "folder": str(watch.store.folder),
            "bytes": 0 if status is None else status.size_bytes,
            "samples": 0 if status is None else status.sample_count,
            "oldest": None if status is None or status.oldest_ns is None else iso(status.oldest_ns),
            "refusals": 0 if status is None else status.refusals,
        },
        "open": [incident_plain(one) for one in watch.book.open_ones()],
        "closed": [incident_plain(one) for one in reversed(closed[-50:])],
        "events": [
            {"time": iso(event.time_ns), "about": event.about, "text": event.text, "is_bad": event.is_bad}
            for event in list(watch.events)[-EVENTS_SHOWN:]
        ],
        "notices": {} if watch.teller is None else watch.teller.states(),
    }


def incident_plain(incident: LiveIncident) -> dict[str, Any]:
    """An incident as plain data, with times people can read."""
    plain = incident.to_dict()
    for name in ("opened_ns", "seen_ns", "closed_ns"):
        value = plain.pop(name)
        plain[name.removesuffix("_ns")] = None if value is None else iso(value)
    plain["remarks"] = [
        {"time": iso(one.time_ns), "author": one.author, "text": one.text, "takes": one.takes}
        for one in incident.remarks
    ]
    return plain


def write_state(watch: Watch) -> None:
    """Write the state beside the store, whole or not at all."""
    folder = private_folder(watch.store.folder)
    Output(folder / FILE, "state of the watch").write(json.dumps(state_of(watch)).encode())


def read_state(folder: Path) -> dict[str, Any]:
    """The last state that a watch wrote, with ``age_s``: how old it is, seconds.

    Raises:
        UsageError: no watch wrote one there.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
        state: dict[str, Any] = json.loads(text)
        age_s = time.time() - path.stat().st_mtime
    except (OSError, ValueError) as error:
        raise UsageError(
            str(folder),
            found="no watch has run here",
            expected="the folder of a store that leadline watch writes to",
            advice="Start leadline watch, or name its settings with --settings.",
        ) from error
    return {**state, "age_s": age_s, "is_running": age_s < LATE_S and _lives(state.get("process"))}


def _lives(process: object) -> bool:
    try:
        os.kill(int(str(process)), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
