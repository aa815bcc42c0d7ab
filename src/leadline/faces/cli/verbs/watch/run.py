"""`leadline watch run`: sample, keep, judge, tell."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadline.faces.cli.options import Quiet
from leadline.faces.cli.verbs.watch._common import Settings, settings_of

if TYPE_CHECKING:
    from leadline.app.watch.watching import Watch

EPILOG = """\
Examples:

  leadline watch

  leadline watch run --settings watch.yaml --quiet

  leadline watch run --seconds 600
"""


def command(
    *,
    settings: Settings = None,
    seconds: Annotated[
        float | None, typer.Option(help="End after so long. [default: Ctrl-C ends it]", show_default=False)
    ] = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Serve no page.")] = False,
    quiet: Quiet = False,
) -> None:
    """Watch until Ctrl-C: keep every sample, judge, open incidents, tell people, serve the page.

    Samples are kept as they came. Every few seconds the steps of `diagnose` run on the last minutes. What is wrong
    becomes one incident with its cause; it is told once and closed when it is over. Only one watch writes to a store.
    """
    from leadline.app.watch.opening import opened
    from leadline.app.watch.state import write_state
    from leadline.core.model.profile import Profile
    from leadline.faces.cli.options import profile_of
    from leadline.faces.words.live import incident_words

    chosen = settings_of(settings)
    site = Profile() if chosen.limits is None else profile_of(chosen.limits)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    signal.signal(signal.SIGINT, lambda *_: over.set())
    with opened(chosen, incident_words, site) as watch:
        page = None if no_page or not chosen.page.listen else _page(watch)
        if not quiet:
            _say_beginning(watch, page)
        if seconds is not None:
            timer = threading.Timer(seconds, over.set)
            timer.daemon = True
            timer.start()
        lines = _Lines(watch, quiet=quiet)

        def stepped() -> None:
            write_state(watch)
            lines.say_new()

        watch.run(over, stepped)
        write_state(watch)
        if page is not None:
            page.close()
    if not quiet:
        sys.stderr.write("watch: ended; what was sampled is kept\n")


def _page(watch: Watch) -> Any:  # noqa: ANN401 - the web face is imported only here
    from leadline.faces.web.serving import serve

    return serve(watch)


def _say_beginning(watch: Watch, page: Any) -> None:  # noqa: ANN401 - as `_page` gives it
    names = ", ".join(f"{one.name} ({one.kind})" for one in watch.settings.sources)
    sys.stderr.write(f"watching {names}\nstore: {watch.store.folder}\n")
    if page is not None:
        sys.stderr.write(f"page:  {page.address}\n")


class _Lines:
    """Says on stdout what happened since the last step: a line for each incident and each event."""

    def __init__(self, watch: Watch, *, quiet: bool) -> None:
        self._watch, self._quiet = watch, quiet
        self._known: dict[str, tuple[str, bool]] = {}
        self._last_event: int | None = None

    def say_new(self) -> None:
        """Print what is new."""
        for step in self._watch.last_steps:
            incident = step.incident
            state = (incident.title, incident.is_open)
            if step.step.value != "seen" and self._known.get(incident.id) != state:
                when = _clock(incident.closed_ns or incident.seen_ns)
                sys.stdout.write(f"{when} {step.step.value:<8} {incident.severity.name.lower():<8} ")
                sys.stdout.write(f"{incident.title}  [{incident.id}]\n")
            self._known[incident.id] = state
        for event in list(self._watch.events) if not self._quiet else ():
            if self._last_event is None or event.time_ns > self._last_event:
                self._last_event = event.time_ns
                sys.stderr.write(f"{_clock(event.time_ns)} {event.about}: {event.text}\n")
        sys.stdout.flush()


def _clock(time_ns: int) -> str:
    from leadline.core.model.finding import iso

    return iso(time_ns)[11:19]
