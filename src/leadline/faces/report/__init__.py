"""The HTML report: one file that opens without a network, for a browser, for paper and for mail.

Here: figures, their packing, templates and styles.
Elsewhere: what is worth showing (app/diagnose).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.io.outputs import Output

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.app.compare.comparing import Comparison
    from leadline.app.read.importing import Imported
    from leadline.core.model.finding import Diagnosis
    from leadline.core.model.profile import Profile
    from leadline.faces.report.lead import Lead


def write_report(
    output: Output | Path,
    diagnosis: Diagnosis,
    imported: Imported,
    profile: Profile | None = None,
    *,
    comparison: Comparison | None = None,
    anonymize: bool = False,
) -> int:
    """Write the report of a diagnosis; the file appears whole or not at all. Returns its size in bytes.

    Args:
        output: the file to write; a path may only replace what Leadline wrote.
        diagnosis: as `leadline.app.diagnose.diagnosing.diagnose` returns it.
        imported: the capture it was made of, and what was not read.
        profile: the site's own limits, as given to ``diagnose``.
        comparison: what changed since a baseline, as `leadline.app.compare.comparing.compare` returns it.
        anonymize: replace names and addresses (see `leadline.faces.report.anonymize`).

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    from leadline.faces.report.page import page  # noqa: PLC0415 - templates that only reports need

    output = Output.of(output, "--html")
    output.check()
    if anonymize:
        from leadline.faces.report.anonymize import anonymized  # noqa: PLC0415

        diagnosis, imported, comparison = anonymized(diagnosis, imported, comparison)
    return write_page(output, page(diagnosis, imported, profile, comparison=comparison, anonymous=anonymize))


def write_measured(output: Output | Path, diagnosis: Diagnosis, imported: Imported, lead: Lead) -> int:
    """Write the report of a measurement: what it says first, then the diagnosis of what was recorded meanwhile.

    Returns its size in bytes; the file appears whole or not at all.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    from leadline.faces.report.page import page  # noqa: PLC0415

    output = Output.of(output, "--html")
    output.check()
    return write_page(output, page(diagnosis, imported, lead=lead))


def write_page(output: Output | Path, html: str) -> int:
    """Write a page; the file appears whole or not at all. Returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return Output.of(output, "--html").write(html.encode("utf-8", errors="replace"))
