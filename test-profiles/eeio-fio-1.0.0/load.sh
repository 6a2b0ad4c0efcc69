# An offered load: load=30 asks for 30 % of the bandwidth that these factors reach at whole speed here.
# `eeio run` measures that before the first step and states it in EEIO_LOAD_MAXIMUM. Under PTS pre.sh
# measures it, outside the window. The load is offered for the whole run time, however large
# the file is. For derived.sh.
# shellcheck shell=sh

load_file=$HOME/load.max # lines: bytes/s and what they are of
load_of() { # prints it: the factors, and where; what is mounted there may be another disk by now
	echo "$level $operation $spatiality $request_size $engine $iodepth $file_size $runtime_s flush=$flush" \
		"distribution=$distribution processes=$processes ${device:-$scratch} $identity $(stat -c %d "${device:-$scratch}")" \
		"boot=$(cat /proc/sys/kernel/random/boot_id)"
}

load_maximum() { # prints bytes/s, or nothing
	[ -z "${EEIO_LOAD_MAXIMUM:-}" ] || { echo "$EEIO_LOAD_MAXIMUM" && return 0; }
	[ ! -f "$load_file" ] || grep -F -- " $(load_of)" "$load_file" | sed -n '$s/ .*//p'
}

load_options() { # prints fio's
	[ -n "$load" ] || return 0
	echo "--time_based=1"
	[ -z "${EEIO_LOAD_CALIBRATES:-}" ] || return 0
	maximum=$(load_maximum)
	[ -n "$maximum" ] || refuse "load=$load: no measured maximum of these factors; run pre.sh with them first"
	echo "--rate=$((maximum * load / processes / 100))"
	[ "$arrivals" = even ] || echo "--rate_process=poisson"
}

calibrate() { # pre.sh's own words
	[ -z "${EEIO_LOAD_MAXIMUM+stated later}$(load_maximum)" ] || return 0
	EEIO_LOAD_CALIBRATES=yes EEIO_OUTPUT_DIR="$HOME/calibration" LOG_FILE='' "$HOME/eeio-fio" "$@" >/dev/null ||
		{ echo "eeio-fio: the run at full speed, which defines the load, failed" >&2 && exit 1; }
	maximum=$(awk '/^        "bw_bytes" : / && $3 + 0 > most { most = $3 + 0 } END { printf "%.0f", most }' \
		"$HOME/calibration/fio.json")
	[ "${maximum:-0}" -gt 0 ] || { echo "eeio-fio: the run at full speed moved no bytes" >&2 && exit 1; }
	echo "$maximum $(load_of)" >>"$load_file"
}
