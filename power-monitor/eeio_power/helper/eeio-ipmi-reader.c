/* Asks an `ipmitool ... exec` that somebody else has started, at a steady pace, for a sampler that
 * looks at the answers every two seconds.
 *
 *     eeio-ipmi-reader PERIOD_US FIRST_MS ANSWER_MS IN OUT QUESTION
 *
 * IN and OUT are the descriptors of ipmitool's input and output, QUESTION is one line for it. After
 * each comes a line that ipmitool refuses, naming the token in it, so that no answer is taken for
 * that of an earlier question. Each answer is one record on standard output:
 *
 *     begun ns, done ns (CLOCK_MONOTONIC), length: 64-bit integers in the machine's byte order;
 *     then so many bytes: what ipmitool said up to the token
 *
 * It ends with status 2 and a line on standard error if ipmitool ends, or does not answer in
 * ANSWER_MS (FIRST_MS for the first one, which may have to log in): ipmitool is out of step then. */

#define _GNU_SOURCE
#define NAME "eeio-ipmi-reader"
#include "pace.h"

#include <poll.h>
#include <stddef.h>

#define NS_PER_MS INT64_C(1000000)

/* A record must go through the pipe in one piece: at most PIPE_BUF, 4096. */
enum { MAX_ANSWER = 4000, MAX_QUESTION = 200 };

struct record {
	int64_t begun_ns, done_ns, length;
	char text[MAX_ANSWER + 1];
};

static long number_of(const char *word)
{
	char *end;
	const long number = strtol(word, &end, 10);
	if (end == word || *end != '\0' || number < 0 || number > 1000000)
		refuse("%s is not a number", word);
	return number;
}

static void ask(int in, const char *line)
{
	const size_t length = strlen(line);
	ssize_t written;
	do
		written = write(in, line, length);
	while (written < 0 && errno == EINTR);
	if (written != (ssize_t)length)
		refuse("ipmitool takes no question: %s", strerror(errno));
}

/* What ipmitool says until a line with the token is whole. */
static void hear(int out, const char *token, int64_t limit_ns, struct record *record)
{
	size_t length = 0;
	record->text[0] = '\0';
	for (;;) {
		const char *last = strstr(record->text, token);
		record->done_ns = now_ns();
		if (last != NULL && strchr(last, '\n') != NULL) {
			record->length = last - record->text;
			return;
		}
		if (length == MAX_ANSWER)
			refuse("output of the BMC or ipmitool exceeds the limit");
		const int64_t left_ns = record->begun_ns + limit_ns - record->done_ns;
		struct pollfd heard = {.fd = out, .events = POLLIN};
		const int ready = left_ns <= 0 ? 0 : poll(&heard, 1, 1 + (int)(left_ns / NS_PER_MS));
		if (ready == 0)
			refuse("the BMC did not answer in %g s", (double)limit_ns / (double)NS_PER_S);
		const ssize_t more = read(out, record->text + length, MAX_ANSWER - length);
		if (more < 0 && errno == EINTR)
			continue;
		if (more <= 0)
			refuse("ipmitool ended: %.200s", record->text);
		length += (size_t)more;
		record->text[length] = '\0';
	}
}

int main(int count, char **words)
{
	if (count != 7)
		refuse("usage: " NAME " PERIOD_US FIRST_MS ANSWER_MS IN OUT QUESTION");
	const int64_t period_ns = period_of(words[1]);
	int64_t limit_ns = number_of(words[2]) * NS_PER_MS;
	const int64_t answer_ns = number_of(words[3]) * NS_PER_MS;
	const int in = (int)number_of(words[4]), out = (int)number_of(words[5]);
	if (strlen(words[6]) > MAX_QUESTION || strchr(words[6], '\n') != NULL)
		refuse("the question is one line of at most %d characters", MAX_QUESTION);
	signal(SIGPIPE, SIG_IGN);

	sigset_t input;
	listen_to_input(&input);
	static struct record record;
	int64_t beat_ns = now_ns();
	bool ended = false, extra = false;
	for (unsigned long question = 1;; question++) {
		char token[64], line[MAX_QUESTION + 80];
		snprintf(token, sizeof token, "eeio-%ld-%lu", (long)getpid(), question);
		snprintf(line, sizeof line, "%s\nraw %s 0\n", words[6], token);
		record.begun_ns = now_ns();
		ask(in, line);
		hear(out, token, limit_ns, &record);
		limit_ns = answer_ns;
		const size_t size = offsetof(struct record, text) + (size_t)record.length;
		if (!hand_on(&record, size) || ended)
			return 0;
		beat_ns = next_beat(beat_ns, period_ns, record.done_ns, extra);
		int pace_ms; /* a BMC is not asked faster */
		extra = requested(&input, beat_ns, &ended, &pace_ms);
	}
}
