# The emulator, compiled with the machine's MPI.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
need_mpi
sh "$profile/snapshots.sh" >hou10ni.csv || finish 1 "$HOME/hou10ni.csv: cannot be written"
compile mpicc
