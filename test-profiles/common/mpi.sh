# How ranks are started, the same file in every MPI profile. Sourced after factors.sh and mpi-io.sh.
# shellcheck shell=sh disable=SC2154 # factors.sh has $tool and refuse

# When a rank dies while MPI starts, Open MPI 4's mpirun can lock itself up: it reaps nobody, no rank
# is left, and no signal but this one ends it. All its children dead for 5 s or more is that.
end_when_stuck() { # PID of mpirun
	before=
	while sleep 5 && dead=$(cat "/proc/$1/task/$1/children"); do
		for child in $dead; do
			read -r state <"/proc/$child/stat" && [ "${state##*) Z}" != "$state" ] || dead=
		done
		if [ -n "$dead" ] && [ "$dead" = "$before" ]; then
			# What it would remove, before: who waits for it may end this watch with it.
			for session in "${TMPDIR:-/tmp}"/ompi.*/pid."$1"; do
				# The ranks' shared memory bears their job's number, the next after mpirun's.
				IFS=. read -r job _ <"$session/contact.txt" &&
					rm -f /dev/shm/vader_segment.*."$(printf %x $((job + 1)))".*
				rm -rf "$session"
			done
			kill -KILL "$1"
		fi
		before=$dead
	done
}

launch() { # RANKS PROGRAM ARGUMENTS...: replaces this shell
	ranks=$1
	shift
	# hwloc, which Open MPI loads, would look for X displays on localhost: where only a name server
	# could know that name, and none answers, for 200 s a start.
	export HWLOC_COMPONENTS="${HWLOC_COMPONENTS:+$HWLOC_COMPONENTS,}-gl"
	# With EEIO_NODE_POWER="[--meter SPEC] DIR" one rank of each node records the node's energy.
	# shellcheck disable=SC2086 # words
	[ -z "${EEIO_NODE_POWER:-}" ] || set -- eeio power node $EEIO_NODE_POWER -- "$@"
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
	[ -z "${EEIO_HOSTFILE:-}" ] || [ -r "$EEIO_HOSTFILE" ] ||
		refuse "EEIO_HOSTFILE=$EEIO_HOSTFILE: cannot be read"
	case $("$mpirun" --version 2>/dev/null | head -n 1) in
	*"Open MPI"* | *OpenRTE*)
		# As root it refuses to start, and on one machine it counts cores as slots: neither
		# protects anything here. A hostfile's slots are the user's word.
		export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
		choose_io
		read -r self _ </proc/self/stat
		# It holds no directory that is to be unmounted, and in a subshell none of the files that a shell
		# keeps while it redirects a function.
		( (cd / && end_when_stuck "$self") </dev/null >/dev/null 2>&1 &)
		if [ -n "${EEIO_HOSTFILE:-}" ]; then
			exec "$mpirun" --hostfile "$EEIO_HOSTFILE" --bind-to none -np "$ranks" \
				-x HOME -x PATH ${OMPI_MCA_io:+-x OMPI_MCA_io} -x HWLOC_COMPONENTS "$@"
		fi
		exec "$mpirun" --oversubscribe --bind-to none -np "$ranks" "$@"
		;;
	esac
	exec "$mpirun" ${EEIO_HOSTFILE:+-f "$EEIO_HOSTFILE"} -n "$ranks" "$@"
}
