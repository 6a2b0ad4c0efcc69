#!/bin/sh
# Between the trials of one test: each starts from the same cold tree.
exec sh "${0%/*}/pre.sh" "$@"
