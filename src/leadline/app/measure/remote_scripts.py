"""What runs on a machine that is loaded over SSH: POSIX shell scripts, and what they say.

Nothing is installed there. A script's words come after it: ``$1`` is the first. Whatever ends the connection ends the
server: `SERVE` waits for the end of its input, then kills the load and removes the files that were made. `HOLD` and
`STEP` are the same for vdbench, which has no server: a step of it is a run, in a folder only its user may enter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from leadline.collectors import linux
from leadline.core.model.errors import ToolError
from leadline.core.system.safety import RESERVE_SHARE

# Words: the folder or device; where vdbench is, if it is to make the load. Lines of key=value; a key may come several
# times.
CHECK = r"""
p=$1
v=$2
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin
if [ -n "$v" ]; then
    [ -d "$v" ] && v=$v/vdbench
    v=$(command -v "$v" 2>/dev/null) && v=$(readlink -f -- "$v") && [ -f "$v" ] && [ -x "$v" ] && echo "vdbench=$v"
    command -v java >/dev/null 2>&1 && echo "java=$(java -version 2>&1 | head -n 1)"
fi
echo "fio=$(fio --version 2>/dev/null | head -n 1)"
echo "host=$(uname -n)"
echo "kernel=$(uname -r)"
echo "machine=$(uname -m)"
echo "cpu_count=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
# What follows the name keeps a newline at its end, which $() would drop: another name.
real=$(readlink -f -- "$p" 2>/dev/null && echo x) && real=${real%??} || real=$p
case ${real:-/} in
/ | // | /home | /root | /run | /var | /var/cache | /var/lib | /var/log | /var/spool) echo "system=yes" ;;
esac
case $real/ in
/bin/* | /boot/* | /efi/* | /etc/* | /lib/* | /lib32/* | /lib64/*) echo "system=yes" ;;
/proc/* | /sbin/* | /sys/* | /usr/*) echo "system=yes" ;;
/dev/shm/*) ;;
/dev/*) [ -b "$real" ] || echo "system=yes" ;;
esac
[ "$real" = "$HOME" ] && echo "system=yes"
up=$real
while :; do
    [ -e "$up/postmaster.pid" ] && echo "cluster=yes"
    [ "$up" = / ] || [ -z "$up" ] && break
    up=${up%/*}
done
[ -d "$real" ] && find "$real" -maxdepth 5 -name postmaster.pid 2>/dev/null | grep -q . && echo "cluster=yes"
if [ -b "$real" ]; then
    echo kind=device
    echo "identity=$(stat -c %t:%T "$real")"
    b=/sys/dev/block/$(printf '%d:%d' "0x$(stat -c %t "$real")" "0x$(stat -c %T "$real")")
    for f in "$b/dev" "$b"/*/dev; do [ -r "$f" ] && echo "family=$(cat "$f")"; done
    for h in "$b"/holders/* "$b"/*/holders/*; do [ -e "$h" ] && echo "holder=${h##*/}"; done
    echo "sectors=$(cat "$b/size")"
    while read -r _ _ n _ at _; do echo "mount=$n $at"; done < /proc/self/mountinfo
    for s in $(sed -n 's/ .*partition.*//p' /proc/swaps); do
        [ -b "$s" ] && echo "swapped=$(printf '%d:%d' "0x$(stat -c %t "$s")" "0x$(stat -c %T "$s")")"
    done
    [ -w "$real" ] && echo writable=yes
elif [ -d "$real" ]; then
    echo kind=folder
    echo "identity=$(stat -c %d:%i "$real")"
    [ -w "$real" ] && [ -x "$real" ] && echo writable=yes
    df -Pk -- "$real" 2>/dev/null | awk 'NR == 2 { print "space=" $2 " " $4 }'
elif [ -e "$real" ]; then
    echo kind=file
fi
echo checked=yes
"""

# Answers every line of its input with the time, until the input ends.
CLOCK = r"""
while read -r _; do date +%s.%N; done
"""

# Words: folder or device, its path, its identity as `CHECK` says it, a name that is free, the length of each file.
# It ends with its input. A load works where ``t0`` is the device, by a link to what was opened, or where ``t0``, ``t1``
# and so on are files in a folder that is made here and that nobody else may enter: no path at all.
TARGET = r"""
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin
umask 077
d=$(mktemp -d "${TMPDIR:-/tmp}/leadline-XXXXXX") || exit 1
server=
made=
own=
finish() {
    trap '' HUP INT TERM PIPE
    trap - EXIT
    [ -f "$d/load" ] && server=$(cat "$d/load")
    if [ -n "$server" ]; then
        for s in TERM KILL; do
            kill -"$s" -- "-$server" 2>/dev/null || kill -"$s" "$server" 2>/dev/null
            [ "$s" = TERM ] && { sleep 0.5 2>/dev/null || sleep 1; }
        done
    fi
    cd / || exit 1
    [ -n "$made" ] && [ "$(stat -c %d:%i -- "$made" 2>/dev/null)" = "$own" ] && rm -rf -- "$made"
    rm -rf -- "$d"
    exit 0
}
fail() {
    echo "failed $1"
    exit 1
}
trap finish EXIT
trap 'exit 1' HUP INT TERM PIPE
kind=$1 path=$2 identity=$3 name=$4
shift 4
real=$(readlink -f -- "$path" 2>/dev/null && echo x) && real=${real%??} || fail "the target is gone"
if [ "$kind" = device ]; then
    (: <>"$real") 2>/dev/null || fail "the device cannot be opened"
    exec 3<>"$real"
    [ "$(stat -L -c %t:%T /proc/self/fd/3 3<&3)" = "$identity" ] || fail "another device than was looked at"
    if command -v flock >/dev/null 2>&1; then flock -n 3 || fail "another run has locked the device"; fi
    cd "$d" && ln -s /proc/self/fd/3 t0 || exit 1
else
    cd -P -- "$real" && [ "$(stat -c %d:%i .)" = "$identity" ] || fail "another folder than was looked at"
    mkdir -m 700 "./$name" && cd -P "./$name" && [ -O . ] || fail "a folder for the load cannot be made"
    own=$(stat -c %d:%i .)
    made=$real/$name
    n=0
    for size in "$@"; do
        dd if=/dev/null of="t$n" bs=1 seek="$size" count=0 2>/dev/null || fail "a file of $size bytes cannot be made"
        n=$((n + 1))
    done
fi
"""

# The same, then fio's server; prints "ready SOCKET".
SERVE = (
    TARGET
    + r"""
session=
command -v setsid >/dev/null 2>&1 && session=setsid
$session fio --server="sock:$d/fio" </dev/null >"$d/said" 2>&1 &
server=$!
n=0
while [ ! -S "$d/fio" ] && kill -0 "$server" 2>/dev/null && [ "$n" -lt 50 ]; do
    n=$((n + 1))
    sleep 0.1 2>/dev/null || sleep 1
done
if [ -S "$d/fio" ]; then echo "ready $d/fio"; else echo "failed $(tail -n 1 "$d/said")"; exit 1; fi
cat >/dev/null
"""
)

# Words as those of `TARGET`. Prints "ready FOLDER PATH": where a load writes, and the target as vdbench is given it.
# The Javas of vdbench inherit no descriptor: a file is reached through this shell. A device must have the name that the
# kernel gives it, or vdbench takes it for a file of no length. The script of vdbench cuts a path at a blank.
HOLD = (
    TARGET
    + r"""
lun=/proc/$$/cwd/t0
[ "$kind" = device ] && lun=$real
case $lun in *[!A-Za-z0-9/_.-]*) fail "a device whose name is not plain" ;; esac
case $d in *[!A-Za-z0-9/_.-]*) fail "TMPDIR there is no plain path" ;; esac
echo "ready $d $lun"
cat >/dev/null
"""
)

# Words: the folder, the label of the step, the program, the target, its identity if it is a device. Its input: the
# parameter file, a line with a dot, "go" when the load shall begin; its end kills the load. Prints "loaded", what
# vdbench prints, and "ended STATUS".
STEP = r"""
PATH=$PATH:/usr/local/bin:/usr/sbin:/sbin
umask 077
d=$1 label=$2 program=$3 target=$4 identity=$5
fail() {
    echo "failed $1"
    exit 1
}
end() {
    for s in TERM KILL; do
        kill -"$s" -- "-$load" 2>/dev/null || kill -"$s" "$load" 2>/dev/null
        [ "$s" = TERM ] && { sleep 0.5 2>/dev/null || sleep 1; }
    done
}
cd -P -- "$d" && [ -O . ] || fail "the folder of the load is gone"
while IFS= read -r line && [ "$line" != . ]; do
    printf '%s\n' "$line"
done >"$label.vdbench"
if [ -n "$identity" ]; then
    [ "$(stat -c %t:%T -- "$target")" = "$identity" ] || fail "another device than was looked at"
fi
echo loaded
read -r word && [ "$word" = go ] || exit 1
exec 4<&0
session=
command -v setsid >/dev/null 2>&1 && session=setsid
$session "$program" -f "$d/$label.vdbench" -o "$d/$label" </dev/null 4<&- 2>&1 &
load=$!
echo "$load" >load
{
    cat
    end
} <&4 >/dev/null 2>&1 &
watcher=$!
wait "$load"
status=$?
kill "$watcher" 2>/dev/null
rm -f load
printf '\nended %s\n' "$status"
"""

# Words: the folder, the label of the step, the name of a report of vdbench.
REPORT = 'cat -- "$1/$2/$3" 2>/dev/null'

# Words: seconds between samples, then the files to copy; the format is that of `leadline collect linux`.
SAMPLE = r"""
every=$1
shift
case $(date +%N) in *[!0-9]* | '') time='+# %Y-%m-%dT%H:%M:%SZ' ;; *) time='+# %Y-%m-%dT%H:%M:%S.%NZ' ;; esac
n=$#
while [ "$n" -gt 0 ]; do
    f=$1
    shift
    n=$((n - 1))
    cat "$f" >/dev/null 2>&1 && set -- "$@" "$f"
done
once='/proc/sys/kernel/hostname /proc/sys/kernel/osrelease'
while :; do
    date -u "$time" || exit
    awk 'FNR == 1 { print "## " FILENAME }
        FILENAME == "/proc/stat" && !/^(cpu|ctxt|procs_)/ { next }
        FILENAME == "/proc/vmstat" && !/^(pgpg|pswp|pgmajfault)/ { next }
        { print }' $once "$@" || exit
    once=
    sleep "$every"
done
"""
SAMPLED = linux.PATHS


@dataclass(frozen=True, slots=True)
class RemoteFacts:
    """What a machine says of itself and of the target."""

    fio: str | None
    kind: str | None
    writable: bool
    size_bytes: int | None = None
    free_bytes: int | None = None
    in_use: str | None = None
    facts: dict[str, str] = field(default_factory=dict)
    identity: str = ""
    is_system: bool = False
    holds_server: bool = False
    vdbench: str | None = None
    java: str | None = None


def read_check(text: str) -> RemoteFacts:
    """The answer of `CHECK`.

    Raises:
        ToolError: the script did not come to its end.
    """
    values_by_key: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, mark, value = line.partition("=")
        if mark:
            values_by_key.setdefault(key, []).append(value.strip())
    if values_by_key.get("checked") != ["yes"]:
        raise ToolError(
            "ssh", found="no answer to questions", expected="a POSIX shell", advice="Log in by hand and look."
        )
    one = {key: values[0] for key, values in values_by_key.items() if values[0]}
    facts: dict[str, str] = {key: one[key] for key in ("host", "kernel", "machine", "cpu_count", "java") if key in one}
    size = free = None
    if "space" in one:
        size, free = (1024 * int(word) for word in one["space"].split())
    if one.get("sectors", "").isdecimal():
        size = 512 * int(one["sectors"])
    return RemoteFacts(
        one.get("fio"),
        one.get("kind"),
        "writable" in one,
        size,
        free,
        _user_of(values_by_key),
        facts,
        identity=one.get("identity", ""),
        is_system="system" in one,
        holds_server="cluster" in one,
        vdbench=one.get("vdbench"),
        java=one.get("java"),
    )


def _user_of(values_by_key: dict[str, list[str]]) -> str | None:
    """Who uses a device: a mount, swap or a device made of it; None for nobody."""
    family = set(values_by_key.get("family", ()))
    if values_by_key.get("holder"):
        return f"{values_by_key['holder'][0]} is made of it"
    for line in values_by_key.get("mount", ()):
        number, _, at = line.partition(" ")
        if number in family:
            return f"mounted at {at}"
    return "swap" if family & set(values_by_key.get("swapped", ())) else None


def objection(checked: RemoteFacts, path: str, needed_bytes: int, *, destroy: bool, tool: str = "fio") -> str | None:
    """Why this target is not loaded by a tool; None when it may be.

    A device must be named to be overwritten, is refused while it is used, and a folder keeps a share of its space free.
    """
    need = f"{needed_bytes / 2**30:.2f} GiB"
    is_device, free = checked.kind == "device", _usable(checked)
    reasons = (
        (tool == "fio" and checked.fio is None, "fio is not installed there"),
        (checked.kind is None, f"{path}: no such folder there; make it first"),
        (checked.kind == "file", f"{path}: a file; name its folder, or a device"),
        (checked.is_system, f"{path}: a system folder on that host; name a folder made for the load"),
        (checked.holds_server, f"{path}: the files of a PostgreSQL server that runs there"),
        (checked.in_use is not None, f"{path}: a device in use ({checked.in_use})"),
        (is_device and not destroy, f"{path}: data that would be overwritten; --destroy-data {path} allows it"),
        (not checked.writable, f"{path}: this user may not write there"),
        (is_device and (checked.size_bytes or 0) < needed_bytes, f"{path}: smaller than {need}"),
        (free is None, f"{path}: its free space is not known (df does not answer)"),
        (needed_bytes > (free or 0), f"{path}: {(free or 0) / 2**30:.2f} GiB may be used, {need} needed"),
    )
    return next((sentence for wrong, sentence in reasons if wrong), None)


def _usable(checked: RemoteFacts) -> int | None:
    """Bytes that may be written; None when it is not known."""
    if checked.size_bytes is None or checked.kind == "device":
        return checked.size_bytes
    return None if checked.free_bytes is None else max(checked.free_bytes - int(RESERVE_SHARE * checked.size_bytes), 0)
