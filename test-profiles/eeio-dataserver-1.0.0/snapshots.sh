#!/bin/sh
# A trace in the shape of a wave propagation simulator, for replay=: its clients compute, and every few
# seconds each writes its part of a snapshot of the field, one request behind the other. Ours, after what
# the slides of Machado et al. 2017 tell of Hou10ni, whose own traces are not published: a wave
# propagation simulator whose I/O is so little that slow servers keep up with fast ones. How often and
# how much are our choice: clients steps every_s part_mib request_mib, 4 10 2 4 1 unless told.
[ $# = 0 ] || [ $# = 5 ] || { echo "usage: snapshots.sh [CLIENTS STEPS EVERY_S PART_MIB REQUEST_MIB]" >&2; exit 2; }
awk -v clients="${1:-4}" -v steps="${2:-10}" -v every="${3:-2}" -v part="${4:-4}" -v request="${5:-1}" 'BEGIN {
	print "time,client,op,offset,length"
	mib = 1048576
	for (step = 0; step < steps; step++)
		for (i = 0; i < part / request; i++)
			for (client = 0; client < clients; client++)
				printf "%.6f,%d,write,%d,%d\n", step * every, client,
					((step * clients + client) * part + i * request) * mib, request * mib
}'
