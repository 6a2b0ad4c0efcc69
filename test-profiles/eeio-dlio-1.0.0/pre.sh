#!/bin/sh
# Outside the measured window: DLIO makes its data set, which is kept for the next run that can use it.
# What a run that was killed left is removed.
# shellcheck disable=SC2015 # refuse leaves
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=samples.sh
. "$HOME/samples.sh"
# Each reader holds a sample, a checkpoint is in memory twice; and Python with PyTorch.
memory=$((readers * (record + 4 * deviation) + 1073741824))
[ "$workload" != checkpoint ] || memory=$((memory + 2 * checkpoint_size_bytes))
available=$(awk '$1 == "MemAvailable:" { printf "%.0f", $2 * 1024 }' /proc/meminfo)
[ "${available:-0}" -ge "$memory" ] ||
	refuse "workload=$workload: needs $memory bytes of memory, ${available:-0} are available; give fewer" \
		"read_threads or a smaller record_size or checkpoint_size"
enter "$scratch"
rm -rf eeio-dlio.checkpoints eeio-dlio.tmp
if ! is_ready; then
	rm -rf eeio-dlio.*
	need_bytes $((files * record * 3 / 2 + 67108864))
	dlio generate output="$scratch/eeio-dlio.log" >eeio-dlio.out 2>&1 || {
		tail -n 1 eeio-dlio.out >&2
		exit 2
	}
	echo "$marker" >eeio-dlio.ready
	data_made >"$HOME/data.ready"
fi
[ "$workload" != checkpoint ] || need_bytes $((checkpoints * checkpoint_size_bytes + 67108864))
