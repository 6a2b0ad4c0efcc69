# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
[ "$replay" != hou10ni ] || replay=$HOME/hou10ni.csv # of install.sh, by snapshots.sh
[ -z "$replay" ] || [ -r "$replay" ] || [ "$replay" = "$HOME/hou10ni.csv" ] || refuse "replay=$replay: cannot be read"
# file_size is the sum over the clients, in whole requests.
client_bytes=$((file_size_bytes / clients / request_size_bytes * request_size_bytes))
pattern=contiguous direct=on
[ "$spatiality" != strided ] || pattern=strided
[ "$buffer" != on ] || direct=off

# A single file bears the same stamps whoever writes it, so that it serves one server and a shared mode alike.
case $file$processes$replay in
shared* | private1) marker="one file of $((clients * client_bytes)) bytes" ;;
*) marker="servers=$processes clients=$clients stripe=$stripe_bytes client_bytes=$client_bytes replay=$replay" ;;
esac
geometry="file=$file clients=$clients stripe=$stripe_bytes request=$request_size_bytes client_bytes=$client_bytes directory=."
# shellcheck source=load.sh
. "$HOME/load.sh"
