r"""Templates of Windows as registration file and command script: syntax, quoting, what is left out, the way back.

What the files do to a registry is tested in `test_wine_registry.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from leadline.app.optimising import check_build, export, reference, saved, way_back
from leadline.core.io.outputs import is_ours
from leadline.core.model.errors import InputError, UsageError
from leadline.faces.cli.main import build_app
from leadline.formats.windows.registry_file import HEADER, RegistryEntry, entries
from leadline.targets._guest_windows.command_script import argument, comment
from leadline.targets.guest_windows import (
    WindowsItem,
    WindowsTemplate,
    command_script,
    load_template,
    registration,
    template_of,
    templates,
)
from tests.targets.test_guest_windows import broken

EVERY_TYPE = r"""
template: every-type
title: every type
items:
- &first
  {id: text, title: t, kind: registry, path: 'HKLM:\SOFTWARE\Leadline\A & B (x)', name: 'a%b', type: String,
   value: '100% of "C:\dir\" ^&|', reason: r., source: s, risk: low}
- {<<: *first, id: expand, name: expand, type: ExpandString, value: '%SystemRoot%\x'}
- {<<: *first, id: number, name: (default), type: DWord, value: 4294967295}
- {<<: *first, id: long, name: long, type: QWord, value: 18446744073709551615}
- {<<: *first, id: list, name: list, type: MultiString, value: ['a;b', 'c|d']}
- {<<: *first, id: bytes, name: bytes, type: Binary, value: '90320780ff'}
- {<<: *first, id: gone, name: gone, kind: remove-value, type: '', value: ''}
- {<<: *first, id: user, path: 'HKCU:\Control Panel\Desktop', name: MinAnimate, value: '0'}
- {<<: *first, id: service, kind: service, path: '', type: '', name: WSearch, value: Disabled}
- {<<: *first, id: task, kind: task, path: '', type: '', name: '\Microsoft\Windows\Defrag\ScheduledDefrag',
   value: Disabled}
- {<<: *first, id: plan, kind: power-plan, path: '', type: '', name: '', value: 8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c}
- {<<: *first, id: rss, kind: rss, path: '', type: '', name: '', value: vmxnet3}
- {<<: *first, id: app, kind: app, path: '', type: '', name: Microsoft.Windows.Photos, value: Removed}
- {<<: *first, id: cyrillic, name: имя, value: значение}
"""
KEY = r"HKEY_LOCAL_MACHINE\SOFTWARE\Leadline\A & B (x)"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(EVERY_TYPE), allow_unicode=True), encoding="utf-8")
    return path


def invoke(*words: str) -> str:
    done = CliRunner().invoke(build_app(), ["guest", "export", *words])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_registration_file_holds_every_type(mine: Path) -> None:
    written = export(str(mine), None, [], [], form="reg")
    lines = written.encoded[2:].decode("utf-16-le").split("\r\n")
    assert written.encoded.startswith(b"\xff\xfe")
    assert lines[0] == HEADER
    assert [line for line in lines[1:] if line and not line.startswith(";")] == [
        f"[{KEY}]",
        r'"a%b"="100% of \"C:\\dir\\\" ^&|"',
        '"expand"=hex(2):' + ",".join(f"{ord(c):02x},00" for c in "%SystemRoot%\\x\0"),
        "@=dword:ffffffff",
        '"long"=hex(b):ff,ff,ff,ff,ff,ff,ff,ff',
        '"list"=hex(7):' + ",".join(f"{ord(c):02x},00" for c in "a;b\0c|d\0\0"),
        '"bytes"=hex:90,32,07,80,ff',
        '"gone"=-',
        r"[HKEY_USERS\LeadlineDefault\Control Panel\Desktop]",
        '"MinAnimate"="0"',
        f"[{KEY}]",
        '"имя"="значение"',
    ]
    assert [name for name, _ in written.unheld] == ["service", "task", "plan", "rss", "app"]
    for name, why in written.unheld:
        assert f"; Not in this file: {name}: {why}" in lines
    assert r";   reg load HKU\LeadlineDefault %SystemDrive%\Users\Default\NTUSER.DAT" in lines


def test_a_command_script_quotes_and_counts_failures(mine: Path) -> None:
    written = export(str(mine), None, [], [], form="cmd")
    assert written.encoded.count(b"\r\n") == written.encoded.count(b"\n")
    lines = written.encoded.decode("ascii").split("\r\n")
    place = r'"HKLM\SOFTWARE\Leadline\A & B (x)"'
    commands = [line for line in lines if line.startswith(("reg ", "sc ", "schtasks ", "powercfg "))]
    assert commands == [
        rf'reg add {place} /v "a%%b" /t REG_SZ /d ^"100%% of \^"C:\dir\\\^" ^^^&^|^" /f',
        rf'reg add {place} /v "expand" /t REG_EXPAND_SZ /d "%%SystemRoot%%\x" /f',
        f'reg add {place} /ve /t REG_DWORD /d "4294967295" /f',
        f'reg add {place} /v "long" /t REG_QWORD /d "18446744073709551615" /f',
        f'reg add {place} /v "list" /t REG_MULTI_SZ /s "#" /d "a;b#c|d" /f',
        f'reg add {place} /v "bytes" /t REG_BINARY /d "90320780ff" /f',
        f'reg query {place} /v "gone" >nul 2>nul',
        f'reg delete {place} /v "gone" /f',
        'sc query "WSearch" >nul 2>nul',
        'sc config "WSearch" start= disabled',
        'sc stop "WSearch" >nul 2>nul',
        r'schtasks /Query /TN "\Microsoft\Windows\Defrag\ScheduledDefrag" >nul 2>nul',
        r'schtasks /Change /TN "\Microsoft\Windows\Defrag\ScheduledDefrag" /DISABLE',
        'powercfg /setactive "8c5e7fda-e8bf-4a96-9a85-a6e23a8c635c"',
        r'reg load "HKU\LeadlineDefault" "%SystemDrive%\Users\Default\NTUSER.DAT"',
        r'reg add "HKU\LeadlineDefault\Control Panel\Desktop" /v "MinAnimate" /t REG_SZ /d "0" /f',
        r'reg unload "HKU\LeadlineDefault"',
    ]
    for number, line in enumerate(lines):
        if line.startswith(("reg add", "reg delete", "sc config", "schtasks /Change", "powercfg", "reg unload")):
            assert lines[number + 1] == 'if not "%ERRORLEVEL%"=="0" set FAILED=1', line
    assert lines[-2:] == ["exit /b %FAILED%", ""]
    assert [name for name, _ in written.unheld] == ["rss", "app", "cyrillic"]


def test_nothing_leaves_the_script_between_load_and_unload(mine: Path) -> None:
    lines = export(str(mine), None, [], [], form="cmd").text.splitlines()
    load = next(number for number, line in enumerate(lines) if line.startswith("reg load"))
    unload = next(number for number, line in enumerate(lines) if line.startswith("reg unload"))
    assert lines[load + 1] == "if errorlevel 1 goto unloaded"
    assert not any("exit" in line or "goto end" in line for line in lines[load + 2 : unload])


def test_text_of_a_template_ends_no_argument_and_no_comment() -> None:
    assert argument("a\\") == '"a\\\\"'
    assert argument('a\\"') == r'^"a\\\^"^"'
    assert argument("") == '""'
    for text in ("%PATH%", "a\nb", "x & calc", "^", "!", "\u2019"):
        assert set(comment(text)) & set("%\n&^!\u2019") == set()


def after_cmd(line: str) -> str:
    """What cmd.exe passes on of a line of a batch file: percents, then carets and quotation marks."""
    assert "%" not in line.replace("%%", "")
    passed, is_quoted, characters = "", False, iter(line.replace("%%", "%"))
    for character in characters:
        if character == "^" and not is_quoted:
            passed += next(characters)
            continue
        assert is_quoted or character not in "&|<>()"
        is_quoted ^= character == '"'
        passed += character
    assert not is_quoted
    return passed


def arguments_of(line: str) -> list[str]:
    """What a C program is given of a command line: backslashes count only before a quotation mark."""
    words, is_quoted, at = [""], False, 0
    while at < len(line):
        slashes = len(line) - at - len(line[at:].lstrip("\\"))
        at += slashes
        is_mark = line[at : at + 1] == '"'
        words[-1] += "\\" * (slashes // 2 if is_mark else slashes)
        if is_mark and slashes % 2:
            words[-1] += '"'
        elif is_mark:
            is_quoted = not is_quoted
        elif line[at : at + 1] == " " and not is_quoted:
            words.append("")
        else:
            words[-1] += line[at : at + 1]
        at += 1
    return words


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from('ab \\"%^&|<>()!;'), max_size=20), st.text(st.sampled_from('a\\"%^&'), max_size=10))
def test_an_argument_arrives_as_it_was(first: str, second: str) -> None:
    line = f"reg add {argument(first)} /d {argument(second)}"
    assert arguments_of(after_cmd(line)) == ["reg", "add", first, "/d", second]


def test_the_powershell_script_loads_the_hive_and_removes_apps(mine: Path) -> None:
    written = export(str(mine), None, [], [])
    assert broken(written.text) == []
    assert r"Path = 'Registry::HKEY_USERS\LeadlineDefault\Control Panel\Desktop'" in written.text
    assert "try { Invoke-Template } finally { Close-Hive }" in written.text
    assert "Value = [byte[]]@(0x90, 0x32, 0x07, 0x80, 0xff)" in written.text
    assert "Value = [string[]]@('a;b', 'c|d')" in written.text
    assert "Remove-AppxProvisionedPackage -Online" in written.text
    assert len(written.items) == 14


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=7, max_size=7))
def test_no_text_of_a_template_becomes_a_line(texts: list[str]) -> None:
    title, key, name, value, reason, source, template = texts
    item = WindowsItem("x", title, "registry", f"HKLM:\\A{key}", name, "String", value, reason, source, title)
    unlisted = WindowsItem("y", title, "app", "", name, "", "Removed", reason, source, title)
    made = registration(WindowsTemplate(template, title, (1, 2), [item, unlisted]))
    text = made.content[2:].decode("utf-16-le", "surrogatepass")
    found = [entry for entry in entries(text, "x") if entry.name is not None]
    assert found == [RegistryEntry(item.key, item.value_name, item.data)] * len(made.items)
    script = command_script(WindowsTemplate(template, title, None, [item, unlisted]))
    lines = script.content.decode("ascii").split("\r\n")
    assert sum(not line.startswith(("rem", "@rem")) for line in lines) == 7 + 3 * len(script.items)


def test_the_way_back_restores_what_was_there_and_deletes_the_rest(mine: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.reg"
    before.write_text(
        f"{HEADER}\n\n[HKEY_LOCAL_MACHINE\\Software]\n[{KEY.upper()}]\n"
        '"A%B"=dword:00000007\n"gone"="was there"\n"other"="stays"\n@="old"\n\n[HKEY_USERS\\LeadlineDefault]\n',
        encoding="utf-16",
    )
    script = export(str(mine), None, [], [], form="reg")
    text = way_back(script, [before])[2:].decode("utf-16-le")
    back = {(entry.key, entry.name): entry for entry in entries(text, "back") if entry.name is not None}
    assert {name for key, name in back if key == KEY} == {"a%b", "expand", "", "long", "list", "bytes", "gone", "имя"}
    assert [line for line in text.split("\r\n") if "=" in line and not line.endswith("=-")] == [
        '"a%b"=dword:00000007',
        '@="old"',
        '"gone"="was there"',
    ]
    user = r"HKEY_USERS\LeadlineDefault\Control Panel\Desktop"
    assert back[user, "MinAnimate"] == RegistryEntry(user, "MinAnimate", None, deletes=True)
    assert f"This key was not there before; delete it by hand when it is empty: {user}" in text
    assert "[-" not in text


def test_a_way_back_needs_an_export_that_could_know(mine: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.reg"
    script = export(str(mine), None, [], [], form="reg")
    before.write_text(f"{HEADER}\n\n[HKEY_LOCAL_MACHINE\\SYSTEM]\n")
    with pytest.raises(InputError, match=r'reg export "HKEY_LOCAL_MACHINE\\SOFTWARE" FILE'):
        way_back(script, [before])
    before.write_text(f"{HEADER}\n\n[HKEY_LOCAL_MACHINE\\SOFTWARE]\n")
    with pytest.raises(InputError, match=r'reg export "HKEY_USERS\\LeadlineDefault" FILE'):
        way_back(script, [before])
    before.write_text(f'{HEADER}\n\n[HKEY_LOCAL_MACHINE\\SOFTWARE]\n"A"=-\n')
    with pytest.raises(InputError, match="a line that deletes"):
        way_back(script, [before])


@pytest.mark.parametrize("name", templates())
def test_a_saved_template_is_read_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.yaml"
    script = export(name, None, [], [load_template(name)[0].id], every=True)
    path.write_text(saved(script), encoding="utf-8")
    again = export(str(path), None, [], [])
    assert [item.id for item in again.items] == [item.id for item in load_template(name)][1:]
    assert again.text == script.text
    assert template_of(str(path)).builds == template_of(name).builds
    assert saved(again) == saved(script)
    assert reference(path)[1] == again.items


def test_a_saved_template_holds_every_type(mine: Path, tmp_path: Path) -> None:
    path = tmp_path / "saved.yaml"
    script = export(str(mine), None, [], [])
    path.write_text(saved(script), encoding="utf-8")
    assert export(str(path), None, [], []).items == script.items


@pytest.mark.parametrize(
    ("build", "fits"),
    [
        (10240, "windows-10-1507-1803"),
        (17134, "windows-10-1507-1803"),
        (17763, "windows-10-1809-1909"),
        (18363, "windows-10-1809-1909"),
    ],
)
def test_a_template_is_for_its_builds(build: int, fits: str) -> None:
    for name in ("windows-10-1507-1803", "windows-10-1809-1909"):
        script = export(name, None, [], [])
        if name == fits:
            check_build(script, build)
        else:
            with pytest.raises(UsageError, match=f"build {build}; .* Use --template {fits}"):
                check_build(script, build)
        with pytest.raises(UsageError, match="No shipped template"):
            check_build(script, 19041)
    check_build(export("windows-database", None, [], []), build)


def test_the_files_themselves_name_the_builds() -> None:
    name = "windows-10-1809-1909"
    shown = {form: export(name, None, [], [], form=form).text for form in ("ps1", "cmd", "reg")}
    assert "$Builds = @(17763, 18363)" in shown["ps1"]
    assert "windows-10-1507-1803 is for builds 10240 to 17134" in shown["ps1"]
    assert "if %BUILD% GEQ 17763 if %BUILD% LEQ 18363 goto fits" in shown["cmd"]
    assert (
        "if %BUILD% GEQ 10240 if %BUILD% LEQ 17134 echo The template that fits is windows-10-1507-1803." in shown["cmd"]
    )
    assert "; Only for builds 17763 to 18363" in shown["reg"]


@pytest.mark.parametrize("name", [name for name in templates() if "windows-10" in name])
def test_templates_of_desktops_name_microsofts_pages_and_remove_no_app_unasked(name: str) -> None:
    items = load_template(name)
    assert all("Microsoft, Optimizing Windows 10" in item.source for item in items)
    assert any(item.kind == "app" for item in items)
    assert not any(item.kind == "app" and item.default for item in items)
    assert any(item.of_new_users for item in items)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "command"}, "kind"),
        ({"path": "HKCR:\\x"}, "HKLM"),
        ({"value": 4294967296, "type": "DWord"}, "no number of type DWord"),
        ({"value": True, "type": "DWord"}, "value"),
        ({"value": "xx", "type": "Binary"}, "hexadecimal"),
        ({"value": "x", "type": "MultiString"}, "a list"),
        ({"value": 1}, "does not fit the type String"),
        ({"name": ""}, "needs a name"),
        ({"kind": "remove-value"}, "no type and no value"),
        ({"kind": "service"}, "no path and no type"),
        ({"kind": "app", "path": "", "type": "", "name": "*", "value": "Removed"}, "wildcard"),
        ({"kind": "task", "path": "", "type": "", "name": "x", "value": "Disabled"}, "backslash"),
        ({"kind": "service", "path": "", "type": "", "name": "x", "value": "off"}, "expected Automatic or"),
        ({"kind": "power-plan", "path": "", "type": "", "name": "", "value": "x"}, "GUID"),
        ({"id": "A b"}, "id"),
        ({"more": 1}, "more"),
    ],
)
def test_a_template_that_is_wrong_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    item = yaml.safe_load(EVERY_TYPE)["items"][0]
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump({"template": "t", "items": [{**item, **change}]}))
    with pytest.raises(InputError, match=rf"wrong\.yaml:\d+:\d+: .*{message}"):
        template_of(str(path))


def test_settings_of_the_default_user_are_taken_from_the_tools_templates(tmp_path: Path) -> None:
    path = tmp_path / "tool.xml"
    path.write_text(
        "<sequence name='t'><step name='User' category='Mandatory'><action><type>Registry</type><command>ADD</command>"
        "<params><keyName>HKU\\temp\\Control Panel\\Desktop</keyName><valueName>MinAnimate</valueName>"
        "<type>REG_SZ</type><data>0</data></params></action></step></sequence>"
    )
    _, items, left = reference(path)
    assert left == []
    assert [(item.path, item.name, item.of_new_users) for item in items] == [
        ("HKCU:\\Control Panel\\Desktop", "MinAnimate", True)
    ]


def test_the_verb_writes_the_form_that_the_file_name_says(mine: Path, tmp_path: Path) -> None:
    before = tmp_path / "before.reg"
    before.write_text(f"{HEADER}\n\n[HKEY_LOCAL_MACHINE\\SOFTWARE]\n[HKEY_USERS\\LeadlineDefault]\n")
    output, back, kept = tmp_path / "x.reg", tmp_path / "back.reg", tmp_path / "kept.yaml"
    words = ["-t", str(mine), "--leave", "user", "-o", str(output), "--before", str(before), "--revert-to", str(back)]
    shown = invoke(*words, "--save", str(kept))
    assert "8 item(s) written" in shown
    assert "not in this file: app: app is no registry value" in shown
    assert output.read_bytes()[2:].decode("utf-16-le").startswith(HEADER)
    assert back.read_bytes()[2:].decode("utf-16-le").count("=-") == 8
    assert all(item.id != "user" for item in template_of(str(kept)).items)
    invoke(*words, "--save", str(kept))  # what Leadline wrote may be replaced
    command_file = tmp_path / "x.cmd"
    invoke("-t", str(mine), "-o", str(command_file))
    assert command_file.read_bytes().startswith(b"@rem Written by Leadline")
    assert all(is_ours(path) for path in (output, back, kept, command_file))
    assert invoke("-t", str(mine), "--as", "cmd", "-q").startswith("@rem")
    assert not is_ours(before)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--as", "exe"], "--as: exe"),
        (["--revert-to", "back.reg"], "one without the other"),
        (["--before", "x.reg", "--revert-to", "back.reg"], "--revert-to: --as ps1"),
        (
            ["--as", "reg", "--leave", "pvscsi-queues", "--leave", "disk-timeout", "--leave", "ntfs-last-access"],
            "no item that",
        ),
        (["-t", "windows-10-1507-1803", "--build", "18363"], "Use --template windows-10-1809-1909"),
    ],
)
def test_what_cannot_be_asked_for(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.reg").write_text(f"{HEADER}\n")
    done = CliRunner().invoke(build_app(), ["guest", "export", *words])
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert not (tmp_path / "back.reg").exists()


def test_reference_lists_a_shipped_template_by_name() -> None:
    assert reference(Path("windows-10-1809-1909"))[1] == load_template("windows-10-1809-1909")


def test_reference_lists_a_saved_template(mine: Path) -> None:
    shown = CliRunner().invoke(build_app(), ["guest", "reference", str(mine), "--json"])
    assert [entry["id"] for entry in json.loads(shown.output)["items"]][4] == "list"
