#!/bin/sh
# Outside the measured window: a folder for the file-system latency test.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"

case $tests in *filesystem*) ;; *) exit 0 ;; esac
enter "$scratch"
rm -rf eeio-lmbench # left by a run that was killed
mkdir eeio-lmbench || exit 2
needed=1073741824
need_bytes "$needed"
