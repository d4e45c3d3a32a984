// SPDX-License-Identifier: GPL-2.0-only
/*
 * totals [SOCKET [REQUESTS]]: sends the lines of REQUESTS (by default one for the totals of the
 * statistics), and prints a line of JSON for each. Replaces socat.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REQUEST "{\"req\":\"stats\",\"args\":{\"target\":\"totals\"}}"

static int lines(const char *text, size_t length)
{
	int n = 0;

	while (length--)
		n += *text++ == '\n';
	return n;
}

int main(int argc, char **argv)
{
	const char *request = argc > 2 ? argv[2] : REQUEST;
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int left = 1 + lines(request, strlen(request));
	char text[4096];
	ssize_t got;

	strncpy(at.sun_path, argc > 1 ? argv[1] : "/var/run/scx/root/stats",
		sizeof(at.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) || dprintf(fd, "%s\n", request) < 0) {
		perror(at.sun_path);
		return 1;
	}
	while (left > 0 && (got = read(fd, text, sizeof(text))) > 0) {
		fwrite(text, 1, got, stdout);
		left -= lines(text, got);
	}
	return left > 0;
}
