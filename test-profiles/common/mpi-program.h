/* fail() and refuse() of programs whose ranks MPI starts. */
#include "program.h"
#include <mpi.h>

static void fail(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_error(format, arguments);
	va_end(arguments);
	fflush(stderr);
	if (my_rank >= 0) {
		/* mpirun ends without output that is still on its way to it. */
		nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	exit(1);
}

static void refuse(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	if (my_rank == 0)
		print_error(format, arguments);
	va_end(arguments);
	MPI_Finalize();
	exit(2);
}

/* A launcher that does not fit this MPI starts N programs of one rank each. */
static inline void check_joined(int64_t started, int joined)
{
	if (started && started != joined)
		refuse("%" PRId64 " ranks were started and MPI has joined %d: start them with the mpirun "
		       "of the MPI it was compiled with, or srun --mpi=pmix",
		       started, joined);
}
