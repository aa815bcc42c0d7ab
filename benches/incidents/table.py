"""The tables of ``make bench-incidents``: by kind and view, totals, true waiting, what the usual tools print."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from benches.incidents.judging import NOUNS, Judgement
from benches.incidents.measuring import Measured
from benches.incidents.recordings import Truth
from benches.incidents.views import ALONE, FULL, NO_HEALTHY, SHORT

WIDTH = 130
_KIND_WIDTH, _CELL_WIDTH_MIN = 26, 7
_EVENTS_MAX = 3
VIEW_WIDTH, COUNT_WIDTH, TOTAL_WIDTH = 22, 5, 8  # a view's name, how many, x/n


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a table: how many of the judgements it is about are as it asks."""

    title: str
    is_about: Callable[[Judgement], bool]
    is_so: Callable[[Judgement], bool]
    is_error: bool = False

    def cell(self, judgements: Iterable[Judgement]) -> str:
        """``2/3``; a dot for no error, a dash where there is nothing to count."""
        about = [one for one in judgements if self.is_about(one)]
        if not about:
            return "-"
        count = sum(self.is_so(one) for one in about)
        return "." if self.is_error and not count else f"{count}/{len(about)}"


def _all(_: Judgement) -> bool:
    return True


def _faulty(one: Judgement) -> bool:
    return one.is_faulty


def _knowable(one: Judgement) -> bool:
    return one.is_knowable


def _unknowable(one: Judgement) -> bool:
    return one.is_unknowable


BY_KIND = (
    Measure("Wrong clearances: the worst error", _faulty, lambda one: bool(one.clearances), is_error=True),
    Measure("Wrong accusations", _all, lambda one: bool(one.accusations), is_error=True),
    Measure(
        "Says that it cannot know, where the view cannot show the cause", _unknowable, lambda o: o.says_it_cannot_know
    ),
    Measure(
        "Top finding right in layer, entity and cause, where the view can show the cause",
        _knowable,
        lambda o: o.is_top_right,
    ),
)
_Column = tuple[str, Measure]
TOTALS: tuple[tuple[str, tuple[_Column, ...]], ...] = (
    (
        "wrongly cleared",
        (
            ("disk", Measure("", _faulty, lambda one: "disk" in one.clearances, is_error=True)),
            ("layer", Measure("", _faulty, lambda one: any(c != "disk" for c in one.clearances), is_error=True)),
        ),
    ),
    ("wrongly", (("accused", Measure("", _all, lambda one: bool(one.accusations), is_error=True)),)),
    ("cannot", (("know", Measure("", _unknowable, lambda one: one.says_it_cannot_know)),)),
    (
        "top finding right in",
        (
            ("layer", Measure("", _knowable, lambda one: one.is_layer_right)),
            ("entity", Measure("", _knowable, lambda one: one.is_entity_right)),
            ("cause", Measure("", _knowable, lambda one: one.is_cause_right)),
            ("all", Measure("", _knowable, lambda one: one.is_top_right)),
        ),
    ),
    ("time", (("right", Measure("", lambda one: one.is_time_right is not None, lambda o: o.is_time_right is True)),)),
    ("who", (("named", Measure("", lambda one: one.is_who_right is not None, lambda o: o.is_who_right is True)),)),
    (
        "limits wrongly",
        (
            ("clear", Measure("", _faulty, lambda one: bool(one.threshold_clearances), is_error=True)),
            ("accuse", Measure("", _all, lambda one: bool(one.threshold_accusations), is_error=True)),
        ),
    ),
)


def view_order(judgements: Iterable[Judgement]) -> list[str]:
    """The views that occur: those of everything first, then each recorder alone by name."""
    seen = {one.view for one in judgements}
    first = [name for name in (FULL, NO_HEALTHY, SHORT) if name in seen]
    return first + sorted(seen - set(first))


def tables_by_kind(judgements: list[Judgement]) -> Iterator[str]:
    """A table for each of the four measures: kinds below each other, views side by side."""
    by_kind: defaultdict[str, list[Judgement]] = defaultdict(list)
    for one in judgements:
        by_kind[one.kind].append(one)
    for measure in BY_KIND:
        yield ""
        yield measure.title
        for names in _blocks(view_order(judgements)):
            yield from _grid(measure, names, by_kind)


def _blocks(names: list[str]) -> Iterator[list[str]]:
    """Views that fit beside each other."""
    block: list[str] = []
    for name in names:
        if block and _KIND_WIDTH + sum(map(_width, [*block, name])) > WIDTH:
            yield block
            block = []
        block.append(name)
    if block:
        yield block


def _width(view: str) -> int:
    return max(len(_short(view)) + 1, _CELL_WIDTH_MIN)


def _short(view: str) -> str:
    return view.removeprefix(ALONE)


def _grid(measure: Measure, names: list[str], by_kind: dict[str, list[Judgement]]) -> Iterator[str]:
    if any(name.startswith(ALONE) for name in names):
        before = sum(_width(name) for name in names if not name.startswith(ALONE))
        yield f"{'':<{_KIND_WIDTH + before}} one recorder alone:"
    yield f"{'kind':<{_KIND_WIDTH}}" + "".join(f"{_short(name):>{_width(name)}}" for name in names)
    for kind in sorted(by_kind):
        cells = (measure.cell(one for one in by_kind[kind] if one.view == name) for name in names)
        line = f"{kind:<{_KIND_WIDTH}}" + "".join(f"{c:>{_width(n)}}" for c, n in zip(cells, names, strict=True))
        yield line.rstrip()


def totals(judgements: list[Judgement], title: str) -> Iterator[str]:
    """One line for each view and one for all of them."""
    if not judgements:
        return
    recordings = len({(one.kind, one.variant) for one in judgements})
    yield ""
    yield f"{title}: {recordings} recording{'s' if recordings != 1 else ''}"
    columns = [column for _, group in TOTALS for column in group]
    groups = "".join(f"{title:>{TOTAL_WIDTH * len(group)}}" for title, group in TOTALS)
    yield f"{'':<{VIEW_WIDTH + COUNT_WIDTH}}{groups}"
    heads = "".join(f"{head:>{TOTAL_WIDTH}}" for head, _ in columns)
    yield f"{'view':<{VIEW_WIDTH}}{'n':>{COUNT_WIDTH}}{heads}"
    for name in [*view_order(judgements), ""]:
        some = [one for one in judgements if name in ("", one.view)]
        cells = "".join(f"{measure.cell(some):>{TOTAL_WIDTH}}" for _, measure in columns)
        yield f"{name or 'all views':<{VIEW_WIDTH}}{len(some):>{COUNT_WIDTH}}{cells}"


def innocents(judgements: Iterable[Judgement]) -> Iterator[str]:
    """How many views accuse a disk, a program or a database that the truth calls innocent."""
    by_group: defaultdict[tuple[bool, bool], list[Judgement]] = defaultdict(list)
    for one in judgements:
        by_group[one.has_bystanders, one.view == FULL].append(one)
    if not by_group:
        return
    yield ""
    yield "Views that accuse an innocent"
    heads = "".join(f"{noun + 's':>{TOTAL_WIDTH + 2}}" for noun in NOUNS.values())
    yield f"{'recordings, views':<{_KIND_WIDTH + VIEW_WIDTH}}{'n':>{COUNT_WIDTH}}{heads}"
    for (has_bystanders, is_full), some in sorted(by_group.items(), reverse=True):
        group = f"{'with' if has_bystanders else 'without'} bystanders, {FULL if is_full else 'other'} views"
        counts = (sum(any(i.startswith(f"{noun} ") for i in one.innocents) for one in some) for noun in NOUNS.values())
        cells = "".join(f"{count or '.':>{TOTAL_WIDTH + 2}}" for count in counts)
        yield f"{group:<{_KIND_WIDTH + VIEW_WIDTH}}{len(some):>{COUNT_WIDTH}}{cells}"


def details(judgements: Iterable[Judgement]) -> Iterator[str]:
    """For each recording and view the top finding, the headline, the answer and every error."""
    place = None
    for one in judgements:
        if place != (one.kind, one.variant):
            place = (one.kind, one.variant)
            yield ""
            yield f"{one.kind} {one.variant}{' (set aside)' if one.is_set_aside else ''}"
        top = "nothing accused" if one.rule is None else f"{one.rule} on {one.entity}"
        yield _cut(f"  {one.view:<24} {_outcome(one):<15} {top}")
        if one.headline:
            yield _cut(f"{'':<27}{one.headline}")
            yield _cut(f"{'':<27}Is it the disk? {one.answer}")
        if one.who or one.is_who_right is False:
            yield _cut(
                f"{'':<27}Who? {', '.join(one.who) or 'nobody'}{' (wrong)' if one.is_who_right is False else ''}"
            )
        for word, errors in (("cleared", one.clearances), ("accused", one.accusations)):
            if errors:
                yield _cut(f"{'':<27}wrongly {word}: {', '.join(errors)}")


def _outcome(one: Judgement) -> str:
    if one.clearances:
        return "WRONGLY CLEARED"
    if one.accusations:
        return "wrongly accused"
    if not one.is_faulty:
        return "right"
    if one.is_visible:
        return "right" if one.is_top_right else "missed"
    return "right" if one.says_it_cannot_know else "guessed"


def waiting(truths: Iterable[Truth]) -> Iterator[str]:
    """The true shares of the sessions' time per kind: the largest events in the fault, against outside."""
    by_kind: defaultdict[str, list[Truth]] = defaultdict(list)
    for truth in truths:
        if truth.wait_shares is not None:
            by_kind[truth.kind].append(truth)
    if not by_kind:
        return
    yield ""
    yield "What the sessions really waited for: share of their time in the fault (outside the fault)"
    for kind, some in sorted(by_kind.items()):
        fault, outside = (_means([getattr(truth.wait_shares, part) for truth in some]) for part in ("fault", "outside"))
        largest = sorted(fault, key=lambda event: -fault[event])[:_EVENTS_MAX]
        shown = ", ".join(f"{event} {fault[event]:.0%} ({outside.get(event, 0.0):.0%})" for event in largest)
        yield _cut(f"{kind:<{_KIND_WIDTH}}{shown}")


def _means(shares: list[dict[str, float]]) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for one in shares:
        sums.update(one)
    return {event: total / len(shares) for event, total in sums.items()}


def usual(truths: Iterable[Truth]) -> Iterator[str]:
    """What the usual tool of each recording prints in the fault, one line per kind."""
    lines: dict[str, str] = {}
    for truth in truths:
        if truth.usual and truth.kind not in lines:
            lines[truth.kind] = "; ".join(f"{tool}: {shown}" for tool, shown in truth.usual.items())
    if lines:
        yield ""
        yield "What the usual tools print (medians)"
        yield from (_cut(f"{kind:<{_KIND_WIDTH}}{lines[kind]}") for kind in sorted(lines))


def problems(results: Iterable[Measured]) -> Iterator[str]:
    """Recordings that could not be read, and files of the others that Leadline cannot read."""
    some = list(results)
    damaged = [one.problem for one in some if one.problem]
    if damaged:
        yield ""
        yield f"Not counted: {len(damaged)} that could not be measured"
        yield from (f"  {problem}" for problem in damaged)
    unread = Counter(file for one in some for file in one.unread)
    if unread:
        yield ""
        yield "Files that Leadline cannot read (recordings):"
        yield from (_cut(f"  {name}: {reason} ({count})") for (name, reason), count in sorted(unread.items()))


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."
