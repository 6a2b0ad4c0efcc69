/*
 * The I/O of the NAS Parallel Benchmark BT-IO without its solver: the same file, cells, calls, sizes
 * and phases, written from its description (an N^3 grid of five doubles a point, dumped 12 or 40
 * times by P = p^2 ranks with p cells each, then read back and verified). No code of NPB is in it.
 *
 * Subtype `full` writes each dump by one collective call through a file view of p subarrays a rank;
 * `simple` writes every row of every cell by an independent call. `compute_ms` keeps the processors
 * busy before each dump, as the solver would. The original flushes nothing; `flush=end` does before
 * the file is closed. `cold=on` flushes and drops the file between writing and reading it back,
 * outside of both phases.
 */
#define PROGRAM "eeio-btio"
#include "mpi-program.h"
#include <math.h>
#include <sys/statvfs.h>

#define VERSION "1.0.0"
#define VALUES 5
#define POINT ((int64_t)(VALUES * sizeof(double)))
#define SMALLEST_CELL 3

struct problem {
	char class;
	int n, dumps;
};

static const struct problem problems[] = {
	{'S', 12, 12}, {'W', 24, 40}, {'A', 64, 40}, {'B', 102, 40}, {'C', 162, 40},
};

struct options {
	struct problem problem;
	bool full, flush, keep, cold;
	int64_t compute_ms, collective_buffer, ranks;
	const char *directory, *eeio;
};

struct cell {
	int low[3], size[3]; /* x, y, z */
	int64_t points;
};

struct grid {
	int rank, ranks, side; /* side = p */
	struct cell *cells;
	int64_t points; /* of all cells of this rank */
	double *data;
	char path[PATH_MAX];
};

struct phase {
	double start_s, end_s, io_s; /* CLOCK_MONOTONIC of rank 0; io_s of the slowest rank */
	/* The same until its bytes were on the device; 0 where nothing was flushed. */
	double durable_s, durable_io_s;
	double npb_s; /* as NPB counts: without opening, harmonic mean of the ranks */
	int64_t calls;
};

static void must(int error, const char *what, const char *path)
{
	char words[MPI_MAX_ERROR_STRING];
	int length;
	if (error == MPI_SUCCESS)
		return;
	MPI_Error_string(error, words, &length);
	fail("%s: %s: %s", path, what, words);
}

/* --- options ------------------------------------------------------------------------------- */

static struct problem problem_of(const char *name)
{
	for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
		if (name[0] == problems[i].class && !name[1])
			return problems[i];
	refuse("class=%s: give S, W, A, B or C", name);
}

static struct options parse_options(int count, char **words)
{
	struct options o = {.problem = problem_of("A"), .full = true, .directory = "."};
	for (int i = 1; i < count; i++) {
		char *value = value_in(words[i]);
		const char *key = words[i];
		if (!strcmp(key, "class"))
			o.problem = problem_of(value);
		else if (!strcmp(key, "subtype")) {
			o.full = !strcmp(value, "full");
			if (!o.full && strcmp(value, "simple"))
				refuse("subtype=%s: give full or simple", value);
		} else if (!strcmp(key, "flush")) {
			o.flush = !strcmp(value, "end");
			if (!o.flush && strcmp(value, "none"))
				refuse("flush=%s: give none or end", value);
		} else if (!strcmp(key, "keep"))
			o.keep = choice(key, value, "off", "on");
		else if (!strcmp(key, "cold"))
			o.cold = choice(key, value, "off", "on");
		else if (!strcmp(key, "compute_ms"))
			o.compute_ms = number(key, value, 0, 3600000);
		else if (!strcmp(key, "collective_buffer"))
			o.collective_buffer = number(key, value, 0, 1 << 30);
		else if (!strcmp(key, "ranks"))
			o.ranks = number(key, value, 0, INT_MAX);
		else if (!strcmp(key, "directory"))
			o.directory = value;
		else if (!strcmp(key, "eeio"))
			o.eeio = value;
		else
			refuse("unknown option %s", key);
	}
	return o;
}

/* --- the grid ------------------------------------------------------------------------------- */

/* The first N mod p parts of a line have one point more. */
static void part(int n, int parts, int index, int *low, int *size)
{
	int base = n / parts, more = n % parts;
	*size = base + (index < more);
	*low = index * base + (index < more ? index : more);
}

static void make_grid(struct grid *g, const struct options *o)
{
	check_joined(o->ranks, g->ranks);
	g->side = (int)lround(sqrt(g->ranks));
	if (g->side * g->side != g->ranks)
		refuse("%d ranks: BT-IO needs a square number (1, 4, 9, 16, ...)", g->ranks);
	if (o->problem.n / g->side < SMALLEST_CELL)
		refuse("class %c has cells of less than %d points on %d ranks", o->problem.class,
		     SMALLEST_CELL, g->ranks);
	g->cells = calloc((size_t)g->side, sizeof *g->cells);
	if (!g->cells)
		fail("no memory");
	int at[3] = {g->rank % g->side, g->rank / g->side, 0};
	for (int c = 0; c < g->side; c++) {
		struct cell *cell = &g->cells[c];
		cell->points = 1;
		for (int axis = 0; axis < 3; axis++) {
			part(o->problem.n, g->side, at[axis], &cell->low[axis], &cell->size[axis]);
			cell->points *= cell->size[axis];
		}
		g->points += cell->points;
		at[0] = (at[0] + 1) % g->side;
		at[1] = (at[1] + g->side - 1) % g->side;
		at[2] = (at[2] + 1) % g->side;
	}
	if (g->points > INT_MAX)
		fail("too many points a rank; take more ranks");
	g->data = malloc((size_t)(g->points * POINT));
	if (!g->data)
		fail("no memory for %" PRId64 " points", g->points);
	int length = snprintf(g->path, sizeof g->path, "%s/eeio-btio.out", o->directory);
	if (length < 0 || (size_t)length >= sizeof g->path)
		fail("%s: the path is too long", o->directory);
}

/* What a value is: its place and dump tell it, so that a wrong one is found wherever it lands. */
static double value_of(int dump, int64_t place)
{
	return (double)(dump + 1) * 1e10 + (double)place;
}

/* Fills or checks all cells, whose rows lie one behind the other in memory; wrong values. */
static int64_t each_value(const struct grid *g, int n, int dump, bool fill)
{
	int64_t wrong = 0;
	double *at = g->data;
	for (int c = 0; c < g->side; c++) {
		const struct cell *cell = &g->cells[c];
		for (int z = 0; z < cell->size[2]; z++)
			for (int y = 0; y < cell->size[1]; y++) {
				int64_t row = (int64_t)(cell->low[2] + z) * n + cell->low[1] + y;
				int64_t place = (row * n + cell->low[0]) * VALUES;
				for (int i = 0; i < cell->size[0] * VALUES; i++, at++) {
					if (fill)
						*at = value_of(dump, place + i);
					else
						wrong += *at != value_of(dump, place + i);
				}
			}
	}
	return wrong;
}

/* --- I/O ------------------------------------------------------------------------------------ */

static MPI_Info hints(const struct options *o)
{
	MPI_Info info;
	char size[32];
	MPI_Info_create(&info);
	if (o->collective_buffer) {
		snprintf(size, sizeof size, "%" PRId64, o->collective_buffer);
		MPI_Info_set(info, "cb_buffer_size", size);
		MPI_Info_set(info, "ind_wr_buffer_size", size);
		MPI_Info_set(info, "ind_rd_buffer_size", size);
		MPI_Info_set(info, "romio_cb_write", "enable");
		MPI_Info_set(info, "romio_cb_read", "enable");
	}
	return info;
}

static void set_view(const struct grid *g, const struct options *o, MPI_File file, MPI_Info info)
{
	MPI_Datatype point, view, *cells = calloc((size_t)g->side, sizeof *cells);
	int *ones = calloc((size_t)g->side, sizeof *ones);
	MPI_Aint *zeros = calloc((size_t)g->side, sizeof *zeros);
	if (!cells || !ones || !zeros)
		fail("no memory");
	int whole[3] = {o->problem.n, o->problem.n, o->problem.n};
	MPI_Type_contiguous(VALUES, MPI_DOUBLE, &point);
	MPI_Type_commit(&point);
	for (int c = 0; c < g->side; c++) {
		ones[c] = 1;
		MPI_Type_create_subarray(3, whole, g->cells[c].size, g->cells[c].low,
					 MPI_ORDER_FORTRAN, point, &cells[c]);
	}
	MPI_Type_create_struct(g->side, ones, zeros, cells, &view);
	MPI_Type_commit(&view);
	must(MPI_File_set_view(file, 0, point, view, "native", info), "no view", g->path);
	for (int c = 0; c < g->side; c++)
		MPI_Type_free(&cells[c]);
	MPI_Type_free(&view);
	MPI_Type_free(&point);
	free(cells), free(ones), free(zeros);
}

static void whole(int error, const MPI_Status *status, int64_t wanted, const char *what,
		  const struct grid *g)
{
	int doubles;
	must(error, what, g->path);
	MPI_Get_count(status, MPI_DOUBLE, &doubles);
	if (doubles != wanted * VALUES)
		fail("%s: %s of %d of %" PRId64 " values", g->path, what, doubles, wanted * VALUES);
}

/* One dump by one collective call, or row by row; the number of calls. */
static int64_t dump_full(const struct grid *g, MPI_File file, int dump, bool write)
{
	MPI_Status status;
	MPI_Offset at = (MPI_Offset)dump * g->points;
	int count = (int)(g->points * VALUES);
	if (write)
		whole(MPI_File_write_at_all(file, at, g->data, count, MPI_DOUBLE, &status), &status,
		      g->points, "write", g);
	else
		whole(MPI_File_read_at_all(file, at, g->data, count, MPI_DOUBLE, &status), &status,
		      g->points, "read", g);
	return 1;
}

static int64_t dump_simple(const struct grid *g, int n, MPI_File file, int dump, bool write)
{
	int64_t calls = 0;
	double *at = g->data;
	for (int c = 0; c < g->side; c++) {
		const struct cell *cell = &g->cells[c];
		int count = cell->size[0] * VALUES;
		for (int z = 0; z < cell->size[2]; z++)
			for (int y = 0; y < cell->size[1]; y++, calls++, at += count) {
				int64_t row = ((int64_t)dump * n + cell->low[2] + z) * n + cell->low[1] + y;
				MPI_Offset offset = (row * n + cell->low[0]) * POINT;
				MPI_Status status;
				int error = write ? MPI_File_write_at(file, offset, at, count, MPI_DOUBLE,
								      &status)
						  : MPI_File_read_at(file, offset, at, count, MPI_DOUBLE,
								     &status);
				whole(error, &status, cell->size[0], write ? "write" : "read", g);
			}
	}
	return calls;
}

/* The solver's ranks exchange the faces of their cells all the time, and come to a dump together. */
static void compute(int64_t ms)
{
	if (!ms)
		return;
	double end_s = now_s() + (double)ms / 1e3;
	volatile double sum = 0;
	while (now_s() < end_s)
		for (int i = 1; i < 1000; i++)
			sum += 1.0 / i;
	(void)sum; /* gcc 16 takes a variable that is only added to for one that nobody uses */
	MPI_Barrier(MPI_COMM_WORLD);
}

static MPI_File open_file(const struct grid *g, const struct options *o, int mode)
{
	MPI_File file;
	MPI_Info info = hints(o);
	must(MPI_File_open(MPI_COMM_WORLD, g->path, mode, info, &file), "it cannot be opened", g->path);
	if (o->full)
		set_view(g, o, file, info);
	MPI_Info_free(&info);
	return file;
}

/* The I/O time of the slowest rank, and when all had come so far. */
static void end_phase(double io_s, double *slowest_s, double *end_s)
{
	MPI_Reduce(&io_s, slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	*end_s = now_s();
}

/* All dumps in one direction. Filling and checking are not timed, and neither is computing. */
static struct phase transfer(const struct grid *g, const struct options *o, bool write,
			     int64_t *wrong)
{
	struct phase phase = {0};
	int n = o->problem.n;
	double io_s = 0;
	if (write && !g->rank)
		unlink(g->path);
	MPI_Barrier(MPI_COMM_WORLD);
	phase.start_s = now_s();
	double begun_s = phase.start_s;
	MPI_File file = open_file(g, o, write ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY);
	double opening_s = now_s() - begun_s;
	for (int dump = 0; dump < o->problem.dumps; dump++) {
		if (write) {
			each_value(g, n, dump, true);
			compute(o->compute_ms);
		}
		begun_s = now_s();
		phase.calls += o->full ? dump_full(g, file, dump, write)
				       : dump_simple(g, n, file, dump, write);
		io_s += now_s() - begun_s;
		if (!write)
			*wrong += each_value(g, n, dump, false);
	}
	bool flushes = write && o->flush;
	if (flushes) {
		/* Nobody flushes while another still writes: the times of both stay apart. */
		end_phase(io_s + opening_s, &phase.io_s, &phase.end_s);
		begun_s = now_s();
		must(MPI_File_sync(file), "it cannot be flushed", g->path);
		io_s += now_s() - begun_s;
	}
	begun_s = now_s();
	must(MPI_File_close(&file), "it cannot be closed", g->path);
	io_s += now_s() - begun_s;
	double rate = 1 / io_s, rates = 0;
	MPI_Reduce(&rate, &rates, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	phase.npb_s = g->ranks / rates;
	int64_t calls = phase.calls;
	MPI_Reduce(&calls, &phase.calls, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (flushes)
		end_phase(io_s + opening_s, &phase.durable_io_s, &phase.durable_s);
	else
		end_phase(io_s + opening_s, &phase.io_s, &phase.end_s);
	return phase;
}

/* Leaves nothing of the file in this machine's memory, so that reading it back is reading. Where the
 * phase did not flush what it wrote, this is when it comes to the device. */
static void forget(const struct grid *g, const struct options *o, struct phase *written)
{
	double begun_s = now_s();
	int file = open(g->path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || fdatasync(file))
		fail("%s: it cannot be flushed: %s", g->path, strerror(errno));
	double flush_s = now_s() - begun_s, slowest_s = 0, end_s;
	end_phase(flush_s, &slowest_s, &end_s);
	if (!o->flush)
		written->durable_s = end_s, written->durable_io_s = written->io_s + slowest_s;
	int error = posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	if (error)
		fail("%s: it cannot be dropped: %s", g->path, strerror(error));
	close(file);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* --- results -------------------------------------------------------------------------------- */

static void write_phase(FILE *f, const struct options *o, const struct grid *g, const char *name,
			const struct phase *phase, int64_t bytes, int64_t wrong)
{
	fprintf(f, "  {\"name\": \"%s\", \"operation\": \"%s\", \"spatiality\": \"strided\", ", name, name);
	if (o->full && o->collective_buffer)
		fprintf(f, "\"request_size_bytes\": %" PRId64 ", ", o->collective_buffer);
	else if (!o->full && o->problem.n % g->side == 0)
		fprintf(f, "\"request_size_bytes\": %" PRId64 ", ", o->problem.n / g->side * POINT);
	else
		fprintf(f, "\"request_size_bytes\": null, ");
	fprintf(f, "\"bytes_moved\": %" PRId64 ",\n   \"start_monotonic_s\": %.9f, ", bytes,
		phase->start_s);
	fprintf(f, "\"end_monotonic_s\": %.9f, \"bandwidth_bytes_per_s\": %.3f,\n", phase->end_s,
		(double)bytes / phase->io_s);
	if (phase->durable_s > 0)
		fprintf(f,
			"   \"durable_monotonic_s\": %.9f, \"durable_bandwidth_bytes_per_s\": %.3f, "
			"\"durable_source\": \"the program's own %s\",\n",
			phase->durable_s, (double)bytes / phase->durable_io_s,
			o->flush ? "MPI_File_sync" : "fdatasync, before it read back cold");
	else if (!strcmp(name, "write"))
		fprintf(f, "   \"durable_reason\": \"not flushed: the file is read back and deleted before "
			   "anything else can flush it\",\n");
	fprintf(f, "   \"metrics\": {\"io_time_s\": %.9f, \"npb_io_time_s\": %.9f, ", phase->io_s,
		phase->npb_s);
	fprintf(f, "\"io_share\": %.6f, \"calls\": %" PRId64 "},\n",
		phase->io_s / (phase->end_s - phase->start_s), phase->calls);
	fprintf(f, "   \"invalid\": [");
	if (wrong)
		fprintf(f, "\"%" PRId64 " values that were read are not what was written\"", wrong);
	fprintf(f, "]}");
}

static void report(const struct options *o, const struct grid *g, const struct phase *written,
		   const struct phase *read, int64_t wrong)
{
	int64_t dump_bytes = (int64_t)o->problem.n * o->problem.n * o->problem.n * POINT;
	int64_t bytes = dump_bytes * o->problem.dumps;
	/* With a flush, what comes first in the report holds it. */
	double end_s = o->flush ? written->durable_s : written->end_s;
	double io_s = o->flush ? written->durable_io_s : written->io_s;
	printf(" Class                   : %c, subtype %s, %d ranks, %d dumps of %" PRId64 " bytes\n",
	       o->problem.class, o->full ? "full" : "simple", g->ranks, o->problem.dumps, dump_bytes);
	printf(" I/O timing in seconds   : %.6f\n", io_s);
	printf(" The same, as NPB counts : %.6f\n", written->npb_s);
	printf(" I/O timing percentage   : %.2f\n", 100 * io_s / (end_s - written->start_s));
	printf(" Total data written (MB) : %.6f\n", (double)bytes / 1e6);
	printf(" I/O data rate (MB/sec)  : %.3f\n", (double)bytes / 1e6 / io_s);
	if (written->durable_s > 0)
		printf(" Calls returned after    : %.6f, on the device after %.6f\n", written->io_s,
		       written->durable_io_s);
	printf(" Read back in seconds    : %.6f\n", read->io_s);
	printf(" Read rate (MB/sec)      : %.3f\n", (double)bytes / 1e6 / read->io_s);
	printf(" Verification            : %s\n", wrong ? "FAILED" : "SUCCESSFUL");
	if (!o->eeio)
		return;
	FILE *f = create(o->eeio);
	fprintf(f, "{\"schema_version\": 1,\n \"phases\": [\n");
	write_phase(f, o, g, "write", written, bytes, 0);
	fprintf(f, ",\n");
	write_phase(f, o, g, "read", read, bytes, wrong);
	fprintf(f, "]}\n");
	close_result(f, o->eeio);
}

int main(int count, char **words)
{
	MPI_Init(&count, &words);
	struct grid g = {0};
	MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
	my_rank = g.rank;
	struct options o = parse_options(count, words);
	make_grid(&g, &o);
	struct statvfs room;
	if (statvfs(o.directory, &room))
		fail("%s: %s", o.directory, strerror(errno));
	double needed = pow(o.problem.n, 3) * (double)POINT * o.problem.dumps;
	double free_bytes = (double)room.f_bavail * (double)room.f_frsize;
	/* A file of an earlier run is deleted first, and what it holds is free then. */
	struct stat there = {0};
	stat(g.path, &there);
	free_bytes += (double)there.st_blocks * 512;
	if (!g.rank && needed > free_bytes)
		fail("%s: %.0f bytes are needed, %.0f are free", o.directory, needed, free_bytes);

	int64_t wrong = 0, all_wrong = 0;
	struct phase written = transfer(&g, &o, true, &wrong);
	if (o.cold)
		forget(&g, &o, &written);
	struct phase read = transfer(&g, &o, false, &wrong);
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!g.rank) {
		report(&o, &g, &written, &read, all_wrong);
		if (!o.keep)
			unlink(g.path);
	}
	free(g.cells);
	free(g.data);
	MPI_Bcast(&all_wrong, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	return all_wrong ? 1 : 0;
}
