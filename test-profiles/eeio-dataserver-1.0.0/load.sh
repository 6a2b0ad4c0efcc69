# An offered load: load=30 asks for 30 % of the bandwidth that these factors reach at whole speed here.
# `eeio run` measures that before the first step and states it in EEIO_LOAD_MAXIMUM. Under PTS pre.sh
# measures it, outside the window. The load is offered for the whole run time, however large
# the files are. For derived.sh.
# shellcheck shell=sh

load_file=$HOME/load.max # lines: bytes/s and what they are of
load_of() { # prints it: the factors, and where; what is mounted there may be another disk by now
	echo "$operation $pattern $stride $geometry $api flush=$flush processes=$processes runtime_s=$runtime_s" \
		"$(stat -c %d "$scratch") boot=$(cat /proc/sys/kernel/random/boot_id)"
}

load_maximum() { # prints bytes/s, or nothing
	[ -z "${EEIO_LOAD_MAXIMUM:-}" ] || { echo "$EEIO_LOAD_MAXIMUM" && return 0; }
	[ ! -f "$load_file" ] || grep -F -- " $(load_of)" "$load_file" | sed -n '$s/ .*//p'
}

load_options() { # prints the emulator's
	[ -n "$load" ] || return 0
	# Whole speed, for the same time: more than any drive moves.
	[ -z "${EEIO_LOAD_CALIBRATES:-}" ] || { echo "rate=$((1 << 49))" && return 0; }
	maximum=$(load_maximum)
	[ -n "$maximum" ] || refuse "load=$load: no measured maximum of these factors; run pre.sh with them first"
	echo "rate=$((maximum * load / 100))"
}

calibrate() { # pre.sh's own words
	[ -n "$load" ] && [ -z "${EEIO_LOAD_MAXIMUM+stated later}$(load_maximum)" ] || return 0
	EEIO_LOAD_CALIBRATES=yes EEIO_OUTPUT_DIR="$HOME/calibration" LOG_FILE='' "$HOME/eeio-dataserver" "$@" >/dev/null ||
		{ echo "eeio-dataserver: the run at full speed, which defines the load, failed" >&2 && exit 1; }
	maximum=$(sed -n 's/.*"bandwidth_bytes_per_s": \([0-9]*\).*/\1/p' "$HOME/calibration/eeio.json" | head -n 1)
	[ "${maximum:-0}" -gt 0 ] || { echo "eeio-dataserver: the run at full speed moved no bytes" >&2 && exit 1; }
	echo "$maximum $(load_of)" >>"$load_file"
}
