#!/bin/sh
# Leadline @VERSION@ for Linux @MACHINE@: the interpreter, its C library and every package, in one file.
#   ./FILE diagnose ...       unpacks itself once into the user's cache, then runs the command
#   ./FILE --unpack FOLDER    unpacks itself into FOLDER; FOLDER/bin/leadline is the program
# Needs Linux on @MACHINE@, sh, tar, gzip and coreutils or busybox. No network, no Python, no glibc, no root.
set -eu
lines=@LINES@ size=@SIZE@ name=@NAME@

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 4
}

[ "$(uname -s) $(uname -m)" = "Linux @MACHINE@" ] ||
    fail "$0: this machine is $(uname -s) $(uname -m); expected Linux @MACHINE@. Use the bundle of your machine."
[ "$(wc -c <"$0")" -eq "$size" ] ||
    fail "$0: $(wc -c <"$0") bytes, expected $size; the copy is not complete. Copy the file again."

# unpack FOLDER: all or nothing; FOLDER does not exist yet
unpack() {
    part=$1.part$$
    mkdir -p "$part" || fail "$part: cannot be written. Run: sh $0 --unpack FOLDER"
    if ! tail -n +$((lines + 1)) "$0" | gzip -dc | tar -xf - -C "$part" --no-same-owner 2>"$part.log"; then
        printf '%s\n' "$(head -n 1 "$part.log")" >&2
        rm -rf "$part" "$part.log"
        fail "$1: could not be unpacked; expected @MIB@ MiB of room there. Run: sh $0 --unpack FOLDER"
    fi
    rm -f "$part.log"
    if ! "$part/bin/leadline" --version >/dev/null 2>&1; then
        rm -rf "$part"
        fail "$1: programs cannot run there (mounted with noexec?). Run: sh $0 --unpack FOLDER"
    fi
    # Another start may have been faster.
    if [ -e "$1" ] || ! mv "$part" "$1"; then rm -rf "$part"; fi
}

if [ "${1:-}" = --unpack ]; then
    [ $# -eq 2 ] || fail "--unpack: expected one folder. Run: sh $0 --unpack FOLDER"
    [ ! -e "$2" ] || fail "$2: exists; expected a name that is free. Name another folder."
    unpack "$2"
    printf 'unpacked; run: %s/bin/leadline\n' "$2"
    exit 0
fi
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/leadline
# Only a folder of this user is run from: with sudo, HOME may be another's.
if mkdir -p "$cache" 2>/dev/null && [ -O "$cache" ] && [ -w "$cache" ]; then
    if [ ! -x "$cache/$name/bin/leadline" ]; then
        printf 'leadline: unpacking into %s (once, @MIB@ MiB)\n' "$cache/$name" >&2
        unpack "$cache/$name"
    fi
    exec "$cache/$name/bin/leadline" "$@"
fi
scratch=$(mktemp -d) || fail "${TMPDIR:-/tmp}: cannot be written, nor can $cache. Run: sh $0 --unpack FOLDER"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 143' TERM
trap : INT
printf 'leadline: unpacking into %s for this command (--unpack FOLDER keeps it)\n' "$scratch" >&2
unpack "$scratch/$name"
status=0
"$scratch/$name/bin/leadline" "$@" || status=$?
exit $status
