"""Guest optimisation on made-up trees: the plan, the way back, and what must never happen."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from leadline.app.optimising import analyze, apply, history, items_of, plan, revert
from leadline.core.contracts.target import ItemState
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.faces.cli.main import build_app
from leadline.targets import guest_linux
from leadline.targets.guest_linux import JOURNAL_FOLDER, load_template, templates


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = {
        "proc/sys/vm/swappiness": "60\n",
        "proc/sys/vm/overcommit_memory": "0\n",
        "sys/module/vmw_pvscsi/parameters/cmd_per_lun": "64\n",
        "sys/block/sda/queue/scheduler": "[mq-deadline] kyber none\n",
        "sys/block/sda/device/timeout": "30\n",
        "sys/block/loop0/queue/scheduler": "[mq-deadline] none\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "etc/sysctl.d/10-own.conf": "vm.swappiness = 30\n",
        "lib/systemd/system/apt-daily.timer": "[Timer]\n",
    }
    for name, content in made.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def picture(root: Path) -> dict[str, str]:
    """Everything under a root but the journal: kind, mode and contents of each path."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith("var"):
            continue
        if path.is_symlink():
            found[name] = f"link {path.readlink()}"
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return found


@pytest.mark.parametrize("name", templates())
def test_every_item_has_what_a_user_must_know(name: str) -> None:
    for item in load_template(name):
        assert item.reason.endswith(".")
        assert item.source
        assert item.risk
        assert item.activate
        assert "wanted" in item.check
        for change in item.files:
            assert "leadline" in change.path or change.link is not None


def test_analysis_tells_what_is_and_what_is_wanted(root: Path) -> None:
    found = {status.item.id: status for status in analyze("postgresql", root)}
    assert found["swappiness"].state is ItemState.DIFFERS
    assert found["swappiness"].current == "60"
    assert found["io-scheduler"].current == "[mq-deadline] kyber none"
    assert found["numa-balancing"].state is ItemState.NOT_APPLICABLE
    (root / "proc/sys/vm/swappiness").write_text("1\n")
    assert {s.item.id: s.state for s in analyze("postgresql", root)}["swappiness"] is ItemState.APPLIED


def test_only_own_files_are_written_and_reverting_restores_everything(root: Path) -> None:
    before = picture(root)
    items = items_of("postgresql", ["overcommit", "no-apt-timers"], [])
    planned = {change.path for change in plan(items, root)}
    entry = apply("postgresql", items, root)
    assert entry is not None
    added = {f"/{name}" for name, what in picture(root).items() if name not in before and what != "folder"}
    assert added == planned
    assert {s.item.id: s.state for s in analyze("postgresql", root)}["swappiness"] is ItemState.WRITTEN
    reverted, left = revert(root, None)
    assert (reverted.id, left) == (entry.id, [])
    assert picture(root) == before
    assert [e.reverted for e in history(root)] == [True]


def test_a_file_that_was_there_comes_back_with_its_mode(root: Path) -> None:
    own = root / "etc/sysctl.d/60-leadline-swappiness.conf"
    own.write_text("vm.swappiness = 5\n")
    own.chmod(0o600)
    before = picture(root)
    apply("postgresql", items_of("postgresql", [], []), root)
    assert own.read_text() == "vm.swappiness = 1\n"
    revert(root, None)
    assert picture(root) == before


def test_applying_twice_writes_once(root: Path) -> None:
    items = items_of("postgresql", [], [])
    assert apply("postgresql", items, root) is not None
    assert apply("postgresql", items, root) is None
    assert len(history(root)) == 1


def test_a_file_somebody_changed_since_is_left_and_told(root: Path) -> None:
    apply("postgresql", items_of("postgresql", [], []), root)
    changed = root / "etc/sysctl.d/60-leadline-swappiness.conf"
    changed.write_text("vm.swappiness = 7\n")
    _, left = revert(root, None)
    assert left == ["/etc/sysctl.d/60-leadline-swappiness.conf"]
    assert changed.read_text() == "vm.swappiness = 7\n"
    assert [e.reverted for e in history(root)] == [False]
    _, left = revert(root, None, force=True)
    assert left == []
    assert not changed.exists()


def test_the_later_application_of_a_file_goes_first(root: Path) -> None:
    first = apply("postgresql", items_of("postgresql", [], []), root)
    second = apply("server", items_of("server", [], []), root)
    assert first is not None
    assert second is not None
    with pytest.raises(UsageError, match=second.id):
        revert(root, first.id)
    revert(root, second.id)
    revert(root, first.id)
    assert not (root / "etc/sysctl.d/60-leadline-swappiness.conf").exists()


@pytest.mark.parametrize("stop_after", [0, 1, 2, 4])
def test_a_kill_in_the_middle_can_be_reverted(root: Path, stop_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = picture(root)
    written: list[str] = []
    put = guest_linux._put

    def dying(tree: Path, name: str, what: dict[str, object] | None) -> None:
        if not name.startswith("/var"):
            if len(written) == stop_after:
                raise KeyboardInterrupt
            written.append(name)
        put(tree, name, what)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(guest_linux, "_put", dying)
        apply("postgresql", items_of("postgresql", [], []), root)
    _, left = revert(root, None)
    assert left == []
    assert picture(root) == before


def test_a_link_out_of_the_root_is_not_followed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (root / "etc/udev").mkdir()
    (root / "etc/udev/rules.d").symlink_to(outside)
    with pytest.raises(ToolError, match="out of the root"):
        apply("postgresql", items_of("postgresql", [], []), root)
    assert list(outside.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_root_that_cannot_be_written_is_one_error(root: Path) -> None:
    (root / "etc").chmod(0o500)
    with pytest.raises(ToolError, match="not writable"):
        apply("postgresql", items_of("postgresql", [], []), root)


def test_an_item_that_asks_for_a_value_needs_it(root: Path) -> None:
    (root / "proc/sys/vm/nr_hugepages").write_text("0\n")
    assert {s.item.id: s.current for s in analyze("postgresql", root)}["huge-pages"] == "needs --set huge_pages=NUMBER"
    with pytest.raises(UsageError, match="--set huge_pages=NUMBER"):
        items_of("postgresql", ["huge-pages"], [])
    with pytest.raises(UsageError, match="one of huge_pages"):
        items_of("postgresql", [], [], values={"hugepages": 1})
    assert "/etc/sysctl.d/60-leadline-huge-pages.conf" not in {
        change.path for change in plan(items_of("postgresql", [], [], every=True), root)
    }
    apply("postgresql", items_of("postgresql", ["huge-pages"], [], values={"huge_pages": 4200}), root)
    assert (root / "etc/sysctl.d/60-leadline-huge-pages.conf").read_text() == "vm.nr_hugepages = 4200\n"
    done = CliRunner().invoke(build_app(), ["guest", "analyze", "--set", "huge_pages=x", "--root", str(root)])
    assert isinstance(done.exception, UsageError)


def test_mistakes_are_named(root: Path) -> None:
    with pytest.raises(UsageError, match="postgresql"):
        items_of("oracle", [], [])
    with pytest.raises(UsageError, match="swappiness"):
        items_of("postgresql", ["swapiness"], [])
    with pytest.raises(UsageError, match="nothing to take back"):
        revert(root, None)
    with pytest.raises(UsageError, match="a folder"):
        analyze("postgresql", root / "none")
    (root / JOURNAL_FOLDER).mkdir(parents=True)
    (root / JOURNAL_FOLDER / "x.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        history(root)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.lists(st.sampled_from(["postgresql", "server", "revert"]), max_size=8))
def test_any_order_of_applying_and_reverting_leads_back(root: Path, steps: list[str]) -> None:
    before = picture(root)
    for step in steps:
        if step != "revert":
            apply(step, items_of(step, [], []), root)
        elif any(not entry.reverted for entry in history(root)):
            revert(root, None)
    while any(not entry.reverted for entry in history(root)):
        assert revert(root, None)[1] == []
    assert picture(root) == before


def test_the_verb(root: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(build_app(), ["guest", *words, "--root", str(root)])
        return done.exit_code, done.output

    assert "swappiness" in run("analyze")[1]
    code, output = run("apply", "--yes", "--leave", "thp")
    assert code == 0
    assert "why:" in output
    assert "sysctl --system" in output
    assert not (root / "etc/tmpfiles.d").exists()
    shown = json.loads(run("history", "--json")[1])["history"]
    assert shown[0]["items"] == ["pvscsi-queues", "io-scheduler", "swappiness", "disk-timeout"]
    assert run("revert", "--yes")[0] == 0
    assert "Nothing to write" not in run("apply", "--yes")[1]
