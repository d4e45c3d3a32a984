/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers by name, read from OpenMetrics over HTTP or from JSON over a Unix socket. In OpenMetrics
 * the name is all of a line before its value. In JSON it is the path:
 * args.resp.arms.a.counters.sis_prev, or ...wakeup_latency.3 in an array.
 */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_MAX_LENGTH 256

struct sample {
	char *name;
	double value; /* exact: counters stay below 2^53 */
};

struct samples {
	struct sample *in_order; /* in the order in which they were read */
	struct sample *by_name;	 /* as of the last sort_samples() */
	int n, sorted, room;
};

static void add_sample(struct samples *all, const char *name, double value)
{
	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 4096;
		all->in_order = realloc(all->in_order, all->room * sizeof(struct sample));
	}
	all->in_order[all->n++] = (struct sample){ strdup(name), value };
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct sample *)a)->name, ((const struct sample *)b)->name);
}

static void sort_samples(struct samples *all)
{
	size_t size = all->n * sizeof(struct sample);

	free(all->by_name);
	all->by_name = malloc(size);
	memcpy(all->by_name, all->in_order, size);
	all->sorted = all->n;
	qsort(all->by_name, all->sorted, sizeof(struct sample), compare_names);
}

static void free_samples(struct samples *all)
{
	for (int i = 0; i < all->n; i++)
		free(all->in_order[i].name);
	free(all->in_order);
	free(all->by_name);
	*all = (struct samples){};
}

/* Finds a value by its name, given as to printf(). NULL: there is none. */
__attribute__((format(printf, 2, 3))) static const double *find(const struct samples *all,
								const char *name, ...)
{
	char text[NAME_MAX_LENGTH];
	struct sample key = { text }, *found;
	va_list args;

	va_start(args, name);
	vsnprintf(text, sizeof(text), name, args);
	va_end(args);
	found = bsearch(&key, all->by_name, all->sorted, sizeof(key), compare_names);
	return found ? &found->value : NULL;
}

/* ---- asking ---- */

/*
 * Sends @request, and reads until @enough returns true or the other side closes. NULL: no answer.
 * The caller frees it.
 */
static char *ask(int fd, const void *at, socklen_t size, const char *request,
		 bool (*enough)(const char *, size_t))
{
	size_t length = 0, room = 1 << 20;
	char *text = malloc(room);
	ssize_t got = -1;

	if (!connect(fd, at, size) &&
	    write(fd, request, strlen(request)) == (ssize_t)strlen(request)) {
		while ((got = read(fd, text + length, room - length - 1)) > 0) {
			length += got;
			if (enough(text, length))
				break;
			if (room - length < 4096)
				text = realloc(text, room *= 2);
		}
	}
	close(fd);
	text[length] = '\0';
	if (got < 0 || !length) {
		free(text);
		return NULL;
	}
	return text;
}

static bool one_line(const char *text, size_t length)
{
	return length && text[length - 1] == '\n';
}

static bool never(const char *text, size_t length)
{
	return false;
}

/* ---- OpenMetrics ---- */

/* False: the page is not complete. */
static bool read_metrics(const char *page, struct samples *to)
{
	const char *body = strstr(page, "\r\n\r\n"), *end;
	char name[NAME_MAX_LENGTH];

	if (strncmp(page, "HTTP/1.1 200 ", 13) || !body)
		return false;
	for (body += 4; *body; body = end + 1) {
		const char *space;

		end = strchr(body, '\n');
		if (!end)
			return false;
		if (!strncmp(body, "# EOF\n", 6))
			break;
		if (*body == '#')
			continue;
		/* Labels may contain spaces, so the value comes after the last one. */
		for (space = end; space > body && *space != ' '; space--)
			;
		snprintf(name, sizeof(name), "%.*s", (int)(space - body), body);
		add_sample(to, name, strtod(space, NULL));
	}
	sort_samples(to);
	return *body;
}

static bool scrape(int port, struct samples *to)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	char *page = ask(
		socket(AF_INET, SOCK_STREAM, 0), &at, sizeof(at),
		"GET /metrics HTTP/1.1\r\nHost: guest\r\nAccept: application/openmetrics-text\r\n\r\n",
		never);
	bool whole = page && read_metrics(page, to);

	free(page);
	return whole;
}

/* ---- JSON ---- */

static const char *skip_string(const char *text)
{
	while (*++text && *text != '"')
		if (*text == '\\')
			text++;
	return text + 1;
}

/* Reads the value named @name, with all values in it. Returns the text after it. */
static const char *read_value(const char *text, char *name, struct samples *to)
{
	size_t length = strlen(name);
	char *rest = name + length, close = *text == '{' ? '}' : ']';
	int i = 0;

	if (*text == '"')
		return skip_string(text);
	if (*text != '{' && *text != '[') {
		char *end;

		add_sample(to, name + 1, strtod(text, &end));
		/* true, false, null */
		while (isalpha(*end))
			end++;
		return end;
	}
	while (*text++ != close && *text != close && *text) {
		if (close == '}') {
			const char *key = text + 1;

			text = skip_string(text);
			snprintf(rest, NAME_MAX_LENGTH - length, ".%.*s", (int)(text - key - 1),
				 key);
			text++;
		} else {
			snprintf(rest, NAME_MAX_LENGTH - length, ".%d", i++);
		}
		text = read_value(text, name, to);
		*rest = '\0';
		if (*text == close)
			break;
	}
	return text + 1;
}

/* The statistics socket. */
static bool ask_stats(const char *target, struct samples *to)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/var/run/scx/root/stats" };
	char request[128], name[NAME_MAX_LENGTH] = "", *line;

	snprintf(request, sizeof(request), "{\"req\":\"stats\",\"args\":{\"target\":\"%s\"}}\n",
		 target);
	line = ask(socket(AF_UNIX, SOCK_STREAM, 0), &at, sizeof(at), request, one_line);
	if (!line)
		return false;
	read_value(line, name, to);
	sort_samples(to);
	free(line);
	return find(to, "errno") && !*find(to, "errno");
}

#endif /* SAMPLES_H */
