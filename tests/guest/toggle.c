// SPDX-License-Identifier: GPL-2.0-only
/*
 * toggle COUNT TOGETHER SEED FEATURE...: makes COUNT random changes over the control socket on the
 * arms default, a, b and c: features on or off, and slices. TOGETHER changes are sent at a time. A
 * FEATURE is a name, or SUBSWITCH=FEATURE, which is on only together with that feature. Exit status
 * 0 if all changes succeeded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *const arms[] = { "default", "a", "b", "c" };

static void list(FILE *to, const char *name, char **features, int n, unsigned int which)
{
	const char *comma = "";
	int i;

	fprintf(to, "\"%s\":[", name);
	for (i = 0; i < n; i++) {
		if (which >> i & 1) {
			fprintf(to, "%s\"%s\"", comma, features[i]);
			comma = ",";
		}
	}
	fprintf(to, "]");
}

#define FEATURES_MAX 32
static char *names[FEATURES_MAX];
static int needs[FEATURES_MAX]; /* index of the feature; -1: none */
static int nr_features;

static int index_of(const char *name)
{
	for (int i = 0; i < nr_features; i++)
		if (!strcmp(names[i], name))
			return i;
	return -1;
}

/* 0: all features are known. */
static int read_features(char **words, int n)
{
	char *parents[FEATURES_MAX];
	int i;

	if (n > FEATURES_MAX)
		return -1;
	nr_features = n;
	for (i = 0; i < n; i++) {
		names[i] = strtok(words[i], "=");
		parents[i] = strtok(NULL, "=");
	}
	for (i = 0; i < n; i++) {
		needs[i] = parents[i] ? index_of(parents[i]) : -1;
		if (parents[i] && needs[i] < 0)
			return -1;
	}
	return 0;
}

static void change(FILE *to)
{
	unsigned int on = random() & ((1ULL << nr_features) - 1), i;

	for (i = 0; i < (unsigned int)nr_features; i++)
		if (needs[i] >= 0 && !(on >> needs[i] & 1))
			on &= ~(1U << i);
	fprintf(to, "{\"req\":\"ctl\",\"args\":{\"op\":\"set\",\"arm\":\"%s\",\"change\":{",
		arms[random() % 4]);
	list(to, "enable", names, nr_features, on);
	fprintf(to, ",");
	list(to, "disable", names, nr_features, ~on);
	fprintf(to, ",\"set\":{\"slice-us\":%ld,\"min-slice-us\":%ld}}}}\n", 1000 + random() % 5000,
		random() % 1000);
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/var/run/scx/root/ctl" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), count, together, done, i;
	char answer[1024];
	FILE *to, *from;

	if (argc < 5 || connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		perror(at.sun_path);
		return 1;
	}
	if (read_features(argv + 4, argc - 4)) {
		printf("# toggle: a sub-switch of no feature, or too many\n");
		return 1;
	}
	to = fdopen(fd, "w");
	from = fdopen(fd, "r");
	/* Changes that are sent together leave in one piece. */
	setvbuf(to, NULL, _IOFBF, 1 << 16);
	count = atoi(argv[1]);
	together = atoi(argv[2]);
	srandom(atoi(argv[3]));
	for (done = 0; done < count; done += together) {
		for (i = 0; i < together; i++)
			change(to);
		fflush(to);
		for (i = 0; i < together; i++) {
			if (!fgets(answer, sizeof(answer), from) ||
			    strncmp(answer, "{\"errno\":0,", 11)) {
				printf("# toggle: after %d changes: %s\n", done + i, answer);
				return 1;
			}
		}
	}
	printf("# toggle: %d changes\n", done);
	return 0;
}
