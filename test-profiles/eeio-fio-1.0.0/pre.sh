#!/bin/sh
# Outside the measured window: writes the whole file with real data, so that reads never meet
# extents that were never written and writes never allocate. A file that is ready is kept.
# shellcheck disable=SC2015,SC2086 # refuse leaves; $zone_options is words
# shellcheck source=factors.sh
. "$HOME/factors.sh"
fio=$(sed -n 's/^path=//p' "$HOME/tool.conf")

prefill() { # BYTES FIO-OPTION...
	size=$1 request=1m && shift
	# What a drive does depends on what was written before: with precondition=200 all is written
	# twice, in requests of 128 KiB one after the other, as SNIA's test specification has it.
	[ -z "$precondition" ] || request=128k
	# shellcheck disable=SC2046 # words without spaces
	"$fio" --name=prefill --rw=write --bs="$request" --size="$size" --ioengine=psync $(data_options) \
		${rewrite_percent:+--io_size=$((size * rewrite_percent / 100))} --refill_buffers --end_fsync=1 \
		--fallocate=none --eta=never --output=/dev/null "$@" ||
		{ echo "eeio-fio: prefilling ${device:-$scratch} failed" >&2 && exit 1; }
}

rewrite_percent=$precondition

finish() { # leaves; this script's own words
	[ -z "$load" ] || calibrate "$@"
	exit 0
}

if [ -n "$device" ]; then
	# A device that may not be erased is read as it is.
	[ "${EEIO_ERASE:-}" = "$EEIO_DEVICE" ] || finish "$@"
	marker="$device $identity $written boot=$(cat /proc/sys/kernel/random/boot_id)"
	if [ "$fill $(cat "$HOME/device.ready" 2>/dev/null)" = "once $marker" ]; then
		# A write that ended by its run time leaves zones that are not full.
		{ [ -n "$zone_options" ] && ! zones_are_full; } || finish "$@"
	fi
	rm -f "$HOME/device.ready"
	passes=1
	# Zones are filled as often, each time from their begin.
	[ -z "$zone_options" ] || passes=$(((${precondition:-100} + 99) / 100)) rewrite_percent=''
	while [ "$passes" -gt 0 ]; do
		[ -z "$zone_options" ] || reset_zones
		prefill $((share_bytes * processes)) --filename="$device" --direct=1 $zone_options
		passes=$((passes - 1))
	done
	echo "$marker" >"$HOME/device.ready"
	finish "$@"
fi

enter "$scratch"
ready=$([ "$fill $(cat eeio-fio.ready 2>/dev/null)" = "once $marker" ] && echo yes)
job=0
while [ "$job" -lt "$processes" ]; do
	[ "$(stat -c %s "eeio-fio.$job.0" 2>/dev/null)" = "$share_bytes" ] || ready=''
	job=$((job + 1))
done
[ -z "$ready" ] || finish "$@"

rm -f eeio-fio.*
needed=$((share_bytes * processes))
need_bytes "$needed"
direct=0
dd if=/dev/zero of=eeio-fio.probe bs=4096 count=1 oflag=direct 2>/dev/null && direct=1
rm -f eeio-fio.probe
job=0
while [ "$job" -lt "$processes" ]; do
	prefill "$share_bytes" --filename="eeio-fio.$job.0" --direct=$direct
	job=$((job + 1))
done
echo "$marker" >eeio-fio.ready
finish "$@"
