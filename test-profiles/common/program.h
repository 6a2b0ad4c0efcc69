/*
 * What the C programs of the profiles share: errors, options, times and results. A program defines
 * PROGRAM, its name, and includes mpi-program.h or processes.h, which have fail() and refuse().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000LL
#define MOST_RANKS 256
/* How far ahead a common start is: time for every rank to learn of it. */
#define LEAD_NS 200000
#define LEAD_NS_A_RANK 20000

static int my_rank = -1;

/* Ends every rank with status 1: one that stayed behind would wait for the others for ever. */
__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...);
/* Ends with status 2, for wrong options. They are wrong on every rank alike: one reports them. */
__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...);

static inline void print_error(const char *format, va_list arguments)
{
	char line[PATH_MAX + 256];
	vsnprintf(line, sizeof line, format, arguments);
	fprintf(stderr, PROGRAM ": %s\n", line);
}

/* --- options ------------------------------------------------------------------------------- */

/* Splits KEY=VALUE. */
static inline char *value_in(char *word)
{
	char *value = strchr(word, '=');
	if (!value)
		refuse("%s: give KEY=VALUE", word);
	*value++ = 0;
	return value;
}

static inline int64_t number(const char *key, const char *text, int64_t least, int64_t most)
{
	char *end;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (errno || end == text || *end || value < least || value > most)
		refuse("%s=%s: give a whole number from %" PRId64 " to %" PRId64, key, text, least, most);
	return value;
}

static inline bool choice(const char *key, const char *value, const char *no, const char *yes)
{
	if (strcmp(value, no) && strcmp(value, yes))
		refuse("%s=%s: give %s or %s", key, value, no, yes);
	return !strcmp(value, yes);
}

/* --- times --------------------------------------------------------------------------------- */

static inline int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static inline double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void wait_until(int64_t moment_ns)
{
	struct timespec t = {.tv_sec = moment_ns / NS, .tv_nsec = moment_ns % NS};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static inline int by_size(const void *one, const void *other)
{
	int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
	return (a > b) - (a < b);
}

/* Where the ranks of one host meet, in memory that they share. Waiting ranks sleep. */
struct meeting {
	pthread_barrier_t barrier;
	int64_t clocks_ns[MOST_RANKS];
};

static inline void make_meeting(struct meeting *meeting, int ranks)
{
	pthread_barrierattr_t attributes;
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&meeting->barrier, &attributes, (unsigned)ranks);
	pthread_barrierattr_destroy(&attributes);
}

/* All ranks leave this at one instant. */
static inline void meet_at(struct meeting *meeting, int rank, int ranks)
{
	int64_t start_ns = 0;
	pthread_barrier_wait(&meeting->barrier);
	meeting->clocks_ns[rank] = now_ns();
	pthread_barrier_wait(&meeting->barrier);
	for (int i = 0; i < ranks; i++)
		if (meeting->clocks_ns[i] > start_ns)
			start_ns = meeting->clocks_ns[i];
	wait_until(start_ns + LEAD_NS + ranks * LEAD_NS_A_RANK);
}

/* --- results ------------------------------------------------------------------------------- */

static inline FILE *create(const char *path)
{
	FILE *file = fopen(path, "w");
	if (!file)
		fail("%s: %s", path, strerror(errno));
	return file;
}

static inline void close_result(FILE *file, const char *path)
{
	if (ferror(file) | fclose(file))
		fail("%s: the result was not written completely", path);
}
