# The program, compiled without MPI and, if there is an MPI, with it. mode=auto uses the latter.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
compile cc -pthread
mode=fork
mv metadata metadata-fork
rm -f metadata-mpi # of an MPI that was removed since
if find_program mpicc && find_program "${EEIO_MPIRUN:-mpirun}"; then
	compile mpicc -DWITH_MPI -pthread
	mode=mpi
	mv metadata metadata-mpi
fi
path=$HOME/metadata-$mode
version="${version%%,*}, $mode,${version#*,}"
more="mode=$mode"
