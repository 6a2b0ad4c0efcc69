#!/bin/sh
# window.sh FIO.JSON: moves the stamps of when fio's processes ended to the end of their I/O. A stamp
# comes some ms later: fio writes its logs first, then starts a shell and date. fio's own run time,
# from the start of the last process, ends nearer to it.
runtime_ms=$(awk '/^      "(read|write)" : / { inside = 1 }
	inside && /^        "runtime" : / { if ($3 + 0 > most) most = $3 + 0
		inside = 0 }
	END { print most + 0 }' "$1") &&
	LC_ALL=C awk -v runtime_ms="$runtime_ms" '
	NR == FNR { if ($1 > began) began = $1; next }
	{ ended = began + runtime_ms / 1000
		if (runtime_ms > 0 && ended < $1) printf "%.9f\n", ended; else print }' \
		"$EEIO_FIO_START" "$EEIO_FIO_END" >"$EEIO_FIO_END.new" && mv "$EEIO_FIO_END.new" "$EEIO_FIO_END"
