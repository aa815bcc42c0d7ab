"""Errors that reach a user: one line of four parts, and an exit status.

``where: what was found; expected what should be there. What to do.``
"""

from __future__ import annotations

from typing import Any, ClassVar

from leadline.core.system.secret import scrubbed


class LeadlineError(Exception):
    """Base of every error a user may see.

    Args:
        where: file and line, option or tool the error is about.
        found: what was there.
        expected: what should have been there.
        advice: what to do next.
        context: further facts for ``--json``; never secrets.

    Every part is kept on one line and without passwords, whatever it quotes.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1

    def __init__(self, where: str, *, found: str, expected: str, advice: str, **context: Any) -> None:  # noqa: ANN401
        self.where, self.found, self.expected, self.advice = map(_on_one_line, (where, found, expected, advice))
        self.context = {key: scrubbed(value) if isinstance(value, str) else value for key, value in context.items()}
        super().__init__(f"{self.where}: {self.found}; expected {self.expected}. {self.advice}")

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data for ``--json``."""
        parts = {"where": self.where, "found": self.found, "expected": self.expected, "advice": self.advice}
        return {"code": self.code, "exit_status": self.exit_status, **parts, **self.context}


def _on_one_line(part: str) -> str:
    return " ".join(scrubbed(part).splitlines())


class UsageError(LeadlineError):
    """The command was called wrongly: exit status 2."""

    code = "usage"
    exit_status = 2


class InputError(LeadlineError):
    """A file cannot be read as what it claims to be: exit status 3."""

    code = "input"
    exit_status = 3


class LimitError(LeadlineError):
    """An input is larger than a documented limit: exit status 3."""

    code = "limit"
    exit_status = 3


class ToolError(LeadlineError):
    """An external tool is missing or failed: exit status 4."""

    code = "tool"
    exit_status = 4
