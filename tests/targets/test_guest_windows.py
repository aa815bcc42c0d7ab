"""Windows templates: what is read of foreign ones, and that the exported script is whole PowerShell whatever they say.

The template here is written after the layout public checks of such templates read; no real one can be had. There is no
Windows to run the script on: a parser of PowerShell says whether it is one script with the strings it should hold.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tree_sitter_powershell
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tree_sitter import Language, Node, Parser
from typer.testing import CliRunner

from leadline.app.optimising import export, reference
from leadline.core.contracts.discovery import unit_modules
from leadline.core.model.errors import InputError, LeadlineError, LimitError, UsageError
from leadline.faces.cli.main import build_app
from leadline.formats.windows import osot
from leadline.targets.guest_windows import WindowsItem, load_template, quoted, script, templates

TEMPLATE = """\
<?xml version="1.0" encoding="utf-8"?>
<sequence name="Windows Server 2019" runOnOs="7,8">
  <globalVarList><osCollection><osEntry osId="7"><x/></osEntry></osCollection></globalVarList>
  <group name="System">
    <group name="Services">
      <step name="Windows Search" category="Mandatory"><description>Indexing.</description>
        <action><type>Service</type><params><serviceName>WSearch</serviceName><startMode>Disabled</startMode></params>
        </action></step>
      <step name="Odd" category="Optional"><action><type>Service</type><params><serviceName>X</serviceName>
        <startMode>Sometimes</startMode></params></action></step>
    </group>
    <step name="Last access" category="Recommended" defaultSelected="true"><action><type>Registry</type>
      <command>ADD</command><params><keyName>HKEY_LOCAL_MACHINE\\SYSTEM\\X</keyName><valueName>A</valueName>
      <type>REG_DWORD</type><data>0x10</data></params></action></step>
    <step name="Remove it" category="Mandatory"><action><type>Registry</type><command>DELETEVALUE</command>
      <params><keyName>HKLM\\SOFTWARE\\Run</keyName><valueName>Tray</valueName></params></action></step>
    <step name="Hive" category="Mandatory"><action><type>Registry</type><command>LOAD</command>
      <params><keyName>hku\\temp</keyName></params></action></step>
    <step name="Defrag" category="Mandatory"><action type="SchTasks">
      <params taskName="Microsoft\\Defrag" status="DISABLED"/></action></step>
    <step name="Firewall" category="Mandatory"><action><type>ShellExecute</type>
      <command>netsh off</command></action></step>
    <step name="Own key" category="Mandatory"><action><type>Registry</type><command>ADD</command>
      <params><keyName>HKCU\\A</keyName><valueName>B</valueName><type>REG_SZ</type><data>1</data></params></action></step>
    <step name="Wild" category="Mandatory"><action><type>Registry</type><command>DELETEVALUE</command>
      <params><keyName>HKLM\\A</keyName><valueName>*</valueName></params></action></step>
    <step name="Some" category="Mandatory" osReleaseId="1809"><action><type>Service</type>
      <params><serviceName>X</serviceName><startMode>Manual</startMode></params></action></step>
    <step name="No type" category="Mandatory"><action><type>Registry</type><command>ADD</command>
      <params><keyName>HKLM\\A</keyName><valueName>B</valueName><data>1</data></params></action></step>
    <step name="Too large" category="Mandatory"><action><type>Registry</type><command>ADD</command>
      <params><keyName>HKLM\\A</keyName><valueName>B</valueName><type>REG_DWORD</type><data>4294967296</data></params>
      </action></step>
  </group>
</sequence>
"""
PARSER = Parser(Language(tree_sitter_powershell.language()))


def broken(text: str) -> list[str]:
    """The places a parser of PowerShell does not understand."""
    found: list[str] = []
    todo: list[Node] = [PARSER.parse(text.encode()).root_node]
    while todo:
        node = todo.pop()
        if node.is_error or node.is_missing:
            found.append(f"{node.start_point.row + 1}: {(node.text or b'')[:60]!r}")
        todo += node.children
    return found


def strings_of(expression: str) -> str:
    """What an expression of quoted strings and characters evaluates to."""
    found = bytearray()
    for part in re.findall(r"'(?:[^']|'')*'|\[char\]0x[0-9a-f]{4}", expression):
        unit = bytes.fromhex(part[-4:]) if part.startswith("[") else part[1:-1].replace("''", "'").encode("utf-16-be")
        found += unit
    return found.decode("utf-16-be", "surrogatepass")


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "636014.xml"
    path.write_text(TEMPLATE, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", templates())
def test_every_item_has_what_a_user_must_know(name: str) -> None:
    items = load_template(name)
    assert len({item.id for item in items}) == len(items)
    for item in items:
        assert item.reason.endswith(".")
        assert item.source
        assert item.risk
        assert item.rule is None or item.rule in unit_modules("rule")


@pytest.mark.parametrize("name", templates())
def test_the_script_of_a_shipped_template_is_powershell(name: str) -> None:
    made = export(name, None, [], [], every=True)
    assert broken(made.text) == []
    assert "NOT TESTED ON WINDOWS" in made.text
    assert "@@" not in made.text
    for item in load_template(name):
        assert f"Id = {quoted(item.id)}" in made.text
    assert made.encoded.startswith(b"\xef\xbb\xbf#")
    assert made.encoded.count(b"\r\n") == made.text.count("\n")


def test_a_parser_that_accepts_everything_would_be_noticed() -> None:
    assert broken("@{ A = 'it's' }") != []


def test_a_foreign_template_is_read_and_nothing_is_dropped(template: Path) -> None:
    name, items, left = reference(template)
    assert name == "Windows Server 2019"
    assert [(i.kind, i.path, i.name, i.type, i.value, i.default) for i in items] == [
        ("service", "", "WSearch", "", "Disabled", True),
        ("registry", "HKLM:\\SYSTEM\\X", "A", "DWord", 16, True),
        ("remove-value", "HKLM:\\SOFTWARE\\Run", "Tray", "", "", True),
        ("task", "", "\\Microsoft\\Defrag", "", "Disabled", True),
    ]
    assert items[0].reason == "Indexing."
    assert items[0].source.endswith("System / Services / Windows Search (Mandatory)")
    assert [(u.step.name, u.why.split(":")[0]) for u in left] == [
        ("Odd", "a service without a name or with an unknown start mode"),
        ("Hive", "a key under hku"),
        ("Firewall", "a command line"),
        ("Own key", "a key under HKCU"),
        ("Wild", "a name with a wildcard, which could mean more than the journal holds"),
        ("Some", "it depends on osreleaseid"),
        ("No type", "a registry value of type not stated"),
        ("Too large", "a DWord whose data is no number that fits it"),
    ]
    assert broken(export("", template, [], []).text) == []


def test_items_are_taken_and_left_by_id(template: Path) -> None:
    made = export("", template, [], ["001-windows-search"])
    assert "WSearch" not in made.text
    with pytest.raises(UsageError, match="not in the template"):
        export("", template, ["nothing"], [])
    with pytest.raises(UsageError, match="no such Windows template"):
        export("postgresql", None, [], [])
    with pytest.raises(UsageError, match="taken by default"):
        export("", template, [], [item.id for item in reference(template)[1]])


_WILD = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=40)
_HOSTILE = st.sampled_from(
    [
        "'; Remove-Item C:\\ -Recurse; '",
        "\u2019; calc; \u2018",
        "$(calc)",
        "`'",
        "@@ITEMS@@",
        "#>\n",
        "\n'@\n",
        "\u201b\u201a",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(_WILD, _HOSTILE), min_size=6, max_size=6))
def test_no_text_of_a_template_becomes_code(texts: list[str]) -> None:
    def item(values: list[str]) -> WindowsItem:
        title, path, name, value, reason, source = values
        return WindowsItem("001-x", title, "registry", path, name, "String", value, reason, source, "none")

    made = script(texts[0], [item(texts)])
    assert made.isascii()
    assert broken(made) == []
    # Beside the strings nothing changed, and the strings say what the template said.
    for text in texts:
        assert strings_of(quoted(text)) == text
    bare = re.compile(r"\((?:(?:'(?:[^']|'')*'|\[char\]0x[0-9a-f]{4})(?: \+ )?)+\)|'(?:[^']|'')*'")
    assert bare.sub("S", made) == bare.sub("S", script("plain", [item(["plain"] * 6)]))


@settings(max_examples=150, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data())
def test_a_damaged_template_is_one_error(tmp_path: Path, data: st.DataObject) -> None:
    raw = TEMPLATE.encode()
    start = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(start, len(raw)))
    path = tmp_path / "damaged.xml"
    path.write_bytes(raw[:start] + data.draw(st.binary(max_size=20)) + raw[end:])
    try:
        _, items, left = reference(path)
    except LeadlineError as error:
        assert error.exit_status == 3
    else:
        assert items or left


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><sequence/>", "document type"),
        ("<html/>", "'html' at the top"),
        ("<sequence><group name='g'/></sequence>", "no step"),
        ("<sequence>\n<group>\n</sequence>", "damaged.xml:3: XML that breaks"),
        ("<sequence>" + "<group>" * 100 + "</group>" * 100 + "</sequence>", "nested more than"),
    ],
)
def test_what_is_no_template_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "damaged.xml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        reference(path)


def test_a_file_too_large_and_one_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="not readable"):
        reference(tmp_path / "none.xml")
    monkeypatch.setattr(osot, "BYTES_MAX", 10)
    (tmp_path / "big.xml").write_text(TEMPLATE)
    with pytest.raises(LimitError, match="at most 10"):
        reference(tmp_path / "big.xml")


def test_the_verbs(template: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(build_app(), ["guest", "reference", str(template), "--json"])
    assert next(entry["step"] for entry in json.loads(shown.output)["left"]) == "Odd"
    target = tmp_path / "vdi.ps1"
    done = CliRunner().invoke(build_app(), ["guest", "export", "--from", str(template), "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert "4 item(s) written; not tested on Windows" in done.output
    assert "left out: Firewall: a command line" in done.output
    assert broken(target.read_bytes().decode("utf-8-sig")) == []
