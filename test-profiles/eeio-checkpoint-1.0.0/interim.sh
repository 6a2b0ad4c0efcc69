#!/bin/sh
# Between the trials of one test: each starts from whole and cold files.
exec sh "${0%/*}/pre.sh" "$@"
