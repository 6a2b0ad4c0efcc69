# Which requests are made, in which files: sizes, stripes, strides. Sourced at the end of factors.sh.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # refuse leaves; factors.sh has the factors
[ "$collective" = off ] || [ "$api$file" = mpiioshared ] ||
	refuse "collective=on: only MPI-IO has collective calls, in one file; give api=mpiio file=shared"
[ "$flush$api$file$collective" != eachmpiiosharedoff ] ||
	refuse "flush=each: in MPI-IO processes flush a shared file together; give collective=on or flush=end"
[ "$file" = private ] || [ -z "$clients$stripe$replay" ] ||
	refuse "file=shared: each process is its own client, of one file; leave out clients, stripe and replay"
[ "$file$pace" = sharednone ] || [ "$file" = private ] ||
	refuse "pace=$pace: separate clients require a file per server; give file=private"
bytes request_size "$request_size" && request_bytes=$bytes
[ $((request_bytes % 4096)) = 0 ] && [ "$request_bytes" -le 1073741824 ] ||
	refuse "request_size=$request_size: give a multiple of 4k up to 1g"
# Unless told, a stripe is a request: each request goes to one server whole.
bytes stripe "${stripe:-$request_size}" && stripe_bytes=$bytes
[ $((stripe_bytes % 4096)) = 0 ] || refuse "stripe=$stripe: give a multiple of 4k"
bytes file_size "$file_size"
[ "$file" = private ] && clients=${clients:-4} || clients=$processes
# file_size is the sum over the clients, in whole requests.
client_bytes=$((bytes / clients / request_bytes * request_bytes))
[ "$client_bytes" -gt 0 ] || refuse "file_size=$file_size: less than a request of each of $clients clients"
[ "$spatiality" = strided ] && pattern=strided || pattern=contiguous
[ "$pattern" = strided ] || [ -z "$stride" ] || refuse "stride=$stride: give spatiality=strided with it"
# Requests of several clients in turn leave gaps for each of them; a single one needs gaps of its own.
[ "$pattern$clients" = strided1 ] && stride=${stride:-17} || stride=${stride:-1}
[ "$pattern$clients/$stride" != strided1/1 ] ||
	refuse "stride=1: one client's requests would be contiguous; give 2 to 1024"
[ "$stride" -le $((client_bytes / request_bytes)) ] ||
	refuse "stride=$stride: longer than the file; give a larger file_size"
