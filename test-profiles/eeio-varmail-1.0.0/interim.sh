#!/bin/sh
# Between the trials of one test: each starts from the same database.
exec sh "${0%/*}/pre.sh" "$@"
