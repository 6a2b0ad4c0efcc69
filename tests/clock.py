"""A wall clock that can be set for one process and its children; the monotonic clock stays."""

import subprocess
from pathlib import Path

# (Under libfaketime 0.9.10 no Python sleeps: it breaks clock_nanosleep.)
_SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long offset(void) {
    long seconds = 0;
    FILE *file = fopen(getenv("CLOCK_OFFSET_FILE"), "re");
    if (file) {
        if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
        fclose(file);
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (kept) *kept = exact.tv_sec;
    return exact.tv_sec;
}
"""


class Clock:
    """A library that must be preloaded, and the file with the seconds that it adds."""

    def __init__(self, folder: Path) -> None:
        """Raises FileNotFoundError if there is no C compiler."""
        self._library, self._file = folder / "clock.so", folder / "clock"
        (folder / "clock.c").write_text(_SHIM)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O2", "-o", str(self._library), str(folder / "clock.c"),
             "-ldl"], check=True, timeout=300,
        )  # fmt: skip
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "CLOCK_OFFSET_FILE": str(self._file)}

    def set(self, ahead_s: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(ahead_s))
        new.replace(self._file)
