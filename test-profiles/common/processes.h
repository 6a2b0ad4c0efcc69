/*
 * fail() and refuse() of programs without MPI, and their ranks: processes that start at one instant
 * and end together.
 */
#include "program.h"
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* In memory that all processes share; the program's own shared data follow it. */
struct processes {
	struct meeting meeting;
	atomic_bool telling, told; /* one process reports an error, and has reported it */
	pid_t pids[MOST_RANKS];
};
static struct processes *processes;
static pid_t living[MOST_RANKS]; /* 0 where a process has ended: its number may be another's by now */
static bool child;
static void (*clean_up)(void); /* before the program ends early */
static sigset_t awaited, earlier;

static void fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	/* A full disk stops all processes at once; one reports it. The others stay until it is reported:
	 * the first to leave has all of them killed. */
	if (!processes || !atomic_exchange(&processes->telling, true)) {
		print_error(format, arguments);
		if (processes)
			atomic_store(&processes->told, true);
	}
	va_end(arguments);
	for (int waited_ms = 0;
	     processes && !atomic_load(&processes->told) && waited_ms < 5000; waited_ms++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	if (child)
		_exit(1);
	if (clean_up)
		clean_up();
	exit(1);
}

static void refuse(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_error(format, arguments);
	va_end(arguments);
	exit(2);
}

/* The memory begins with a struct processes. */
static inline void *share_memory(size_t bytes, const char *what)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("no memory for %s: %s", what, strerror(errno));
	processes = memory;
	return memory;
}

/* From here on watch_processes() handles requests to end. */
static inline void hold_signals(void)
{
	sigemptyset(&awaited);
	for (size_t i = 0; i < 5; i++)
		sigaddset(&awaited, (int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}[i]);
	sigprocmask(SIG_BLOCK, &awaited, &earlier);
	signal(SIGCHLD, SIG_DFL);
}

static inline void end_processes(int ranks)
{
	for (int i = 0; i < ranks; i++)
		if (living[i])
			kill(living[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Each rank in its own process, which dies with this one. */
static inline void start_processes(int64_t ranks, void (*body)(const void *, int), const void *options)
{
	pid_t self = getpid();
	make_meeting(&processes->meeting, (int)ranks);
	for (int rank = 0; rank < ranks; rank++) {
		pid_t pid = fork();
		if (!pid) {
			child = true;
			my_rank = rank;
			sigprocmask(SIG_SETMASK, &earlier, NULL);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != self)
				_exit(1);
			body(options, rank);
			_exit(0);
		}
		if (pid < 0) {
			int error = errno;
			end_processes(rank);
			fail("only %d of %" PRId64 " processes could be started: %s", rank, ranks,
			     strerror(error));
		}
		living[rank] = processes->pids[rank] = pid;
	}
}

/* Waits for all. One that dies would leave the others at the barrier: then all are ended. */
static inline void watch_processes(int ranks)
{
	for (int left = ranks; left;) {
		int status, signal = sigwaitinfo(&awaited, NULL);
		pid_t pid;
		if (signal > 0 && signal != SIGCHLD) {
			end_processes(ranks);
			if (clean_up)
				clean_up();
			fprintf(stderr, PROGRAM ": ended by signal %d\n", signal);
			exit(128 + signal);
		}
		while (left && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
			int rank = 0;
			while (living[rank] != pid)
				rank++;
			living[rank] = 0;
			if (status) {
				end_processes(ranks);
				if (WIFSIGNALED(status))
					fail("rank %d (process %d) died of signal %d; the others were ended",
					     rank, (int)pid, WTERMSIG(status));
				fail("rank %d (process %d) left early; the others were ended", rank,
				     (int)pid);
			}
			left--;
		}
	}
}

static inline void release_signals(void)
{
	sigprocmask(SIG_SETMASK, &earlier, NULL);
}
