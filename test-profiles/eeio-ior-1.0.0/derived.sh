# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
# file_size is the sum over the processes, in whole requests.
requests=$((file_size_bytes / processes / request_size_bytes))
share_bytes=$((requests * request_size_bytes))

marker="api=$api processes=$processes share_bytes=$share_bytes request_bytes=$request_size_bytes \
spatiality=$spatiality file_per_process=$file_per_process"

# IOR's own words for these factors, the operation apart.
words="-a $(echo "$api" | tr '[:lower:]' '[:upper:]')"
case $spatiality in
strided) words="$words -b $request_size_bytes -t $request_size_bytes -s $requests" ;;
random) words="$words -z -b $share_bytes -t $request_size_bytes" ;;
*) words="$words -b $share_bytes -t $request_size_bytes" ;;
esac
[ "$collective" = off ] || words="$words -c"
[ "$file_per_process" = off ] || words="$words -F"
# 3.x and 4.x both take it so; -B is neither's.
[ "$buffer" = on ] || words="$words -O useO_DIRECT=1"
# IOR ends when random offsets in one file are to be read by another process than wrote them.
[ "$spatiality$file_per_process" = randomoff ] || words="$words -C"
words="$words -i 1 -k -o eeio-ior.data"
