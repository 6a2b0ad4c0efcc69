# Whether the samples in the current folder are those that pre.sh has made. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2154 # factors.sh sets $marker
# DLIO runs code that a sample contains (pickle). Samples on a drive of others are not those that pre.sh has made.
data_made() { # what shows that the samples here are those of the marker, and the ready file the one that pre.sh wrote
	echo "$marker $(stat -c %d:%i:%.9Z eeio-dlio.ready) boot=$(cat /proc/sys/kernel/random/boot_id)"
}
is_ready() {
	[ "$(cat eeio-dlio.ready 2>/dev/null)" = "$marker" ] && [ "$(cat "$HOME/data.ready" 2>/dev/null)" = "$(data_made)" ]
}
