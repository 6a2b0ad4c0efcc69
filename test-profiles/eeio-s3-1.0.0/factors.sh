# The factors of a run: key=value words -> checked variables. Sourced by the wrapper and pre.sh.
# shellcheck shell=sh disable=SC2015,SC2034 # refuse leaves, so `A && B || refuse` is if-then-else
tool=eeio-s3 preset=${EEIO_PRESET:-standard}
# shellcheck source=../common/checks.sh
. "$HOME/checks.sh"
python=$(sed -n 's/^python=//p' "$HOME/tool.conf")
server=$(sed -n 's/^server=//p' "$HOME/tool.conf")

level=application operation=mixed buffer=on processes=4 request_size=64k objects=''
for word; do
	value=${word#*=}
	case $word in
	level=*) one_of level "$value" "application" ;;
	operation=*) one_of operation "$value" "mixed" ;;
	buffer=*) one_of buffer "$value" "on" ;;
	flush=*) one_of flush "$value" "none" ;;
	processes=*) number processes "$value" 1 256 && processes=$value ;; # requests at once
	request_size=*) request_size=$value ;; # of an object
	objects=*) number objects "$value" 1 1000000 && objects=$value ;;
	*) refuse "unknown factor '$word': known are level operation buffer flush processes request_size objects" ;;
	esac
done
bytes request_size "$request_size"
[ "$bytes" -le 268435456 ] || refuse "request_size=$request_size: give at most 256m"
size=$bytes
objects=${objects:-$(preset_value objects)}
[ -n "$objects" ] || refuse "EEIO_PRESET=$preset: not in $HOME/presets.conf"
endpoint=${EEIO_S3_ENDPOINT:-local} region=${EEIO_S3_REGION:-us-east-1}
case $region in *[!a-z0-9-]*) refuse "EEIO_S3_REGION=$region: give a name such as eu-west-1" ;; esac
# Not in the folder of the test files: on a drive of others it may name a bucket that is not this run's.
state=$HOME/eeio-s3.$(printf %s "$scratch" | sha256sum | cut -c 1-16).bucket

need_store() { # where a run begins: a plan has no tool.conf
	[ "$endpoint" != local ] || [ -x "$server" ] ||
		refuse "no object store: set EEIO_S3_ENDPOINT=URL, or install a local server (pip install 'moto[server]'), name it by EEIO_S3_SERVER and install this profile again"
}
