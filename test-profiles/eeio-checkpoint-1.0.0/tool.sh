# The program, compiled with the machine's MPI.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
need_mpi
compile mpicc
