# The system's tar. rsync and zstd are looked for when a run needs them.
# shellcheck shell=sh disable=SC2015,SC2034,SC2154 # install.sh uses and sets them; finish exits
find_program tar && path=$found || finish 1 "tar is missing: install the package tar"
version=$("$path" --version | head -n 1)
need_python
more="python=$python"
