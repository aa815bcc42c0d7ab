"""Completion of the command line by bash, zsh and fish: scripts made of the verbs' files, none of which is imported.

Sources: bash(1), "Programmable Completion"; zshcompsys(1), "Initialization" and ``_describe``; fish's complete(1).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from leadline.faces.cli.lazy_verbs import short_line, summary_of, verb_stems
from leadline.faces.cli.main import VERBS

_HERE = Path(__file__).parent
_ALWAYS = ("--help",)
_FIRST = ("--help", "--version")
_WIDTH = 60


@dataclass(frozen=True, slots=True)
class VerbWords:
    """What may follow a verb: the verbs of its group with a line about each, and its options."""

    verbs: Mapping[str, str]
    options: tuple[str, ...]


def verb_words() -> dict[str, VerbWords]:
    """Words typed so far, such as ``bench run`` -> what may follow; the empty text stands for the beginning."""
    shared = _shared(sorted(_HERE.glob("*.py")))
    words = dict(_below("", VERBS, shared))
    return {"": VerbWords(words[""].verbs, _FIRST)} | {name: words[name] for name in words if name}


def _below(typed: str, package: str, shared: Mapping[str, ast.expr]) -> Iterator[tuple[str, VerbWords]]:
    """Yield a group of verbs and all within it."""
    stems = verb_stems(package)
    yield (
        typed,
        VerbWords({name: short_line(summary_of(package, stem), _WIDTH) for name, stem in stems.items()}, _ALWAYS),
    )
    folder = _HERE.joinpath(*package.removeprefix(f"{__package__}.").split("."))
    shared = {**shared, **_shared(sorted(folder.glob("_[a-z]*.py")))}
    for name, stem in stems.items():
        longer = f"{typed} {name}".strip()
        if (folder / stem).is_dir():
            yield from _below(longer, f"{package}.{stem}", shared)
        else:
            yield longer, VerbWords({}, (*_options(folder / f"{stem}.py", shared), *_ALWAYS))


def _shared(paths: list[Path]) -> dict[str, ast.expr]:
    """Name -> annotation of the options that modules define for several verbs."""
    return {
        target.id: node.value
        for path in paths
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Subscript)
    }


def _options(path: Path, shared: Mapping[str, ast.expr]) -> list[str]:
    """The options that the ``command`` of a verb's file takes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shared = {**shared, **_shared([path])}
    command = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "command")
    named = [*command.args.args, *command.args.kwonlyargs]
    return [option for argument in named for option in _words_of(argument, shared)]


def _words_of(argument: ast.arg, shared: Mapping[str, ast.expr]) -> list[str]:
    """The words by which one argument of a command is given: as named, or from its name."""
    annotation = argument.annotation
    if isinstance(annotation, ast.Name):
        annotation = shared.get(annotation.id, annotation)
    calls = [node for node in ast.walk(annotation or argument) if isinstance(node, ast.Call)]
    option = next((call for call in calls if ast.unparse(call.func) == "typer.Option"), None)
    if option is None:
        return []
    texts = [node.value for node in option.args if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    words = [word for text in texts for word in text.replace(" ", "").split("/") if word.startswith("--")]
    if words:
        return words
    name = argument.arg.strip("_").replace("_", "-")
    kind = annotation.slice if isinstance(annotation, ast.Subscript) else None
    first = kind.elts[0] if isinstance(kind, ast.Tuple) else None
    is_switch = isinstance(first, ast.Name) and first.id == "bool"
    return [f"--{name}", f"--no-{name}"] if is_switch else [f"--{name}"]


def bash(words: Mapping[str, VerbWords]) -> str:
    """The script for bash: `source` it, or put it into a folder of completions."""
    cases = [
        f'    "{typed}") verbs="{" ".join(follows.verbs)}" options="{" ".join(follows.options)}" ;;'
        for typed, follows in words.items()
    ]
    return f"""\
# Completion of leadline for bash. Use it now: source <(leadline completion bash)
# Always: leadline completion bash > ~/.local/share/bash-completion/completions/leadline
_leadline() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} typed="" verbs="" options="" word
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "${{typed:+$typed }}$word" in
        {_alternatives(words)}) typed="${{typed:+$typed }}$word" ;;
        esac
    done
    case "$typed" in
{chr(10).join(cases)}
    esac
    if [[ $current == -* ]]; then verbs=$options; fi
    mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$current")
}}
complete -o bashdefault -o default -F _leadline leadline
"""


def zsh(words: Mapping[str, VerbWords]) -> str:
    """The script for zsh: a file ``_leadline`` of a folder in ``fpath``, or `source` it after ``compinit``."""
    cases = []
    for typed, follows in words.items():
        verbs = " ".join(_quoted(f"{name}:{line}") for name, line in follows.verbs.items())
        cases.append(f'    "{typed}") verbs=({verbs}) options=({" ".join(follows.options)}) ;;')
    return f"""\
#compdef leadline
# Completion of leadline for zsh. Use it now: source <(leadline completion zsh)
# Always: leadline completion zsh > FOLDER/_leadline, with FOLDER in fpath before compinit
_leadline() {{
    local typed="" word
    local -a verbs options
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "${{typed:+$typed }}$word" in
        {_alternatives(words)}) typed="${{typed:+$typed }}$word" ;;
        esac
    done
    case "$typed" in
{chr(10).join(cases)}
    esac
    if [[ $words[CURRENT] == -* ]]; then
        compadd -- $options
    elif (( $#verbs )); then
        _describe verb verbs
    else
        _files
    fi
}}
if [[ $funcstack[1] == _leadline ]]; then _leadline "$@"; else compdef _leadline leadline; fi
"""


def fish(words: Mapping[str, VerbWords]) -> str:
    """The script for fish: `source` it, or put it into ``~/.config/fish/completions``."""
    known = " ".join(_quoted(typed) for typed in words if typed)
    lines = []
    for typed, follows in words.items():
        condition = f"-n '__leadline_typed {typed}'"
        lines += [
            f"complete -c leadline {condition} -f -a {name} -d {_quoted(line)}" for name, line in follows.verbs.items()
        ]
        lines += [f"complete -c leadline {condition} -l {option.removeprefix('--')}" for option in follows.options]
    return f"""\
# Completion of leadline for fish. Use it now: leadline completion fish | source
# Always: leadline completion fish > ~/.config/fish/completions/leadline.fish
function __leadline_typed
    set -l typed
    for word in (commandline -opc)[2..-1]
        set -l longer (string join " " -- $typed $word)
        if contains -- "$longer" {known}
            set typed $longer
        end
    end
    test "$typed" = "$argv"
end
{chr(10).join(lines)}
"""


def _alternatives(words: Mapping[str, VerbWords]) -> str:
    return "|".join(f'"{typed}"' for typed in words if typed)


def _quoted(text: str) -> str:
    """A word in single quotes; the typographic one stands for a quote within, alike in every shell."""
    return "'" + text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}").replace("\\", "/") + "'"


SCRIPTS: Mapping[str, Callable[[Mapping[str, VerbWords]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
