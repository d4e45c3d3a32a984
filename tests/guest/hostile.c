// SPDX-License-Identifier: GPL-2.0-only
/*
 * hostile SOCKET MESSAGES CONNECTIONS: a hostile client. It first opens CONNECTIONS connections and
 * holds them. A third of them send half of a request; a third send many requests and never read.
 * Then it sends MESSAGES lines, most of them nonsense, and reads the answer to each. It reconnects
 * when the other side hangs up. It prints how many answers were right and how many were errors.
 * Exit status 1: nothing was answered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE 4096

static const char *const some[] = {
	"{\"req\":\"ctl\",\"args\":{\"op\":\"show\"}}",
	"{\"req\":\"ctl\",\"args\":{\"op\":\"set\",\"arm\":\"default\",\"change\":{\"set\":{\"slice-us\":1e308}}}}",
	"{\"req\":\"ctl\",\"args\":{\"op\":\"rule_add\",\"subject\":{\"pid\":4294967295},\"arm\":\"default\"}}",
	"{\"req\":\"ctl\",\"args\":{\"op\":\"arm_del\",\"arm\":\"default\"}}",
	"{\"req\":\"stats\",\"args\":{\"target\":\"totals\"}}",
	"{\"req\":\"stats\",\"args\":{\"target\":\"cpus\"}}",
	"{\"req\":\"stats_meta\"}",
	"",
	"null",
};

static unsigned long long seed = 1;

static unsigned int below(unsigned int end)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % end;
}

static int join(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval patience = { 20, 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

/* Makes a line and returns its length; only its last byte is a newline. */
static int message(char *line)
{
	const char *base = some[below(sizeof(some) / sizeof(*some))];
	int i, length = strlen(base);

	memcpy(line, base, length);
	switch (below(5)) {
	case 0:
		length = below(LINE - 1);
		for (i = 0; i < length; i++)
			line[i] = below(256);
		break;
	case 1:
		length = LINE - 1;
		memset(line, '[', length);
		break;
	case 2:
		length = below(length + 1);
		break;
	case 3:
		for (i = 0; i < 3 && length; i++)
			line[below(length)] = below(256);
		break;
	}
	for (i = 0; i < length; i++)
		line[i] = line[i] == '\n' ? ' ' : line[i];
	line[length] = '\n';
	return length + 1;
}

/* Reads an answer. 0: right; 1: an error; -1: no answer. */
static int answer(int fd)
{
	static char got[1 << 16];
	char head[16] = "";
	int n, had = 0;

	do {
		n = recv(fd, got, sizeof(got), 0);
		if (n <= 0)
			return -1;
		if (had < 11) {
			int more = n < 11 - had ? n : 11 - had;

			memcpy(head + had, got, more);
			had += more;
		}
	} while (got[n - 1] != '\n');
	if (strncmp(head, "{\"errno\":", 9))
		return -1;
	return head[9] != '0';
}

static int hold(const char *path, int count)
{
	const char *half = "{\"req\":",
		   *large = "{\"req\":\"stats\",\"args\":{\"target\":\"cpus\"}}\n";
	int held = 0, i, j;

	for (i = 0; i < count; i++) {
		int fd = join(path);

		if (fd < 0)
			continue;
		held++;
		if (i % 3 == 1)
			send(fd, half, strlen(half), MSG_DONTWAIT);
		for (j = 0; i % 3 == 2 && j < 1000; j++)
			send(fd, large, strlen(large), MSG_DONTWAIT);
	}
	return held;
}

int main(int argc, char **argv)
{
	struct rlimit files = { 4096, 4096 };
	long messages, i, right = 0, errors = 0, ends = 0;
	static char line[LINE + 1];
	int fd, held;

	if (argc != 4) {
		fprintf(stderr, "hostile SOCKET MESSAGES CONNECTIONS\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_NOFILE, &files);
	messages = atol(argv[2]);
	/* Takes its own connection before the others. */
	fd = join(argv[1]);
	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	held = hold(argv[1], atoi(argv[3]));
	for (i = 0; i < messages && ends < 1000; i++) {
		int length = message(line), said;

		said = send(fd, line, length, 0) == length ? answer(fd) : -1;
		right += said == 0;
		errors += said == 1;
		if (said >= 0)
			continue;
		ends++;
		close(fd);
		usleep(10000);
		fd = join(argv[1]);
	}
	printf("held %d right %ld errors %ld ends %ld\n", held, right, errors, ends);
	return right + errors == 0;
}
