#!/bin/sh
# Leadline's recorder of @TARGETS@, version @VERSION@
#
# It records for some minutes what shows why a database is slow, puts it into one archive and ends. It only reads: it
# changes no setting, installs nothing, needs no root and writes to no folder but its own. It asks for no password.
#
# What it collects:
@COLLECTS@
# What it does not collect: data, passwords, environment variables, command lines@UNLESS_QUERIES@.
#
# Run it while the database is slow:  sh record.sh
# Longer, or with samples further apart:  MINUTES=60 INTERVAL=5 sh record.sh
# Ctrl-C ends it early and keeps what is there. Then:  leadline diagnose ARCHIVE
#
# Tried on: @TRIED@

MINUTES=${MINUTES:-@MINUTES@}       # it ends by itself after this
INTERVAL=${INTERVAL:-@INTERVAL@}       # seconds between two samples
MAX_MIB=${MAX_MIB:-@MAX_MIB@}     # it ends when its folder is larger than this
# shellcheck disable=SC2034
QUERIES="@WITH_QUERIES@"                  # yes: texts of statements too
WHERE=${WHERE:-.}           # the archive is written here

umask 077
LC_ALL=C TZ=UTC
export LC_ALL TZ
HOST=$(hostname 2>/dev/null || cat /proc/sys/kernel/hostname 2>/dev/null || echo host)
NAME="leadline-$HOST-$(date -u +%Y%m%dT%H%M%SZ)"
DIR="$WHERE/$NAME"
OVER="$DIR/.over"             # once it is there, every loop ends
MAIN=$$
PIDS=""
STOP=""

have() { command -v "$1" >/dev/null 2>&1; }
missing() { # what is not here; the heading is what the archive's reader knows the file by
    [ -e "$DIR/not-recorded.txt" ] || echo '# leadline recorder: not recorded' >"$DIR/not-recorded.txt"
    echo "$*" >>"$DIR/not-recorded.txt"
}
background() { "$@" & PIDS="$PIDS $!"; }   # a loop or a tool that runs until the end
going() { [ ! -e "$OVER" ] && kill -0 "$MAIN" 2>/dev/null; }
pause() { # so many seconds, or until the end
    left=$1
    while [ "$left" -gt 0 ] && going; do
        sleep 1
        left=$((left - 1))
    done
    going
}
now() { date -u +%Y-%m-%dT%H:%M:%S+00:00; }
count() { echo $((MINUTES * 60 / INTERVAL + 1)); }

mkdir -p "$DIR" || { echo "cannot write to $WHERE: name a folder, WHERE=/tmp sh $0" >&2; exit 1; }
free_mib=$(df -Pk "$WHERE" 2>/dev/null | awk 'NR == 2 {print int($4 / 1024)}')
if [ -n "$free_mib" ] && [ "$free_mib" -lt $((MAX_MIB * 2)) ]; then
    rmdir "$DIR"
    echo "$WHERE has $free_mib MiB free; expected twice MAX_MIB ($MAX_MIB). Name another folder, or a smaller MAX_MIB." >&2
    exit 1
fi
echo "Recording @TARGETS@ for $MINUTES min, a sample every $INTERVAL s, at most $MAX_MIB MiB, into $DIR" >&2
echo "Ctrl-C ends it early and keeps what is there." >&2

@PARTS@

finish() {
    trap '' INT TERM HUP
    : >"$OVER"
    for pid in $PIDS; do kill -INT "$pid" 2>/dev/null; done # tools write what they still have in hand
    sleep 2
    for pid in $PIDS; do kill "$pid" 2>/dev/null; done
    wait 2>/dev/null
    rm -f "$OVER"
@END@
    if have tar && tar -cf "$WHERE/$NAME.tar" -C "$WHERE" "$NAME" 2>/dev/null; then
        rm -r "$DIR"
        file="$NAME.tar"
        if have gzip && gzip -f "$WHERE/$NAME.tar" 2>/dev/null; then file="$NAME.tar.gz"; fi
        echo "Recorded: $WHERE/$file" >&2
    else
        echo "Recorded: the folder $DIR (there is no tar here)" >&2
    fi
}
trap 'STOP=1' INT TERM HUP

@BEGIN@
end=$(($(date +%s) + MINUTES * 60))
while [ -z "$STOP" ] && [ "$(date +%s)" -lt "$end" ]; do
    sleep 1 &
    wait $! 2>/dev/null
    used_kib=$(du -sk "$DIR" 2>/dev/null | awk '{print $1}')
    if [ "${used_kib:-0}" -gt $((MAX_MIB * 1024)) ]; then
        missing "ended early: more than $MAX_MIB MiB"
        break
    fi
done
finish
