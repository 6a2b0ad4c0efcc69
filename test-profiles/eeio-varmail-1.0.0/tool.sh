# The program, compiled here.
# shellcheck shell=sh disable=SC2034,SC2154 # install.sh uses and sets them
compile cc -pthread
