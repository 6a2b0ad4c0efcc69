/* What eeio's readers share: time, their records' way out, and the beat with requests between.
 * Requests come on standard input: any byte asks for a reading at once, its end for a last one. */

#ifndef EEIO_PACE_H
#define EEIO_PACE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

enum { MIN_PERIOD_US = 1000, MAX_PERIOD_US = 1000000000 };

__attribute__((noreturn, format(printf, 1, 2))) static void refuse(const char *format, ...)
{
	va_list words;
	va_start(words, format);
	fputs(NAME ": ", stderr);
	vfprintf(stderr, format, words);
	fputc('\n', stderr);
	va_end(words);
	exit(2);
}

static int64_t now_ns(void)
{
	struct timespec now;
	if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
		refuse("no monotonic clock: %s", strerror(errno));
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static int64_t period_of(const char *word)
{
	char *end;
	const long period_us = strtol(word, &end, 10);
	if (*end != '\0' || period_us < MIN_PERIOD_US || period_us > MAX_PERIOD_US)
		refuse("%s: the period is %d to %d us", word, MIN_PERIOD_US, MAX_PERIOD_US);
	return period_us * INT64_C(1000);
}

/* false if nobody listens any more; up to PIPE_BUF bytes go through a pipe in one piece */
static bool hand_on(const void *record, size_t size)
{
	ssize_t written;
	do
		written = write(STDOUT_FILENO, record, size);
	while (written < 0 && errno == EINTR);
	return written == (ssize_t)size;
}

/* From now on SIGIO says that standard input, a pipe, has something for us. Waiting for a signal
 * costs less than ppoll(2), and this is what the process does all day. */
static void listen_to_input(sigset_t *input)
{
	sigemptyset(input);
	sigaddset(input, SIGIO);
	if (sigprocmask(SIG_BLOCK, input, NULL) != 0 ||
	    fcntl(STDIN_FILENO, F_SETOWN, getpid()) != 0 ||
	    fcntl(STDIN_FILENO, F_SETFL, O_ASYNC | O_NONBLOCK) != 0)
		refuse("standard input: %s; it must be a pipe", strerror(errno));
	raise(SIGIO); /* for what came before */
}

/* Waits for the deadline or a request; true for a request, whose end sets `*ended`. Of a request for
 * another beat, a byte of 128 and more, `*pace_ms` is set to what is above 128. */
static bool requested(const sigset_t *input, int64_t deadline_ns, bool *ended, int *pace_ms)
{
	bool asked = false;
	for (;;) {
		const int64_t left_ns = deadline_ns - now_ns();
		if (left_ns > 0) {
			const struct timespec left = {(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};
			sigtimedwait(input, NULL, &left);
		}
		unsigned char bytes[64];
		ssize_t length;
		/* To the last: several requests, or one and the end, may have one signal. */
		while ((length = read(STDIN_FILENO, bytes, sizeof bytes)) > 0) {
			asked = true;
			for (ssize_t k = 0; k < length; k++)
				if (bytes[k] >= 128)
					*pace_ms = bytes[k] - 128;
		}
		*ended = length == 0;
		if (asked || *ended || now_ns() >= deadline_ns)
			return asked || *ended;
	}
}

/* The next beat. Beats missed are skipped; a reading that was asked for swallows no beat. */
static int64_t next_beat(int64_t beat_ns, int64_t period_ns, int64_t done_ns, bool asked_for)
{
	return asked_for ? beat_ns : beat_ns + (1 + (done_ns - beat_ns) / period_ns) * period_ns;
}

#endif
