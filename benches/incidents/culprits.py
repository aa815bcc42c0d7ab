"""Whether a diagnosis names who did it: the statement, session, worker or program that the kind of incident starts."""

from __future__ import annotations

from benches.incidents.recordings import Truth
from benches.incidents.views import ALONE
from incidents.contract import DoneBy
from incidents.record import kinds, load_kind
from leadline.core.model.finding import Diagnosis
from leadline.core.model.who import Who

# Which recorder sees them: only where it was there a name can be asked for.
_SEEN_BY = {
    "statement": "active-sessions",
    "session": "active-sessions",
    "worker": "active-sessions",
    "program": "pidstat",
}


def done_by(truth: Truth, view: str) -> tuple[DoneBy, ...]:
    """Who did it, where the recorders of a view can see it; any of them is right, none where nobody is to be named."""
    if truth.fault is None or truth.kind not in kinds():
        return ()
    recorders = [view.removeprefix(ALONE)] if view.startswith(ALONE) else truth.recorders
    return tuple(one for one in load_kind(truth.kind).KIND.done_by if _SEEN_BY[one.kind] in recorders)


def named(diagnosis: Diagnosis) -> tuple[Who, ...]:
    """Whom the causes of a diagnosis name, in their order."""
    whos = (cause.who for answer in diagnosis.answers for cause in answer.causes)
    return tuple(dict.fromkeys(who for who in whos if who is not None))


def is_named(wanted: tuple[DoneBy, ...], whos: tuple[Who, ...]) -> bool:
    """Whether the first of its kind is one of those who did it."""
    for one in wanted:
        first = next((who for who in whos if who.kind.value == one.kind), None)
        if first is not None and one.name in ("", first.name):
            return True
    return False
