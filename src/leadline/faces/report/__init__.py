"""The HTML report: one file that opens without a network, for a browser, for paper and for mail."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.core.errors import UsageError

if TYPE_CHECKING:
    from leadline.app.comparing import Comparison
    from leadline.app.importing import Imported
    from leadline.core.finding import Diagnosis
    from leadline.core.profile import Profile
    from leadline.faces.report.lead import Lead


def write_report(
    path: Path,
    diagnosis: Diagnosis,
    imported: Imported,
    profile: Profile | None = None,
    *,
    comparison: Comparison | None = None,
    anonymize: bool = False,
) -> int:
    """Write the report of a diagnosis; the file appears whole or not at all. Returns its size in bytes.

    Args:
        path: the file to write; one that is there is replaced.
        diagnosis: as `leadline.app.diagnosing.diagnose` returns it.
        imported: the capture it was made of, and what was not read.
        profile: the site's own limits, as given to ``diagnose``.
        comparison: what changed since a baseline, as `leadline.app.comparing.compare` returns it.
        anonymize: replace names and addresses (see `leadline.faces.report.anonymize`).

    Raises:
        UsageError: the file cannot be written there.
    """
    from leadline.faces.report.page import page  # noqa: PLC0415 - templates that only reports need

    check_writable(path)
    if anonymize:
        from leadline.faces.report.anonymize import anonymized  # noqa: PLC0415

        diagnosis, imported, comparison = anonymized(diagnosis, imported, comparison)
    return write_page(path, page(diagnosis, imported, profile, comparison=comparison, anonymous=anonymize))


def write_measured(path: Path, diagnosis: Diagnosis, imported: Imported, lead: Lead) -> int:
    """Write the report of a measurement: what it says first, then the diagnosis of what was recorded meanwhile.

    Returns its size in bytes; the file appears whole or not at all.

    Raises:
        UsageError: the file cannot be written there.
    """
    from leadline.faces.report.page import page  # noqa: PLC0415

    check_writable(path)
    return write_page(path, page(diagnosis, imported, lead=lead))


def write_page(path: Path, html: str) -> int:
    """Write a page; the file appears whole or not at all. Returns its size in bytes.

    Raises:
        UsageError: the file cannot be written there.
    """
    raw = html.encode("utf-8", errors="replace")
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
    except OSError as error:
        raise _not_writable(path, error.strerror or str(error)) from error
    finally:
        aside.unlink(missing_ok=True)
    return len(raw)


def check_writable(path: Path) -> None:
    """Refuse a path no report can be written to, before hours of recordings are read.

    Raises:
        UsageError: it is a folder, its folder does not exist, or the folder does not let us write.
    """
    if path.is_dir():
        raise _not_writable(path, "is a folder")
    if not path.parent.is_dir():
        raise _not_writable(path, f"there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise _not_writable(path, f"no right to write into {path.parent}")


def _not_writable(path: Path, found: str) -> UsageError:
    return UsageError(
        f"--html {path}",
        found=found,
        expected="a file in a folder that can be written",
        advice="Name a file, for example report.html.",
    )
