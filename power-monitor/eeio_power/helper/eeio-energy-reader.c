/* Reads RAPL's energy counters at a steady pace, for a sampler that looks at them
 * every two seconds.
 *
 *     eeio-energy-reader [-r FOLDER] PERIOD_US ZONE...
 *
 * ZONE is a folder's name, intel-rapl:N or intel-rapl:N:M (hexadecimal), in /sys/class/powercap, or
 * in FOLDER.
 * Each reading is one record on standard output, of 64-bit integers in the machine's byte order:
 *
 *     begun ns, done ns (CLOCK_MONOTONIC), one number a zone: uJ, or -errno if it cannot be read
 *
 * Any byte on standard input asks for a reading at once; its end, for a last one and the end. A byte
 * of 128 + N makes N ms the period from then on; 128 brings PERIOD_US back.
 *
 * It may be given the right to read what its user may not (file capability cap_dac_read_search, or
 * set-user-ID root). Only energy_uj files of powercap zones are opened then, read-only, and
 * the right is given up before the first reading. With -r it is given up before the files are opened:
 * FOLDER is its user's word, and shows the user nothing new. It writes to standard output alone. */

#define _GNU_SOURCE
#define NAME "eeio-energy-reader"
#include "pace.h"

#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define POWERCAP "/sys/class/powercap"
#define PREFIX "intel-rapl:"
#define NOBODY 65534

/* A record must go through the pipe in one piece: 8 * (2 + 256) < PIPE_BUF. */
enum { MAX_ZONES = 256 };

/* Become `uid` for good, without any capability. */
static void become(uid_t uid, gid_t gid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
	struct __user_cap_data_struct none[2] = {{0}, {0}};
	if (geteuid() == 0 && uid != 0 && setgroups(0, NULL) != 0)
		refuse("cannot leave root's groups: %s", strerror(errno));
	if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		refuse("cannot become user %u: %s", (unsigned)uid, strerror(errno));
	if (uid != 0 && syscall(SYS_capset, &header, none) != 0)
		refuse("cannot drop capabilities: %s", strerror(errno));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		refuse("cannot refuse new privileges: %s", strerror(errno));
}

/* intel-rapl:N or intel-rapl:N:M, hexadecimal as the kernel numbers them, and nothing else: no path
 * can be hidden in it. */
static bool is_zone(const char *name)
{
	const size_t head = strlen(PREFIX);
	if (strncmp(name, PREFIX, head) != 0 || strlen(name) > head + 16)
		return false;
	const char *rest = name + head;
	for (int part = 0; part < 2; part++) {
		const size_t digits = strspn(rest, "0123456789abcdef");
		if (digits == 0)
			return false;
		rest += digits;
		if (*rest == '\0')
			return true;
		if (*rest++ != ':')
			return false;
	}
	return false;
}

static int open_zone(const char *folder, const char *zone)
{
	char path[4096];
	const int length = snprintf(path, sizeof path, "%s/%s/energy_uj", folder, zone);
	if (length < 0 || (size_t)length >= sizeof path)
		refuse("%s: the name is too long", folder);
	const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		refuse("%s: %s", path, strerror(errno));
	return file;
}

static int64_t counter_uj(int file)
{
	char text[32];
	const ssize_t length = pread(file, text, sizeof text - 1, 0);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	char *end;
	errno = 0;
	const intmax_t value = strtoimax(text, &end, 10);
	if (end == text || errno != 0 || value < 0 || end[strspn(end, " \n")] != '\0')
		return -EINVAL;
	return value;
}

int main(int count, char **words)
{
	const uid_t user = getuid();
	const gid_t group = getgid();
	const char *folder = POWERCAP;
	int next = 1;
	if (count > 2 && strcmp(words[1], "-r") == 0) {
		folder = words[2];
		next = 3;
		if (user == 0 && getenv("SUDO_UID") != NULL)
			refuse("-r through sudo would read with root's eyes: run it without sudo");
		become(user, group);
	}
	if (count - next < 2 || count - next - 1 > MAX_ZONES)
		refuse("usage: " NAME " [-r FOLDER] PERIOD_US ZONE...");
	const int64_t own_period_ns = period_of(words[next]);
	int64_t period_ns = own_period_ns;

	int files[MAX_ZONES];
	const size_t zones = (size_t)(count - next - 1);
	for (size_t k = 0; k < zones; k++) {
		const char *zone = words[next + 1 + (int)k];
		if (!is_zone(zone))
			refuse("%s: not a zone; zones are " PREFIX "N and " PREFIX "N:M", zone);
		files[k] = open_zone(folder, zone);
	}
	become(user == 0 ? NOBODY : user, user == 0 ? NOBODY : group);

	sigset_t input;
	listen_to_input(&input);
	int64_t record[2 + MAX_ZONES];
	int64_t deadline_ns = now_ns();
	bool ended = false, extra = false;
	for (;;) {
		record[0] = now_ns();
		for (size_t k = 0; k < zones; k++)
			record[2 + k] = counter_uj(files[k]);
		record[1] = now_ns();
		if (!hand_on(record, (2 + zones) * sizeof *record) || ended)
			return 0;
		deadline_ns = next_beat(deadline_ns, period_ns, record[1], extra);
		int pace_ms = -1;
		extra = requested(&input, deadline_ns, &ended, &pace_ms);
		if (pace_ms >= 0) {
			period_ns = pace_ms > 0 ? pace_ms * INT64_C(1000000) : own_period_ns;
			deadline_ns = now_ns();
			extra = false;
		}
	}
}
