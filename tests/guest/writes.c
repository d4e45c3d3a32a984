// SPDX-License-Identifier: GPL-2.0-only
/*
 * writes FILE BYTES NAP_US MS: writes BYTES at once to the start of FILE, which takes the lock of
 * its inode, and naps, in turn, for MS. Prints how many writes there were and the longest in us.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "now.h"

int main(int argc, char **argv)
{
	size_t bytes = argc == 5 ? atol(argv[2]) : 0;
	char *text = calloc(1, bytes + 1);
	double begin, longest = 0, end;
	long writes = 0;
	int fd;

	if (!bytes) {
		fprintf(stderr, "usage: writes FILE BYTES NAP_US MS\n");
		return 2;
	}
	fd = open(argv[1], O_WRONLY | O_CREAT, 0600);
	for (end = now_us() + atol(argv[4]) * 1e3; now_us() < end; writes++) {
		begin = now_us();
		if (pwrite(fd, text, bytes, 0) != (ssize_t)bytes) {
			perror(argv[1]);
			return 1;
		}
		if (now_us() - begin > longest)
			longest = now_us() - begin;
		if (atol(argv[3]))
			usleep(atol(argv[3]));
	}
	printf("%ld %.0f\n", writes, longest);
	return 0;
}
