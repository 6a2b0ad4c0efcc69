#!/bin/sh
# Outside the measured window: IO500's ini file, checked by IO500. It writes its own files.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"

check() { # INI NAME: IO500 reads it, and does nothing else
	said=$( (launch 1 "$io500" "$1" --config-hash) 2>&1) && return
	line=$(printf '%s\n' "$said" | sed -n 's/^ERROR \(Parsing error in \)\{0,1\}//p' | head -n 1)
	refuse "$2: IO500 rejects it: ${line:-$(printf '%s\n' "$said" | head -n 1)}"
}

[ -z "$ini" ] || check "$ini" "EEIO_IO500_INI=$ini"
enter "$scratch"
case $PWD in
*[[:space:],\;\#=%\"\'\\\$]*)
	# IO500 writes to the path before a blank, which may be a file of the user's.
	refuse "$PWD: IO500 cannot use this path for its blanks or special characters; give another directory"
	;;
esac
rm -rf eeio-io500 eeio-io500.*
bytes=${data_bytes:-0}
need_bytes $((2 * bytes * processes))
# Without a size, at most 40 % of what is free, in each of the two phases that write most.
share=$((free * 2 / 5 / processes))
[ "$bytes" != 0 ] || bytes=$((share - share % 2097152))
[ "$bytes" -gt 0 ] || refuse "$scratch: $free bytes are free, too few for $processes processes"
[ "$bytes" -le 10401873920000 ] || bytes=10401873920000 # IO500's own
caches=${EEIO_DROP_CACHES:-/proc/sys/vm/drop_caches}
[ -z "${EEIO_DROP_CACHES:-}" ] || check_own EEIO_DROP_CACHES "$caches"
{
	printf '[debug]\nstonewall-time = %s\n' "$stonewall_s"
	# IO500 asks for it where one node writes and reads.
	[ "$(id -u)" != 0 ] || [ ! -w "$caches" ] ||
		printf '[global]\ndrop-caches = TRUE\ndrop-caches-cmd = echo 3 > %s\n' "$caches"
	printf '[ior-easy]\nblockSize = %s\n[ior-hard]\nsegmentCount = %s\n' \
		"$bytes" $((bytes / 47008))
	[ -z "$files" ] || printf '[mdtest-easy]\nn = %s\n[mdtest-hard]\nn = %s\n' "$files" "$files"
	# The user's values replace these, but for the folders.
	[ -z "$ini" ] || { cat "$ini" && echo; }
	printf '[global]\ndatadir = %s\nresultdir = %s\n' "$PWD/eeio-io500/data" "$PWD/eeio-io500/results"
	printf 'timestamp-datadir = FALSE\ntimestamp-resultdir = FALSE\nverbosity = 1\n'
} >eeio-io500.ini || refuse "$scratch/eeio-io500.ini: cannot be written"
check "$PWD/eeio-io500.ini" "$PWD/eeio-io500.ini"
mkdir eeio-io500 && echo "$marker" >eeio-io500.ready
