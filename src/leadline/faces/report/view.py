"""Pages of the report inside a notebook: the same figures, by the same script, in a frame that loads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

CHART_PX = 330  # of one chart with its title and the closed table of its numbers
PAGE_PX = 800


@dataclass(frozen=True, slots=True)
class View:
    """A whole page that a notebook shows in a frame.

    Attributes:
        html: the page; it stands alone and may be saved as a file.
        height_px: of the frame.
    """

    html: str
    height_px: int

    def _repr_html_(self) -> str:
        """Return the frame: scripts of the page run, and it can reach neither the notebook nor a network."""
        frame = f'width="100%" height="{self.height_px}" frameborder="0" sandbox="allow-scripts"'
        return f'<iframe {frame} srcdoc="{escape(self.html)}"></iframe>'

    def __repr__(self) -> str:
        return f"View({len(self.html):,} characters of HTML; a notebook shows it)"
