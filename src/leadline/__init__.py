"""Leadline: why is the database slow, is it the disk?

>>> import leadline
>>> leadline.open.__doc__.splitlines()[0]
'Recordings opened for a notebook or script.'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leadline.faces.notebook import Recording, open

__all__ = ["Recording", "__version__", "open"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Load the notebook face on first use, so that the command line starts without it."""
    if name in {"open", "Recording"}:
        from leadline.faces import notebook  # noqa: PLC0415

        return getattr(notebook, name)
    message = f"module 'leadline' has no attribute {name!r}"
    raise AttributeError(message)
