/*
 * The data servers of a parallel file system, emulated: each MPI rank is one server with one data
 * file, and serves the requests that its clients would send. No network and no client machines, so
 * that what is measured is the server (after whom: docs/studies/). With a `pace` there are both: the
 * ranks after the `servers` are the clients, each a process that sends its requests and waits for the
 * answer, all in lock-step (no client makes its i-th request before all have made the one before) or
 * free, each as fast as it is served.
 *
 * The logical file is striped over the servers as parallel file systems do: offset `o` lies on
 * server (o / T) mod S at local offset (o / (T S)) T + o mod T, with stripe T and S servers. Client
 * c of C sends its request i at the logical offset c B + i R (contiguous) or (i C + c) R (strided),
 * with B bytes a client in requests of R; each server serves its clients in turn. A `stride` of k
 * takes every k-th of the strided offsets, so that gaps are left. With a trace (`replay=`) the
 * requests are those of the trace.
 *
 * With `file=shared` nothing is striped: all ranks share one file, each is its own client, and makes
 * the requests of that client alone, by independent calls or (MPI-IO) collective ones.
 *
 * Every page of data bears a stamp that depends on the server, the seed and where it lies, so that
 * what is read can be proved to be what was written.
 */
#define PROGRAM "eeio-dataserver"
#include "mpi-program.h"
#include <sys/statvfs.h>

#define VERSION "1.0.0"
#define PAGE 4096
#define HUGE_BYTES (INT64_C(1) << 50)
/* Of so many requests, of all ranks together, the order is kept. */
#define ARRIVALS_KEPT 65536

/* Latencies are counted in buckets whose bounds grow by 1/32: exact to 3 %, however many. */
#define SUB_BITS 5
#define BUCKETS ((65 - SUB_BITS) << SUB_BITS)

enum operation { READ, WRITE };
enum api { POSIX, MPIIO };
enum flush { FLUSH_NONE, FLUSH_END, FLUSH_EACH };
enum pace { NO_CLIENTS, LOCKSTEP, FREE };
enum tag { HEADER, DATA };
enum { NO_MORE = -1 };

struct options {
	enum operation operation;
	enum api api;
	enum flush flush;
	bool strided, direct, timed, fill, shared, collective;
	enum pace pace;
	int64_t servers, clients, stripe, request, client_bytes, stride, runtime_s, seed, ranks;
	int64_t rate; /* bytes a second that are offered to all servers together; 0: all they can */
	const char *directory, *replay, *json, *eeio;
};

struct request {
	int64_t time_ns; /* since the trace's first event; 0 for patterns */
	int64_t offset;  /* logical */
	int64_t length;
	int client;
	enum operation operation;
};

/* A request as its file saw it. */
struct arrival {
	int64_t rank, at_ns, offset, length;
};

struct server {
	int rank, servers;
	MPI_Comm all;      /* the servers, without the ranks that are clients */
	int file;          /* POSIX */
	MPI_File mpi_file; /* MPI-IO */
	char path[PATH_MAX];
	unsigned char *buffer;
	int64_t buffer_bytes;
	int64_t bytes[2], requests[2]; /* by operation */
	uint64_t written_sum, read_sum, expected_sum;
	int64_t wrong_pages;
	int64_t start_ns, returned_ns, end_ns; /* its last call, and its flush */
	struct arrival *arrivals;
	int64_t arrivals_count, arrivals_room;
	int64_t longest_ns, latency_sum_ns;
	uint64_t buckets[BUCKETS];
	bool writes, stopped_early;
};

/* --- options ------------------------------------------------------------------------------- */

static enum flush flush_of(const char *value)
{
	static const char *const names[] = {"none", "end", "each"};
	for (enum flush flush = FLUSH_NONE; flush <= FLUSH_EACH; flush++)
		if (!strcmp(value, names[flush]))
			return flush;
	refuse("flush=%s: give none, end or each", value);
}

static enum pace pace_of(const char *value)
{
	static const char *const names[] = {"none", "lockstep", "free"};
	for (enum pace pace = NO_CLIENTS; pace <= FREE; pace++)
		if (!strcmp(value, names[pace]))
			return pace;
	refuse("pace=%s: give none, lockstep or free", value);
}

/* What cannot go together, or not on these ranks. */
static void check_options(const struct options *o, int ranks)
{
	if (o->stripe % PAGE || o->request % PAGE || o->client_bytes % o->request)
		refuse("stripe and request must be multiples of %d, client_bytes one of request", PAGE);
	if (o->clients > HUGE_BYTES / o->client_bytes)
		refuse("clients=%" PRId64 " with client_bytes=%" PRId64 ": too large together", o->clients,
		       o->client_bytes);
	if (o->stride > 1 && !o->strided)
		refuse("stride=%" PRId64 ": give pattern=strided", o->stride);
	if (o->stride > o->client_bytes / o->request)
		refuse("stride=%" PRId64 ": longer than the data of a client", o->stride);
	check_joined(o->ranks, ranks);
	if (o->api == MPIIO && o->direct)
		refuse("MPI-IO has no direct I/O here: api=mpiio requires direct=off");
	if (o->collective && (o->api != MPIIO || !o->shared))
		refuse("collective=on: only MPI-IO has collective calls, in one file: give api=mpiio "
		       "file=shared");
	if (o->flush == FLUSH_EACH && o->api == MPIIO && o->shared && !o->collective)
		refuse("flush=each: ranks of one file flush it together in MPI-IO; give collective=on, "
		       "api=posix or flush=end");
	if (o->timed && !o->replay)
		refuse("timed=on keeps the times of a trace: give replay=FILE");
	if (o->fill && !o->replay)
		refuse("fill=on writes the blocks of a trace: give replay=FILE");
	if (o->rate && (o->replay || o->pace != NO_CLIENTS || o->collective || !o->runtime_s))
		refuse("rate: offered to servers for a time: give runtime_s, without replay, pace and "
		       "collective");
	if ((o->pace != NO_CLIENTS) != (o->servers > 0))
		refuse("pace and servers go together: pace=lockstep or free, and servers=N");
	if (o->pace != NO_CLIENTS && (o->shared || o->servers + o->clients != ranks))
		refuse("pace: give file=private, and as many ranks as servers and clients: %" PRId64
		       " and %" PRId64 ", not %d",
		       o->servers, o->clients, ranks);
	if (o->shared && o->replay)
		refuse("replay=%s: servers have separate files; give file=private", o->replay);
}

static struct options parse_options(int count, char **words)
{
	struct options o = {.operation = READ, .clients = 4, .stripe = 65536, .request = 65536,
			    .client_bytes = 1 << 20, .stride = 1, .seed = 1, .directory = "."};
	for (int i = 1; i < count; i++) {
		char *value = value_in(words[i]);
		const char *key = words[i];
		if (!strcmp(key, "operation"))
			o.operation = choice(key, value, "read", "write") ? WRITE : READ;
		else if (!strcmp(key, "api"))
			o.api = choice(key, value, "posix", "mpiio") ? MPIIO : POSIX;
		else if (!strcmp(key, "pattern"))
			o.strided = choice(key, value, "contiguous", "strided");
		else if (!strcmp(key, "direct"))
			o.direct = choice(key, value, "off", "on");
		else if (!strcmp(key, "flush"))
			o.flush = flush_of(value);
		else if (!strcmp(key, "file"))
			o.shared = choice(key, value, "private", "shared");
		else if (!strcmp(key, "collective"))
			o.collective = choice(key, value, "off", "on");
		else if (!strcmp(key, "stride"))
			o.stride = number(key, value, 1, 1024);
		else if (!strcmp(key, "timed"))
			o.timed = choice(key, value, "off", "on");
		else if (!strcmp(key, "fill"))
			o.fill = choice(key, value, "off", "on");
		else if (!strcmp(key, "pace"))
			o.pace = pace_of(value);
		else if (!strcmp(key, "servers"))
			o.servers = number(key, value, 1, 65536);
		else if (!strcmp(key, "clients"))
			o.clients = number(key, value, 1, 65536);
		else if (!strcmp(key, "stripe"))
			o.stripe = number(key, value, PAGE, HUGE_BYTES);
		else if (!strcmp(key, "request"))
			o.request = number(key, value, PAGE, 1 << 30);
		else if (!strcmp(key, "client_bytes"))
			o.client_bytes = number(key, value, PAGE, HUGE_BYTES);
		else if (!strcmp(key, "runtime_s"))
			o.runtime_s = number(key, value, 0, 1 << 30);
		else if (!strcmp(key, "rate"))
			o.rate = number(key, value, 1, HUGE_BYTES);
		else if (!strcmp(key, "seed"))
			o.seed = number(key, value, 0, INT64_MAX);
		else if (!strcmp(key, "ranks"))
			o.ranks = number(key, value, 1, INT_MAX);
		else if (!strcmp(key, "directory"))
			o.directory = value;
		else if (!strcmp(key, "replay"))
			o.replay = value;
		else if (!strcmp(key, "json"))
			o.json = value;
		else if (!strcmp(key, "eeio"))
			o.eeio = value;
		else
			refuse("unknown option %s", key);
	}
	int ranks;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (o.shared)
		o.clients = ranks;
	check_options(&o, ranks);
	return o;
}

/* --- what is served ------------------------------------------------------------------------ */

/* One line of a trace: time,client,op,offset,length with seconds, read or write, and bytes. */
static struct request parse_event(const char *path, int64_t line, const char *text)
{
	double time_s;
	long long client, offset, length;
	char operation[8], rest;
	if (sscanf(text, "%lf,%lld,%7[a-z],%lld,%lld %c", &time_s, &client, operation, &offset,
		   &length, &rest) != 5)
		refuse("%s:%" PRId64 ": not time,client,op,offset,length", path, line);
	bool write = !strcmp(operation, "write");
	if (!write && strcmp(operation, "read"))
		refuse("%s:%" PRId64 ": the operation is '%s', not read or write", path, line, operation);
	/* Written so that a time of `nan` is refused too. */
	if (!(time_s >= 0 && time_s < 1e9) || client < 0 || client > INT_MAX || offset < 0 ||
	    offset > HUGE_BYTES || length < 1 || length > (1 << 30))
		refuse("%s:%" PRId64 ": a value is negative, empty or too large", path, line);
	return (struct request){.time_ns = (int64_t)(time_s * 1e9), .offset = offset, .length = length,
				.client = (int)client, .operation = write ? WRITE : READ};
}

static struct request *read_trace(const struct options *o, int64_t *count)
{
	FILE *file = fopen(o->replay, "r");
	if (!file)
		refuse("%s: %s", o->replay, strerror(errno));
	int64_t room = 1024, line = 0;
	struct request *events = malloc(sizeof *events * (size_t)room);
	char *text = NULL;
	size_t size = 0;
	*count = 0;
	while (getline(&text, &size, file) >= 0) {
		line++;
		if (text[0] == '#' || text[0] == '\n' || !strncmp(text, "time,", 5))
			continue;
		if (*count == room)
			events = realloc(events, sizeof *events * (size_t)(room *= 2));
		if (!events)
			refuse("%s: no memory for its events", o->replay);
		struct request event = parse_event(o->replay, line, text);
		if (*count && event.time_ns < events[*count - 1].time_ns)
			refuse("%s:%" PRId64 ": the time runs backwards; sort the trace", o->replay, line);
		if (o->fill)
			event.operation = WRITE;
		events[(*count)++] = event;
	}
	free(text);
	fclose(file);
	if (!*count)
		refuse("%s: no event in it", o->replay);
	int64_t first_ns = events[0].time_ns;
	for (int64_t i = 0; i < *count; i++)
		events[i].time_ns -= first_ns;
	return events;
}

/* How many requests of a pattern a rank looks at: a server at those of all clients. */
static int64_t pattern_count(const struct options *o)
{
	int64_t each = o->client_bytes / (o->request * o->stride);
	return o->shared ? each : o->clients * each;
}

/* The n-th request of a pattern: the clients' i-th requests follow each other. */
static struct request pattern_request(const struct options *o, const struct server *s, int64_t n)
{
	int64_t client = o->shared ? s->rank : n % o->clients, i = o->shared ? n : n / o->clients;
	int64_t offset = o->strided ? (i * o->clients + client) * o->stride * o->request
				    : client * o->client_bytes + i * o->request;
	return (struct request){.offset = offset, .length = o->request, .client = (int)client,
				.operation = o->operation};
}

struct piece {
	int64_t local, length;
};

/* The part of a request that lies in its `k`-th stripe; false when there is none. */
static bool piece_of(const struct options *o, const struct server *s, const struct request *r,
		     int64_t k, struct piece *piece)
{
	if (o->shared) {
		*piece = (struct piece){.local = r->offset, .length = r->length};
		return !k;
	}
	int64_t stripe = r->offset / o->stripe + k;
	int64_t from = k ? stripe * o->stripe : r->offset;
	int64_t to = (stripe + 1) * o->stripe;
	if (from >= r->offset + r->length)
		return false;
	if (to > r->offset + r->length)
		to = r->offset + r->length;
	piece->local = from / (o->stripe * s->servers) * o->stripe + from % o->stripe;
	piece->length = stripe % s->servers == s->rank ? to - from : 0;
	return true;
}

/* --- data ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30, x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27, x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static int file_of(const struct options *o, const struct server *s)
{
	return o->shared ? 0 : s->rank;
}

static uint64_t stamp_of(const struct options *o, const struct server *s, int64_t page)
{
	return mix((uint64_t)o->seed * 31 + (uint64_t)file_of(o, s) + 1) ^ mix((uint64_t)page + 1);
}

/* Stamps the pages of which any byte of the stamp lies in [local, local + length): what is written in
 * small parts is whole in the end. The sum of the stamps that lie there whole. */
static uint64_t stamp(const struct options *o, const struct server *s, int64_t local, int64_t length)
{
	uint64_t sum = 0;
	for (int64_t page = local / PAGE; page * PAGE < local + length; page++) {
		uint64_t value = stamp_of(o, s, page);
		int64_t from = page * PAGE, to = from + (int64_t)sizeof value;
		int64_t begin = from > local ? from : local;
		int64_t end = to < local + length ? to : local + length;
		if (begin < end)
			memcpy(s->buffer + begin - local, (unsigned char *)&value + (begin - from),
			       (size_t)(end - begin));
		if (begin == from && end == to)
			sum += value;
	}
	return sum;
}

/* Looks at the pages whose whole stamp was read. */
static void check(const struct options *o, struct server *s, int64_t local, int64_t length)
{
	int64_t size = (int64_t)sizeof(uint64_t);
	for (int64_t page = (local + PAGE - 1) / PAGE; page * PAGE + size <= local + length; page++) {
		uint64_t value, wanted = stamp_of(o, s, page);
		memcpy(&value, s->buffer + page * PAGE - local, sizeof value);
		s->read_sum += value;
		s->expected_sum += wanted;
		s->wrong_pages += value != wanted;
	}
}

/* --- I/O ------------------------------------------------------------------------------------ */

static void open_file(const struct options *o, struct server *s, bool writes)
{
	int length = snprintf(s->path, sizeof s->path, "%s/eeio-dataserver.%d", o->directory,
			      file_of(o, s));
	if (length < 0 || (size_t)length >= sizeof s->path)
		fail("%s: the path is too long", o->directory);
	if (o->api == MPIIO) {
		int mode = writes ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY;
		MPI_Comm all = o->shared ? s->all : MPI_COMM_SELF;
		if (MPI_File_open(all, s->path, mode, MPI_INFO_NULL, &s->mpi_file))
			fail("%s: MPI-IO cannot open it", s->path);
		return;
	}
	int flags = (writes ? O_RDWR | O_CREAT : O_RDONLY) | (o->direct ? O_DIRECT : 0);
	s->file = open(s->path, flags | O_CLOEXEC, 0644);
	if (s->file < 0)
		fail("%s: %s%s", s->path, strerror(errno),
		     o->direct && errno == EINVAL ? ": no direct I/O on this file system" : "");
}

static int mpi_transfer(const struct options *o, struct server *s, enum operation operation,
			int64_t local, int length, MPI_Status *status)
{
	if (o->collective)
		return operation == WRITE ? MPI_File_write_at_all(s->mpi_file, local, s->buffer, length,
								  MPI_BYTE, status)
					  : MPI_File_read_at_all(s->mpi_file, local, s->buffer, length,
								 MPI_BYTE, status);
	return operation == WRITE
		       ? MPI_File_write_at(s->mpi_file, local, s->buffer, length, MPI_BYTE, status)
		       : MPI_File_read_at(s->mpi_file, local, s->buffer, length, MPI_BYTE, status);
}

static void transfer(const struct options *o, struct server *s, enum operation operation,
		     int64_t local, int64_t length)
{
	int64_t done = 0;
	while (done < length) {
		ssize_t moved;
		if (o->api == MPIIO) {
			MPI_Status status;
			int count = 0;
			if (mpi_transfer(o, s, operation, local, (int)length, &status))
				fail("%s: MPI-IO failed at %" PRId64, s->path, local);
			MPI_Get_count(&status, MPI_BYTE, &count);
			if (count != length)
				fail("%s: %d of %" PRId64 " bytes at %" PRId64, s->path, count, length,
				     local);
			moved = count;
		} else if (operation == WRITE) {
			moved = pwrite(s->file, s->buffer + done, (size_t)(length - done), local + done);
		} else {
			moved = pread(s->file, s->buffer + done, (size_t)(length - done), local + done);
		}
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			fail("%s at %" PRId64 ": %s", s->path, local + done, strerror(errno));
		if (moved == 0 && operation == WRITE)
			fail("%s: no byte could be written at %" PRId64, s->path, local + done);
		if (moved == 0)
			fail("%s ends at %" PRId64 ", before a read: write it first", s->path, local + done);
		done += moved;
	}
}

static void flush(const struct options *o, struct server *s)
{
	if (o->api == MPIIO ? MPI_File_sync(s->mpi_file) : fsync(s->file))
		fail("%s: it cannot be flushed: %s", s->path, strerror(errno));
}

static void count_latency(struct server *s, int64_t ns)
{
	uint64_t value = ns > 0 ? (uint64_t)ns : 0;
	int top = 63 - __builtin_clzll(value | 1);
	int shift = top > SUB_BITS ? top - SUB_BITS : 0;
	uint64_t bucket = ((uint64_t)shift << SUB_BITS) + (value >> shift);
	s->buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
	s->latency_sum_ns += ns;
	if (ns > s->longest_ns)
		s->longest_ns = ns;
}

/* The middle of the bucket in which a share of all latencies lies, s. */
static double percentile(const uint64_t *buckets, uint64_t count, double share)
{
	uint64_t seen = 0, wanted = (uint64_t)(share * (double)count);
	for (int i = 0; i < BUCKETS; i++) {
		seen += buckets[i];
		if (seen > wanted) {
			int shift = i < 2 << SUB_BITS ? 0 : (i >> SUB_BITS) - 1;
			double low = (double)((uint64_t)(i - (shift << SUB_BITS)) << shift);
			return (low + (double)((UINT64_C(1) << shift) - 1) / 2) / 1e9;
		}
	}
	return 0;
}

static void serve(const struct options *o, struct server *s, const struct request *r)
{
	struct piece piece;
	/* What lies in one file of a request that several stripes share lies there together. */
	struct arrival arrival = {.rank = s->rank};
	for (int64_t k = 0; piece_of(o, s, r, k, &piece); k++) {
		if (!piece.length)
			continue;
		if (r->operation == WRITE)
			s->written_sum += stamp(o, s, piece.local, piece.length);
		int64_t start_ns = now_ns();
		transfer(o, s, r->operation, piece.local, piece.length);
		if (o->flush == FLUSH_EACH && r->operation == WRITE)
			flush(o, s);
		count_latency(s, now_ns() - start_ns);
		if (r->operation == READ)
			check(o, s, piece.local, piece.length);
		s->bytes[r->operation] += piece.length;
		s->requests[r->operation]++;
		if (!arrival.length)
			arrival.at_ns = start_ns, arrival.offset = piece.local;
		arrival.length += piece.length;
	}
	if (arrival.length && s->arrivals_count < s->arrivals_room)
		s->arrivals[s->arrivals_count++] = arrival;
}

/* --- clients of their own ------------------------------------------------------------------- */

/* What a client sends before the data of a write, and instead of a request when it has no more. */
struct header {
	int64_t operation, local, length;
};

/* MPI's own waits spin: a server that waits for a request would draw power as if it worked. */
static void pause_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
}

static void wait_for(int source, enum tag tag)
{
	for (int there = 0;;) {
		MPI_Iprobe(source, (int)tag, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
		if (there)
			return;
		pause_briefly();
	}
}

/* Whether it is over for any client; returns when all have asked. */
static int over_for_any(const struct server *s, int over)
{
	MPI_Request asked;
	int any = 0;
	MPI_Iallreduce(&over, &any, 1, MPI_INT, MPI_MAX, s->all, &asked);
	for (int done = 0;;) {
		MPI_Test(&asked, &done, MPI_STATUS_IGNORE);
		if (done)
			return any;
		pause_briefly();
	}
}

static void serve_piece(const struct options *o, struct server *s, const struct header *h, int client)
{
	enum operation operation = h->operation == WRITE ? WRITE : READ;
	if (operation == WRITE) {
		wait_for(client, DATA);
		MPI_Recv(s->buffer, (int)h->length, MPI_BYTE, client, DATA, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		/* What is written is what was sent: its stamps are those of the place. */
		uint64_t read_sum = s->read_sum, expected_sum = s->expected_sum;
		check(o, s, h->local, h->length);
		s->written_sum += s->read_sum - read_sum;
		s->read_sum = read_sum, s->expected_sum = expected_sum;
	}
	int64_t start_ns = now_ns();
	transfer(o, s, operation, h->local, h->length);
	if (o->flush == FLUSH_EACH && operation == WRITE)
		flush(o, s);
	count_latency(s, now_ns() - start_ns);
	if (operation == READ)
		check(o, s, h->local, h->length);
	/* The data of a read, or that a write is done. */
	MPI_Send(s->buffer, operation == READ ? (int)h->length : 0, MPI_BYTE, client, DATA,
		 MPI_COMM_WORLD);
	s->bytes[operation] += h->length;
	s->requests[operation]++;
	if (s->arrivals_count < s->arrivals_room)
		s->arrivals[s->arrivals_count++] =
			(struct arrival){s->rank, start_ns, h->local, h->length};
}

/* In the order in which requests arrive, until no client has more. */
static void serve_clients(const struct options *o, struct server *s)
{
	for (int64_t left = o->clients; left;) {
		struct header h;
		MPI_Status from;
		wait_for(MPI_ANY_SOURCE, HEADER);
		MPI_Recv(&h, sizeof h, MPI_BYTE, MPI_ANY_SOURCE, HEADER, MPI_COMM_WORLD, &from);
		if (h.operation == NO_MORE) {
			left--;
			s->stopped_early = s->stopped_early || h.length;
		} else {
			serve_piece(o, s, &h, from.MPI_SOURCE);
		}
	}
}

/* One request of a client, piece after piece where several servers have a stripe of it. */
static void send_request(const struct options *o, struct server *s, const struct request *r)
{
	struct server there = *s;
	struct piece piece;
	there.rank = (int)(r->offset / o->stripe % s->servers);
	for (int64_t k = 0; piece_of(o, &there, r, k, &piece); k++) {
		struct header h = {r->operation, piece.local, piece.length};
		if (r->operation == WRITE)
			stamp(o, &there, piece.local, piece.length);
		MPI_Send(&h, sizeof h, MPI_BYTE, there.rank, HEADER, MPI_COMM_WORLD);
		if (r->operation == WRITE)
			MPI_Send(s->buffer, (int)piece.length, MPI_BYTE, there.rank, DATA, MPI_COMM_WORLD);
		wait_for(there.rank, DATA);
		MPI_Recv(s->buffer, r->operation == READ ? (int)piece.length : 0, MPI_BYTE, there.rank,
			 DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		there.rank = (int)((r->offset / o->stripe + k + 1) % s->servers);
	}
}

/* A client: its own requests of the pattern, or those that the trace has of it; then it tells each
 * server that it has no more. `s->all` is all clients. */
static void be_client(const struct options *o, struct server *s, const struct request *events,
		      int64_t count)
{
	int client, over = 0;
	MPI_Comm_rank(s->all, &client);
	if (posix_memalign((void **)&s->buffer, PAGE, (size_t)s->buffer_bytes))
		fail("no memory for a request of %" PRId64 " bytes", s->buffer_bytes);
	memset(s->buffer, 0, (size_t)s->buffer_bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	s->start_ns = now_ns();
	for (int64_t n = 0; n < count && !over; n++) {
		struct request r = events ? events[n] : pattern_request(o, s, n);
		if (r.client % (int)o->clients != client)
			continue;
		if (o->timed)
			wait_until(s->start_ns + r.time_ns);
		over = o->runtime_s && now_ns() - s->start_ns >= o->runtime_s * NS;
		/* A trace has as many requests of a client as it has: nobody waits for the others there. */
		if (o->pace == LOCKSTEP && !events)
			over = over_for_any(s, over);
		if (!over)
			send_request(o, s, &r);
	}
	for (int i = 0; i < s->servers; i++)
		MPI_Send(&(struct header){NO_MORE, 0, over}, sizeof(struct header), MPI_BYTE, i, HEADER,
			 MPI_COMM_WORLD);
	free(s->buffer);
}

/* When a server's next request is offered: its share of the rate has moved what it has. */
static int64_t offered_at(const struct options *o, const struct server *s)
{
	double moved = (double)(s->bytes[READ] + s->bytes[WRITE]) * s->servers;
	return s->start_ns + (int64_t)(moved / (double)o->rate * (double)NS);
}

static bool is_over(const struct options *o, const struct server *s)
{
	int over = o->runtime_s && now_ns() - s->start_ns >= o->runtime_s * NS;
	/* A collective call is made by all ranks or by none. */
	if (o->collective && o->runtime_s)
		MPI_Bcast(&over, 1, MPI_INT, 0, s->all);
	return over;
}

static void run(const struct options *o, struct server *s, const struct request *events,
		int64_t count)
{
	MPI_Barrier(MPI_COMM_WORLD);
	s->start_ns = now_ns();
	if (o->pace != NO_CLIENTS)
		serve_clients(o, s);
	/* An offered load lasts its time, however large the file: it begins again at the first request. */
	for (int64_t n = 0; (n < count || o->rate) && o->pace == NO_CLIENTS; n++) {
		struct request r = events ? events[n] : pattern_request(o, s, n % count);
		if (o->timed)
			wait_until(s->start_ns + r.time_ns);
		if (o->rate)
			wait_until(offered_at(o, s));
		if (is_over(o, s)) {
			s->stopped_early = true;
			break;
		}
		serve(o, s, &r);
	}
	s->returned_ns = now_ns();
	if (o->flush == FLUSH_END && s->writes) {
		/* Nobody flushes while another still writes: the times of both stay apart. */
		MPI_Barrier(s->all);
		flush(o, s);
	}
	s->end_ns = now_ns();
}

/* Room and a buffer for the largest piece; what a server will hold is known beforehand. */
static void prepare(const struct options *o, struct server *s, const struct request *events,
		    int64_t count)
{
	int64_t largest = 0, end = 0;
	for (int64_t n = 0; n < count; n++) {
		struct request r = events ? events[n] : pattern_request(o, s, n);
		struct piece piece;
		for (int64_t k = 0; piece_of(o, s, &r, k, &piece); k++) {
			if (piece.length > largest)
				largest = piece.length;
			if (piece.length && piece.local + piece.length > end)
				end = piece.local + piece.length;
		}
		if (o->direct && (r.offset % 512 || r.length % 512))
			refuse("direct=on needs offsets and lengths that are multiples of 512");
		s->writes = s->writes || r.operation == WRITE;
	}
	s->buffer_bytes = largest > PAGE ? largest : PAGE;
	if (posix_memalign((void **)&s->buffer, PAGE, (size_t)s->buffer_bytes))
		fail("no memory for a request of %" PRId64 " bytes", s->buffer_bytes);
	uint64_t noise = mix((uint64_t)o->seed + 77);
	for (int64_t i = 0; i + 8 <= s->buffer_bytes; i += 8) {
		noise = mix(noise + (uint64_t)i);
		memcpy(s->buffer + i, &noise, sizeof noise);
	}
	/* Of servers on other machines each has a disk of its own, with the profile's own folder on it. */
	const char *name = strrchr(o->directory, '/');
	if (name && !strcmp(name, "/eeio-scratch") && mkdir(o->directory, 0755) && errno != EEXIST)
		fail("%s: %s", o->directory, strerror(errno));
	struct statvfs room;
	struct stat there = {0};
	snprintf(s->path, sizeof s->path, "%s/eeio-dataserver.%d", o->directory, file_of(o, s));
	if (statvfs(o->directory, &room))
		fail("%s: %s", o->directory, strerror(errno));
	stat(s->path, &there);
	/* Ranks of one machine share its disk: each file needs a share of what is free. */
	double free_bytes = (double)room.f_bavail * (double)room.f_frsize;
	double needed = (double)(end - there.st_size) * (o->shared ? 1 : s->servers);
	if (s->writes && end > there.st_size && needed > free_bytes)
		fail("%s: %.0f bytes are needed, %.0f are free", o->directory, needed, free_bytes);
	open_file(o, s, s->writes);
	s->arrivals_room = ARRIVALS_KEPT / s->servers + 1;
	s->arrivals = malloc(sizeof *s->arrivals * (size_t)s->arrivals_room);
	if (!s->arrivals)
		fail("no memory for the order of requests");
	/* Its pages are there before anything is measured. */
	memset(s->arrivals, 0, sizeof *s->arrivals * (size_t)s->arrivals_room);
}

/* --- the order in which requests arrived ---------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	return x->at_ns != y->at_ns ? (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns)
				    : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_rank(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;
	return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : by_time(a, b);
}

/* Whether four of five requests, of all ranks by time, lie behind the one before. */
static bool is_sequential(const struct options *o, struct arrival *all, int64_t count)
{
	int64_t behind = 0;
	qsort(all, (size_t)count, sizeof *all, by_time);
	for (int64_t i = 1; i < count; i++)
		behind += (o->shared || all[i].rank == all[i - 1].rank) &&
			  all[i].offset == all[i - 1].offset + all[i - 1].length;
	return 5 * behind >= 4 * (count - 1);
}

/* Sequences of requests of a rank, each of which lies behind one of before, if there are few of them;
 * else 0. Found through a table of the places where a request would go on. */
static int64_t sequential_streams(const struct arrival *all, int64_t count)
{
	int64_t room = 1, streams = 0;
	while (room < 2 * count)
		room *= 2;
	int64_t *last = malloc(sizeof *last * (size_t)room);
	bool *goes_on = calloc((size_t)count, sizeof *goes_on);
	if (!last || !goes_on)
		fail("no memory for the order of requests");
	for (int64_t i = 0; i < room; i++)
		last[i] = -1;
	for (int64_t i = 0; i < count; i++) {
		for (int ending = 0; ending < 2; ending++) {
			int64_t place = all[i].offset + (ending ? all[i].length : 0);
			uint64_t slot = mix((uint64_t)place * 65537 + (uint64_t)all[i].rank + 1);
			const struct arrival *there;
			for (;; slot++) {
				slot &= (uint64_t)room - 1;
				if (last[slot] < 0)
					break;
				there = &all[last[slot]];
				if (there->rank == all[i].rank && there->offset + there->length == place)
					break;
			}
			if (ending)
				last[slot] = i;
			else if (last[slot] >= 0 && !goes_on[last[slot]])
				goes_on[last[slot]] = true;
			else
				streams++;
		}
	}
	free(last);
	free(goes_on);
	/* Each place of a small file, taken at random, lies behind an earlier one half of the time. */
	return 4 * streams <= count ? streams : 0;
}

/* Whether four of five requests of a rank lie at the same distance from the one before. */
static bool is_strided(const struct arrival *all, int64_t count, int64_t *distance)
{
	int64_t *steps = malloc(sizeof *steps * (size_t)count), found = 0, most = 0, same = 0;
	if (!steps)
		fail("no memory for the order of requests");
	for (int64_t i = 1; i < count; i++)
		if (all[i].rank == all[i - 1].rank)
			steps[found++] = all[i].offset - all[i - 1].offset;
	qsort(steps, (size_t)found, sizeof *steps, by_size);
	for (int64_t i = 0; i < found; i++) {
		same = i && steps[i] == steps[i - 1] ? same + 1 : 1;
		if (same > most)
			most = same, *distance = steps[i];
	}
	free(steps);
	return found && 5 * most >= 4 * found;
}

/* What the files saw of the requests that were kept, in words (docs/explanation/caches-and-validity.md); rank 0 tells it. */
static void describe(const struct options *o, struct arrival *all, int64_t count, char *words,
		     size_t room)
{
	if (is_sequential(o, all, count)) {
		snprintf(words, room, "sequential");
		return;
	}
	qsort(all, (size_t)count, sizeof *all, by_rank);
	int64_t streams = sequential_streams(all, count), ranks = 1, distance = 0;
	for (int64_t i = 1; i < count; i++)
		ranks += all[i].rank != all[i - 1].rank;
	if (streams > 1)
		snprintf(words, room, "mixed of %" PRId64 " streams, each sequential", streams);
	else if (streams)
		snprintf(words, room, "sequential");
	else if (!is_strided(all, count, &distance))
		snprintf(words, room, "random");
	else if (ranks > 1)
		snprintf(words, room, "mixed of %" PRId64 " streams, each strided by %" PRId64 " bytes",
			 ranks, distance);
	else
		snprintf(words, room, "strided by %" PRId64 " bytes", distance);
}

/* All ranks' requests, by the time since `origin_ns`, the start of their node. */
static void tell_order(const struct options *o, struct server *s, int64_t origin_ns, char *words,
		       size_t room)
{
	int mine = (int)(s->arrivals_count * (int64_t)sizeof *s->arrivals);
	int *sizes = calloc((size_t)s->servers, sizeof *sizes);
	int *places = calloc((size_t)s->servers, sizeof *places);
	if (!sizes || !places)
		fail("no memory for the order of requests");
	for (int64_t i = 0; i < s->arrivals_count; i++)
		s->arrivals[i].at_ns -= origin_ns;
	MPI_Gather(&mine, 1, MPI_INT, sizes, 1, MPI_INT, 0, s->all);
	int total = 0;
	for (int i = 0; i < s->servers; i++)
		places[i] = total, total += sizes[i];
	struct arrival *all = malloc((size_t)total + 1);
	if (!all)
		fail("no memory for the order of requests");
	MPI_Gatherv(s->arrivals, mine, MPI_BYTE, all, sizes, places, MPI_BYTE, 0, s->all);
	if (!s->rank && total)
		describe(o, all, total / (int)sizeof *all, words, room);
	free(all);
	free(sizes);
	free(places);
}

/* --- results -------------------------------------------------------------------------------- */

struct result {
	int64_t bytes[2], requests[2];
	uint64_t written_sum, read_sum, expected_sum;
	int64_t wrong_pages, longest_ns, latency_sum_ns, stopped;
	int64_t start_ns; /* of the first rank on this one's node */
	/* From there to the last call and to the last flush, on the node that took longest. */
	double returned_s, seconds;
	char seen[96]; /* empty where nobody knows what arrived */
};

struct rank_line {
	int64_t bytes, requests, ns;
};

static void write_json(const struct options *o, const struct server *s, const struct result *all,
		       const struct rank_line *ranks, const uint64_t *buckets)
{
	FILE *f = create(o->json);
	int64_t bytes = all->bytes[READ] + all->bytes[WRITE];
	int64_t requests = all->requests[READ] + all->requests[WRITE];
	fprintf(f, "{\"program\": \"eeio-dataserver\", \"version\": \"%s\",\n", VERSION);
	fprintf(f, " \"servers\": %d, \"clients\": %" PRId64 ", \"stripe_bytes\": %" PRId64 ",\n",
		s->servers, o->clients, o->stripe);
	fprintf(f, " \"request_bytes\": %" PRId64 ", \"client_bytes\": %" PRId64 ",\n", o->request,
		o->client_bytes);
	fprintf(f, " \"api\": \"%s\", \"operation\": \"%s\", \"pattern\": \"%s\",\n",
		o->api == MPIIO ? "mpiio" : "posix",
		o->replay	       ? "replay"
		: o->operation == READ ? "read"
				       : "write",
		o->replay    ? "replay"
		: o->strided ? "strided"
			     : "contiguous");
	fprintf(f, " \"direct\": %s, \"flush\": \"%s\", \"timed\": %s, \"stopped_early\": %s,\n",
		o->direct ? "true" : "false",
		o->flush == FLUSH_NONE  ? "none"
		: o->flush == FLUSH_END ? "end"
					: "each",
		o->timed ? "true" : "false", all->stopped ? "true" : "false");
	if (o->pace != NO_CLIENTS)
		fprintf(f, " \"pace\": \"%s\",\n", o->pace == LOCKSTEP ? "lockstep" : "free");
	fprintf(f, " \"file\": \"%s\", \"collective\": %s, \"stride\": %" PRId64 ",\n",
		o->shared ? "shared" : "private", o->collective ? "true" : "false", o->stride);
	if (all->seen[0])
		fprintf(f, " \"seen\": \"%s\",\n", all->seen);
	fprintf(f, " \"ranks\": [");
	for (int i = 0; i < s->servers; i++)
		fprintf(f, "%s\n  {\"rank\": %d, \"bytes\": %" PRId64 ", \"requests\": %" PRId64
			   ", \"seconds\": %.9f, \"bandwidth_bytes_per_s\": %.3f}",
			i ? "," : "", i, ranks[i].bytes, ranks[i].requests, (double)ranks[i].ns / 1e9,
			ranks[i].ns ? (double)ranks[i].bytes / ((double)ranks[i].ns / 1e9) : 0.0);
	fprintf(f, "],\n \"aggregate\": {\"bytes_read\": %" PRId64 ", \"bytes_written\": %" PRId64
		   ", \"requests\": %" PRId64 ", \"returned_seconds\": %.9f, \"seconds\": %.9f, "
		   "\"bandwidth_bytes_per_s\": %.3f},\n",
		all->bytes[READ], all->bytes[WRITE], requests, all->returned_s, all->seconds,
		(double)bytes / all->seconds);
	fprintf(f, " \"latency_s\": {\"mean\": %.9f, \"p50\": %.9f, \"p95\": %.9f, \"p99\": %.9f, "
		   "\"p999\": %.9f, \"max\": %.9f},\n",
		(double)all->latency_sum_ns / 1e9 / (double)requests,
		percentile(buckets, (uint64_t)requests, 0.5), percentile(buckets, (uint64_t)requests, 0.95),
		percentile(buckets, (uint64_t)requests, 0.99),
		percentile(buckets, (uint64_t)requests, 0.999), (double)all->longest_ns / 1e9);
	fprintf(f, " \"checksum\": {\"written\": \"%016" PRIx64 "\", \"read\": \"%016" PRIx64
		   "\", \"expected\": \"%016" PRIx64 "\", \"wrong_pages\": %" PRId64 "}}\n",
		all->written_sum, all->read_sum, all->expected_sum, all->wrong_pages);
	close_result(f, o->json);
}

/* The form that eeio reads of every workload of its own. */
static void write_eeio(const struct options *o, const struct result *all, const uint64_t *buckets)
{
	FILE *f = create(o->eeio);
	int64_t bytes = all->bytes[READ] + all->bytes[WRITE];
	int64_t requests = all->requests[READ] + all->requests[WRITE];
	const char *name = !all->bytes[READ] ? "write" : !all->bytes[WRITE] ? "read" : "mixed";
	fprintf(f, "{\"schema_version\": 1,\n \"phases\": [{\"name\": \"%s\", \"operation\": \"%s\", ",
		name, name);
	/* Of a trace eeio tells more than that: it reads it too. */
	fprintf(f, "\"spatiality\": \"%s\", ",
		o->replay    ? "mixed"
		: o->strided ? "strided"
			     : "sequential");
	/* Servers count their part of a request that several of them share as one of their own. */
	if (o->replay || bytes != requests * o->request)
		fprintf(f, "\"request_size_bytes\": null, ");
	else
		fprintf(f, "\"request_size_bytes\": %" PRId64 ", ", o->request);
	fprintf(f, "\"bytes_moved\": %" PRId64 ",\n", bytes);
	fprintf(f, "  \"start_monotonic_s\": %.9f, \"end_monotonic_s\": %.9f, ",
		(double)all->start_ns / 1e9, (double)all->start_ns / 1e9 + all->returned_s);
	fprintf(f, "\"bandwidth_bytes_per_s\": %.3f,\n", (double)bytes / all->returned_s);
	if (all->bytes[WRITE] && o->flush != FLUSH_NONE)
		fprintf(f,
			"  \"durable_monotonic_s\": %.9f, \"includes_flush\": %s, "
			"\"durable_source\": \"the program's own %s%s\",\n",
			(double)all->start_ns / 1e9 + all->seconds,
			o->flush == FLUSH_EACH ? "true" : "false",
			o->api == MPIIO ? "MPI_File_sync" : "fsync",
			o->flush == FLUSH_EACH ? " of each request" : "");
	if (all->seen[0])
		fprintf(f, "  \"spatiality_seen\": \"%s\",\n", all->seen);
	fprintf(f, "  \"metrics\": {\"iops\": %.3f, \"latency_mean_s\": %.9f, \"latency_p50_s\": %.9f, ",
		(double)requests / all->returned_s, (double)all->latency_sum_ns / 1e9 / (double)requests,
		percentile(buckets, (uint64_t)requests, 0.5));
	fprintf(f, "\"latency_p95_s\": %.9f, \"latency_p99_s\": %.9f, \"latency_p999_s\": %.9f, "
		   "\"latency_max_s\": %.9f",
		percentile(buckets, (uint64_t)requests, 0.95),
		percentile(buckets, (uint64_t)requests, 0.99),
		percentile(buckets, (uint64_t)requests, 0.999), (double)all->longest_ns / 1e9);
	if (all->bytes[READ] && all->bytes[WRITE])
		fprintf(f, ", \"bytes_read\": %" PRId64 ", \"bytes_written\": %" PRId64,
			all->bytes[READ], all->bytes[WRITE]);
	if (o->rate)
		fprintf(f, ", \"offered_bytes_per_s\": %" PRId64 ".0", o->rate);
	fprintf(f, "},\n  \"invalid\": [");
	if (all->wrong_pages)
		fprintf(f, "\"%" PRId64 " pages that were read are not what was written\"",
			all->wrong_pages);
	fprintf(f, "]}]");
	if (o->collective)
		fprintf(f, ",\n \"notes\": [\"what order the file saw is not known: MPI-IO makes the "
			   "requests of collective calls\"]");
	else if (o->pace != NO_CLIENTS)
		fprintf(f, ",\n \"notes\": [\"%" PRId64 " clients, processes of their own, %s\"]",
			o->clients, o->pace == LOCKSTEP ? "in lock-step" : "each at its own pace");
	fprintf(f, "}\n");
	close_result(f, o->eeio);
}

static void report(const struct options *o, struct server *s)
{
	struct result mine = {.bytes = {s->bytes[0], s->bytes[1]},
			      .requests = {s->requests[0], s->requests[1]},
			      .written_sum = s->written_sum, .read_sum = s->read_sum,
			      .expected_sum = s->expected_sum, .wrong_pages = s->wrong_pages,
			      .latency_sum_ns = s->latency_sum_ns, .stopped = s->stopped_early};
	struct result all = {0};
	struct rank_line line = {s->bytes[0] + s->bytes[1], s->requests[0] + s->requests[1],
				 s->end_ns - s->start_ns};
	/* Where ranks outnumber processors, one leaves the barrier when another has done its work: a
	 * node's time is from its first start to its last end, on the one clock that its ranks share. */
	MPI_Comm node;
	MPI_Comm_split_type(s->all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Allreduce(&s->start_ns, &all.start_ns, 1, MPI_INT64_T, MPI_MIN, node);
	MPI_Comm_free(&node);
	double seconds[2] = {(double)(s->returned_ns - all.start_ns) / 1e9,
			     (double)(s->end_ns - all.start_ns) / 1e9};
	if (!o->collective)
		tell_order(o, s, all.start_ns, all.seen, sizeof all.seen);
	struct rank_line *ranks = calloc((size_t)s->servers, sizeof *ranks);
	uint64_t *buckets = calloc(BUCKETS, sizeof *buckets);
	if (!ranks || !buckets)
		fail("no memory for the results");
	MPI_Reduce(mine.bytes, all.bytes, 2, MPI_INT64_T, MPI_SUM, 0, s->all);
	MPI_Reduce(mine.requests, all.requests, 2, MPI_INT64_T, MPI_SUM, 0, s->all);
	MPI_Reduce(&mine.written_sum, &all.written_sum, 3, MPI_UINT64_T, MPI_SUM, 0, s->all);
	MPI_Reduce(&mine.wrong_pages, &all.wrong_pages, 1, MPI_INT64_T, MPI_SUM, 0, s->all);
	MPI_Reduce(&mine.latency_sum_ns, &all.latency_sum_ns, 1, MPI_INT64_T, MPI_SUM, 0,
		   s->all);
	MPI_Reduce(&mine.stopped, &all.stopped, 1, MPI_INT64_T, MPI_MAX, 0, s->all);
	MPI_Reduce(&s->longest_ns, &all.longest_ns, 1, MPI_INT64_T, MPI_MAX, 0, s->all);
	MPI_Reduce(seconds, &all.returned_s, 2, MPI_DOUBLE, MPI_MAX, 0, s->all);
	MPI_Reduce(s->buckets, buckets, BUCKETS, MPI_UINT64_T, MPI_SUM, 0, s->all);
	MPI_Gather(&line, 3, MPI_INT64_T, ranks, 3, MPI_INT64_T, 0, s->all);
	if (!s->rank) {
		int64_t bytes = all.bytes[READ] + all.bytes[WRITE];
		if (!bytes)
			fail("no byte was moved: the limit of time is too short");
		if (o->json)
			write_json(o, s, &all, ranks, buckets);
		if (o->eeio)
			write_eeio(o, &all, buckets);
		printf("%d servers, %" PRId64 " bytes, calls returned after %.6f s\n", s->servers, bytes,
		       all.returned_s);
		printf("%s after %.6f s: %.3f MB/s\n",
		       all.bytes[WRITE] && o->flush != FLUSH_NONE ? "on the device" : "ended", all.seconds,
		       (double)bytes / all.seconds / 1e6);
	}
	free(ranks);
	free(buckets);
}

int main(int count, char **words)
{
	MPI_Init(&count, &words);
	struct server *s = calloc(1, sizeof *s);
	if (!s)
		fail("no memory");
	s->file = -1;
	MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
	struct options o = parse_options(count, words);
	bool is_client = o.servers && my_rank >= o.servers;
	MPI_Comm_split(MPI_COMM_WORLD, is_client, my_rank, &s->all);
	MPI_Comm_rank(s->all, &s->rank);
	MPI_Comm_size(s->all, &s->servers);
	int64_t events_count = pattern_count(&o);
	struct request *events = o.replay ? read_trace(&o, &events_count) : NULL;
	if (is_client) {
		s->servers = (int)o.servers;
		s->buffer_bytes = o.replay ? o.stripe : o.request;
		be_client(&o, s, events, events_count);
		free(events);
		free(s);
		MPI_Finalize();
		return 0;
	}
	prepare(&o, s, events, events_count);
	run(&o, s, events, events_count);
	MPI_Barrier(s->all);
	report(&o, s);
	if (o.api == MPIIO)
		MPI_File_close(&s->mpi_file);
	else
		close(s->file);
	free(events);
	free(s->arrivals);
	free(s->buffer);
	free(s);
	MPI_Finalize();
	return 0;
}
