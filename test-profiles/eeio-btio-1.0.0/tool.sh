# The kernel, compiled with the machine's MPI. With EEIO_NPB (a folder with the original binaries,
# bt.A.4.mpi_io_full and so on) the wrapper runs those, and reports it in the run's notes.
# shellcheck shell=sh disable=SC2154 # install.sh sets them
need_mpi
compile mpicc
