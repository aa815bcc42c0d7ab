"""Samples of a vCenter as they come: a live source of columns.

One cycle asks for the samples of all objects since the last one, in queries of a few hundred objects and as many
counters as the server allows; the next is asked for while an answer is read, as text (see `_core.VspherePerfAnswer`).
"""

from __future__ import annotations

import ssl
import time
from collections import Counter as CounterOf
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.client import HTTPException
from itertools import islice
from typing import Any
from xml.parsers.expat import ExpatError

from leadline._core import CoreError, VspherePerfAnswer
from leadline.collectors._vcenter_live.ahead import AnswersAhead
from leadline.collectors._vcenter_live.columns import LiveColumns, Placing
from leadline.collectors._vcenter_live.counters import in_chunks, live_counters
from leadline.collectors._vcenter_live.estate import EstateReader, LiveEstate
from leadline.collectors._vcenter_live.events import EventReader
from leadline.collectors._vcenter_live.late import GivenSamples, LiveGap
from leadline.collectors._vcenter_live.soap import (
    ObjectGoneError,
    PerformanceText,
    SessionEndedError,
    metric_ids,
    query_spec,
)
from leadline.collectors._vcenter_live.states import Reference
from leadline.core.contracts.collector import Access
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo, Warn
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import connect, disconnect, id_of, kind

REALTIME_S, HISTORY_S = 20, 300
_LATE_S, _LATE_STORAGE_S = 15 * 60.0, 40 * 60.0  # how late vCenter posts samples
_HISTORY_ASKED_NS = 58 * NS_PER_S  # samples five minutes apart may be posted at any time, late ones too
OBJECTS_MAX = 250  # Judgement: of a query; answers of 2 MB are read while the next is not yet asked for
LIMIT_SETTING, LIMIT_DEFAULT, LIMIT_MAX = "config.vpxd.stats.maxQueryMetrics", 64, 256
_SAMPLED_OBJECTS = 10  # Judgement: so many objects of a kind are asked which counters they have
# Type of object, its kind, interval, how late samples come.
_FAMILIES = (
    ("VirtualMachine", EntityKind.VM, REALTIME_S, _LATE_S),
    ("HostSystem", EntityKind.HOST, REALTIME_S, _LATE_S),
    ("Datastore", EntityKind.DATASTORE, HISTORY_S, _LATE_STORAGE_S),
    ("ClusterComputeResource", EntityKind.CLUSTER, HISTORY_S, _LATE_S),
)


@dataclass(slots=True)
class _Family:
    """Objects of one type: their counters, who is asked in which query, and what they gave."""

    type_name: str
    chunks: list[str]
    counter_count: int
    object_limit: int
    interval_s: int
    given: GivenSamples
    columns: LiveColumns
    batches: list[list[Reference]] = field(default_factory=list)
    next_ns: int = 0

    def follow(self, on: dict[Reference, Entity], now_ns: int) -> None:
        """Take out objects that are gone and put new ones where there is room; the others stay in their query."""
        wanted = {reference for reference in on if reference[0] == self.type_name}
        for batch in self.batches:
            for reference in batch:
                if reference not in wanted:
                    self.given.forget(reference[1])
            batch[:] = [reference for reference in batch if reference in wanted]
        asked = {reference for batch in self.batches for reference in batch}
        new = [reference for reference in on if reference in wanted and reference not in asked]
        for reference in new:
            self.given.begin(reference[1], now_ns)
        for batch in self.batches:
            room = self.object_limit - len(batch)
            batch.extend(new[:room])
            new = new[room:]
        self.batches += [new[first : first + self.object_limit] for first in range(0, len(new), self.object_limit)]
        self.columns.keep({on[reference] for reference in wanted})


@dataclass(frozen=True, slots=True)
class _Query:
    """What is asked at once: some counters of some objects of a family, until a moment."""

    family: _Family
    batch: list[Reference]
    metrics: str
    end_ns: int

    def specs(self) -> Iterator[str]:
        """The text for each object, from a second after its newest sample: govmomi's simulator counts the start in."""
        family = self.family
        for one in self.batch:
            start_ns = min(family.given.asked_from(one[1]) + NS_PER_S, self.end_ns)
            yield query_spec(one, start_ns, self.end_ns, self.metrics, family.interval_s)


class VcenterLive:
    """A live source of a vCenter or ESXi host.

    Attributes:
        notes: what is left out, and that a certificate is not checked.
        interval_s: of real-time samples.
        gaps: samples that never came, of the last call.
        sample_count: of the last call.
    """

    def __init__(self, access: Access, context: ssl.SSLContext, reader: EstateReader, options: LiveOptions) -> None:
        self.notes: list[str] = [] if access.verify else [f"the certificate of {access.host} is not checked"]
        self.interval_s = float(REALTIME_S)
        self.gaps: list[LiveGap] = []
        self.sample_count = 0
        self._access, self._context, self._options = access, context, options
        self._estate = LiveEstate(f"vcenter:{access.host}", reader)
        self._session: Any = None
        self._answers: AnswersAhead[_Query, VspherePerfAnswer] | None = None
        self._families: list[_Family] = []
        self._events: EventReader | None = None
        self._info = SourceInfo(f"vcenter:{access.host}", "vcenter", "vCenter", host=access.host)
        self._ahead_s, self._refreshed_s = 0.0, 0.0
        self._log_in()

    def sample(self) -> Capture:
        """Return the samples since the last call, with the inventory where it changed.

        Raises:
            ToolError: vCenter cannot be reached, or refuses.
        """
        try:
            return self._sampled()
        except (SessionEndedError, ObjectGoneError) as error:
            for family in self._families:
                family.columns.drop()
            if isinstance(error, SessionEndedError):
                self._log_in()
            self._refreshed_s = float("-inf")
        try:
            return self._sampled()
        except (SessionEndedError, ObjectGoneError) as error:
            raise self._broken_off(error) from error

    def close(self) -> None:
        """Log out and close the connections."""
        from pyVmomi import vmodl  # noqa: PLC0415 - 0.5 s that only what talks to vCenter needs

        if self._answers is not None:
            self._answers.close()
        session, self._session, self._answers = self._session, None, None
        if session is not None:
            try:
                disconnect(session)
            except (vmodl.MethodFault, OSError, HTTPException, ExpatError):
                return  # the session is over already

    def _log_in(self) -> None:
        self.close()
        session = connect(self._access, self._context)
        self._session = session
        content = session.RetrieveContent()
        manager = id_of(content.perfManager)
        self._answers = AnswersAhead(
            lambda: PerformanceText(self._access, self._context, session, manager), self._answered
        )
        now = session.CurrentTime()
        self._ahead_s = now.timestamp() - time.time()
        self._info = replace(self._info, tool_version=content.about.version)
        if self._events is None:
            self._events = EventReader(now - timedelta(seconds=REALTIME_S))

    def _sampled(self) -> Capture:
        from pyVmomi import vmodl  # noqa: PLC0415

        if self._session is None:
            self._log_in()
        try:
            content = self._session.RetrieveContent()
            inventory = self._refreshed(content)
            if self._events is not None and content.eventManager is not None:
                self._events.read(content.eventManager, self._estate.estate, inventory)
        except vmodl.fault.ManagedObjectNotFound as error:
            raise ObjectGoneError(kind(error)) from error
        except vmodl.MethodFault as error:
            if kind(error) == "NotAuthenticated":
                raise SessionEndedError from error
            raise self._broken_off(error) from error
        except (OSError, HTTPException, ExpatError) as error:
            raise self._broken_off(error) from error
        groups = self._new_groups(self._server_now_ns())
        self.sample_count = sum(len(group.entities) * len(group.times_ns) for group in groups)
        warnings = (Warn("gap", "samples that vCenter never posted", len(self.gaps)),) if self.gaps else ()
        return Capture(groups, [replace(self._info, warnings=warnings)], inventory)

    def _new_groups(self, now_ns: int) -> list[SeriesGroup]:
        """The new samples of the families whose time has come; where an answer breaks off nothing counts as given."""
        due = [family for family in self._families if now_ns >= family.next_ns]
        try:
            answered = [(family, self._asked(family, now_ns)) for family in due]
        except BaseException:
            for family in due:
                family.columns.drop()
            raise
        groups: list[SeriesGroup] = []
        self.gaps = []
        for family, fresh in answered:
            for key, times in fresh.items():
                family.given.give(key, times)
            family.given.expire(now_ns)
            self.gaps += family.given.gaps
            family.given.gaps = []
            groups += family.columns.groups()
            if family.interval_s > REALTIME_S:
                family.next_ns = now_ns + _HISTORY_ASKED_NS
        return groups

    def _server_now_ns(self) -> int:
        return round((time.time() + self._ahead_s) * NS_PER_S)

    def _refreshed(self, content: Any) -> Inventory:  # noqa: ANN401
        """What changed of the inventory, at first all of it."""
        now_s = time.monotonic()
        inventory = Inventory()
        if self._families and now_s - self._refreshed_s < self._options.inventory_s:
            return inventory
        self._refreshed_s = now_s
        changes = self._estate.refresh(content)
        if changes is not None:
            if not self._families:
                self._families = list(self._made_families(content))
            for family in self._families:
                family.follow(self._estate.on, self._server_now_ns())
            inventory.merge(changes)
            insecure = [] if self._access.verify else self.notes[:1]
            refused = [f"properties of {name} that the account may not read" for name in self._estate.estate.refused]
            self.notes[:] = list(dict.fromkeys([*insecure, *self._estate.estate.left_out, *refused]))
        return inventory

    def _made_families(self, content: Any) -> Iterator[_Family]:  # noqa: ANN401
        manager, limit = content.perfManager, _query_limit(content)
        reported = [
            (int(one.key), f"{one.groupInfo.key}.{one.nameInfo.key}.{one.rollupType}", str(one.unitInfo.key))
            for one in manager.perfCounter
        ]
        existing = {key for key, _, _ in reported}
        for type_name, entity_kind, interval_s, late_s in _FAMILIES:
            extra = self._available(manager, type_name, interval_s) & existing if self._options.every else frozenset()
            counters = live_counters(entity_kind, reported, interval_s, extra)
            if not counters:
                continue
            chunks = list(in_chunks(counters, limit))
            # The limit of history counts the counters of all objects of a query, that of real time those of each.
            width = max(len(chunk) for chunk in chunks)
            objects_max = OBJECTS_MAX if interval_s == REALTIME_S else max(limit // width, 1)
            placing = Placing({c.key: c for c in counters}, self._estate.part_name, self._estate.vcpu_count)
            yield _Family(
                type_name,
                [metric_ids(counter.key for counter in chunk) for chunk in chunks],
                len(counters),
                objects_max,
                interval_s,
                GivenSamples(interval_s, late_s),
                LiveColumns(placing, float(interval_s)),
            )

    def _available(self, manager: Any, type_name: str, interval_s: int) -> frozenset[int]:  # noqa: ANN401
        """Counters that some objects of a type have."""
        from pyVmomi import vim  # noqa: PLC0415

        keys = [key for kind_name, key in self._estate.on if kind_name == type_name][:_SAMPLED_OBJECTS]
        counters: set[int] = set()
        for key in keys:
            reference = getattr(vim, type_name)(key, manager._stub)
            listed = manager.QueryAvailablePerfMetric(entity=reference, intervalId=interval_s) or ()
            counters |= {int(one.counterId) for one in listed}
        return frozenset(counters)

    def _asked(self, family: _Family, now_ns: int) -> dict[str, tuple[int, ...]]:
        """Take in the samples of a family; returned are the new moments of each object.

        Raises:
            ToolError: an answer broke off, or is none.
        """
        step = family.interval_s * NS_PER_S
        end_ns = now_ns // step * step  # all objects tell of the same moments
        if self._answers is None:
            raise SessionEndedError
        batches = [(index, batch) for index, batch in enumerate(family.batches) if batch]
        queries = (_Query(family, batch, chunk, end_ns) for _, batch in batches for chunk in family.chunks)
        given_now: dict[str, tuple[int, ...]] = {}
        with closing(self._answers.answers(queries)) as ahead:
            for index, _ in batches:
                answers = list(islice(ahead, len(family.chunks)))
                keys = [[key for _, key in answer.entities] for answer in answers]
                fresh = _fresh(family.given, answers, keys)
                given_now |= fresh
                for place, (answer, listed) in enumerate(zip(answers, keys, strict=True)):
                    owners = [self._estate.on.get((family.type_name, key)) for key in listed]
                    family.columns.take((index, place), answer, owners, [fresh.get(key, ()) for key in listed])
        return given_now

    def _answered(self, text: PerformanceText, query: _Query) -> VspherePerfAnswer:
        answer = text.query(query.specs())
        try:
            return VspherePerfAnswer.from_bytes(answer, self._access.host)
        except CoreError as error:
            raise ToolError(error.where, found=error.found, expected=error.expected, advice=error.advice) from error

    def _broken_off(self, error: BaseException) -> ToolError:
        return ToolError(
            self._access.host,
            found=f"an answer that broke off ({kind(error)})",
            expected="inventory, events and samples",
            advice="It is asked again; look at the rights of the user when it happens often.",
        )


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How a vCenter is watched.

    Attributes:
        every: counters without a metric are asked for, too.
        inventory_s: how often the inventory is looked at for changes, seconds.
    """

    every: bool = False
    inventory_s: float = 60.0


def _query_limit(content: Any) -> int:  # noqa: ANN401
    """How many counters the server allows in a query.

    Source: VMware KB 2107096, "Changing the size of a rendered query in vCenter Server".
    """
    from pyVmomi import vmodl  # noqa: PLC0415

    try:
        options = content.setting.QueryOptions(LIMIT_SETTING) if content.setting is not None else ()
        limit = int(options[0].value) if options else LIMIT_DEFAULT
    except (vmodl.MethodFault, ValueError, TypeError):
        limit = LIMIT_DEFAULT
    return min(limit, LIMIT_MAX) if limit > 0 else LIMIT_MAX


def _fresh(
    given: GivenSamples, answers: Sequence[VspherePerfAnswer], keys: Sequence[Sequence[str]]
) -> dict[str, tuple[int, ...]]:
    """The new moments that every answer has of an object, ascending; a later answer may know more than an earlier."""
    seen: dict[str, list[tuple[int, int]]] = {}
    moments = []
    for place, (answer, listed) in enumerate(zip(answers, keys, strict=True)):
        moments.append([frozenset(times_ns.tolist()) for times_ns, _ in answer.moments])
        for key, moment in zip(listed, answer.entity_moments.tolist(), strict=True):
            seen.setdefault(key, []).append((place, moment))
    known: dict[tuple[Any, ...], tuple[int, ...]] = {}
    fresh: dict[str, tuple[int, ...]] = {}
    twice = {key for listed in keys for key, count in CounterOf(listed).items() if count > 1}
    for key, places in seen.items():
        if len(places) < len(answers) or key in twice:
            continue
        state = given.state(key)
        cached = (tuple(places), state)
        if cached not in known:
            common = frozenset.intersection(*(moments[place][moment] for place, moment in places))
            known[cached] = tuple(sorted(time_ns for time_ns in common if given.is_new(time_ns, state)))
        fresh[key] = known[cached]
    return fresh
