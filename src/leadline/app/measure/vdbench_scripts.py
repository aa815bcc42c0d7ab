"""What runs on a machine that vdbench loads over SSH: POSIX shell scripts, and what they print.

A load is a run of vdbench in a folder of the machine that only its user may enter. Whatever ends the connection ends
the load: `STEP` kills it when its input ends, and so does `HOLD`, which then removes what was made.
"""

from __future__ import annotations

from leadline.app.measure.remote_scripts import TARGET

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
