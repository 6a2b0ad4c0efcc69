# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-dlio preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")

level=application buffer=on operation='' workload=unet3d accelerator=h100 flush='' files='' record_size=''
epochs='' read_threads='' checkpoint_size='' checkpoints='' preset_files=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "read mixed" && operation=$value ;;
	spatiality=*) one_of spatiality "$value" "mixed sequential" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	flush=*) one_of flush "$value" "each" && flush=$value ;;
	workload=*) one_of workload "$value" "unet3d resnet50 cosmoflow checkpoint" && workload=$value ;;
	accelerator=*) one_of accelerator "$value" "h100 a100" && accelerator=$value ;;
	files=*) files=$value ;;
	record_size=*) record_size=$value ;;
	epochs=*) number epochs "$value" 1 1000 && epochs=$value ;;
	read_threads=*) number read_threads "$value" 1 256 && read_threads=$value ;;
	checkpoint_size=*) checkpoint_size=$value ;;
	checkpoints=*) number checkpoints "$value" 1 1000 && checkpoints=$value ;;
	unet3d=* | resnet50=* | cosmoflow=*) preset_files="$preset_files $word " ;; # the preset's files
	*) refuse "unknown factor '$word': known are level operation spatiality buffer flush workload accelerator" \
		"files record_size epochs read_threads checkpoint_size checkpoints" ;;
	esac
done
means="read"
[ "$workload" != checkpoint ] || means=mixed
[ "${operation:-$means}" = "$means" ] ||
	refuse "operation=$operation: workload=$workload is operation=$means"
[ "$workload" = checkpoint ] || [ -z "$flush" ] || refuse "flush=$flush: workload=$workload does not write"
[ "$workload" != checkpoint ] || [ -z "$files$record_size$read_threads" ] ||
	refuse "files, record_size and read_threads: not for workload=checkpoint"
epochs=${epochs:-$(preset_value epochs)} checkpoints=${checkpoints:-$(preset_value checkpoints)}
checkpoint_size=${checkpoint_size:-$(preset_value checkpoint_size)}
[ -n "$epochs" ] && [ -n "$checkpoints" ] && [ -n "$checkpoint_size" ] ||
	refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
bytes checkpoint_size "$checkpoint_size"
[ "$bytes" -ge 1048576 ] || refuse "checkpoint_size=$checkpoint_size: give at least 1m"
checkpoint_bytes=$bytes
# Of a sample, its deviation, samples of a batch, and processes that read: as DLIO configures them.
case $workload in
unet3d) record=146600628 deviation=68341808 batch=7 readers=4 ;;
resnet50) record=114660 deviation=0 batch=400 readers=8 ;;
cosmoflow) record=2828486 deviation=71311 batch=1 readers=4 ;;
checkpoint) record=4096 deviation=0 batch=1 readers=1 files=$checkpoints epochs=1 ;;
esac
if [ -n "$record_size" ]; then
	bytes record_size "$record_size"
	[ "$bytes" -ge 1024 ] && [ "$bytes" -le 1073741824 ] || refuse "record_size=$record_size: give 1k to 1g"
	deviation=$((deviation * bytes / record)) record=$bytes
fi
[ -n "$files" ] || case "$preset_files" in
*" $workload="*) files=${preset_files##* "$workload="} && files=${files%% *} ;;
esac
files=${files:-$(preset_value "$workload")}
number files "$files" 1 10000000
[ $((files % batch)) = 0 ] || refuse "files=$files: give a multiple of $batch, which is $workload's batch"
readers=${read_threads:-$readers}
dlio() { # generate|run WORD...
	"$python" -I "$HOME/workload.py" "$@" workload="$workload" accelerator="$accelerator" files="$files" \
		record="$record" deviation="$deviation" readers="$readers" epochs="$epochs" \
		checkpoint="$checkpoint_bytes" folder="$scratch"
}
marker="$workload $files $record"
