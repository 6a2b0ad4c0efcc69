/*
 * Checkpoints of a parallel program: every `interval_s` seconds all ranks stop computing, each writes a
 * file of its own with a size of its own, and all go on when the last has written. Two generations are
 * kept: the older file is truncated and written anew. Between checkpoints the ranks compute, asleep or
 * busy.
 *
 * What is measured is the time of writing alone: from when all have stopped until all have written, of
 * each checkpoint. Ranks that wait for others sleep; nobody's processor spins in a barrier.
 *
 * Rank i of N writes size * (1 + spread / 100 * (2 i / (N - 1) - 1)) bytes, so that the sizes lie evenly
 * around their mean.
 */
#define PROGRAM "eeio-checkpoint"
#include "mpi-program.h"
#include <sys/random.h>

#define VERSION "1.0.0"
#define MOST_CHECKPOINTS 100000
#define GENERATIONS 2
/* How often a rank that waits looks whether the others have come. */
#define LOOK_NS 50000
/* Random bytes, of which each call takes a stretch that begins anywhere in the first half. */
#define HALF_POOL (8 << 20)

struct options {
	int64_t ranks, size, spread, request, checkpoints;
	double interval_s;
	bool fsync, busy;
	const char *directory, *eeio;
};

/* One checkpoint: from the first rank's start to the last one's end where all share a clock, else of
 * rank 0 from one barrier to the next; and how long the ranks took. */
struct checkpoint {
	double start_s, end_s, slowest_s, fastest_s, mean_s;
	int slowest, fastest;
};

struct world {
	int rank, ranks;
	bool one_host;
	int64_t bytes; /* that it writes each time */
	uint64_t random;
	char *pool;
};

/* --- options ------------------------------------------------------------------------------- */

static struct options parse_options(int count, char **words)
{
	struct options o = {.size = 1 << 24, .spread = 50, .request = 1 << 20, .checkpoints = 3,
			    .interval_s = 1, .fsync = true, .directory = "."};
	for (int i = 1; i < count; i++) {
		char *value = value_in(words[i]);
		const char *key = words[i];
		if (!strcmp(key, "ranks"))
			o.ranks = number(key, value, 1, MOST_RANKS);
		else if (!strcmp(key, "size"))
			o.size = number(key, value, 4096, INT64_C(1) << 46);
		else if (!strcmp(key, "spread"))
			o.spread = number(key, value, 0, 90);
		else if (!strcmp(key, "request_size"))
			o.request = number(key, value, 4096, HALF_POOL);
		else if (!strcmp(key, "checkpoints"))
			o.checkpoints = number(key, value, 1, MOST_CHECKPOINTS);
		else if (!strcmp(key, "interval_ms"))
			o.interval_s = (double)number(key, value, 0, 86400000) / 1e3;
		else if (!strcmp(key, "fsync"))
			o.fsync = choice(key, value, "off", "on");
		else if (!strcmp(key, "compute"))
			o.busy = choice(key, value, "sleep", "busy");
		else if (!strcmp(key, "directory"))
			o.directory = value;
		else if (!strcmp(key, "eeio"))
			o.eeio = value;
		else
			refuse("unknown option %s", key);
	}
	if (strlen(o.directory) + 64 >= PATH_MAX)
		refuse("%.64s...: the path is too long", o.directory);
	return o;
}

static int64_t bytes_of(const struct options *o, int rank, int ranks)
{
	if (ranks == 1)
		return o->size;
	double apart = (double)o->spread / 100 * (2.0 * rank / (ranks - 1) - 1);
	return (int64_t)((double)o->size * (1 + apart) + 0.5);
}

/* --- the ranks together ------------------------------------------------------------------------- */

/* Who waits here sleeps. */
static void meet(void)
{
	MPI_Request all;
	int come = 0;
	MPI_Ibarrier(MPI_COMM_WORLD, &all);
	for (;;) {
		MPI_Test(&all, &come, MPI_STATUS_IGNORE);
		if (come)
			return;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
}

static bool on_one_host(int ranks)
{
	MPI_Comm here;
	int near, least;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &near);
	MPI_Comm_free(&here);
	MPI_Allreduce(&near, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return least == ranks;
}

static void compute_until(double moment_s, bool busy)
{
	volatile double sum = 0;
	while (busy && now_s() < moment_s)
		for (int i = 1; i < 1000; i++)
			sum += 1.0 / i;
	(void)sum; /* gcc 16 takes a variable that is only added to for one that nobody uses */
	struct timespec t = {.tv_sec = (time_t)moment_s};
	t.tv_nsec = (long)((moment_s - (double)t.tv_sec) * 1e9);
	while (!busy && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* --- what is measured -------------------------------------------------------------------------- */

static void fill_pool(struct world *w)
{
	w->pool = malloc(2 * HALF_POOL);
	if (!w->pool)
		fail("no memory");
	for (size_t done = 0; done < 2 * HALF_POOL;) {
		ssize_t got = getrandom(w->pool + done, 2 * HALF_POOL - done, 0);
		if (got < 0 && errno != EINTR)
			fail("no random bytes: %s", strerror(errno));
		if (got > 0)
			done += (size_t)got;
	}
	w->random = (uint64_t)w->rank + 1;
}

static void write_file(const struct options *o, struct world *w, int64_t n)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/eeio-checkpoint.%d.%d", o->directory, w->rank,
		 (int)(n % GENERATIONS));
	int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	if (file < 0)
		fail("%s: open: %s", path, strerror(errno));
	for (int64_t done = 0; done < w->bytes;) {
		int64_t left = w->bytes - done, part = left < o->request ? left : o->request;
		w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		ssize_t moved = write(file, w->pool + (w->random >> 33) % HALF_POOL, (size_t)part);
		if (moved < 0 && errno != EINTR)
			fail("%s: write: %s", path, strerror(errno));
		if (moved > 0)
			done += moved;
	}
	if (o->fsync && fsync(file))
		fail("%s: fsync: %s", path, strerror(errno));
	if (close(file))
		fail("%s: close: %s", path, strerror(errno));
	if (!o->fsync || n >= GENERATIONS)
		return;
	/* A new name is on the device with its folder. */
	int folder = open(o->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || fsync(folder))
		fail("%s: fsync: %s", o->directory, strerror(errno));
	close(folder);
}

static void one_checkpoint(const struct options *o, struct world *w, int64_t n, struct checkpoint *c)
{
	meet();
	double start_s = c->start_s = now_s();
	write_file(o, w, n);
	double end_s = now_s(), lasted_s = end_s - start_s;
	meet();
	c->end_s = now_s();
	if (w->one_host) {
		MPI_Allreduce(&start_s, &c->start_s, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
		MPI_Allreduce(&end_s, &c->end_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	}
	struct {
		double s;
		int rank;
	} mine = {lasted_s, w->rank}, slowest, fastest;
	MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE_INT, MPI_MAXLOC, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine, &fastest, 1, MPI_DOUBLE_INT, MPI_MINLOC, 0, MPI_COMM_WORLD);
	MPI_Reduce(&lasted_s, &c->mean_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (w->rank)
		return;
	c->mean_s /= w->ranks;
	c->slowest_s = slowest.s, c->slowest = slowest.rank;
	c->fastest_s = fastest.s, c->fastest = fastest.rank;
}

static void run(const struct options *o, struct world *w, struct checkpoint *every)
{
	/* Sleepers are woken when they asked for it, not up to 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	fill_pool(w);
	for (int64_t n = 0; n < o->checkpoints; n++) {
		if (n)
			compute_until(every[n - 1].start_s + o->interval_s, o->busy);
		one_checkpoint(o, w, n, &every[n]);
	}
	free(w->pool);
}

/* --- results -------------------------------------------------------------------------------- */

static int by_duration(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;
	return (a > b) - (a < b);
}

struct sums {
	int64_t late;
	double writing_s, slowest_s, fastest_s, waited;
};

/* Percentiles by nearest rank, and the longest, of whole checkpoints: of their slowest ranks. A
 * percentile needs an operation beyond it, or it would be the longest under another name. */
static void put_latencies(FILE *f, double *seconds, int64_t count)
{
	static const struct {
		const char *name;
		int per_mille;
	} places[] = {{"p50", 500}, {"p95", 950}, {"p99", 990}, {"p999", 999}};
	qsort(seconds, (size_t)count, sizeof *seconds, by_duration);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		int64_t place = (count * places[i].per_mille + 999) / 1000;
		if (place < count || !i)
			fprintf(f, "\"latency_%s_s\": %.9f, ", places[i].name, seconds[place - 1]);
	}
	fprintf(f, "\"latency_max_s\": %.9f, ", seconds[count - 1]);
}

/* The form that eeio reads of every workload of its own. */
static void write_eeio(const struct options *o, const struct world *w, const struct checkpoint *every,
		       int64_t a_checkpoint, const struct sums *s)
{
	int64_t bytes = a_checkpoint * o->checkpoints, count = o->checkpoints;
	double *seconds = malloc((size_t)count * sizeof *seconds);
	FILE *f = create(o->eeio);
	if (!seconds)
		fail("%s: %s", o->eeio, strerror(errno));
	for (int64_t n = 0; n < count; n++)
		seconds[n] = every[n].slowest_s;
	fprintf(f, "{\"schema_version\": 1,\n \"phases\": [\n  {\"name\": \"checkpoint\", \"operation\": "
		   "\"write\", \"spatiality\": \"sequential\",\n");
	fprintf(f, "   \"request_size_bytes\": %" PRId64 ", \"bytes_moved\": %" PRId64
		   ", \"bandwidth_bytes_per_s\": %.3f,\n",
		o->request, bytes, (double)bytes / s->writing_s);
	fprintf(f, "   \"start_monotonic_s\": %.9f, \"end_monotonic_s\": %.9f,\n", every[0].start_s,
		every[count - 1].end_s);
	fprintf(f, "   \"stretches_monotonic_s\": [");
	for (int64_t n = 0; n < count; n++)
		fprintf(f, "%s[%.9f, %.9f]", n ? ", " : "", every[n].start_s, every[n].end_s);
	fprintf(f, "],\n   ");
	if (o->fsync)
		fprintf(f, "\"includes_flush\": true,\n");
	else
		fprintf(f, "\"durable_reason\": \"not flushed: the kernel writes when it comes to that, "
			   "between checkpoints and after the last, too\",\n");
	fprintf(f, "   \"metrics\": {\"operations\": %" PRId64 ", \"operations_per_s\": %.12g,\n    ", count,
		(double)count / s->writing_s);
	put_latencies(f, seconds, count);
	fprintf(f, "\n    \"slowest_rank_mean_s\": %.9f, \"fastest_rank_mean_s\": %.9f, "
		   "\"waited_fraction\": %.6f,\n    ",
		s->slowest_s / (double)count, s->fastest_s / (double)count, s->waited / (double)count);
	if (!o->fsync)
		fprintf(f, "\"kept_bytes\": %" PRId64 ", ",
			a_checkpoint * (count < GENERATIONS ? count : GENERATIONS));
	fprintf(f, "\"late_checkpoints\": %" PRId64 "},\n   \"invalid\": []}],\n \"notes\": [", s->late);
	if (s->late)
		fprintf(f, "\"%" PRId64 " of %" PRId64 " checkpoints took longer than the interval of %g s: "
			   "the next began at once\", ",
			s->late, count, o->interval_s);
	if (!w->one_host)
		fprintf(f, "\"ranks on several hosts: each checkpoint is rank 0's, from one barrier to the "
			   "next\", ");
	fprintf(f, "\"%d ranks, %" PRId64 " bytes in the mean, spread %" PRId64 " %%, compute=%s\"]}\n",
		w->ranks, o->size, o->spread, o->busy ? "busy" : "sleep");
	free(seconds);
	close_result(f, o->eeio);
}

/* A line of JSON for each checkpoint, then one for all. */
static void report(const struct options *o, const struct world *w, const struct checkpoint *every)
{
	struct sums s = {0};
	int64_t bytes = 0;
	for (int rank = 0; rank < w->ranks; rank++)
		bytes += bytes_of(o, rank, w->ranks);
	for (int64_t n = 0; n < o->checkpoints; n++) {
		const struct checkpoint *c = &every[n];
		bool late = c->end_s - c->start_s > o->interval_s;
		printf("{\"checkpoint\": %" PRId64 ", \"start_monotonic_s\": %.9f, \"span_s\": %.9f, ", n + 1,
		       c->start_s, c->end_s - c->start_s);
		printf("\"slowest_rank\": %d, \"slowest_s\": %.9f, \"fastest_rank\": %d, \"fastest_s\": %.9f, ",
		       c->slowest, c->slowest_s, c->fastest, c->fastest_s);
		printf("\"late\": %s}\n", late ? "true" : "false");
		s.late += late;
		s.writing_s += c->end_s - c->start_s;
		s.slowest_s += c->slowest_s, s.fastest_s += c->fastest_s;
		/* Of the ranks' time until the slowest has written, what they waited for it. */
		s.waited += 1 - c->mean_s / c->slowest_s;
	}
	printf("checkpoint rate: %.6f operations/s\n", (double)o->checkpoints / s.writing_s);
	printf("checkpoint bandwidth: %.6f MB/s\n",
	       (double)(bytes * o->checkpoints) / 1e6 / s.writing_s);
	if (s.late)
		printf("late: %" PRId64 " of %" PRId64 " checkpoints took longer than the interval of %g s\n",
		       s.late, o->checkpoints, o->interval_s);
	if (o->eeio)
		write_eeio(o, w, every, bytes, &s);
	if (fflush(stdout))
		fail("the result was not written completely: %s", strerror(errno));
}

int main(int count, char **words)
{
	MPI_Init(&count, &words);
	struct world w = {0};
	MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
	my_rank = w.rank;
	struct options o = parse_options(count, words);
	check_joined(o.ranks, w.ranks);
	if (w.ranks > MOST_RANKS)
		refuse("%d ranks: give at most %d", w.ranks, MOST_RANKS);
	w.one_host = on_one_host(w.ranks);
	w.bytes = bytes_of(&o, w.rank, w.ranks);
	struct checkpoint *every = calloc((size_t)o.checkpoints, sizeof *every);
	if (!every)
		fail("no memory for %" PRId64 " checkpoints", o.checkpoints);
	run(&o, &w, every);
	if (!w.rank)
		report(&o, &w, every);
	free(every);
	MPI_Finalize();
	return 0;
}
