"""All views of all recordings diagnosed and judged, side by side on the processors there are."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from benches.incidents.judging import Judgement, blank, judged
from benches.incidents.recordings import Truth, read_recording
from benches.incidents.thresholds import threshold_errors
from benches.incidents.views import FULL, View, views
from leadline.app.diagnose.diagnosing import diagnose
from leadline.core.model.errors import LeadlineError


@dataclass(frozen=True, slots=True)
class Measured:
    """One recording: its truth and the judgement of each view, or the problem that kept it from being read."""

    archive: Path
    truth: Truth | None = None
    judgements: tuple[Judgement, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()  # file and why Leadline cannot read it
    problem: str = ""


def measured(archive: Path, names: list[str] | None = None) -> Measured:
    """Read one recording, diagnose its views (only some when names are given) and judge each diagnosis."""
    try:
        with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
            recording = read_recording(archive, Path(folder))
            judgements = tuple(judged_view(recording.truth, view) for view in views(recording, names))
    except LeadlineError as error:
        return Measured(archive, problem=f"{error.where}: {error.found}")
    except Exception as error:  # one recording that breaks Leadline is counted, and the others are measured
        name = f"{archive.parent.name}/{archive.name}"
        return Measured(archive, problem=f"{name}: a fault in Leadline ({type(error).__name__}: {error})")
    unread = tuple((file.name, file.reason) for file in recording.files if file.capture is None)
    return Measured(archive, recording.truth, judgements, unread)


def judged_view(truth: Truth, view: View) -> Judgement:
    """The judgement of one view: of the diagnosis, and of the list of thresholds beside it."""
    if view.capture is None:
        return blank(truth, view.name, is_visible=view.is_visible)
    diagnosis = diagnose(view.capture)
    judgement = judged(truth, diagnosis, view.name, is_visible=view.is_visible, is_timed=view.name == FULL)
    cleared, accused = threshold_errors(truth, view.capture)
    return replace(judgement, threshold_clearances=cleared, threshold_accusations=accused)


def measure_all(
    archives: list[Path], names: list[str] | None, jobs: int, progress: Callable[[Path], None]
) -> list[Measured]:
    """Every recording, in the order of the archives; ``progress`` is called as each is done."""
    done = dict(_side_by_side(archives, names, min(jobs or os.cpu_count() or 1, len(archives)), progress))
    return [done[archive] for archive in archives]


def _side_by_side(
    archives: list[Path], names: list[str] | None, jobs: int, progress: Callable[[Path], None]
) -> Iterator[tuple[Path, Measured]]:
    if jobs <= 1:
        for archive in archives:
            yield archive, measured(archive, names)
            progress(archive)
        return
    # Fresh processes: the threads of the progress bar and of NumPy do not survive a fork.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        pending = {pool.submit(measured, archive, names): archive for archive in archives}
        try:
            for future in as_completed(pending):
                yield pending[future], future.result()
                progress(pending[future])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
