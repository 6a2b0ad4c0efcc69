# Checks of factors, and of free space, for factors.sh and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # refuse exits; factors.sh sets $tool and $preset
output=${EEIO_OUTPUT_DIR:-$HOME/output}
case $output in /*) ;; *) output=$(pwd -P)/$output ;; esac
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"

one_of() { # KEY VALUE "WORD WORD ..."
	case " $3 " in *" $2 "*) [ "${2#* }" = "$2" ] && return ;; esac
	refuse "$1=$2: give one of: $3"
}

number() { # KEY VALUE MINIMUM MAXIMUM
	case $2 in
	'' | *[!0-9]* | 0?* | ???????????????????*) ;;
	*) [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] && return ;;
	esac
	refuse "$1=$2: give a whole number from $3 to $4"
}

bytes() { # KEY VALUE -> $bytes; 4k, 32k, 4m and 20g are binary, as in fio
	case $2 in
	*k) unit=1024 ;;
	*m) unit=1048576 ;;
	*g) unit=1073741824 ;;
	*) unit=1 ;;
	esac
	case ${2%[kmg]} in
	'' | *[!0-9]* | 0* | ???????????????*) refuse "$1=$2: give a size such as 4k, 32k, 4m or 20g" ;;
	esac
	[ "${2%[kmg]}" -le $((1125899906842624 / unit)) ] || refuse "$1=$2: give at most 1048576g"
	bytes=$((${2%[kmg]} * unit))
}

make_output() { # the folder of the run's results
	(make_here "$output") || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
}

preset_value() { # KEY -> what presets.conf gives it in this preset, or nothing
	# With EEIO_WORK=SIZE a run moves that much of a file, however long it takes.
	awk -v preset="$preset" -v key="$1" -v work="${EEIO_WORK:-}" '$1 == preset {
		for (i = 2; i <= NF; i++) if (split($i, pair, "=") == 2 && pair[1] == key) value = pair[2]
		if (work != "" && value != "" && key == "file_size") value = work
		if (work != "" && value != "" && key == "runtime_s") value = 0
		print value
	}' "$HOME/presets.conf"
}

need_bytes() { # BYTES that must be free here; xfs frees those of removed files late
	for pause in 0.2 1 0; do
		free=$(df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }')
		[ "$free" -gt "$1" ] && return || { sync -f . 2>/dev/null && sleep $pause; }
	done
	refuse "$scratch: needs $1 bytes, $free are free"
}

need_inodes() { # INODES; file systems that create inodes on demand (btrfs) report 0 of 0
	free=$(df -Pi . | awk 'NR == 2 { print ($2 > 0 ? $4 : "any") }')
	[ "$free" = any ] || [ "$free" -gt "$1" ] || refuse "$scratch: needs $1 inodes, $free are free"
}

drop_cached() { # FILE...: reads start cold, also where the caller drops no caches
	for file; do
		dd of="$file" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
	done
}
