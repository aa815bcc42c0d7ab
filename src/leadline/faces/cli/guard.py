"""The one way to a terminal: names cannot carry control characters, escapes or direction marks to it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, cast

from leadline.faces.visible import ODD, visible

if TYPE_CHECKING:
    from rich.console import Console


class Guarded:
    """A text stream through which nothing but visible text, tabs and newlines goes."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text, what is not visible in it as marks; returns its length."""
        self.stream.write(_writable(visible(text), self.stream))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self.stream, name)


class _Styled(Guarded):
    """The same for a rich console, whose own styles pass: its segments were looked at before they were styled."""

    def write(self, text: str) -> int:
        """Write what a console has rendered."""
        self.stream.write(_writable(text, self.stream))
        return len(text)


def _writable(text: str, stream: IO[str]) -> str:
    """A text in letters of the stream's encoding; a question mark for what it has none for."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Everything that writes to stdout and stderr writes visible text, until the end."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast("Any", stream if isinstance(stream, Guarded) else Guarded(stream)) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def guarded_console(stream: IO[str], **settings: Any) -> Console:  # noqa: ANN401 - of rich's console
    """A rich console whose texts are made visible before they are styled; markup in names is no markup."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class GuardedConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control or not ODD.search(segment.text):
                    yield segment
                else:
                    yield segment._replace(text=visible(segment.text))

    unguarded = stream.stream if isinstance(stream, Guarded) else stream
    return GuardedConsole(file=cast("IO[str]", _Styled(unguarded)), **settings)
