"""What Ctrl-C leaves is said once, and truly."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.simulate.simulating import plan_simulation, simulate
from leadline.core.system.interrupts import NOTHING, Interrupted, kept, raised_interrupts
from leadline.faces.cli import main
from leadline.faces.cli.endings import INTERRUPTED
from leadline.stores.runs import RunStore
from tests.conftest import ROOT


def test_the_outermost_says_what_is_kept() -> None:
    with (
        pytest.raises(Interrupted, match=r"^the sweep$"),
        raised_interrupts(),
        kept(lambda: "the sweep"),
        kept(lambda: "a run"),
    ):
        raise KeyboardInterrupt


def test_where_nothing_is_kept_that_is_said() -> None:
    with pytest.raises(Interrupted, match=f"^{NOTHING}$"), raised_interrupts(), kept(str):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (Interrupted("3 of 4 are kept"), "interrupted; 3 of 4 are kept\n"),
        (KeyboardInterrupt(), "interrupted; nothing was left behind\n"),
    ],
)
def test_the_command_line_prints_one_sentence(
    raised: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(**_: object) -> None:
        raise raised

    monkeypatch.setattr(main, "build_app", lambda: interrupted)
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == INTERRUPTED
    assert capsys.readouterr().err == said


def test_variants_that_were_done_are_counted(tmp_path: Path) -> None:
    planned = plan_simulation(ROOT / "examples/scenarios/capped-neighbour.yaml")
    store = RunStore(tmp_path)

    def heard(_: float, done: int, __: int) -> None:
        if done:
            raise KeyboardInterrupt

    what_is_kept = r"^[12] of 2 variants are kept; go on with .* --resume$"
    with pytest.raises(Interrupted, match=what_is_kept), raised_interrupts():
        simulate(planned, store, heard)
    assert store.list()
