# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
size_mib=$((file_size_bytes / 1048576)) characters_mib=$((characters_bytes / 1048576))
[ "$characters_mib" != 0 ] || characters_mib=''
# A buffered measurement counts only on a file of at least twice the memory.
if [ -n "${preset_memory_multiple:-}" ] && [ "$buffer" = on ]; then
	least_mib=$(awk -v times="$preset_memory_multiple" '$1 == "MemTotal:" { printf "%d", $2 * times / 1024 + 1 }' /proc/meminfo)
	[ "$size_mib" -ge "$least_mib" ] || size_mib=$least_mib
fi
