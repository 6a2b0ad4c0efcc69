# How requests are made: the engine with its options, which blocks, and a latency bound. For derived.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts

fio_device=$device
case $engine in
io_uring_cmd) # NVMe commands past the block layer, to the namespace's character device
	case $device in
	'') ;; # the factors are only looked at
	/dev/nvme[0-9]*n[0-9]*p[0-9]*) refuse "engine=io_uring_cmd: $device is a partition; name the drive" ;;
	/dev/nvme[0-9]*n[0-9]*)
		fio_device=/dev/ng${device#/dev/nvme}
		[ -c "$fio_device" ] || refuse "engine=io_uring_cmd: no $fio_device: it requires Linux 5.19 or later"
		;;
	*) refuse "engine=io_uring_cmd: $device is not an NVMe drive" ;;
	esac
	fio_engine=io_uring_cmd
	;;
io_uring*) fio_engine=io_uring ;;
*) fio_engine=$engine ;;
esac
direct=1 # a character device has no page cache, and fio rejects direct I/O on it
case $buffer-$engine in on-* | off-io_uring_cmd) direct=0 ;; esac
case $engine in
io_uring_fixed) engine_options=--fixedbufs=1 ;;
io_uring_sqpoll) engine_options=--sqthread_poll=1 ;;
io_uring_polled) engine_options=--hipri=1 ;;
io_uring_combined) engine_options='--fixedbufs=1 --registerfiles=1 --hipri=1 --sqthread_poll=1' ;;
io_uring_cmd) engine_options=--cmd_type=nvme ;;
*) engine_options='' ;;
esac

data_options() { # prints fio's: which data are written
	[ "$compressible" = 0 ] || echo "--buffer_compress_percentage=$compressible --buffer_compress_chunk=4096"
}

request_options() { # prints fio's
	echo "--ioengine=$fio_engine --iodepth=$iodepth $engine_options $(data_options)"
	[ -z "$cpus" ] || echo "--cpus_allowed=0-$((cpus - 1))"
	[ "$distribution" = uniform ] || echo "--random_distribution=zipf:1.1"
	# fio lowers the depth to the largest at which 99 % of the requests meet the bound.
	[ -z "$latency_ms" ] || echo "--latency_target=${latency_ms}ms --latency_window=100ms" \
		"--latency_percentile=99 --latency_run=1"
}

counted_by() { # FILE: prints the words before fio that count into it; the folder of results has no spaces
	[ "$counters" = perf ] && [ -n "$(command -v perf)" ] &&
		echo "perf stat --field-separator=, --output=$1 --event=instructions,cycles --"
}
