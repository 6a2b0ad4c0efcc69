/*
 * How fast files are created, looked up, touched and deleted by processes that work at once: after
 * the file creation rate test of Metarates, as a paper (docs/studies/) models it (equations (9) and
 * (10) of "How Processor Speedups Can Slow Down I/O Performance"). No code of Metarates is in it.
 *
 * Compiled with -DWITH_MPI the processes are MPI's ranks; without, this program forks them. What they
 * do is the same: in each round all start at one instant, and each makes its own files by open, write
 * (of `size` bytes, if any), fsync and close. When all rounds of creating are over, all rounds of
 * stat follow, then of utime, then of unlink, so that each kind fills one stretch of time that a power
 * meter can see. The times of each call are kept in memory until everything is over.
 */
#define PROGRAM "eeio-metadata"
#ifdef WITH_MPI
#include "mpi-program.h"
#else
#include "processes.h"
#endif
#include <ftw.h>

#define VERSION "1.0.0"
#define TREE "eeio-metadata.files"

enum call { OPEN, WRITE, FSYNC, CLOSE, STAT, UTIME, UNLINK, CALLS };
enum kind { CREATE, LOOK, TOUCH, DELETE, KINDS };

static const char *const call_names[CALLS] = {"open", "write", "fsync", "close",
					      "stat", "utime", "unlink"};
static const struct {
	const char *name;
	enum call first, last;
} kinds[KINDS] = {{"create", OPEN, CLOSE},
		  {"stat", STAT, STAT},
		  {"utime", UTIME, UTIME},
		  {"delete", UNLINK, UNLINK}};

struct options {
	int64_t ranks, files, rounds, size;
	bool fsync, own;
	const char *directory, *calls, *eeio;
};

/* The calls for one file, CLOCK_MONOTONIC; 0 is a call that was not made. */
struct record {
	int64_t start_ns[CALLS], end_ns[CALLS];
};

static struct meeting *meeting; /* NULL if the ranks are on several hosts */

struct world {
	int rank, ranks;
	struct record *records; /* of this rank, by round and file */
	int64_t *stamps;	/* of rank 0, start and end of each round, for ranks on several hosts */
	char *data;		/* what is written into a file */
};

#ifndef WITH_MPI
struct shared {
	struct processes processes;
	struct record records[];
};
static struct shared *shared;
#endif
static char tree[PATH_MAX];

static int remove_one(const char *path, const struct stat *found, int type, struct FTW *place)
{
	(void)found, (void)type, (void)place;
	return remove(path) && errno != ENOENT ? errno : 0;
}

/* Everything below the folder that this program made, and nothing else. */
static int remove_tree(void)
{
	return tree[0] ? nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) : 0;
}

/* --- options ------------------------------------------------------------------------------- */

static struct options parse_options(int count, char **words)
{
	struct options o = {.files = 1, .rounds = 1, .fsync = true, .directory = "."};
	for (int i = 1; i < count; i++) {
		char *value = value_in(words[i]);
		const char *key = words[i];
		if (!strcmp(key, "ranks"))
			o.ranks = number(key, value, 1, MOST_RANKS);
		else if (!strcmp(key, "files"))
			o.files = number(key, value, 1, 65536);
		else if (!strcmp(key, "rounds"))
			o.rounds = number(key, value, 1, 100000);
		else if (!strcmp(key, "size"))
			o.size = number(key, value, 0, 1 << 30);
		else if (!strcmp(key, "fsync"))
			o.fsync = choice(key, value, "off", "on");
		else if (!strcmp(key, "layout"))
			o.own = choice(key, value, "shared", "own");
		else if (!strcmp(key, "directory"))
			o.directory = value;
		else if (!strcmp(key, "calls"))
			o.calls = value;
		else if (!strcmp(key, "eeio"))
			o.eeio = value;
		else
			refuse("unknown option %s", key);
	}
	return o;
}

static int64_t records_of_a_rank(const struct options *o)
{
	return o->files * o->rounds;
}

/* The times of all calls must fit, with room for the file system's own cache. */
static void check_memory(const struct options *o, int ranks)
{
	double needed = (double)records_of_a_rank(o) * ranks * (double)sizeof(struct record);
	double there = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	if (needed > there / 2 || records_of_a_rank(o) > INT_MAX)
		refuse("files=%" PRId64 " rounds=%" PRId64 " on %d ranks: the times of their calls need "
		       "%.0f bytes of memory, more than half of the %.0f that are there",
		       o->files, o->rounds, ranks, needed, there);
}

/* --- the ranks, one after the other or at once ----------------------------------------------- */

static void barrier(void)
{
#ifdef WITH_MPI
	if (!meeting) {
		MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
#endif
	pthread_barrier_wait(&meeting->barrier);
}

/* All ranks leave this at one instant. Clocks of several hosts cannot agree on one. */
static void meet(const struct world *w)
{
	if (meeting)
		meet_at(meeting, w->rank, w->ranks);
#ifdef WITH_MPI
	else
		MPI_Barrier(MPI_COMM_WORLD);
#endif
}

/* --- what is measured -------------------------------------------------------------------------- */

static void make_folder(const char *path)
{
	if (mkdir(path, 0755))
		fail("%s: %s%s", path, strerror(errno),
		     errno == EEXIST ? ": another run works there, or left it; run post.sh" : "");
}

/* All folders of all rounds, on the disk before anything is measured. */
static void make_tree(const struct options *o, int ranks)
{
	char path[PATH_MAX];
	char name[PATH_MAX];
	int length = snprintf(name, sizeof name, "%s/" TREE, o->directory);
	if (length < 0 || (size_t)length + 64 >= sizeof name)
		fail("%.64s...: the path is too long", o->directory);
	make_folder(name);
	/* From here on it is ours to remove. */
	memcpy(tree, name, (size_t)length + 1);
	for (int64_t round = 1; round <= o->rounds; round++) {
		length = snprintf(path, sizeof path, "%.*s/round.%" PRId64, PATH_MAX - 64, tree, round);
		make_folder(path);
		for (int rank = 0; o->own && rank < ranks; rank++) {
			snprintf(path + length, sizeof path - (size_t)length, "/rank.%d", rank);
			make_folder(path);
		}
	}
	int folder = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || syncfs(folder))
		fail("%s: it cannot be flushed: %s", tree, strerror(errno));
	close(folder);
}

static int open_folder(const struct options *o, const struct world *w, int64_t round, char *path)
{
	int length = snprintf(path, PATH_MAX, "%s/" TREE "/round.%" PRId64, o->directory, round);
	if (length > 0 && length < PATH_MAX && o->own)
		length += snprintf(path + length, (size_t)(PATH_MAX - length), "/rank.%d", w->rank);
	if (length < 0 || length >= PATH_MAX)
		fail("%.64s...: the path is too long", o->directory);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		fail("%s: %s", path, strerror(errno));
	return folder;
}

static int write_all(int file, const char *data, int64_t size)
{
	for (int64_t done = 0; done < size;) {
		ssize_t moved = write(file, data + done, (size_t)(size - done));
		if (moved < 0 && errno != EINTR)
			return -1;
		if (moved > 0)
			done += moved;
	}
	return 0;
}

#define TIMED(which, call)                                                                         \
	(made = which, r->start_ns[which] = now_ns(), error = (call), r->end_ns[which] = now_ns())

static void one_file(const struct options *o, const struct world *w, enum kind kind, int folder,
		     const char *path, int64_t n, struct record *r)
{
	int error, file;
	struct stat found;
	char name[64];
	enum call made;
	snprintf(name, sizeof name, "file.%d.%" PRId64, w->rank, n);
	switch (kind) {
	case CREATE:
		TIMED(OPEN, openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644));
		file = error;
		if (error >= 0 && o->size)
			TIMED(WRITE, write_all(file, w->data, o->size));
		if (error >= 0 && o->fsync)
			TIMED(FSYNC, fsync(file));
		if (error >= 0)
			TIMED(CLOSE, close(file));
		break;
	case LOOK:
		TIMED(STAT, fstatat(folder, name, &found, 0));
		break;
	case TOUCH:
		TIMED(UTIME, utimensat(folder, name, NULL, 0));
		break;
	default:
		TIMED(UNLINK, unlinkat(folder, name, 0));
		break;
	}
	if (error < 0)
		fail("%s/%s: %s: %s", path, name, call_names[made], strerror(errno));
}

static void run(const struct options *o, struct world *w)
{
	char path[PATH_MAX];
	/* Sleepers are woken when they asked for it, not up to 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	/* Touched now, so that no page of it is fetched while calls are timed. */
	memset(w->records, 0, (size_t)records_of_a_rank(o) * sizeof *w->records);
	w->data = malloc((size_t)(o->size ? o->size : 1));
	if (!w->data)
		fail("no memory for a file of %" PRId64 " bytes", o->size);
	uint64_t noise = (uint64_t)w->rank + 1;
	for (int64_t i = 0; i < o->size; i++) {
		noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		w->data[i] = (char)(noise >> 56);
	}
	for (int kind = 0; kind < KINDS; kind++)
		for (int64_t round = 0; round < o->rounds; round++) {
			int folder = open_folder(o, w, round + 1, path);
			int64_t *stamp = w->stamps ? w->stamps + 2 * (kind * o->rounds + round) : NULL;
			meet(w);
			if (stamp)
				stamp[0] = now_ns();
			for (int64_t n = 0; n < o->files; n++)
				one_file(o, w, (enum kind)kind, folder, path, n,
					 &w->records[round * o->files + n]);
			barrier();
			if (stamp)
				stamp[1] = now_ns();
			close(folder);
		}
	free(w->data);
}

/* --- results -------------------------------------------------------------------------------- */

struct all { /* what rank 0, or the process that forked the ranks, knows in the end */
	int ranks;
	bool one_host;
	const struct record *records; /* by rank, round and file */
	const pid_t *pids;
	const int64_t *stamps;
};

struct span {
	int64_t start_ns, end_ns;
	int64_t last_start_ns; /* of the rank that began last */
};

struct sums {
	int64_t count[CALLS];
	double seconds[CALLS];
};

static struct span span_of(const struct options *o, const struct all *a, int kind, int64_t round)
{
	if (!a->one_host) {
		const int64_t *stamp = a->stamps + 2 * (kind * o->rounds + round);
		return (struct span){stamp[0], stamp[1], 0};
	}
	struct span span = {INT64_MAX, 0, 0};
	for (int rank = 0; rank < a->ranks; rank++)
		for (int64_t n = 0; n < o->files; n++) {
			const struct record *r =
				&a->records[(rank * o->rounds + round) * o->files + n];
			if (r->start_ns[kinds[kind].first] < span.start_ns)
				span.start_ns = r->start_ns[kinds[kind].first];
			if (!n && r->start_ns[kinds[kind].first] > span.last_start_ns)
				span.last_start_ns = r->start_ns[kinds[kind].first];
			if (r->end_ns[kinds[kind].last] > span.end_ns)
				span.end_ns = r->end_ns[kinds[kind].last];
		}
	return span;
}

/* Of one round, or of all when it is negative. */
static struct sums sums_of(const struct options *o, const struct all *a, int64_t round)
{
	struct sums sums = {0};
	for (int64_t i = 0; i < a->ranks * records_of_a_rank(o); i++) {
		if (round >= 0 && i / o->files % o->rounds != round)
			continue;
		const struct record *r = &a->records[i];
		for (int call = 0; call < CALLS; call++)
			if (r->start_ns[call]) {
				sums.count[call]++;
				sums.seconds[call] += (double)(r->end_ns[call] - r->start_ns[call]) / 1e9;
			}
	}
	return sums;
}

/* Equations (9) and (10): files over the sum of what each process spent in its calls. */
static double equation_9(const struct sums *s)
{
	return (double)s->count[OPEN] / (s->seconds[OPEN] + s->seconds[FSYNC] + s->seconds[CLOSE]);
}

static double equation_10(const struct sums *s)
{
	return (double)s->count[FSYNC] / s->seconds[FSYNC];
}

static void put_time(FILE *f, int64_t ns)
{
	fprintf(f, "%" PRId64 ".%09" PRId64, ns / (int64_t)NS, ns % (int64_t)NS);
}

static void write_calls(const struct options *o, const struct all *a)
{
	FILE *f = create(o->calls);
	fprintf(f, "rank,pid,round,file,call,start_monotonic_s,end_monotonic_s\n");
	for (int64_t i = 0; i < a->ranks * records_of_a_rank(o); i++) {
		int rank = (int)(i / records_of_a_rank(o));
		for (int call = 0; call < CALLS; call++) {
			if (!a->records[i].start_ns[call])
				continue;
			fprintf(f, "%d,%d,%" PRId64 ",%" PRId64 ",%s,", rank, (int)a->pids[rank],
				i / o->files % o->rounds + 1, i % o->files, call_names[call]);
			put_time(f, a->records[i].start_ns[call]);
			fputc(',', f);
			put_time(f, a->records[i].end_ns[call]);
			fputc('\n', f);
		}
	}
	close_result(f, o->calls);
}

/* The shortest time that a share of all calls does not exceed, s. */
static double percentile(const int64_t *sorted_ns, int64_t count, int percent)
{
	return (double)sorted_ns[(count * percent + 99) / 100 - 1] / 1e9;
}

static void write_call_metrics(FILE *f, const struct all *a, int64_t records, enum call call,
			       const struct sums *sums, int64_t *ns)
{
	int64_t count = 0;
	const char *name = call_names[call];
	for (int64_t i = 0; i < records; i++)
		if (a->records[i].start_ns[call])
			ns[count++] = a->records[i].end_ns[call] - a->records[i].start_ns[call];
	if (!count)
		return;
	qsort(ns, (size_t)count, sizeof *ns, by_size);
	fprintf(f, ",\n    \"%s_mean_s\": %.12g, \"%s_p50_s\": %.9f, \"%s_p95_s\": %.9f, ", name,
		sums->seconds[call] / (double)count, name, percentile(ns, count, 50), name,
		percentile(ns, count, 95));
	fprintf(f, "\"%s_p99_s\": %.9f, \"%s_max_s\": %.9f", name, percentile(ns, count, 99), name,
		(double)ns[count - 1] / 1e9);
}

static void write_notes(FILE *f, const struct options *o, const struct all *a)
{
#ifdef WITH_MPI
	fprintf(f, "\"mode: MPI\"");
#else
	fprintf(f, "\"mode: fork\"");
#endif
	if (!a->one_host)
		fprintf(f, ",\n  \"ranks on several hosts: they start after a barrier without a common "
			   "instant, and spans are rank 0's from barrier to barrier; a rank that waits "
			   "for others may keep its processor busy\"");
	if (!o->fsync)
		fprintf(f, ",\n  \"fsync=off: equation (10) has no value, and what the device does for "
			   "the files may come after the phase\"");
	fprintf(f, ",\n  \"stat, utime and delete are not flushed: what the device does for them may "
		   "come after the phase\"");
}

/* The form that eeio reads of every workload of its own. */
static void write_eeio(const struct options *o, const struct all *a, const struct sums *sums,
		       const double *seconds, const double *apart_s, const struct span *windows)
{
	int64_t records = a->ranks * records_of_a_rank(o);
	int64_t *ns = malloc((size_t)records * sizeof *ns);
	if (!ns)
		fail("no memory for the results");
	FILE *f = create(o->eeio);
	fprintf(f, "{\"schema_version\": 1,\n \"phases\": [");
	for (int kind = 0; kind < KINDS; kind++) {
		int64_t moved = kind == CREATE ? records * o->size : 0;
		fprintf(f, "%s\n  {\"name\": \"%s\", \"operation\": \"metadata\", \"spatiality\": \"none\", ",
			kind ? "," : "", kinds[kind].name);
		fprintf(f, "\"request_size_bytes\": null, \"bytes_moved\": %" PRId64 ",\n", moved);
		fprintf(f, "   \"start_monotonic_s\": ");
		put_time(f, windows[kind].start_ns);
		fprintf(f, ", \"end_monotonic_s\": ");
		put_time(f, windows[kind].end_ns);
		if (moved)
			fprintf(f, ", \"bandwidth_bytes_per_s\": %.3f,\n", (double)moved / seconds[kind]);
		else
			fprintf(f, ", \"bandwidth_bytes_per_s\": null,\n");
		fprintf(f, "   \"metrics\": {\"operations\": %" PRId64 ", \"operations_per_s\": %.12g, "
			   "\"span_s\": %.9f",
			records, (double)records / seconds[kind], seconds[kind]);
		if (a->one_host)
			fprintf(f, ", \"start_apart_mean_s\": %.9f", apart_s[kind] / (double)o->rounds);
		if (kind == CREATE)
			fprintf(f, ", \"rate_eq9_per_s\": %.12g", equation_9(sums));
		if (kind == CREATE && o->fsync)
			fprintf(f, ", \"rate_eq10_per_s\": %.12g", equation_10(sums));
		for (enum call call = kinds[kind].first; call <= kinds[kind].last; call++)
			write_call_metrics(f, a, records, call, sums, ns);
		fprintf(f, "},\n   \"invalid\": []}");
	}
	fprintf(f, "],\n \"notes\": [");
	write_notes(f, o, a);
	fprintf(f, "]}\n");
	free(ns);
	close_result(f, o->eeio);
}

/* A line of JSON for each round, then a line for each kind: all its calls over its rounds' spans. */
static void report(const struct options *o, const struct all *a)
{
	double seconds[KINDS] = {0}, apart_s[KINDS] = {0};
	struct span windows[KINDS];
	int64_t a_round = a->ranks * o->files;
	for (int64_t round = 0; round < o->rounds; round++) {
		printf("{\"round\": %" PRId64, round + 1);
		for (int kind = 0; kind < KINDS; kind++) {
			struct span span = span_of(o, a, kind, round);
			double s = (double)(span.end_ns - span.start_ns) / 1e9;
			if (!round)
				windows[kind].start_ns = span.start_ns;
			windows[kind].end_ns = span.end_ns;
			seconds[kind] += s;
			apart_s[kind] += (double)(span.last_start_ns - span.start_ns) / 1e9;
			printf(", \"%s\": {\"operations\": %" PRId64 ", \"start_monotonic_s\": ",
			       kinds[kind].name, a_round);
			put_time(stdout, span.start_ns);
			printf(", \"span_s\": %.9f, \"operations_per_s\": %.12g", s, (double)a_round / s);
			if (kind == CREATE) {
				struct sums sums = sums_of(o, a, round);
				printf(", \"rate_eq9_per_s\": %.12g", equation_9(&sums));
				if (o->fsync)
					printf(", \"rate_eq10_per_s\": %.12g", equation_10(&sums));
			}
			printf("}");
		}
		printf("}\n");
	}
	struct sums sums = sums_of(o, a, -1);
	for (int kind = 0; kind < KINDS; kind++)
		printf("%s rate: %.3f Files/s\n", kinds[kind].name,
		       (double)(a_round * o->rounds) / seconds[kind]);
	printf("create rate of one process by equation (9): %.3f Files/s\n", equation_9(&sums));
	if (o->calls)
		write_calls(o, a);
	if (o->eeio)
		write_eeio(o, a, &sums, seconds, apart_s, windows);
	if (fflush(stdout))
		fail("the result was not written completely: %s", strerror(errno));
}

/* --- one mode or the other -------------------------------------------------------------------- */

#ifdef WITH_MPI

/* Shared memory to meet in, where all ranks run on one host. */
static void find_meeting(const struct world *w, MPI_Win *window)
{
	MPI_Comm here;
	MPI_Aint bytes;
	int near, least, unit;
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Comm_size(here, &near);
	MPI_Allreduce(&near, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	*window = MPI_WIN_NULL;
	if (least == w->ranks) {
		struct meeting *mine;
		MPI_Win_allocate_shared(w->rank ? 0 : (MPI_Aint)sizeof *mine, 1, MPI_INFO_NULL, here,
					&mine, window);
		MPI_Win_shared_query(*window, 0, &bytes, &unit, &meeting);
		if (!w->rank)
			make_meeting(meeting, w->ranks);
		MPI_Barrier(here);
	}
	MPI_Comm_free(&here);
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
	check_memory(&o, w.ranks);
	MPI_Win window;
	find_meeting(&w, &window);
	size_t mine = (size_t)records_of_a_rank(&o);
	struct record *records = NULL;
	int32_t pid = (int32_t)getpid(), pids[MOST_RANKS];
	pid_t all_pids[MOST_RANKS];
	w.records = malloc(mine * sizeof *w.records);
	if (!w.rank) {
		w.stamps = calloc(2 * KINDS * (size_t)o.rounds, sizeof *w.stamps);
		records = malloc((size_t)w.ranks * mine * sizeof *records);
	}
	if (!w.records || (!w.rank && (!w.stamps || !records)))
		fail("no memory for the times of the calls");
	if (!w.rank)
		make_tree(&o, w.ranks);
	barrier();
	run(&o, &w);
	MPI_Datatype record;
	MPI_Type_contiguous(2 * CALLS, MPI_INT64_T, &record);
	MPI_Type_commit(&record);
	MPI_Gather(w.records, (int)mine, record, records, (int)mine, record, 0, MPI_COMM_WORLD);
	MPI_Type_free(&record);
	MPI_Gather(&pid, 1, MPI_INT32_T, pids, 1, MPI_INT32_T, 0, MPI_COMM_WORLD);
	if (!w.rank) {
		int error = remove_tree();
		if (error)
			fail("%s: it cannot be removed: %s", tree, strerror(error));
		for (int i = 0; i < w.ranks; i++)
			all_pids[i] = pids[i];
		report(&o, &(struct all){w.ranks, meeting != NULL, records, all_pids, w.stamps});
	}
	free(w.stamps);
	free(w.records);
	free(records);
	/* Nobody may still be in the barrier that lies there. */
	MPI_Barrier(MPI_COMM_WORLD);
	if (window != MPI_WIN_NULL)
		MPI_Win_free(&window);
	MPI_Finalize();
	return 0;
}

#else

static void be_rank(const void *options, int rank)
{
	const struct options *o = options;
	struct world w = {.rank = rank, .ranks = (int)o->ranks};
	w.records = shared->records + rank * records_of_a_rank(o);
	run(o, &w);
}

static void remove_files(void)
{
	remove_tree();
}

int main(int count, char **words)
{
	struct options o = parse_options(count, words);
	if (!o.ranks)
		o.ranks = 1;
	check_memory(&o, (int)o.ranks);
	size_t bytes =
		sizeof *shared + (size_t)(o.ranks * records_of_a_rank(&o)) * sizeof(struct record);
	shared = share_memory(bytes, "the times of the calls");
	meeting = &processes->meeting;
	clean_up = remove_files;
	hold_signals();
	make_tree(&o, (int)o.ranks);
	start_processes(o.ranks, be_rank, &o);
	watch_processes((int)o.ranks);
	int error = remove_tree();
	if (error)
		fail("%s: it cannot be removed: %s", tree, strerror(error));
	release_signals();
	report(&o, &(struct all){(int)o.ranks, true, shared->records, processes->pids, NULL});
	munmap(shared, bytes);
	return 0;
}

#endif
