# Variables that follow from the factors. For factors.sh.
# shellcheck shell=sh disable=SC2034 # for the scripts
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
# Of a sample, its deviation, and processes that read: as DLIO configures them.
case $workload in
unet3d) record=146600628 deviation=68341808 readers=4 ;;
resnet50) record=114660 deviation=0 readers=8 ;;
cosmoflow) record=2828486 deviation=71311 readers=4 ;;
checkpoint) record=4096 deviation=0 readers=1 ;;
esac
if [ -n "$record_size" ]; then
	deviation=$((deviation * record_size_bytes / record)) record=$record_size_bytes
fi
readers=${read_threads:-$readers}
dlio() { # generate|run WORD...
	"$python" -I "$HOME/workload.py" "$@" workload="$workload" accelerator="$accelerator" files="$files" \
		record="$record" deviation="$deviation" readers="$readers" epochs="$epochs" \
		checkpoint="$checkpoint_size_bytes" folder="$scratch"
}
marker="$workload $files $record"
