"""`leadline bench translate`: another tool's job file as a workload, and a workload as one of fio's or Iometer's."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from leadline.faces.cli.options import Json

EPILOG = """\
Examples:

  leadline bench translate job.fio

  leadline bench translate job.fio --json

  leadline bench translate 'runs.vdbench#rd2'

  leadline bench translate hci-8k-50-50 --to fio --on /mnt/scratch

  leadline bench translate hci-4k-70-30 --to iometer
"""


def command(
    workload: Annotated[
        str, typer.Argument(help="Job file of fio, vdbench or Iometer, FILE#NAME for one of its runs, or a workload.")
    ],
    *,
    to: Annotated[Literal["workload", "fio", "iometer"], typer.Option("--to", help="What to make of it.")] = "workload",
    on: Annotated[
        str,
        typer.Option(
            "--on", help="With --to fio: folder or device of the other machine; iometer: disk.", show_default=False
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Print what a job file is as a workload, and what of it could not be kept.

    What is left out or approximated stands as comments: line, option, what holds instead. Nothing is run. Every verb
    that takes a workload takes such files themselves.
    """
    from leadline.app.measure.workloads import fio_job_text, iometer_text, translation_of, translation_text
    from leadline.core.model.errors import UsageError
    from leadline.faces.cli.output import print_json

    if on and to == "workload":
        raise UsageError(
            "bench translate",
            found="--on without --to fio or iometer",
            expected="both or none",
            advice="A workload has no target.",
        )
    translation = translation_of(workload)
    writers = {"fio": fio_job_text, "iometer": iometer_text}
    text = writers[to](translation.workload, on) if to in writers else translation_text(translation)
    if not json:
        typer.echo(text, nl=not text.endswith("\n"))
        return
    print_json(
        "leadline.translation/1",
        source=translation.source,
        choices=list(translation.choices),
        workload=translation.workload.plain(),
        text=text,
        notes=[
            {
                "file": note.file,
                "line": note.line,
                "option": note.option,
                "fate": note.fate.name.lower(),
                "text": note.text,
            }
            for note in translation.notes
        ],
    )
