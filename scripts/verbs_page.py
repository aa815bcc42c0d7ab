"""The page of verbs in the documentation, each with what it prints: ``python -m scripts.verbs_page``.

What a verb prints of the examples is printed anew and compared by a test. What depends on the machine stays as it was
printed last, unless ``--machine`` is given.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from leadline.faces.cli.lazy_verbs import QUESTIONS, question_of, summary_of, verb_stems
from leadline.faces.cli.main import VERBS
from tests.traces import write_vscsi

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "verbs.md"
LINES_MAX = 22
WIDTH = 80


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a verb: commands before it, the command itself, and whether the output is the machine's own."""

    command: str
    before: tuple[str, ...] = ()
    is_of_machine: bool = False


SHOWN = {
    "diagnose": Shown("leadline diagnose examples/incidents/cpu-starved-guest"),
    "probe": Shown(
        "leadline probe --on scratch --seconds 3 --pulse 3 --set-size 64m --yes -o probed", is_of_machine=True
    ),
    "guide": Shown("leadline guide slow-disk examples/incidents/throttled-wal-disk"),
    "watch": Shown("leadline watch check", before=("leadline watch init --yes",), is_of_machine=True),
    "show": Shown("leadline show examples/generated/esxtop.csv.gz --metric cpu_ready_pct"),
    "trace": Shown("leadline trace characterise db01.vscsi"),
    "bench": Shown("leadline bench workloads"),
    "lab": Shown("leadline lab list"),
    "runs": Shown("leadline runs list"),
    "simulate": Shown("leadline simulate iops-cap", is_of_machine=True),
    "calibrate": Shown("leadline calibrate examples/incidents/healthy --entity loop0 -o mine.yaml"),
    "reproduce": Shown("leadline reproduce iops-cap-latency"),
    "audit": Shown("leadline audit examples/easy/inventory.yaml"),
    "plan": Shown("leadline plan protect --set nodes=6 --set survives=2"),
    "guest": Shown("leadline guest analyze", is_of_machine=True),
    "facts": Shown("leadline facts -o facts.json", is_of_machine=True),
    "import": Shown("leadline import examples/generated/esxtop.csv.gz"),
    "recorder": Shown("leadline recorder linux"),
    "collect": Shown("leadline collect linux --seconds 3 -o guest", is_of_machine=True),
    "completion": Shown("leadline completion fish"),
    "doctor": Shown("leadline doctor", is_of_machine=True),
    "explain": Shown("leadline explain cpu-ready-high"),
    "generate": Shown("leadline generate cap.csv --vms 2 --minutes 2 --fault cpu-contention"),
    "metrics": Shown("leadline metrics latency"),
    "rules": Shown("leadline rules --layer storage-path"),
}


def page(old: str, *, machine: bool) -> str:
    """The page, with outputs that depend on the machine taken from an old page unless ``machine``."""
    kept = dict(re.findall(r"```\n\$ ([^\n]+)\n(.*?)\n```", old, re.DOTALL))
    stems = verb_stems(VERBS)
    parts = [
        "# Every verb, and what it prints\n",
        "By the question that it answers; `leadline VERB --help` has all options, with examples. Outputs are those of",
        "the examples beside this page, or of the machine that made this page.",
    ]
    for key, heading in QUESTIONS.items():
        verbs = [name for name, stem in stems.items() if question_of(VERBS, stem) == key]
        parts += [f"\n## {heading}"] if verbs else []
        for name in verbs:
            shown = SHOWN[name]
            output = kept.get(shown.command) if shown.is_of_machine and not machine else None
            text = printed(shown) if output is None else output
            parts.append(f"\n### {name}\n\n{summary_of(VERBS, stems[name])}\n\n```\n$ {shown.command}\n{text}\n```")
    return "\n".join(parts) + "\n"


def printed(shown: Shown) -> str:
    """What a command prints in 80 columns, run in a folder that has the examples; cut after some lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        (folder / "scratch").mkdir()
        write_vscsi(folder / "db01.vscsi", 2000)
        environment = {**_environment(folder), "COLUMNS": str(WIDTH)}
        for command in (*shown.before, shown.command):
            words = shlex.split(command)
            done = subprocess.run(
                [str(Path(sys.executable).parent / words[0]), *words[1:]],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            )
    lines = [line.rstrip() for line in done.stdout.replace(name, "").strip("\n").splitlines()]
    return "\n".join(lines if len(lines) <= LINES_MAX else [*lines[: LINES_MAX - 1], "..."])


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin",
        "HOME": str(folder),
        "LEADLINE_HOME": str(folder / "runs"),
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="verbs_page", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--machine", action="store_true", help="run what depends on the machine, too")
    options = parser.parse_args(arguments)
    old = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
    PAGE.write_text(page(old, machine=options.machine or not old), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
