# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
# end (without the word, too): fio counts its fsync in the time that its bandwidth is of.
case $operation-$flush in
*-none | read-) flush_option='' ;;
*-each) flush_option=--sync=1 ;;
*) flush_option=--end_fsync=1 ;;
esac
# file_size is the sum over the processes; each has a file (or a stretch of the device) of its own.
share_bytes=$((file_size_bytes / processes / 4096 * 4096))

# shellcheck source=target.sh
. "$HOME/target.sh"
# shellcheck source=requests.sh
. "$HOME/requests.sh"
# shellcheck source=load.sh
. "$HOME/load.sh"
