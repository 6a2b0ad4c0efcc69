# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
# IOzone's own tests: each is one of these combinations.
case $spatiality-$operation in
sequential-write) test=0 ;;
sequential-read) test=1 ;;
random-mixed) test=2 ;;
strided-read) test=5 ;;
esac
# file_size is the sum over the processes; each has a file of its own.
share_bytes=$((file_size_bytes / processes))
marker="directory share_bytes=$share_bytes processes=$processes"

is_ready() { # the files of these factors are whole
	[ "$(cat eeio-iozone.ready 2>/dev/null)" = "$marker" ] || return 1
	for file in $files; do
		[ "$(stat -c %s "$file" 2>/dev/null)" = "$share_bytes" ] || return 1
	done
}
files='' job=0
while [ "$job" -lt "$processes" ]; do
	files="$files eeio-iozone.$job"
	job=$((job + 1))
done
