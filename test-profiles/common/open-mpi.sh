# How Open MPI is started, the same file in every MPI profile. Sourced by mpi.sh.
# shellcheck shell=sh disable=SC2154 # mpi.sh has $mpirun and $ranks, factors.sh refuse

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
			for session in "${OMPI_MCA_orte_tmpdir_base:-$TMPDIR}"/ompi.*/pid."$1"; do
				# The ranks' shared memory bears their job's number, the next after mpirun's.
				IFS=. read -r job _ <"$session/contact.txt"
				case $job in
				"" | *[!0-9]*) ;;
				*) rm -f /dev/shm/vader_segment.*."$(printf %x $((job + 1)))".* ;;
				esac
				rm -rf "$session"
			done
			kill -KILL "$1"
		fi
		before=$dead
	done
}

start_open_mpi() { # PROGRAM ARGUMENTS...: replaces this shell
	# As root it refuses to start, and on one machine it counts cores as slots: neither
	# protects anything here. A hostfile's slots are the user's word.
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	read -r self _ </proc/self/stat
	# It holds no directory that is to be unmounted, and in a subshell none of the files that a shell
	# keeps while it redirects a function.
	( (cd / && end_when_stuck "$self") </dev/null >/dev/null 2>&1 &)
	if [ -n "${EEIO_HOSTFILE:-}" ]; then
		# A folder that other hosts have, too, and in which only root makes files.
		[ "$(id -u)" != 0 ] || export OMPI_MCA_orte_tmpdir_base=/run
		exec "$mpirun" --hostfile "$EEIO_HOSTFILE" --bind-to none -np "$ranks" \
			-x HOME -x PATH ${OMPI_MCA_io:+-x OMPI_MCA_io} -x HWLOC_COMPONENTS "$@"
	fi
	export OMPI_MCA_btl_vader_backing_directory="$TMPDIR" OMPI_MCA_btl_sm_backing_directory="$TMPDIR"
	exec "$mpirun" --oversubscribe --bind-to none -np "$ranks" "$@"
}

# Open MPI writes to files below a folder in /tmp by their names, whoever has made the folder. So it
# gets a new one. In memory that moves no drive; the names of its sockets are short.
launch_open_mpi() { # PROGRAM ARGUMENTS...: ends this shell
	TMPDIR=$(mktemp -d /dev/shm/eeio-mpi.XXXXXX 2>/dev/null || mktemp -d /tmp/eeio-mpi.XXXXXX) ||
		refuse "no folder for $mpirun: neither /dev/shm nor /tmp can be written"
	export TMPDIR
	trap 'rm -rf "$TMPDIR"' EXIT
	trap 'exit 143' HUP INT TERM # mpirun gets them, too, and removes its files first
	(start_open_mpi "$@")
	exit
}
