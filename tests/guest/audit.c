// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks the running scheduler whether its sums hold what their tasks gave them (src/bpf/audit.bpf.h): one line of JSON, of the
 * best of several answers, because tasks come and go meanwhile.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME  "roost_audit"
#define TRIES 5

struct audit {
	unsigned long long util_drift, util_est, nr_tasks, nr_joined;
};

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A descriptor of the program of that number, if it has our name; -1 if not. */
static int opened(unsigned int id)
{
	union bpf_attr get = { .prog_id = id };
	struct bpf_prog_info info = {};
	int fd = bpf(BPF_PROG_GET_FD_BY_ID, &get);
	union bpf_attr ask = { .info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (unsigned long)&info } };

	if (fd < 0)
		return -1;
	if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) && !strcmp(info.name, NAME))
		return fd;
	close(fd);
	return -1;
}

static int find(void)
{
	union bpf_attr next = {};
	int fd = -1;

	while (fd < 0 && !bpf(BPF_PROG_GET_NEXT_ID, &next)) {
		fd = opened(next.next_id);
		next.start_id = next.next_id;
	}
	return fd;
}

int main(void)
{
	struct audit best = { .util_drift = -1ULL };
	int fd = find(), i;

	if (fd < 0)
		fail("no program " NAME);
	for (i = 0; i < TRIES; i++) {
		struct audit got = {};
		union bpf_attr run = {
			.test = { .prog_fd = fd, .ctx_in = (unsigned long)&got, .ctx_size_in = sizeof(got) },
		};

		if (bpf(BPF_PROG_TEST_RUN, &run))
			fail("BPF_PROG_RUN");
		if (got.util_drift < best.util_drift)
			best = got;
		usleep(20000);
	}
	printf("{\"util_drift\":%llu,\"util_est\":%llu,\"tasks\":%llu,\"joined\":%llu}\n", best.util_drift,
	       best.util_est, best.nr_tasks, best.nr_joined);
	return 0;
}
