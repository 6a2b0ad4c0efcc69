/* Batches journal commits without a patched kernel: holds fsync() and fdatasync() until no other
 * call arrived at the same file system for a while, then lets all of them go on to the real call, so
 * that the journal commits them together (docs/studies/).
 *
 *     LD_PRELOAD=libdelayjc.so DELAYJC_STATE=FILE [DELAYJC_...=N] PROGRAM
 *
 *     DELAYJC_STATE        what all threads and processes share; created with mode 0600. Best on a
 *                          tmpfs: on the disk that is measured its own pages would be written too.
 *     DELAYJC_WINDOW_US    the pause between arrivals that ends a hold (1000; 1 to 10000000)
 *     DELAYJC_MAX_RESETS   how often an arrival may move that end (64; 0 to 255)
 *     DELAYJC_FLUSH_FIRST  write the file's data before the hold (1; 0 or 1): without it the data
 *                          joins the journal only after the hold, and a second commit is left
 *
 * Held are regular files and directories (fsync of a directory is metadata: a journal commit), one
 * window a st_dev. Anything else - a bad descriptor, a pipe, a device - goes straight to the
 * real call. Without DELAYJC_STATE, with a bad value, with a state file that is not ours or was made
 * with other settings, nothing is held and one line on standard error says why: the program
 * itself must run as it would without us.
 *
 * Not seen, so not held: what syncs by other calls (O_SYNC, msync, sync, syncfs, io_uring), and
 * programs that make their system calls by themselves (Go) or cannot be preloaded. The counters
 * in the state file tell: `processes` and `calls` stay 0. A btrfs subvolume has a st_dev, and so a
 * window, of its own. The file must not be cut while programs have it mapped.
 *
 * Nothing here is locked. A window is one 64-bit word that is changed by compare-and-swap alone,
 * so whoever is killed, cancelled or jumps out of a hold leaves nothing behind that others wait
 * for. No allocation, no lock, and only calls that a signal handler may make, from the constructor's
 * end on: as safe as fsync() itself in handlers, after fork() and in threads. */

#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31434a59414c4544) /* "DELAYJC1" in a little-endian file */
#define VERSION UINT64_C(1)
#define NS_PER_S UINT64_C(1000000000)
#define US_PER_S UINT64_C(1000000)

enum { SLOTS = 64, MAX_WINDOW_US = 10000000, MAX_RESETS = 255 };

/* A deadline this much further ahead than a window reaches was not set by this boot's clock. */
enum { CLOCK_SLACK_US = 1000 };

typedef _Atomic uint64_t word_t;

/* Only lock-free atomics work between processes. */
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics are not lock-free here");
_Static_assert(sizeof(word_t) == 8, "an atomic word is more than its value");

/* delayjc.py reads these two by position. */
struct header {
	word_t magic;
	word_t layout;   /* version << 32 | size of the whole file in bytes */
	word_t settings; /* window << 16 | max resets << 8 | flush first << 1 | 1 */
	word_t processes;
	word_t passed;     /* calls that are no file's: bad descriptors, pipes, devices */
	word_t table_full; /* calls of a file system that found no slot */
	uint64_t reserved[10];
};

struct slot {
	word_t device; /* st_dev; 0 is free */
	word_t window; /* deadline in us of CLOCK_MONOTONIC << 16 | resets << 8 | generation */
	word_t calls;  /* begun; = opened + resets + joins, but for those in their flush */
	word_t opened;
	word_t resets;
	word_t joins; /* that moved no deadline: the window was at its maximum of resets */
	word_t finished;
	word_t held_ns, held_max_ns;
	word_t flush_ns, flush_errors;
	word_t sync_ns, sync_max_ns;
	uint64_t reserved[3];
};

struct table {
	struct header header;
	struct slot slots[SLOTS];
};

_Static_assert(sizeof(struct header) == 128 && sizeof(struct slot) == 128, "layout changed");
#define LAYOUT (VERSION << 32 | sizeof(struct table))

/* Set once by the constructor. While `table` is NULL nothing is held. */
static struct table *table;
static uint64_t window_us, max_resets;
static bool flush_first;
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

/* ---- one window ---- */

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static uint64_t now_us(void)
{
	return now_ns() / 1000;
}

static uint64_t pack(uint64_t deadline_us, uint64_t resets, uint64_t generation)
{
	return deadline_us << 16 | resets << 8 | (generation & 0xff);
}

static uint64_t deadline_of(uint64_t window)
{
	return window >> 16;
}

static uint64_t resets_of(uint64_t window)
{
	return window >> 8 & 0xff;
}

static uint64_t generation_of(uint64_t window)
{
	return window & 0xff;
}

/* `now` must be read after `window` was, or a deadline just set by another looks too far ahead.
 * A file that outlived a boot may hold a deadline of days ahead: that window is closed. */
static bool is_open(uint64_t window, uint64_t now)
{
	return deadline_of(window) > now &&
	       deadline_of(window) - now <= window_us + CLOCK_SLACK_US;
}

static void add(word_t *counter, uint64_t value)
{
	atomic_fetch_add_explicit(counter, value, memory_order_relaxed);
}

static void raise_to(word_t *maximum, uint64_t value)
{
	uint64_t seen = atomic_load_explicit(maximum, memory_order_relaxed);
	while (seen < value && !atomic_compare_exchange_weak(maximum, &seen, value))
		;
}

/* Joins the open window, or opens one; returns the word as it then was. */
static uint64_t arrive(struct slot *slot)
{
	uint64_t seen = atomic_load(&slot->window);
	for (;;) {
		const uint64_t now = now_us();
		const bool open = is_open(seen, now);
		if (open && resets_of(seen) >= max_resets) {
			add(&slot->joins, 1);
			return seen;
		}
		const uint64_t next =
			open ? pack(now + window_us, resets_of(seen) + 1, generation_of(seen))
			     : pack(now + window_us, 0, generation_of(seen) + 1);
		if (atomic_compare_exchange_weak(&slot->window, &seen, next)) {
			add(open ? &slot->resets : &slot->opened, 1);
			return next;
		}
	}
}

/* false if sleeping is impossible here; a signal only makes it shorter. */
static bool sleep_until(uint64_t time_us)
{
	const struct timespec until = {
		.tv_sec = (time_t)(time_us / US_PER_S),
		.tv_nsec = (long)(time_us % US_PER_S * 1000),
	};
	const int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return error == 0 || error == EINTR;
}

static void hold(struct slot *slot)
{
	const uint64_t begun_ns = now_ns();
	/* After 256 windows a generation returns: whoever slept that long must not stay for it. */
	const uint64_t limit_us = begun_ns / 1000 + window_us * (max_resets + 1);
	const uint64_t mine = arrive(slot);
	uint64_t seen = mine;
	for (;;) {
		const uint64_t now = now_us();
		if (generation_of(seen) != generation_of(mine) || !is_open(seen, now) || now >= limit_us)
			break;
		if (!sleep_until(deadline_of(seen) < limit_us ? deadline_of(seen) : limit_us))
			break;
		seen = atomic_load(&slot->window);
	}
	const uint64_t held_ns = now_ns() - begun_ns;
	add(&slot->held_ns, held_ns);
	raise_to(&slot->held_max_ns, held_ns);
}

/* ---- one call ---- */

/* The slot of a file system, taken for good by whoever comes first. */
static struct slot *slot_of(uint64_t device)
{
	for (size_t k = 0; k < SLOTS; k++) {
		struct slot *slot = &table->slots[(device + k) % SLOTS];
		uint64_t seen = 0;
		if (atomic_compare_exchange_strong(&slot->device, &seen, device) || seen == device)
			return slot;
	}
	add(&table->header.table_full, 1);
	return NULL;
}

/* Writes the file's data; returns the errno that the caller must still be told, or 0. The kernel
 * tells a write error once to each open file: having been told here, fsync() would succeed. */
static int flush(int file, struct slot *slot)
{
	const uint64_t begun_ns = now_ns();
	const unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
			     SYNC_FILE_RANGE_WAIT_AFTER;
	const int error = sync_file_range(file, 0, 0, how) == 0 ? 0 : errno;
	add(&slot->flush_ns, now_ns() - begun_ns);
	if (error == 0)
		return 0;
	add(&slot->flush_errors, 1);
	switch (error) {
	case EBADF: case EINVAL: case ENOSYS: case EPERM: case ESPIPE: case EINTR:
		return 0; /* about the call, not the data */
	default:
		return error;
	}
}

static int call(int file, int (*real)(int), long number)
{
	/* Only before our constructor is there no `real`. */
	return real != NULL ? real(file) : (int)syscall(number, file);
}

static int held_call(int file, int (*real)(int), long number)
{
	const int errno_before = errno;
	struct stat status;
	struct slot *slot = NULL;
	if (table != NULL) {
		if (fstat(file, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) &&
		    status.st_dev != 0)
			slot = slot_of((uint64_t)status.st_dev);
		else
			add(&table->header.passed, 1);
	}
	errno = errno_before;
	if (slot == NULL)
		return call(file, real, number);

	add(&slot->calls, 1);
	const int lost = flush_first && S_ISREG(status.st_mode) ? flush(file, slot) : 0;
	hold(slot);
	errno = errno_before;
	const uint64_t begun_ns = now_ns();
	int result = call(file, real, number);
	const uint64_t sync_ns = now_ns() - begun_ns;
	add(&slot->sync_ns, sync_ns);
	raise_to(&slot->sync_max_ns, sync_ns);
	add(&slot->finished, 1);
	if (result == 0 && lost != 0) {
		errno = lost;
		result = -1;
	}
	return result;
}

int fsync(int file)
{
	return held_call(file, real_fsync, SYS_fsync);
}

int fdatasync(int file)
{
	return held_call(file, real_fdatasync, SYS_fdatasync);
}

/* ---- once, before the program ---- */

/* One line on standard error. Whoever closed the other end of it must not end the program. */
__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	static const char head[] = "libdelayjc: ", tail[] = "; nothing is held\n";
	char line[1024];
	memcpy(line, head, sizeof head);
	const size_t room = sizeof line - sizeof head - sizeof tail;
	va_list words;
	va_start(words, format);
	vsnprintf(line + sizeof head - 1, room, format, words);
	va_end(words);
	const size_t length = strlen(line);
	memcpy(line + length, tail, sizeof tail);

	sigset_t pipe_signal, before, pending;
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
	if (write(STDERR_FILENO, line, length + sizeof tail - 1) < 0 && errno == EPIPE &&
	    !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe_signal, NULL, &(struct timespec){0, 0});
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool setting(const char *name, uint64_t least, uint64_t most, uint64_t *value)
{
	const char *text = secure_getenv(name);
	if (text == NULL)
		return true;
	uint64_t number = 0;
	const size_t digits = strspn(text, "0123456789");
	if (digits > 0 && digits < 10 && text[digits] == '\0') {
		for (size_t k = 0; k < digits; k++)
			number = number * 10 + (uint64_t)(text[k] - '0');
		if (number >= least && number <= most) {
			*value = number;
			return true;
		}
	}
	complain("%s=%.100s: a whole number from %" PRIu64 " to %" PRIu64 " is wanted", name, text,
		 least, most);
	return false;
}

/* Gives a new file its size, with its blocks: a full disk shows here, not as SIGBUS later. */
static bool grow(int file)
{
	struct rlimit limit; /* beyond it the kernel would send SIGXFSZ */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof(struct table)) {
		errno = EFBIG;
		return false;
	}
	if (fallocate(file, 0, 0, sizeof(struct table)) == 0)
		return true;
	return errno == EOPNOTSUPP && ftruncate(file, sizeof(struct table)) == 0;
}

/* Sets a word that nobody has set yet; false if it holds something else. */
static bool agree(word_t *word, uint64_t value)
{
	uint64_t seen = 0;
	return atomic_compare_exchange_strong(word, &seen, value) || seen == value;
}

/* Ours already, or new: all zero. */
static bool is_ours(struct table *found)
{
	if (atomic_load(&found->header.magic) == 0) {
		const unsigned char *bytes = (const unsigned char *)found;
		for (size_t k = sizeof found->header.magic; k < sizeof *found; k++)
			if (bytes[k] != 0 && atomic_load(&found->header.magic) != MAGIC)
				return false;
	}
	return agree(&found->header.magic, MAGIC) && agree(&found->header.layout, LAYOUT);
}

static struct table *map_state(const char *path)
{
	const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (file < 0) {
		complain("DELAYJC_STATE=%.900s: %s", path, strerror(errno));
		return NULL;
	}
	const char *why = NULL;
	void *found = MAP_FAILED;
	struct stat status;
	if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
		why = "not a regular file";
	else if (status.st_uid != geteuid() && status.st_uid != 0)
		why = "another user's file, who could cut it under us";
	else if (status.st_size == 0 && !grow(file))
		why = strerror(errno);
	else if (status.st_size != 0 && status.st_size != sizeof(struct table))
		why = "not a state file of this version (its size); delete it";
	else if ((found = mmap(NULL, sizeof(struct table), PROT_READ | PROT_WRITE, MAP_SHARED, file,
			       0)) == MAP_FAILED)
		why = strerror(errno);
	else if (!is_ours(found))
		why = "not a state file of this version; delete it";
	close(file);
	if (why == NULL)
		return found;
	if (found != MAP_FAILED)
		munmap(found, sizeof(struct table));
	complain("DELAYJC_STATE=%.800s: %s", path, why);
	return NULL;
}

static void *next_symbol(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	if (found == NULL)
		complain("no %s to go on to", name);
	return found;
}

__attribute__((constructor)) static void load(void)
{
	const int errno_before = errno;
	void *found_fsync = next_symbol("fsync"), *found_fdatasync = next_symbol("fdatasync");
	memcpy(&real_fsync, &found_fsync, sizeof real_fsync);
	memcpy(&real_fdatasync, &found_fdatasync, sizeof real_fdatasync);
	if (found_fsync == NULL || found_fdatasync == NULL)
		return;

	uint64_t window = 1000, resets = 64, first = 1;
	const char *path = secure_getenv("DELAYJC_STATE");
	if (!setting("DELAYJC_WINDOW_US", 1, MAX_WINDOW_US, &window) ||
	    !setting("DELAYJC_MAX_RESETS", 0, MAX_RESETS, &resets) ||
	    !setting("DELAYJC_FLUSH_FIRST", 0, 1, &first))
		return;
	if (path == NULL || path[0] == '\0') {
		complain("DELAYJC_STATE is not set: name the file that all processes share");
		return;
	}
	struct table *found = map_state(path);
	if (found == NULL)
		return;
	/* Two windows on one word would not know of each other what is open. */
	if (!agree(&found->header.settings, window << 16 | resets << 8 | first << 1 | 1)) {
		complain("DELAYJC_STATE=%.800s: in use with other settings", path);
		munmap(found, sizeof(struct table));
		return;
	}
	window_us = window;
	max_resets = resets;
	flush_first = first == 1;
	add(&found->header.processes, 1);
	table = found;
	errno = errno_before;
}
