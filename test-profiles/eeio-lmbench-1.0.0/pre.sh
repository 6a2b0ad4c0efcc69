#!/bin/sh
# Outside the measured window: a folder for the file-system latency test.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"

case $tests in *filesystem*) ;; *) exit 0 ;; esac
rm -rf "$scratch/eeio-lmbench" # left by a run that was killed
mkdir -p "$scratch/eeio-lmbench" 2>/dev/null && cd "$scratch/eeio-lmbench" && [ -w . ] ||
	refuse "$scratch: cannot be written; give another directory"
needed=1073741824
free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
[ "$free" -gt "$needed" ] || refuse "$scratch: needs $needed bytes, $free are free"
