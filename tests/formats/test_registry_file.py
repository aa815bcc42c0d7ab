r"""Registration files: every type is read and written as regedit does; what is damaged is one error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.core.model.errors import InputError, LeadlineError, LimitError
from leadline.formats.windows import registry_file
from leadline.formats.windows.registry_file import (
    HEADER,
    RegistryData,
    RegistryEntry,
    encoded,
    entries,
    read_entries,
    value_line,
)

# As regedit of Windows writes it: long data goes on over lines that end in a backslash and begin with two spaces.
EXPORT = r"""Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\SOFTWARE\Leadline]
@="the default"
"Text"="say \"C:\\Temp\""
"Number"=dword:0000003c
"Bytes"=hex:90,32,07,80,10,\
  00,00,00
"Path"=hex(2):25,00,54,00,45,00,4d,00,50,00,25,00,00,00
"List"=hex(7):61,00,00,00,62,00,00,00,00,00
"Long"=hex(b):ff,ff,ff,ff,ff,ff,ff,7f
"None"=hex(0):
"Two
lines"="a
b"
; a comment

[HKEY_LOCAL_MACHINE\SOFTWARE\Leadline\a]b]
"[x]"="=-"
"Gone"=-

[-HKEY_LOCAL_MACHINE\SOFTWARE\Old]
"""
KEY = r"HKEY_LOCAL_MACHINE\SOFTWARE\Leadline"
KNOWN = [
    RegistryEntry(KEY, None, None),
    RegistryEntry(KEY, "", RegistryData.of_text("the default")),
    RegistryEntry(KEY, "Text", RegistryData.of_text('say "C:\\Temp"')),
    RegistryEntry(KEY, "Number", RegistryData.of_number(60)),
    RegistryEntry(KEY, "Bytes", RegistryData(3, bytes.fromhex("9032078010000000"))),
    RegistryEntry(KEY, "Path", RegistryData.of_text("%TEMP%", 2)),
    RegistryEntry(KEY, "List", RegistryData.of_texts(("a", "b"))),
    RegistryEntry(KEY, "Long", RegistryData.of_number((1 << 63) - 1, 11)),
    RegistryEntry(KEY, "None", RegistryData(0, b"")),
    RegistryEntry(KEY, "Two\nlines", RegistryData.of_text("a\nb")),
    RegistryEntry(rf"{KEY}\a]b", None, None),
    RegistryEntry(rf"{KEY}\a]b", "[x]", RegistryData.of_text("=-")),
    RegistryEntry(rf"{KEY}\a]b", "Gone", None, deletes=True),
    RegistryEntry(r"HKEY_LOCAL_MACHINE\SOFTWARE\Old", None, None, deletes=True),
]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-8-sig"])
def test_an_export_is_read_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "before.reg"
    path.write_bytes(EXPORT.encode(encoding))
    assert list(read_entries(path)) == KNOWN


def test_line_ends_of_windows_are_no_part_of_anything_but_text() -> None:
    read = list(entries(EXPORT.replace("\n", "\r\n"), "x"))
    assert [entry.data for entry in read if entry.name != "Two\r\nlines"] == [
        entry.data for entry in KNOWN if entry.name != "Two\nlines"
    ]


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30),
    st.one_of(
        st.builds(RegistryData.of_text, st.text(max_size=30)),
        st.builds(RegistryData, st.integers(0, 2**32 - 1), st.binary(max_size=60)),
        st.builds(RegistryData.of_number, st.integers(0, 2**32 - 1)),
        st.none(),
    ),
)
def test_what_is_written_is_read_again(name: str, data: RegistryData | None) -> None:
    content = encoded(["[HKEY_USERS\\x]", value_line(name, data)])
    assert content.startswith(b"\xff\xfeW\0")
    text = content[2:].decode("utf-16-le", "surrogatepass")
    assert text.count("\r\n") == text.count("\n") == 4
    assert list(entries(text, "x"))[1:] == [RegistryEntry("HKEY_USERS\\x", name, data, deletes=data is None)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('"A"=dword:1', "x:3: a value before any key"),
        ("[HKLM\\A]", r"x:3: a key '\[HKLM"),
        ("[HKEY_A", "x:3: a key"),
        ("[HKEY_A]\nA=1", "x:4: 'A=1'; expected a name"),
        ('[HKEY_A]\n"A', "x:4: .*; expected a name"),
        ('[HKEY_A]\n"A" "b"', "x:4: .*; expected `=` after"),
        ('[HKEY_A]\n"A"="b', "x:4: .*; expected a text that ends"),
        ('[HKEY_A]\n"A"=dword:', "x:4: data 'dword:'"),
        ('[HKEY_A]\n"A"=dword:123456789', "x:4: '9' after a value"),
        ('[HKEY_A]\n"A"=hex:1,,2', "x:4: '' among the bytes"),
        ('[HKEY_A]\n"A"=hex:123', "x:4: '123' among the bytes"),
        ('[HKEY_A]\n"A"=hex:01,\\', r"x:4: .* after a value"),
        ('[HKEY_A]\n"A"=hex(123456789):00', "x:4: data"),
    ],
)
def test_what_is_damaged_is_one_error_with_its_line(body: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(entries(f"{HEADER}\n\n{body}", "x"))


@pytest.mark.parametrize("content", [b"", b"REGEDIT4\n", b"\xff\xfeW", b"\x80\x81", b"MZ\0\0"])
def test_what_is_no_registration_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.reg"
    path.write_bytes(content)
    with pytest.raises(InputError, match="reg export"):
        list(read_entries(path))
    with pytest.raises(InputError, match="not readable"):
        list(read_entries(tmp_path / "none.reg"))


def test_a_file_too_large_says_what_to_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.reg"
    path.write_text(EXPORT)
    monkeypatch.setattr(registry_file, "BYTES_MAX", 100)
    with pytest.raises(LimitError, match="only the keys"):
        list(read_entries(path))


@settings(max_examples=200, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data())
def test_a_damaged_export_is_read_or_one_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(EXPORT)))
    end = data.draw(st.integers(start, len(EXPORT)))
    text = EXPORT[:start] + data.draw(st.text(max_size=10)) + EXPORT[end:]
    try:
        read = list(entries(text, "x"))
    except LeadlineError as error:
        assert error.exit_status == 3
    else:
        assert all(entry.key.startswith("HKEY_") for entry in read)
