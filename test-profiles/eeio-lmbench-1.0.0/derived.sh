# Variables that follow from the factors and the memory of the machine. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
[ "$tests" != all ] || tests='memory syscall filesystem'
memory_mib=$((memory_size_bytes / 1048576)) latency_mib=$((latency_size_bytes / 1048576))
limit_mib=$((memory_limit_bytes / 1048576))

# Memory is what lies beyond the last cache: twice its size, up to the limit and an eighth of the
# free memory (bw_mem cp takes two such blocks).
available_mib=$(awk '$1 == "MemAvailable:" { printf "%d", $2 / 1024 }' /proc/meminfo)
for file in /sys/devices/system/cpu/cpu0/cache/index*/size; do
	kib=$(sed -n 's/K$//p' "$file" 2>/dev/null)
	[ "$memory_mib" -ge $((${kib:-0} / 512)) ] || memory_mib=$((${kib:-0} / 512))
done
[ "$memory_mib" -le "$limit_mib" ] || memory_mib=$limit_mib
[ "$memory_mib" -le $((available_mib / 8)) ] || memory_mib=$((available_mib / 8 + 1))
[ "$latency_mib" -le $((available_mib / 2)) ] || latency_mib=$((available_mib / 2 + 1))
