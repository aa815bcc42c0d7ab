r"""What the exports do to a registry: applied, read back and taken back in Wine, whose regedit, reg and cmd run here.

Wine is not Windows: it cannot load a hive, so values of the default user are left out here, and its `sc`, `schtasks`
and `powercfg` change nothing that could be checked. Registry values are the same in both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from leadline.app.optimising import Script, export, way_back
from leadline.formats.windows.registry_file import RegistryData, encoded, read_entries, value_line
from leadline.targets.guest_windows import load_template, template_of, templates
from tests.targets.test_windows_forms import EVERY_TYPE, KEY

WINE = Path("/usr/lib/wine/wine64")
SERVER = Path("/usr/lib/wine/wineserver64")
ROOTS = ("HKEY_LOCAL_MACHINE\\SOFTWARE\\Leadline",)
SHIPPED_ROOTS = ("HKEY_LOCAL_MACHINE\\SYSTEM", "HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows\\CurrentVersion")
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not WINE.is_file(), reason="needs Wine's registry: apt-get install wine64"),
]
Values = dict[tuple[str, str], RegistryData | None]


@dataclass(frozen=True)
class Wine:
    """A prefix of Wine: a registry and the programs that work on it."""

    prefix: Path

    def run(self, *words: str, status: int | None = 0) -> str:
        environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
        # Without these two no window asks for what browsers need.
        environment |= {"WINEPREFIX": str(self.prefix), "WINEDEBUG": "-all", "WINEDLLOVERRIDES": "mscoree=;mshtml="}
        with tempfile.TemporaryFile() as output:  # Wine's server goes on with the output: a pipe would never end
            done = subprocess.run(
                [WINE, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=120,
                check=False,
            )
            output.seek(0)
            shown = output.read().decode("utf-8", "replace")
        assert status is None or done.returncode == status, f"{words}: {done.returncode}: {shown}"
        return shown

    def apply(self, path: Path) -> None:
        self.run("regedit", "/S", _windows(path))

    def recorded(self, root: str, path: Path) -> Path:
        self.run("regedit", "/E", _windows(path), root)
        return path

    def values(self, folder: Path, roots: tuple[str, ...] = ROOTS) -> Values:
        found: Values = {}
        for number, root in enumerate(roots):
            for entry in read_entries(self.recorded(root, folder / f"now-{number}.reg")):
                if entry.name is not None:
                    found[entry.key.upper(), entry.name.upper()] = entry.data
        return found

    def query(self, script: Script) -> dict[str, str]:
        """What `reg query` prints of each value: its type and data; "" for a value that is not there."""
        found = {}
        for item in (item for item in script.items if item.in_registry):
            words = ("/v", item.value_name) if item.value_name else ("/ve",)
            shown = self.run("reg", "query", item.key, *words, status=None)
            lines = [line.split(None) for line in shown.splitlines() if " REG_" in line]
            found[item.id] = " ".join(lines[0][lines[0].index(_type(lines[0])) :]) if lines else ""
        return found


def _type(words: list[str]) -> str:
    return next(word for word in words if word.startswith("REG_"))


def _windows(path: Path) -> str:
    return "Z:" + str(path).replace("/", "\\")


@pytest.fixture(scope="module")
def wine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wine]:
    prefix = tmp_path_factory.mktemp("wine") / "prefix"
    made = Wine(prefix)
    made.run("wineboot", "-i")
    yield made
    subprocess.run([SERVER, "-k"], env={**os.environ, "WINEPREFIX": str(prefix)}, check=False, timeout=60)
    shutil.rmtree(prefix, ignore_errors=True)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(EVERY_TYPE), allow_unicode=True), encoding="utf-8")
    return path


def seed(wine: Wine, folder: Path) -> None:
    """Values of other types and data in the places of the template, two that it does not name, and keys without any."""
    lines = [
        f"[{KEY}]",
        value_line("", RegistryData.of_text("the old default")),
        value_line("a%b", RegistryData(3, b"\1\2\3")),
        value_line("expand", RegistryData.of_text("%TEMP%\\old", 2)),
        value_line("long", RegistryData.of_number(5, 11)),
        value_line("bytes", RegistryData.of_texts(("x", "y"))),
        value_line("gone", RegistryData.of_text('C:\\"old"\\')),
        value_line("other", RegistryData.of_text("stays")),
        f"[{KEY}\\empty]",
    ]
    path = folder / "seed.reg"
    path.write_bytes(encoded(["[-HKEY_LOCAL_MACHINE\\SOFTWARE\\Leadline]", *lines]))
    wine.apply(path)


def exports(wine: Wine, folder: Path, name: str, roots: tuple[str, ...] = ROOTS) -> list[Path]:
    return [wine.recorded(root, folder / f"{name}-{number}.reg") for number, root in enumerate(roots)]


def written(folder: Path, script: Script, before: list[Path], ending: str) -> tuple[Path, Path]:
    there, back = folder / f"apply.{ending}", folder / "back.reg"
    there.write_bytes(script.encoded)
    back.write_bytes(way_back(script, before))
    return there, back


def wanted(script: Script) -> Values:
    return {(item.key.upper(), item.value_name.upper()): item.data for item in script.items}


def in_keys_of(script: Script, values: Values) -> Values:
    """The values of the keys that the script writes to, those it does not name among them."""
    keys = {item.key.upper() for item in script.items}
    return {place: data for place, data in values.items() if place[0] in keys}


def test_a_registration_file_is_applied_and_taken_back(wine: Wine, mine: Path, tmp_path: Path) -> None:
    seed(wine, tmp_path)
    before = exports(wine, tmp_path, "before")
    values = wine.values(tmp_path)
    script = export(str(mine), None, [], ["user"], form="reg")
    there, back = written(tmp_path, script, before, "reg")

    wine.apply(there)
    now = wine.values(tmp_path)
    assert {place: now.get(place) for place in wanted(script)} == wanted(script)
    assert {place: data for place, data in now.items() if place not in wanted(script)} == {
        place: data for place, data in values.items() if place not in wanted(script)
    }
    shown = wine.query(script)
    assert shown["number"].upper() == "REG_DWORD 0XFFFFFFFF"
    assert shown["expand"] == "REG_EXPAND_SZ %SystemRoot%\\x"
    assert shown["text"] == 'REG_SZ 100% of "C:\\dir\\" ^&|'
    assert shown["bytes"] == "REG_BINARY 90320780FF"
    assert shown["list"] == "REG_MULTI_SZ a;b\\0c|d"
    assert shown["gone"] == ""

    wine.apply(back)
    assert [path.read_bytes() for path in exports(wine, tmp_path, "after")] == [path.read_bytes() for path in before]


@pytest.mark.parametrize("name", templates())
def test_a_shipped_template_is_applied_and_taken_back(wine: Wine, name: str, tmp_path: Path) -> None:
    """Most of its keys are not there before; they stay, empty. Wine's services change keys of these hives meanwhile."""
    before = exports(wine, tmp_path, "before", SHIPPED_ROOTS)
    values = wine.values(tmp_path, SHIPPED_ROOTS)
    users = [item.id for item in load_template(name) if item.of_new_users]
    script = export(name, None, [], users, every=True, form="reg")
    assert script.items == [item for item in load_template(name) if item.in_registry and item.id not in users]
    there, back = written(tmp_path, script, before, "reg")

    wine.apply(there)
    now = wine.values(tmp_path, SHIPPED_ROOTS)
    assert {place: now.get(place) for place in wanted(script)} == wanted(script)
    shown = wine.query(script)
    assert all(text.startswith("REG_") for text in shown.values())

    wine.apply(back)
    assert in_keys_of(script, wine.values(tmp_path, SHIPPED_ROOTS)) == in_keys_of(script, values)


def test_a_command_script_is_applied_and_taken_back(wine: Wine, mine: Path, tmp_path: Path) -> None:
    seed(wine, tmp_path)
    before = exports(wine, tmp_path, "before")
    others = ["service", "task", "plan", "user"]
    script = export(str(mine), None, [], others, form="cmd")
    there, back = written(tmp_path, script, before, "cmd")

    wine.run("cmd", "/c", _windows(there))
    now = wine.values(tmp_path)
    assert {place: now.get(place) for place in wanted(script)} == wanted(script)

    wine.apply(back)
    assert [path.read_bytes() for path in exports(wine, tmp_path, "after")] == [path.read_bytes() for path in before]


def test_a_failed_command_is_the_scripts_status_and_the_rest_is_done(wine: Wine, mine: Path, tmp_path: Path) -> None:
    """Wine cannot load a hive, so this one fails."""
    seed(wine, tmp_path)
    script = export(str(mine), None, [], ["service", "task", "plan"], form="cmd")
    path = tmp_path / "apply.cmd"
    path.write_bytes(script.encoded)
    shown = wine.run("cmd", "/c", _windows(path), status=1)
    assert "could not be loaded" in shown
    now = wine.values(tmp_path)
    of_machine = {place: data for place, data in wanted(script).items() if "LEADLINEDEFAULT" not in place[0]}
    assert {place: now.get(place) for place in of_machine} == of_machine


def test_a_script_for_other_builds_changes_nothing(wine: Wine, tmp_path: Path) -> None:
    number = wine.run(
        "reg", "query", "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion", "/v", "CurrentBuildNumber"
    )
    build = int(number.split()[-1])
    ranges = {name: template_of(name).builds for name in templates()}
    name = next(name for name, builds in ranges.items() if builds and not builds[0] <= build <= builds[1])
    path = tmp_path / "apply.cmd"
    script = export(name, None, [], [], form="cmd")
    path.write_bytes(script.encoded)
    before = wine.query(script)
    shown = wine.run("cmd", "/c", _windows(path), status=1)
    assert f"this is build {build}. Nothing was changed." in shown
    assert wine.query(script) == before
