#!/bin/sh
# Runs the command of the factors, and nothing else: whoever calls this measures this window.
output=${EEIO_OUTPUT_DIR:-$HOME/output}
mkdir -p "$output" || exit 2
exec "${EEIO_PYTHON:-python3}" -I -S "${0%/*}/loop.py" output="$output" "$@"
