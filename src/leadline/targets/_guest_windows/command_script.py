r"""The items of a template as a command script (.cmd) for machines where PowerShell must not run.

Quoting: ``%`` is doubled, which a batch file needs even between quotation marks. A text without a quotation mark stands
between two of them, where cmd.exe leaves ``^ & | < > ( )`` alone. In a text with one, every such character and every
quotation mark has a caret before it, so that cmd.exe never counts quotation marks; the program that is called sees
``\"``. Text beyond ASCII is left out: which bytes it is depends on the code page of the console.

Sources: Microsoft, cmd (special characters), reg add, reg delete, reg load, sc config, schtasks change, powercfg
/setactive; Microsoft, Parsing C++ command-line arguments (backslashes before quotation marks).
"""

from __future__ import annotations

import re

from leadline.targets._guest_windows.model import DEFAULT_HIVE, DEFAULT_USER, WindowsItem, WrittenForm
from leadline.targets._guest_windows.template import WindowsTemplate, ranges

MARK = "@rem Written by Leadline"
_STARTS = {"Automatic": "auto", "Manual": "demand", "Disabled": "disabled"}
_TYPES = {
    "String": "REG_SZ",
    "ExpandString": "REG_EXPAND_SZ",
    "DWord": "REG_DWORD",
    "QWord": "REG_QWORD",
    "MultiString": "REG_MULTI_SZ",
    "Binary": "REG_BINARY",
}
_PLAIN = re.compile(r"[ -~]*")
_META = re.compile(r'[()<>&|^"]')
_BEFORE_QUOTE = re.compile(r'(\\*)"')
_AT_END = re.compile(r"(\\+)$")
_UNSAFE = re.compile(r"[^A-Za-z0-9 .,:;=/\\_()-]")
_SEPARATORS = "|;#~+"
_HIVE = f"HKU\\{DEFAULT_USER}"
_COMMENT_MAX = 200
_CHECK = 'if not "%ERRORLEVEL%"=="0" set FAILED=1'
_BUILD_KEY = r'"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion" /v CurrentBuildNumber'


def argument(text: str) -> str:
    r"""Text as one argument of a command in a batch file.

    >>> print(argument("50% of C:\\"))
    "50%% of C:\\"
    >>> print(argument('say "a&b"'))
    ^"say \^"a^&b\^"^"
    """
    doubled = _BEFORE_QUOTE.sub(r'\1\1\\"', text)
    doubled = '"' + _AT_END.sub(r"\1\1", doubled).replace("%", "%%") + '"'
    return _META.sub(r"^\g<0>", doubled) if '"' in text else doubled


def comment(text: str) -> str:
    """A comment of one line in which cmd.exe expands nothing."""
    return f"rem {_UNSAFE.sub('_', text)[:_COMMENT_MAX]}".rstrip()


def command_script(template: WindowsTemplate) -> WrittenForm:
    """The command script of the items it can hold; the others are named in comments."""
    left = [(item.id, why) for item in template.items if (why := _refusal(item))]
    refused = {name for name, _ in left}
    kept = [item for item in template.items if item.id not in refused]
    lines = [
        f"{MARK}: leadline guest export, template {_UNSAFE.sub('_', template.name)[:_COMMENT_MAX]}",
        "@echo off",
        "rem Not tested on Windows by Leadline: its registry lines were run in Wine. Run it as administrator.",
        "rem There is no way back in it: see --before and --revert-to, or use --as ps1.",
        *(comment(f"Not in this file: {item}: {why}") for item, why in left),
        "setlocal EnableExtensions DisableDelayedExpansion",
        "set FAILED=0",
        *_build_check(template),
    ]
    for number, item in enumerate(kept):
        if not item.of_new_users:
            lines += ["", comment(f"{item.id}: {item.title}"), *_commands(item, number)]
    lines += _for_new_users([(number, item) for number, item in enumerate(kept) if item.of_new_users])
    lines += ["", ":end", "exit /b %FAILED%", ""]
    text = "\n".join(lines)
    return WrittenForm(text.replace("\n", "\r\n").encode("ascii"), text, kept, left)


def _refusal(item: WindowsItem) -> str | None:
    """Why an item cannot be in a command script; None when it can."""
    if item.kind in ("rss", "app"):
        return f"{item.kind} has no command; use --as ps1"
    values = item.value if isinstance(item.value, tuple) else (str(item.value),)
    if not all(_PLAIN.fullmatch(text) for text in (item.path, item.name, *values)):
        return "text that is not plain ASCII; use --as reg or ps1"
    if item.type == "MultiString" and (not all(values) or _separator(values) is None):
        return "a list that reg add cannot write; use --as reg"
    return None


def _separator(texts: tuple[str, ...]) -> str | None:
    return next((mark for mark in _SEPARATORS if not any(mark in text for text in texts)), None)


def _build_check(template: WindowsTemplate) -> list[str]:
    """Lines that leave the script when the guest's build is not one the template is for."""
    if template.builds is None:
        return []
    first, last = template.builds
    lines = [
        "set BUILD=0",
        f"for /f \"tokens=3\" %%b in ('reg query {_BUILD_KEY}') do set BUILD=%%b",
        f"if %BUILD% GEQ {first} if %BUILD% LEQ {last} goto fits",
        f"echo This template is for builds {first} to {last}, and this is build %BUILD%. Nothing was changed.",
    ]
    lines += [
        f"if %BUILD% GEQ {low} if %BUILD% LEQ {high} echo The template that fits is {name}."
        for low, high, name in ranges()
    ]
    return [*lines, "exit /b 1", ":fits"]


def _for_new_users(items: list[tuple[int, WindowsItem]]) -> list[str]:
    """Lines that load the hive of the user that new users are copied from, change it, and unload it in any case."""
    if not items:
        return []
    lines = [
        "",
        "rem What every new user gets: failures are counted, none of them leaves before the hive is unloaded.",
        f'reg load "{_HIVE}" "{DEFAULT_HIVE}"',
        "if errorlevel 1 goto unloaded",
    ]
    for number, item in items:
        lines += [comment(f"{item.id}: {item.title}"), *_commands(item, number)]
    lines += [f'reg unload "{_HIVE}"', _CHECK, "goto end", ":unloaded", "set FAILED=1"]
    return [*lines, "echo The hive of the default user could not be loaded; nothing below it was changed."]


def _commands(item: WindowsItem, number: int) -> list[str]:
    name = argument(item.name)
    if item.kind == "power-plan":
        return [f"powercfg /setactive {argument(str(item.value))}", _CHECK]
    if item.kind == "service":
        change = [f"sc config {name} start= {_STARTS[str(item.value)]}", _CHECK]
        stop = [f"sc stop {name} >nul 2>nul"] if item.value == "Disabled" else []
        return _where_there(f"sc query {name}", [*change, *stop], number)
    if item.kind == "task":
        switch = "/DISABLE" if item.value == "Disabled" else "/ENABLE"
        return _where_there(f"schtasks /Query /TN {name}", [f"schtasks /Change /TN {name} {switch}", _CHECK], number)
    root, _, key = item.path.partition(":\\")
    place = argument(f"{_HIVE if item.of_new_users else root}\\{key}")
    place += " /ve" if not item.value_name else f" /v {name}"
    if item.kind == "remove-value":
        return _where_there(f"reg query {place}", [f"reg delete {place} /f", _CHECK], number)
    return [f"reg add {place} /t {_TYPES[item.type]}{_data(item)} /f", _CHECK]


def _data(item: WindowsItem) -> str:
    if isinstance(item.value, tuple):
        mark = _separator(item.value) or ""
        return f" /s {argument(mark)} /d {argument(mark.join(item.value))}"
    return f" /d {argument(str(item.value))}"


def _where_there(query: str, commands: list[str], number: int) -> list[str]:
    """Commands that run only where a query succeeds: what is not there needs no change."""
    return [f"{query} >nul 2>nul", f"if errorlevel 1 goto after{number}", *commands, f":after{number}"]
