#!/bin/sh
# Outside the measured window: the folder of the test files. A bucket that a killed run left is removed.
# shellcheck source=factors.sh
. "$HOME/factors.sh"
need_store
enter "$scratch"
"$python" -I -S "$HOME/client.py" clean state="$state" || exit
: >eeio-s3.ready
