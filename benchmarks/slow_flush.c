/* A disk whose flush is slow: a FUSE file system of one file, `disk`, kept in memory.
 *
 *     slow_flush SIZE_BYTES FLUSH_US MOUNT_POINT      (in the foreground; ends when unmounted)
 *
 * A loop device over that file is a disk: what it flushes becomes fsync() of the file, which takes
 * FLUSH_US. Reads and writes take as long as FUSE does. Of two flushes at a time, as of a drive's, the
 * second waits for the first. */

#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static char *content;
static size_t size_bytes;
static struct timespec flush_time;
static pthread_mutex_t drive = PTHREAD_MUTEX_INITIALIZER;

static int get_attributes(const char *path, struct stat *found, struct fuse_file_info *file)
{
	(void)file;
	memset(found, 0, sizeof *found);
	if (strcmp(path, "/") == 0) {
		found->st_mode = S_IFDIR | 0700;
		found->st_nlink = 2;
		return 0;
	}
	if (strcmp(path, "/disk") != 0)
		return -ENOENT;
	found->st_mode = S_IFREG | 0600;
	found->st_nlink = 1;
	found->st_size = (off_t)size_bytes;
	return 0;
}

static int open_disk(const char *path, struct fuse_file_info *file)
{
	file->direct_io = 1; /* no page cache between the loop device and us */
	return strcmp(path, "/disk") == 0 ? 0 : -ENOENT;
}

/* What lies within the disk of a request. */
static size_t within(size_t length, off_t at)
{
	if (at < 0 || (size_t)at >= size_bytes)
		return 0;
	return length < size_bytes - (size_t)at ? length : size_bytes - (size_t)at;
}

static int read_disk(const char *path, char *to, size_t length, off_t at,
		     struct fuse_file_info *file)
{
	(void)path, (void)file;
	length = within(length, at);
	memcpy(to, content + at, length);
	return (int)length;
}

static int write_disk(const char *path, const char *from, size_t length, off_t at,
		      struct fuse_file_info *file)
{
	(void)path, (void)file;
	length = within(length, at);
	memcpy(content + at, from, length);
	return length > 0 ? (int)length : -ENOSPC;
}

static int flush_disk(const char *path, int data_only, struct fuse_file_info *file)
{
	(void)path, (void)data_only, (void)file;
	pthread_mutex_lock(&drive);
	nanosleep(&flush_time, NULL);
	pthread_mutex_unlock(&drive);
	return 0;
}

static const struct fuse_operations operations = {
	.getattr = get_attributes,
	.open = open_disk,
	.read = read_disk,
	.write = write_disk,
	.fsync = flush_disk,
};

int main(int count, char **words)
{
	if (count != 4) {
		fputs("usage: slow_flush SIZE_BYTES FLUSH_US MOUNT_POINT\n", stderr);
		return 2;
	}
	size_bytes = strtoull(words[1], NULL, 10);
	const long flush_us = strtol(words[2], NULL, 10);
	flush_time = (struct timespec){flush_us / 1000000, flush_us % 1000000 * 1000};
	content = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (content == MAP_FAILED) {
		perror("slow_flush");
		return 1;
	}
	char *options[] = {words[0], "-f", words[3], NULL};
	return fuse_main(3, options, &operations, NULL);
}
