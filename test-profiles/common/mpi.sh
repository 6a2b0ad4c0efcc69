# How ranks are started, the same file in every MPI profile. Sourced after factors.sh and mpi-io.sh.
# shellcheck shell=sh disable=SC2154 # factors.sh has $tool and refuse

# shellcheck source=open-mpi.sh
. "$HOME/open-mpi.sh"

launch() { # RANKS PROGRAM ARGUMENTS...: replaces this shell
	ranks=$1
	shift
	# hwloc, which Open MPI loads, would look for X displays on localhost: where only a name server
	# could know that name, and none answers, for 200 s a start.
	export HWLOC_COMPONENTS="${HWLOC_COMPONENTS:+$HWLOC_COMPONENTS,}-gl"
	# With EEIO_NODE_POWER="[--meter SPEC] DIR" one rank of each node records the node's energy.
	# shellcheck disable=SC2086 # words
	[ -z "${EEIO_NODE_POWER:-}" ] || set -- eeio meter node $EEIO_NODE_POWER -- "$@"
	# Inside a Slurm job its own launcher knows the nodes.
	if [ -n "${SLURM_JOB_ID:-}" ] && command -v srun >/dev/null; then
		# A site that names no way for ranks to join leaves PMIx, which MPIs of today know.
		if [ -z "${SLURM_MPI_TYPE:-}" ] && srun --mpi=list 2>&1 | grep -qw pmix &&
			scontrol show config 2>/dev/null | grep -q '^MpiDefault *= none'; then
			export SLURM_MPI_TYPE=pmix
		fi
		exec srun --ntasks="$ranks" --kill-on-bad-exit=1 "$@"
	fi
	mpirun=${EEIO_MPIRUN:-mpirun}
	command -v "$mpirun" >/dev/null ||
		refuse "$mpirun is missing: install the packages openmpi-bin and libopenmpi-dev"
	# The installation has looked at another one, or some time ago.
	check_own EEIO_MPIRUN "$(command -v "$mpirun")"
	if [ -n "${EEIO_HOSTFILE:-}" ]; then
		[ -r "$EEIO_HOSTFILE" ] || refuse "EEIO_HOSTFILE=$EEIO_HOSTFILE: cannot be read"
		check_own EEIO_HOSTFILE "$EEIO_HOSTFILE"
	fi
	case $("$mpirun" --version 2>/dev/null | head -n 1) in
	*"Open MPI"* | *OpenRTE*)
		choose_io
		launch_open_mpi "$@"
		;;
	esac
	exec "$mpirun" ${EEIO_HOSTFILE:+-f "$EEIO_HOSTFILE"} -n "$ranks" "$@"
}
