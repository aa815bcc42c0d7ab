"""The pages of a watch: values of `app/watch/views` put into templates, whole or as the part that changes.

A page is made after the watch was left alone again: nothing here runs while its lock is taken.
"""

from __future__ import annotations

import time
import zlib
from contextlib import suppress
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import jinja2

import leadline
from leadline.app.watch.views import (
    ESTATE_KINDS,
    STATISTICS,
    estate_of,
    head_of,
    ladder_of,
    metrics_of,
    story_of,
    top_of,
)
from leadline.core.model.capture import NS_PER_S
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import duration, several, show
from leadline.faces.report.page import STYLES, asset, environment
from leadline.faces.report.timeline import ticks
from leadline.faces.web import wording
from leadline.faces.web.answers import answer_rows
from leadline.faces.web.estate_rows import above, below, counts_of, estate_row, link_of, with_ancestors
from leadline.faces.web.sparks import spark_of
from leadline.stores.incidents import FILE
from leadline.stores.samples import SampleStore

if TYPE_CHECKING:
    from leadline.app.watch.views import IncidentStory, LiveLine
    from leadline.app.watch.watching import Watch
    from leadline.stores.incidents import LiveIncident

ESTATE_FIRST, ESTATE_MAX = 24, 300  # rows on the first page, and on their own
INCIDENTS_DAYS, INCIDENTS_MAX = 30, 200
EVENTS_SHOWN = 12
WINDOWS = ((5.0, "5 min"), (20.0, "20 min"), (60.0, "1 h"), (360.0, "6 h"), (1440.0, "1 day"), (10_080.0, "7 days"))
# Judgement: what people ask for first; the first of these that is measured is shown.
TOP_FIRST = ("cpu_ready_pct", "disk_guest_latency_ms", "guest_disk_await_ms_write", "guest_cpu_busy_pct")
SUMMED = {"max": "highest", "p95": "95th percentile", "mean": "mean", "min": "lowest"}


class LivePages:
    """The pages of one watch."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def version(self) -> str:
        """A text that is another one when the pages would show something else."""
        watch = self._watch
        kept = [watch.store.folder / FILE, watch.store.folder / f"{FILE}-wal"]
        times = []
        for path in kept:
            with suppress(OSError):
                times.append(path.stat().st_mtime_ns)
        newest = watch.events[-1].time_ns if watch.events else 0
        state = (watch.judged.time_ns, newest, [one.health.is_up for one in watch.sources], times)
        return f"{zlib.crc32(repr(state).encode()):08x}"

    def now(self, *, is_part: bool) -> str:
        """The first page: what is open, the estate, the sources."""
        rows = estate_of(self._watch)
        kept = with_ancestors(rows, ESTATE_FIRST)
        return self._page(
            "now.html.j2",
            is_part,
            rows=[estate_row(one) for one in kept],
            counts=counts_of(rows),
            more=len(rows) - len(kept),
            recent=[one for one in self._recent(days=7) if not one.is_open][:5],
            events=self._events(),
            store=self._store(),
            sources=self._sources(),
        )

    def estate(self, find: str, *, is_part: bool) -> str:
        """All entities, or those whose name holds a text."""
        rows = estate_of(self._watch)
        wanted = find.strip().casefold()
        matching = [one for one in rows if wanted in str(one.entity).casefold()] if wanted else list(rows)
        return self._page(
            "estate.html.j2",
            is_part,
            find=find,
            rows=[estate_row(one) for one in matching[:ESTATE_MAX]],
            counts=counts_of(rows),
            more=max(len(matching) - ESTATE_MAX, 0),
            match_count=len(matching),
        )

    def entity(self, name: str, *, is_part: bool) -> str:
        """An entity with its ladder.

        Raises:
            UsageError: there is no such entity.
        """
        rows = estate_of(self._watch)
        place = next((index for index, one in enumerate(rows) if str(one.entity) == name), None)
        if place is None:
            raise UsageError(name, found="no such entity", expected="one of the estate", advice="Go back to it.")
        row = rows[place]
        layers = [(one.name, [_line(line) for line in one.lines]) for one in ladder_of(self._watch, row.entity)]
        touching = [one for one in self._recent(days=7) if name in one.places or one.entity.startswith(name)]
        return self._page(
            "entity.html.j2",
            is_part,
            row=estate_row(row),
            above=[link_of(one) for one in reversed(above(rows, place))],
            below=[estate_row(one, row.depth + 1) for one in below(rows, place)][:ESTATE_FIRST],
            layers=[(layer, lines) for layer, lines in layers if lines],
            absent=[layer for layer, lines in layers if not lines],
            touching=touching[:20],
            settings=self._settings(row.entity),
            window=duration(60 * self._watch.settings.window_minutes),
        )

    def incidents(self, *, is_part: bool) -> str:
        """The incidents of the last weeks, the newest first."""
        recent = self._recent(INCIDENTS_DAYS)
        more = max(len(recent) - INCIDENTS_MAX, 0)
        return self._page("incidents.html.j2", is_part, recent=recent[:INCIDENTS_MAX], more=more, days=INCIDENTS_DAYS)

    def incident(self, number: str, *, is_part: bool) -> str:
        """One incident.

        Raises:
            UsageError: there is none with that id.
        """
        story = story_of(self._watch, number)
        lead, rows = answer_rows(story.incident.text)
        entity = story.incident.entity
        shown = (
            next((one for one in Entity.parse(entity).lineage() if one.kind in ESTATE_KINDS), None) if entity else None
        )
        return self._page(
            "incident.html.j2",
            is_part,
            it=story.incident,
            story=story,
            lead=lead,
            rows=rows,
            line=_story_line(story),
            entity=None if shown is None else link_of(shown),
            command=wording.diagnose_command(story, _store_name(self._watch)),
            note_command=f'leadline watch note {story.incident.id} "I look at it" --take',
        )

    def capture(self, number: str) -> Path:
        """The recording of an incident.

        Raises:
            UsageError: there is no such incident, or its recording is not written yet.
        """
        path = story_of(self._watch, number).capture
        if path is None:
            raise UsageError(
                f"incident {number}",
                found="its recording is not written yet",
                expected="one that is at least a minute old",
                advice="Try again in a minute.",
            )
        return path

    def top(self, metric: str, minutes: float, by: str, *, is_part: bool) -> str:
        """The entities that have the most of something."""
        names = metrics_of(self._watch)
        chosen = metric or next((one for one in TOP_FIRST if one in names), next(iter(names), ""))
        ranked = top_of(self._watch, chosen, minutes, by) if chosen else []
        unit = metric_of(chosen).unit if chosen else ""
        largest = max((value for _, value in ranked), default=0.0)
        return self._page(
            "top.html.j2",
            is_part,
            names=names,
            chosen=chosen,
            meaning=metric_of(chosen).meaning if chosen else "",
            minutes=minutes,
            windows=WINDOWS,
            by=by,
            statistics=[(one, SUMMED[one]) for one in STATISTICS],
            rows=[
                {
                    **link_of(entity),
                    "value": show(value, unit),
                    "width": f"{max(100 * value / largest, 0.0):.1f}%" if largest > 0 else "0",
                }
                for entity, value in ranked
            ],
        )

    def sources(self, *, is_part: bool) -> str:
        """What the sources, the store and the notices do."""
        teller = self._watch.teller
        return self._page(
            "sources.html.j2",
            is_part,
            sources=self._sources(),
            left_out=dict(self._watch.files.left_out),
            store=self._store(),
            judged_s=self._watch.judged.duration_s,
            receivers={} if teller is None else teller.states(),
            events=self._events(100),
        )

    def login(self, *, is_wrong: bool = False) -> str:
        """The page that asks for the token."""
        return _environment().get_template("login.html.j2").render(version=leadline.__version__, is_wrong=is_wrong)

    def problem(self, text: str) -> str:
        """A page that says what is wrong with a request."""
        return _environment().get_template("problem.html.j2").render(version=leadline.__version__, text=text)

    def _page(self, template: str, is_part: bool, **shown: Any) -> str:  # noqa: ANN401 - what a template shows
        head = head_of(self._watch)
        now_ns = time.time_ns()
        return (
            _environment()
            .get_template(template)
            .render(
                layout="part.html.j2" if is_part else "whole.html.j2",
                version=leadline.__version__,
                written=wording.moment(now_ns),
                now_ns=now_ns,
                head=head,
                headline=wording.headline(head),
                head_state=wording.head_state(head),
                head_notes=wording.head_notes(head),
                **shown,
            )
        )

    def _recent(self, days: int) -> list[LiveIncident]:
        now_ns = time.time_ns()
        return self._watch.incidents.between(now_ns - days * 86_400 * NS_PER_S, now_ns + NS_PER_S)[::-1]

    def _events(self, count: int = EVENTS_SHOWN) -> list[Any]:
        return list(self._watch.events)[::-1][:count]

    def _sources(self) -> list[dict[str, Any]]:
        now_ns = time.time_ns()
        rows = []
        for source in self._watch.sources:
            state, text = wording.source_state(source.health, now_ns)
            rows.append({"it": source.health, "state": state, "text": text})
        return rows

    def _store(self) -> dict[str, str]:
        status = self._watch.stored
        facts = {"Store": _store_name(self._watch)}
        if status is not None:
            facts["Size"] = wording.size(status.size_bytes)
            facts["Samples"] = f"{status.sample_count:,}"
            if status.oldest_ns is not None:
                facts["Oldest sample"] = f"{wording.moment(status.oldest_ns)} UTC"
            if status.refusals:
                facts["Refused"] = several(status.refusals, "sample or append")
        return facts

    def _settings(self, entity: Entity) -> list[tuple[str, str]]:
        facts = self._watch.window.inventory.facts.get(entity, {})
        return [(name, str(fact.value)[:200]) for name, fact in sorted(facts.items())]


def _store_name(watch: Watch) -> str:
    """Where samples are kept, as verbs take it after ``store:``."""
    return str(watch.store.folder) if isinstance(watch.store, SampleStore) else watch.store.server.address


def _line(line: LiveLine) -> dict[str, Any]:
    known = metric_of(line.metric)
    return {
        "metric": line.metric,
        "meaning": known.meaning,
        "on": line.entity.label(),
        "now": show(line.now, line.unit),
        "median": show(line.median, line.unit),
        "highest": show(line.highest, line.unit),
        "spark": spark_of(line),
        "top": f"/top?{urlencode({'metric': line.metric})}",
    }


def _story_line(story: IncidentStory) -> dict[str, Any]:
    """Places of incidents and changes on the time line, as shares of its span."""
    start, end = story.span_ns

    def place(time_ns: int) -> float:
        return 100 * (min(max(time_ns, start), end) - start) / (end - start)

    def bar(one: LiveIncident) -> tuple[str, str]:
        left, right = place(one.opened_ns), place(one.closed_ns or one.seen_ns)
        return f"{left:.2f}%", f"{max(right - left, 0.5):.2f}%"

    return {
        "ticks": ticks(story.span_ns),
        "rows": [(one, bar(one)) for one in (story.incident, *story.others[:6])],
        "markers": [(one, f"{place(one.time_ns):.2f}%") for one in story.markers],
    }


@cache
def _environment() -> jinja2.Environment:
    """The report's environment with the templates of the page: the same escaping, the same figures."""
    overlay = environment().overlay(loader=jinja2.PackageLoader("leadline.faces.web"))
    overlay.filters = {
        **overlay.filters,
        "clock": wording.clock,
        "moment": wording.moment,
        "taken": wording.taken_text,
        "several": several,
    }
    overlay.globals = {**overlay.globals, "lasted": wording.lasted}
    return overlay


@cache
def asset_of(name: str) -> tuple[str, str]:
    """The text and media type of a style, script or icon of the page.

    Raises:
        UsageError: there is none of that name.
    """
    folder = resources.files("leadline.faces.web").joinpath("assets")
    if name == "page.css":
        live = folder.joinpath("live.css").read_text(encoding="utf-8")
        return f"{asset(STYLES)}\n{live}", "text/css; charset=utf-8"
    types = {"live.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"}
    if name not in types:
        raise UsageError(name, found="no such file", expected=", ".join(types), advice="Load the page again.")
    return folder.joinpath(name).read_text(encoding="utf-8"), types[name]
