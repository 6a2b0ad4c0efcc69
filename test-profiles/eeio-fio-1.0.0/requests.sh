# How requests are made: the engine, how many at once, which blocks, and a latency bound. Sourced by factors.sh.
# shellcheck shell=sh disable=SC2034,SC2154 # factors.sh and eeio-fio set and use them

# Options of io_uring are engines, so that one factor compares them.
one_of engine "$engine" "psync sync pvsync pvsync2 libaio io_uring io_uring_fixed io_uring_sqpoll \
io_uring_polled io_uring_cmd posixaio mmap"
case $iodepth-$engine in
1-* | *-libaio | *-io_uring* | *-posixaio) ;;
*) refuse "iodepth=$iodepth: engine=$engine has one request at a time; give engine=libaio or io_uring" ;;
esac
fio_device=$device
case $engine in
io_uring_cmd) # NVMe commands past the block layer, to the namespace's character device
	[ "$level$operation" = deviceread ] ||
		refuse "engine=io_uring_cmd: it reads an NVMe drive past the block layer; give level=device operation=read"
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
case $engine-$buffer in
io_uring_polled-on) refuse "buffer=on: engine=io_uring_polled requires direct I/O; give buffer=off" ;;
io_uring_fixed-*) engine_options=--fixedbufs=1 ;;
io_uring_sqpoll-*) engine_options=--sqthread_poll=1 ;;
io_uring_polled-*) engine_options=--hipri=1 ;;
io_uring_cmd-*) engine_options=--cmd_type=nvme ;;
*) engine_options='' ;;
esac
[ "$distribution" = uniform ] || [ "$spatiality" = random ] ||
	refuse "distribution=$distribution: only for spatiality=random"
[ -z "$latency_ms" ] || [ "$operation$load" = read ] ||
	refuse "latency_ms=$latency_ms: only for operation=read without load"

data_options() { # prints fio's: which data are written
	[ "$compressible" = 0 ] || echo "--buffer_compress_percentage=$compressible --buffer_compress_chunk=4096"
}

request_options() { # prints fio's
	echo "--ioengine=$fio_engine --iodepth=$iodepth $engine_options $(data_options)"
	[ "$distribution" = uniform ] || echo "--random_distribution=zipf:1.1"
	# fio lowers the depth to the largest at which 99 % of the requests meet the bound.
	[ -z "$latency_ms" ] || echo "--latency_target=${latency_ms}ms --latency_window=100ms" \
		"--latency_percentile=99 --latency_run=1"
}
