# The folder of results, and checks of free space. For factors.sh.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # refuse exits; factors.sh sets $tool and $preset
output=${EEIO_OUTPUT_DIR:-$HOME/output}
case $output in /*) ;; *) output=$(pwd -P)/$output ;; esac
# shellcheck source=scratch.sh
. "$HOME/scratch.sh"

number() { # KEY VALUE MINIMUM MAXIMUM
	case $2 in
	'' | *[!0-9]* | 0?* | ???????????????????*) ;;
	*) [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] && return ;;
	esac
	refuse "$1=$2: give a whole number from $3 to $4"
}

make_output() { # the folder of the run's results
	(make_here "$output") || refuse "EEIO_OUTPUT_DIR=$output: cannot be made"
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
