// SPDX-License-Identifier: GPL-2.0-only
/* Prints for how many ms the machine has been suspended since its boot, as its clocks have it. */
#include <stdio.h>
#include <time.h>

static long long ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int main(void)
{
	long long awake, since_boot;

	/* Read again if something came between the two. */
	do {
		awake = ms(CLOCK_MONOTONIC);
		since_boot = ms(CLOCK_BOOTTIME);
	} while (ms(CLOCK_MONOTONIC) - awake > 1);
	printf("%lld\n", since_boot - awake);
	return 0;
}
