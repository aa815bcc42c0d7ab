r"""What an item of a Windows template is, and where and how the registry keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.formats.windows.registry_file import BINARY, DWORD, EXPAND_SZ, QWORD, SZ, RegistryData, can_name

KINDS = ("registry", "remove-value", "service", "task", "power-plan", "rss", "app")
REGISTRY_KINDS = ("registry", "remove-value")
LIMITS = {"DWord": 1 << 32, "QWord": 1 << 64}
TYPES = ("String", "ExpandString", "DWord", "QWord", "MultiString", "Binary")
# Under this key the hive of the user that new users are copied from is loaded while it is changed.
DEFAULT_USER = "LeadlineDefault"
DEFAULT_HIVE = r"%SystemDrive%\Users\Default\NTUSER.DAT"  # Source: Microsoft, Optimizing Windows 10 for a VDI role
_DEFAULT_NAME = "(default)"


@dataclass(frozen=True, slots=True)
class WindowsItem:
    r"""One setting: what kind of thing it is, where, what it should hold, and what to know before taking it.

    Attributes:
        kind: one of `KINDS`.
        path: registry key as PowerShell writes it: ``HKLM:\...``, or ``HKCU:\...`` for what every new user gets; ""
            for other kinds.
        name: value, service, task or app.
        type: registry type as PowerShell names it, one of `TYPES`; "" for other kinds.
        value: what it should hold; an int for DWord and QWord, texts for MultiString, hexadecimal digits for Binary.
    """

    id: str
    title: str
    kind: str
    path: str
    name: str
    type: str
    value: str | int | tuple[str, ...]
    reason: str
    source: str
    risk: str
    rule: str | None = None
    default: bool = True

    @property
    def in_registry(self) -> bool:
        """Whether the item is a registry value."""
        return self.kind in REGISTRY_KINDS

    @property
    def of_new_users(self) -> bool:
        """Whether the item lies in the hive that new users are copied from."""
        return self.in_registry and self.path.upper().startswith("HKCU:\\")

    @property
    def key(self) -> str:
        """The registry key in full, as regedit writes it."""
        root, _, key = self.path.partition(":\\")
        if self.of_new_users:
            return f"HKEY_USERS\\{DEFAULT_USER}\\{key}"
        return f"{'HKEY_LOCAL_MACHINE' if root.upper() == 'HKLM' else root}\\{key}"

    @property
    def value_name(self) -> str:
        """The name of the registry value; "" is the value without a name."""
        return "" if self.name.lower() == _DEFAULT_NAME else self.name

    @property
    def can_be_written(self) -> bool:
        """Whether key and name may stand in a file of lines."""
        return can_name(self.key) and can_name(self.name)

    @property
    def data(self) -> RegistryData | None:
        """What the registry value should hold; None when the value should not be there."""
        if self.kind == "remove-value":
            return None
        if isinstance(self.value, int):
            return RegistryData.of_number(self.value, QWORD if self.type == "QWord" else DWORD)
        if isinstance(self.value, tuple):
            return RegistryData.of_texts(self.value)
        if self.type == "Binary":
            return RegistryData(BINARY, bytes.fromhex(self.value))
        return RegistryData.of_text(self.value, EXPAND_SZ if self.type == "ExpandString" else SZ)

    @property
    def summary(self) -> str:
        """Kind, place and value in a line, for a comment."""
        place = f"{self.path}\\{self.name}" if self.path else self.name
        return f"{self.kind} {place} = {self.value}" if self.kind != "remove-value" else f"{self.kind} {place}"


@dataclass(frozen=True, slots=True)
class WrittenForm:
    """An export: its text, whole, and the items it cannot hold with the reason of each.

    Attributes:
        content: the file's bytes.
        text: what is printed when no file is named.
        items: the items that are in it.
        left: ids of items that are not in it, with the reason.
    """

    content: bytes
    text: str
    items: list[WindowsItem]
    left: list[tuple[str, str]]
