# How processes are started. For factors.sh.
# shellcheck shell=sh disable=SC2154 # factors.sh sets the factors
# The installation decides what auto is, so that all runs of a machine agree.
[ "$mode" != auto ] || mode=$(sed -n 's/^mode=//p' "$HOME/tool.conf")
[ "$mode" != mpi ] || [ -x "$HOME/metadata-mpi" ] ||
	refuse "mode=mpi: MPI was missing when this was installed: install the packages openmpi-bin" \
		"and libopenmpi-dev, then this profile again"
[ "$mode" != fork ] || [ -z "${EEIO_HOSTFILE:-}" ] ||
	refuse "mode=fork: its processes run on one machine; unset EEIO_HOSTFILE, or give mode=mpi"
