"""Step one of a verdict: what users felt, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from leadline.app.diagnose import feeling, incidents
from leadline.app.diagnose.feeling import feeling_of, is_comparable
from leadline.app.diagnose.incidents import Lookout, find_incidents, told_incident

if TYPE_CHECKING:
    from leadline.core.model.answer import Feeling
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Window
    from leadline.core.model.incident import Incident

READS = feeling.READS | incidents.READS


@dataclass(frozen=True, slots=True)
class Symptoms:
    """The incidents, the worst first, and what users felt through all of the recording."""

    incidents: tuple[Incident, ...]
    feeling: Feeling


def symptoms_of(
    capture: Capture, window: Window | None = None, normal: Window | None = None, lookout: Lookout | None = None
) -> Symptoms:
    """When it was bad: as was asked for, or where users felt it.

    Args:
        capture: with what users feel.
        window: when it was bad, where that is known.
        normal: what to compare that with; the rest of the recording by default.
        lookout: only what goes on now is looked for.
    """
    if window is not None:
        return Symptoms((told_incident(capture, window, normal),), feeling_of(capture))
    comparable = filter(is_comparable, find_incidents(capture, lookout))
    return Symptoms(tuple(sorted(comparable, key=lambda one: -one.badness)), feeling_of(capture))
