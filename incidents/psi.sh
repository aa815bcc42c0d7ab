#!/bin/bash
# Records load average and pressure-stall information once a second, to stdout.
#
#   psi.sh [INTERVAL_SECONDS [COUNT]]      (default: every second until stopped)
#
# One block per sample: a line "# TIME" (ISO 8601 with zone), then for each file a
# line "## PATH" and the file's contents, unchanged. See README.md.
interval=${1:-1} left=${2:--1}
while ((left--)); do
    date '+# %Y-%m-%dT%H:%M:%S.%3N%:z'
    for file in /proc/loadavg /proc/pressure/{cpu,io,memory}; do
        [[ -r $file ]] && printf '## %s\n' "$file" && cat "$file"
    done
    sleep "$interval"
done
