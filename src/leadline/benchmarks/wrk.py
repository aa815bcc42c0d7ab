"""Web load by wrk: pages per second over connections that stay open, the latency of every one kept.

Measures:
    Requests per second, bytes per second, and the latency of each request from its first byte to the end of its
    response, in microseconds, as wrk sees it. The workload's ``connections`` each ask for the same page by GET, and
    again as soon as they have it. A server of our own serves a page of the workload's size; its size is checked by the
    bytes of each response.

Does not:
    Offer a rate: wrk is a closed loop, which waits for a slow server and does not ask it meanwhile. wrk corrects its
    own percentiles for that by requests that it did not make; Leadline takes these out, so the percentiles are of
    requests that were made, and lower than those wrk prints. There is no TLS, no page that is made anew for each
    request, and no disk: the page is in memory.

Warm-up and stopping:
    The warm-up is a run of its own, ended when the requests per second are steady; every round is a run of wrk, which
    opens its connections anew. Requests per second are counted when they are sent. A request that takes longer than
    2 s counts as an error and has no latency. A run of which every response has the status 400 or above fails.

Misleads when:
    wrk and the server share CPUs, as with a server of our own: the two then measure this machine as a whole. The
    network between them is slower than the server. A server answers others at the same time, or limits a client.
    Some responses are errors, which are often faster than pages: the count of errors stands with the result.

Sources:
    wrk 4.1.0, README and SCRIPTING; ``wrk.c`` (response_complete, socket_writeable), ``stats.c`` (stats_correct).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from leadline.benchmarks._web import throwaway_nginx
from leadline.benchmarks._web.wrk_script import SECOND, script_of
from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.honoured import WebLoad
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Web, Workload
from leadline.core.system.following import ToolCommand, follow
from leadline.core.system.opened import printable
from leadline.core.system.safety import require_space, require_usable
from leadline.core.system.tools import TOOLS, examine
from leadline.formats.wrk.report import WrkReport, report_of

META = BenchmarkMeta(program="wrk", kind="web")

PLACE = "web"
SCHEME = "http://"
DOCUMENT = "wrk.json"
URL_CHARACTERS_MAX = 2000  # Judgement: longer ones are refused by many servers


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A server of our own for ``new`` or a folder, else the page of a URL.

    Raises:
        UsageError: the target is neither.
        ToolError: there is not enough space.
    """
    settings = settings_of(workload)
    if target.name.lower().startswith(SCHEME):
        url = _checked_url(target.name)
        note = f"{url} is loaded: {settings.connections} connections ask for it (GET only) as fast as it answers"
        return LoadPlan(workload, target, {PLACE: Place(url, 0, is_made=False)}, (note,), read_only=True)
    if target.kind is not TargetKind.NEW and (target.is_address or not Path(target.name).is_dir()):
        raise UsageError(
            printable(target.name) or "--on",
            found="neither `new`, nor a folder that is there, nor a URL of http",
            expected="one of them",
            advice="For example --on new, or --on http://web1/index.html.",
        )
    if target.kind is not TargetKind.NEW:
        require_usable(target.name)
    base = throwaway_nginx.base_of(target.name)
    needed = throwaway_nginx.EMPTY_BYTES + settings.page
    require_space(str(base.parent), needed)
    return LoadPlan(workload, target, {PLACE: Place(str(base), needed, is_made=True)}, (throwaway_nginx.NOTE,))


def settings_of(workload: Workload) -> Web:
    """The web section, which this driver needs.

    Raises:
        UsageError: there is none.
    """
    if workload.web is None:
        raise UsageError(f"workload {workload.name}", found="no web", expected="a web section", advice="See the guide.")
    return workload.web


def _checked_url(name: str) -> str:
    try:
        parts = urlsplit(name)
        is_whole = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    is_plain = name.isascii() and name.isprintable() and not set(' "<>\\^`{|}').intersection(name)
    if not is_whole or not is_plain or len(name) > URL_CHARACTERS_MAX:
        raise UsageError(
            printable(name[:200]),
            found="no URL that can be asked for",
            expected="http://HOST[:PORT]/PAGE",
            advice="Write other characters than letters, digits and signs of URLs as %XX.",
        )
    return name


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Start the server, where it is ours.

    Raises:
        ToolError: nginx is missing or fails.
    """
    place, settings = plan.places[PLACE], settings_of(plan.workload)
    if place.is_made:
        say(f"starting nginx with a page of {settings.page:,} bytes")
        output = folder / "nginx.txt"
        throwaway_nginx.start(Path(place.path), output, settings.page, settings.connections, plan.enclosure)


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of wrk.

    Raises:
        ToolError: wrk is missing or fails; no request is answered, or all of them with errors.
    """
    document = folder / step.label / DOCUMENT
    document.parent.mkdir(exist_ok=True)
    document.unlink(missing_ok=True)
    settings, url = settings_of(plan.workload), _url(plan)
    # Beside the step's folder, of which all files are recordings.
    script = folder / f"{step.label}.lua"
    script.write_text(script_of(settings, url, f"{step.label}/{DOCUMENT}"), encoding="utf-8")
    words = command(settings, step, url)
    place = plan.places[PLACE]
    if place.is_made:
        words = plan.enclosure.beside(throwaway_nginx.process_of(Path(place.path)), words)
    load = ToolCommand(words, folder / f"{step.label}.txt", variables={"LC_ALL": "C"})
    ticks, ended_early = follow(load, step.duration_s, _ticks(settings.threads), watch, lambda: _failed(load, url))
    if not document.is_file():
        raise _failed(load, url)
    report = report_of(json.loads(document.read_text(encoding="utf-8")), str(document))
    if not ended_early:
        _require_pages(report, url)
    loads = () if ended_early else (_load_of(report, is_our_page=place.is_made),)
    version = examine(next(tool for tool in TOOLS if tool.name == "wrk")).version
    return Measured((document,), tuple(ticks or _whole(report)), (tuple(words),), version, ended_early, loads)


def clean(plan: LoadPlan) -> None:
    """End and remove the server, where it is ours."""
    place = plan.places[PLACE]
    if place.is_made:
        throwaway_nginx.stop(Path(place.path))


def command(settings: Web, step: Step, url: str) -> list[str]:
    """Return the command of one run; wrk takes whole seconds."""
    seconds = max(round(step.duration_s), 1)
    shape = ["-t", str(settings.threads), "-c", str(settings.connections), "-d", f"{seconds}s"]
    return ["wrk", *shape, "-s", f"{step.label}.lua", url]


def _url(plan: LoadPlan) -> str:
    place = plan.places[PLACE]
    return throwaway_nginx.url_of(Path(place.path)) if place.is_made else place.path


def _load_of(report: WrkReport, *, is_our_page: bool) -> WebLoad:
    return WebLoad(report.duration_s, report.requests, report.busy_s, report.received_bytes, is_our_page)


def _whole(report: WrkReport) -> list[Tick]:
    """Return a run too short for whole seconds as one."""
    seconds = report.duration_s
    return [Tick(seconds, report.requests / seconds, report.received_bytes / seconds)] if seconds > 0 else []


def _ticks(thread_count: int) -> Callable[[str], Tick | None]:
    """Lines of single threads as seconds of all: one is over when every thread said so, or is two behind."""
    counts: Counter[int] = Counter()
    lines: Counter[int] = Counter()
    due = 0

    def tick_of(line: str) -> Tick | None:
        nonlocal due
        word, _, rest = line.partition(" ")
        numbers = rest.split()
        if word != SECOND or len(numbers) != 2 or not all(number.isdigit() for number in numbers):
            return None
        second = max(int(numbers[0]), due)
        counts[second] += int(numbers[1])
        lines[second] += 1
        if lines[due] < thread_count and second < due + 2:
            return None
        due += 1
        return Tick(float(due), float(counts.pop(due - 1, 0)))

    return tick_of


def _require_pages(report: WrkReport, url: str) -> None:
    """Refuse a run without a single good response.

    Raises:
        ToolError: there was none.
    """
    if report.requests > report.errors["status"]:
        return
    failures = ", ".join(f"{count:.0f} {name}" for name, count in report.errors.items() if count)
    answered = (
        f"all {report.requests:,.0f} responses have a status of 400 or above" if report.requests else "no response"
    )
    raise ToolError(
        url,
        found=f"{answered} (errors: {failures or 'none'})",
        expected="pages",
        advice=f"Look at what it answers: curl -i {url}",
    )


def _failed(load: ToolCommand, url: str) -> ToolError:
    lines = [line for line in load.output.read_text(errors="replace").splitlines() if line.strip()]
    marks = ("unable", "invalid", "error", "number of", "failed")
    last = (lines or ["nothing"])[-1]
    complaint = next((line for line in lines if any(mark in line.lower() for mark in marks)), last)
    return ToolError(
        url,
        found=f"wrk failed: {complaint[:200]}",
        expected="a whole run",
        advice="Look whether the server answers, and at the limit of open files (ulimit -n).",
    )
