/*
 * A mail server's pattern: processes that each, over and over, delete a file; create one, append to it,
 * fsync and close it; open one, read it whole, append, fsync and close it; open one, read it whole and
 * close it. After the personality `varmail` of Filebench, whose defaults are ours (1000 files of 16 KiB
 * in the mean, gamma distributed; appends of up to 16 KiB; 16 at once). No code of Filebench is in it,
 * and it differs: processes instead of threads, each with files of its own, so that none waits for a
 * lock of the program's; folders of 100 files instead of one folder; all files are there at the start, of
 * Filebench's 80 %.
 *
 * `fill` makes the tree, on the device. A run begins at one instant, each loop and each fsync is timed,
 * and its window ends when a syncfs(2) after the last loop has returned.
 */
#define PROGRAM "eeio-varmail"
#include "processes.h"
#include <math.h>
#include <sys/random.h>

#define VERSION "1.0.0"
#define TREE "eeio-varmail.files"
#define FILES_A_FOLDER 100
#define FSYNCS_A_LOOP 2
/* Of a gamma distribution of this shape, the mean's sixteenfold is exceeded by 1 in 10^10. */
#define SHAPE 1.5
#define LARGEST 16
/* Random bytes, of which each append takes a stretch that begins anywhere. */
#define POOL (4 << 20)

struct options {
	int64_t ranks, files, loops, runtime_s, size, append, seed;
	bool fill, fsync;
	const char *directory, *eeio;
};

/* What a process tells the one that started it. */
struct told {
	int64_t start_ns, end_ns, loops, read_bytes, written_bytes;
};

struct shared {
	struct processes processes;
	struct told told[MOST_RANKS];
	int64_t ns[]; /* by process: of its loops, then of their fsyncs */
};

struct world {
	int rank, ranks;
	int64_t mine, most, next; /* files that it has, loops at most, the number of its next file */
	int64_t *names, *loop_ns, *fsync_ns, fsyncs;
	uint64_t random;
	struct told *told;
	char *pool, *page; /* what is appended, and where files are read to */
};

static struct shared *shared;

/* --- options ------------------------------------------------------------------------------- */

static struct options parse_options(int count, char **words)
{
	struct options o = {.ranks = 16, .files = 1000, .loops = 1000, .size = 16384, .append = 16384,
			    .seed = 1, .fsync = true, .directory = "."};
	for (int i = 1; i < count; i++) {
		const char *key = words[i];
		if (!strcmp(key, "fill")) {
			o.fill = true;
			continue;
		}
		char *value = value_in(words[i]);
		if (!strcmp(key, "ranks"))
			o.ranks = number(key, value, 1, MOST_RANKS);
		else if (!strcmp(key, "files"))
			o.files = number(key, value, 2, 10000000);
		else if (!strcmp(key, "loops"))
			o.loops = number(key, value, 1, 100000000);
		else if (!strcmp(key, "runtime_s"))
			o.runtime_s = number(key, value, 0, 86400);
		else if (!strcmp(key, "size"))
			o.size = number(key, value, 1, 1 << 26);
		else if (!strcmp(key, "append"))
			o.append = number(key, value, 1, POOL / 2);
		else if (!strcmp(key, "seed"))
			o.seed = number(key, value, 0, INT64_MAX);
		else if (!strcmp(key, "fsync"))
			o.fsync = choice(key, value, "off", "on");
		else if (!strcmp(key, "directory"))
			o.directory = value;
		else if (!strcmp(key, "eeio"))
			o.eeio = value;
		else
			refuse("unknown option %s", key);
	}
	/* A process deletes one before it creates one, and reads one that is there. */
	if (o.files < 2 * o.ranks)
		refuse("files=%" PRId64 ": give at least two for each of %" PRId64 " processes", o.files,
		       o.ranks);
	if (strlen(o.directory) + 128 >= PATH_MAX)
		refuse("%.64s...: the path is too long", o.directory);
	return o;
}

/* A whole share each: the first have one more. */
static int64_t share(int64_t of, int64_t ranks, int64_t rank)
{
	return of / ranks + (rank < of % ranks);
}

/* --- files ------------------------------------------------------------------------------------ */

/* xorshift64*: files and sizes are drawn from it, the bytes in them are the kernel's. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static int64_t below(uint64_t *state, int64_t limit)
{
	return (int64_t)(draw(state) % (uint64_t)limit);
}

static double unit(uint64_t *state) /* above 0, up to 1 */
{
	return ((double)(draw(state) >> 11) + 1) / 9007199254740992.0;
}

/* A gamma distribution of shape 1.5 is an exponential one and half the square of a normal one, which
 * Box and Muller's transform gives. */
static int64_t gamma_size(uint64_t *state, int64_t mean)
{
	double turn = cos(2 * 3.14159265358979323846 * unit(state));
	double drawn = -log(unit(state)) - log(unit(state)) * turn * turn;
	double size = drawn * (double)mean / SHAPE;
	if (size > (double)(LARGEST * mean))
		return LARGEST * mean;
	return size < 1 ? 1 : (int64_t)size;
}

/* Files of a process are numbered as they come; a folder takes them in turn. */
static void path_of(const struct options *o, const struct world *w, int64_t name, char *path)
{
	int64_t folders = (o->files + FILES_A_FOLDER - 1) / FILES_A_FOLDER;
	snprintf(path, PATH_MAX, "%s/" TREE "/folder.%" PRId64 "/mail.%d.%" PRId64, o->directory,
		 (name * w->ranks + w->rank) % folders, w->rank, name);
}

static void append(const char *path, int file, const char *data, int64_t size)
{
	for (int64_t done = 0; done < size;) {
		ssize_t moved = write(file, data + done, (size_t)(size - done));
		if (moved < 0 && errno != EINTR)
			fail("%s: write: %s", path, strerror(errno));
		if (moved > 0)
			done += moved;
	}
}

static int64_t read_whole(const char *path, int file, char *page)
{
	int64_t all = 0;
	for (;;) {
		ssize_t moved = read(file, page, 1 << 20);
		if (moved < 0 && errno != EINTR)
			fail("%s: read: %s", path, strerror(errno));
		if (!moved)
			return all;
		if (moved > 0)
			all += moved;
	}
}

static int open_file(const char *path, int flags)
{
	int file = open(path, flags | O_CLOEXEC, 0644);
	if (file < 0)
		fail("%s: open: %s", path, strerror(errno));
	return file;
}

static void sync_tree(const struct options *o)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/" TREE, o->directory);
	int folder = open_file(path, O_RDONLY | O_DIRECTORY);
	if (syncfs(folder))
		fail("%s: it cannot be flushed: %s", path, strerror(errno));
	close(folder);
}

static void make_world(const struct options *o, struct world *w)
{
	w->mine = share(o->files, o->ranks, w->rank);
	w->most = share(o->loops, o->ranks, w->rank);
	w->next = w->mine;
	w->random = ((uint64_t)o->seed + 1) * UINT64_C(11400714819323198485) + (uint64_t)w->rank * 2 + 1;
	for (int i = 0; i < 8; i++)
		draw(&w->random);
	w->names = malloc((size_t)w->mine * sizeof *w->names);
	w->pool = malloc(POOL);
	w->page = malloc(1 << 20);
	if (!w->names || !w->pool || !w->page)
		fail("no memory");
	for (int64_t i = 0; i < w->mine; i++)
		w->names[i] = i;
	for (int64_t done = 0; done < POOL;) {
		ssize_t got = getrandom(w->pool + done, (size_t)(POOL - done), 0);
		if (got < 0 && errno != EINTR)
			fail("no random bytes: %s", strerror(errno));
		if (got > 0)
			done += got;
	}
}

static void free_world(struct world *w)
{
	free(w->names), free(w->pool), free(w->page);
}

/* The tree with its files, on the device before anything is measured. */
static void fill(const struct options *o)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof path, "%s/" TREE, o->directory);
	for (int64_t n = -1; n < (o->files + FILES_A_FOLDER - 1) / FILES_A_FOLDER; n++) {
		if (n >= 0)
			snprintf(path + length, sizeof path - (size_t)length, "/folder.%" PRId64, n);
		if (mkdir(path, 0755))
			fail("%s: %s%s", path, strerror(errno),
			     errno == EEXIST ? ": another run works there, or left it; run post.sh" : "");
	}
	for (int rank = 0; rank < o->ranks; rank++) {
		struct world w = {.rank = rank, .ranks = (int)o->ranks};
		make_world(o, &w);
		for (int64_t n = 0; n < w.mine; n++) {
			path_of(o, &w, n, path);
			int file = open_file(path, O_CREAT | O_EXCL | O_WRONLY);
			for (int64_t left = gamma_size(&w.random, o->size); left > 0;) {
				int64_t part = left < POOL / 2 ? left : POOL / 2;
				append(path, file, w.pool + below(&w.random, POOL / 2), part);
				left -= part;
			}
			if (close(file))
				fail("%s: close: %s", path, strerror(errno));
		}
		free_world(&w);
	}
	sync_tree(o);
}

/* --- what is measured -------------------------------------------------------------------------- */

/* Appends up to `append` bytes, evenly drawn, flushes them where asked for, and closes the file. */
static void add_and_close(const struct options *o, struct world *w, const char *path, int file)
{
	int64_t size = 1 + below(&w->random, o->append);
	append(path, file, w->pool + below(&w->random, POOL - size + 1), size);
	w->told->written_bytes += size;
	if (o->fsync) {
		int64_t begun_ns = now_ns();
		if (fsync(file))
			fail("%s: fsync: %s", path, strerror(errno));
		w->fsync_ns[w->fsyncs++] = now_ns() - begun_ns;
	}
	if (close(file))
		fail("%s: close: %s", path, strerror(errno));
}

static void one_loop(const struct options *o, struct world *w)
{
	char path[PATH_MAX];
	int64_t *gone = &w->names[below(&w->random, w->mine)];
	path_of(o, w, *gone, path);
	if (unlink(path))
		fail("%s: unlink: %s", path, strerror(errno));

	*gone = w->next++;
	path_of(o, w, *gone, path);
	add_and_close(o, w, path, open_file(path, O_CREAT | O_EXCL | O_WRONLY | O_APPEND));

	path_of(o, w, w->names[below(&w->random, w->mine)], path);
	int file = open_file(path, O_RDWR | O_APPEND);
	w->told->read_bytes += read_whole(path, file, w->page);
	add_and_close(o, w, path, file);

	path_of(o, w, w->names[below(&w->random, w->mine)], path);
	file = open_file(path, O_RDONLY);
	w->told->read_bytes += read_whole(path, file, w->page);
	close(file);
}

static void run(const struct options *o, struct world *w)
{
	/* Sleepers are woken when they asked for it, not up to 50 us later. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	make_world(o, w);
	meet_at(&processes->meeting, w->rank, w->ranks);
	int64_t until_ns = o->runtime_s ? now_ns() + o->runtime_s * NS : INT64_MAX;
	int64_t begun_ns = w->told->start_ns = now_ns();
	while (w->told->loops < w->most && begun_ns < until_ns) {
		one_loop(o, w);
		int64_t ended_ns = now_ns();
		w->loop_ns[w->told->loops++] = ended_ns - begun_ns;
		begun_ns = ended_ns;
	}
	w->told->end_ns = begun_ns;
	free_world(w);
}

/* --- results -------------------------------------------------------------------------------- */

static void put_time(FILE *f, const char *name, int64_t ns)
{
	fprintf(f, "\"%s\": %" PRId64 ".%09" PRId64 ", ", name, ns / (int64_t)NS, ns % (int64_t)NS);
}

/* Percentiles by nearest rank, and the longest. */
static void put_latencies(FILE *f, const char *prefix, int64_t *ns, int64_t count)
{
	static const struct {
		const char *name;
		int per_mille;
	} places[] = {{"p50", 500}, {"p95", 950}, {"p99", 990}, {"p999", 999}, {"max", 1000}};
	qsort(ns, (size_t)count, sizeof *ns, by_size);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		fprintf(f, ",\n    \"%slatency_%s_s\": %.9f", prefix, places[i].name,
			(double)ns[(count * places[i].per_mille + 999) / 1000 - 1] / 1e9);
}

/* The form that eeio reads of every workload of its own. */
static void write_eeio(const struct options *o, const struct told *all, int64_t synced_ns,
		       int64_t *loop_ns, int64_t *fsync_ns)
{
	double lasted_s = (double)(synced_ns - all->start_ns) / 1e9;
	int64_t moved = all->read_bytes + all->written_bytes;
	FILE *f = create(o->eeio);
	fprintf(f, "{\"schema_version\": 1,\n \"phases\": [\n  {\"name\": \"mail\", \"operation\": \"mixed\", ");
	fprintf(f, "\"spatiality\": \"mixed\", \"request_size_bytes\": null, \"bytes_moved\": %" PRId64 ",\n   ",
		moved);
	put_time(f, "start_monotonic_s", all->start_ns);
	put_time(f, "end_monotonic_s", synced_ns);
	put_time(f, "durable_monotonic_s", synced_ns);
	fprintf(f, "\n   \"bandwidth_bytes_per_s\": %.3f, \"includes_flush\": true, ",
		(double)moved / lasted_s);
	fprintf(f, "\"durable_source\": \"the program's own syncfs after the last loop\",\n");
	fprintf(f, "   \"metrics\": {\"called_read_bytes\": %" PRId64 ", \"called_written_bytes\": %" PRId64
		   ",\n",
		all->read_bytes, all->written_bytes);
	/* For the drive's counters to be held against: what is not flushed may be deleted before. */
	if (o->fsync)
		fprintf(f, "    \"bytes_written\": %" PRId64 ",\n", all->written_bytes);
	fprintf(f, "    \"operations\": %" PRId64 ", \"operations_per_s\": %.12g, ", all->loops,
		(double)all->loops / lasted_s);
	fprintf(f, "\"returned_operations_per_s\": %.12g",
		(double)all->loops / ((double)(all->end_ns - all->start_ns) / 1e9));
	put_latencies(f, "", loop_ns, all->loops);
	if (o->fsync)
		put_latencies(f, "fsync_", fsync_ns, all->loops * FSYNCS_A_LOOP);
	fprintf(f, "},\n   \"invalid\": []}],\n \"notes\": [\"after Filebench's varmail, not Filebench: %" PRId64
		   " processes, %" PRId64 " files\"]}\n",
		o->ranks, o->files);
	close_result(f, o->eeio);
}

/* Of all processes; their times are moved together. */
static void report(const struct options *o, int64_t synced_ns)
{
	struct told all = {.start_ns = INT64_MAX};
	int64_t most = share(o->loops, o->ranks, 0), fsyncs = 0;
	int64_t *loop_ns = shared->ns, *fsync_ns = shared->ns + o->ranks * most;
	for (int rank = 0; rank < o->ranks; rank++) {
		const struct told *t = &shared->told[rank];
		int64_t flushed = o->fsync ? t->loops * FSYNCS_A_LOOP : 0;
		memmove(loop_ns + all.loops, loop_ns + rank * most, (size_t)t->loops * sizeof *loop_ns);
		memmove(fsync_ns + fsyncs, fsync_ns + rank * most * FSYNCS_A_LOOP,
			(size_t)flushed * sizeof *fsync_ns);
		if (t->start_ns < all.start_ns)
			all.start_ns = t->start_ns;
		if (t->end_ns > all.end_ns)
			all.end_ns = t->end_ns;
		all.loops += t->loops, fsyncs += flushed;
		all.read_bytes += t->read_bytes, all.written_bytes += t->written_bytes;
	}
	double lasted_s = (double)(synced_ns - all.start_ns) / 1e9;
	printf("mail rate: %.3f operations/s\n", (double)all.loops / lasted_s);
	printf("mail bandwidth: %.6f MB/s\n",
	       (double)(all.read_bytes + all.written_bytes) / 1e6 / lasted_s);
	if (o->eeio)
		write_eeio(o, &all, synced_ns, loop_ns, fsync_ns);
	if (fflush(stdout))
		fail("the result was not written completely: %s", strerror(errno));
}

/* --- the processes ------------------------------------------------------------------------------ */

static void be_rank(const void *options, int rank)
{
	const struct options *o = options;
	int64_t most = share(o->loops, o->ranks, 0);
	struct world w = {.rank = rank, .ranks = (int)o->ranks, .told = &shared->told[rank]};
	w.loop_ns = shared->ns + rank * most;
	w.fsync_ns = shared->ns + o->ranks * most + rank * most * FSYNCS_A_LOOP;
	run(o, &w);
}

int main(int count, char **words)
{
	struct options o = parse_options(count, words);
	if (o.fill) {
		fill(&o);
		return 0;
	}
	double times = (double)(o.ranks * share(o.loops, o.ranks, 0)) * (1 + FSYNCS_A_LOOP);
	size_t bytes = sizeof *shared + (size_t)times * sizeof *shared->ns;
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	if ((double)bytes > memory / 2)
		refuse("loops=%" PRId64 ": their times need %zu bytes of memory, more than half of the %.0f "
		       "that are there",
		       o.loops, bytes, memory);
	shared = share_memory(bytes, "the times of the loops");
	hold_signals();
	start_processes(o.ranks, be_rank, &o);
	watch_processes((int)o.ranks);
	release_signals();
	sync_tree(&o);
	report(&o, now_ns());
	munmap(shared, bytes);
	return 0;
}
