# By which component Open MPI reads and writes files, the same file in every MPI profile. Sourced
# before mpi.sh.
# shellcheck shell=sh disable=SC2154 # mpi.sh has $mpirun, factors.sh $output

# Open MPI's own OMPIO ignores the hints that decide the size of collective requests. Its ROMIO is called
# romio321 in version 4 and romio341 in 5, and may not be there: ompi_info, beside mpirun, knows.
choose_io() {
	info=$(command -v "$mpirun")
	info=${info%/*}/ompi_info
	[ -x "$info" ] || info=ompi_info
	if [ -z "${OMPI_MCA_io:-}" ]; then
		OMPI_MCA_io=$("$info" --parsable 2>/dev/null |
			sed -n 's/^mca:io:\(romio[0-9]*\):version:.*/\1/p' | sort -u | tail -n 1)
		if [ -n "$OMPI_MCA_io" ]; then export OMPI_MCA_io; else unset OMPI_MCA_io; fi
	fi
	# For the record (docs/how-to/adding-a-profile.md).
	[ -d "${output:-}" ] || return 0
	{
		printf 'MPI-IO by %s, ' "${OMPI_MCA_io:-the default of Open MPI (no ROMIO was found; OMPIO ignores its hints)}"
		"$mpirun" --version 2>/dev/null | head -n 1
	} >"$output/notes.txt"
}
