#!/bin/sh
# Outside the measured window: IOR itself writes the file or files, so that reads find data and
# writes never allocate. Files that are ready are kept.
# shellcheck disable=SC2015,SC2086 # refuse leaves; $words is words
# shellcheck source=factors.sh
. "$HOME/factors.sh"
# shellcheck source=../common/mpi-io.sh
. "$HOME/mpi-io.sh"
# shellcheck source=../common/mpi.sh
. "$HOME/mpi.sh"
ior=$(sed -n 's/^path=//p' "$HOME/tool.conf")

if [ "$api" = hdf5 ]; then
	apis=$("$ior" -h 2>&1 | sed -n 's|.*API for I/O \[\(.*\)\].*|\1|p' | head -n 1)
	case "|$apis|" in
	*"|HDF5|"* | "||") ;;
	*) refuse "api=hdf5: $ior was built without HDF5 (it has $apis); build IOR with --with-hdf5" \
		"and name it by EEIO_IOR, or give api=mpiio" ;;
	esac
	# 3.x takes -e with HDF5 and does nothing.
	[ "$operation$flush" != writeend ] || ! grep -q '^version=3\.' "$HOME/tool.conf" ||
		refuse "flush=end: IOR 3.x does not flush HDF5 files; take IOR 4, or give flush=none"
fi

enter "$scratch"
if [ "$(cat eeio-ior.ready 2>/dev/null)" != "$marker" ]; then
	rm -f eeio-ior.*
	needed=$((share_bytes * processes))
	need_bytes "$needed"
	(launch "$processes" "$ior" $words -w -e) >eeio-ior.prefill 2>&1 || {
		grep -m 1 -i error eeio-ior.prefill >&2
		echo "eeio-ior: prefilling $scratch failed" >&2
		exit 1
	}
	rm -f eeio-ior.prefill
	echo "$marker" >eeio-ior.ready
fi
drop_cached eeio-ior.data*
exit 0
