// SPDX-License-Identifier: GPL-2.0-only
/*
 * observe watch PORT SECONDS: scrapes the exporter again and again. No counter goes back, no series
 * goes without its arm, what deleted arms counted does not shrink, and wakeups are placed and end
 * in step.
 * observe settled PORT SLACK ARM...: on a quiet machine the numbers add up. They match exactly for
 * these arms, which have no tasks any more, and within SLACK for the others. OpenMetrics and JSON,
 * of arms and of CPUs, agree.
 * Exit status 0 if all of that holds.
 */
#include "samples.h"
#include <math.h>
#include <sys/sysinfo.h>
#include <time.h>

#define MISTAKES_MAX	 6
/* The exporter reuses its statistics for half a second, the scheduler for 50 ms. */
#define EXPORTER_AGE_US	 600000
#define SCHEDULER_AGE_US 70000

/* The rungs that choose a wakeup's CPU (policy/ladder.h). */
#define STAT(name, help)
#define MACHINE_STAT(name, help)
#define RUNG(name, help) #name,
static const char *const rungs[] = {
#include "../../src/bpf/stats.tbl.h"
	NULL
};
/* Each placed wakeup counts once: in the group of wake_affine, or in a rung before it. */
#define RUNG(name, help)
#define EARLY_RUNG(name, help) #name,
static const char *const affine[] = { "wa_idle_this",
				      "wa_idle_prev",
				      "wa_sync",
				      "wa_prev_idle",
				      "wa_weight_this",
				      "wa_weight_prev",
				      "wa_wide",
				      "wa_same",
#include "../../src/bpf/stats.tbl.h"
				      NULL };
static const char *const unplaced[] = { "enq_unplaced", NULL };
static const char *const by_fits[] = { "fits_target", "fits_prev", "fits_recent", NULL };
static const char *const delayed[] = { "delay_wake", "delay_fork", NULL };
static const char *const delay_ended[] = { "delay_cancel",     "delay_expire",
					   "delay_stolen",     "delay_overdue",
					   "delay_disallowed", "delay_refused",
					   "delay_dropped",    NULL };

static int mistakes;

__attribute__((format(printf, 1, 2))) static void mistake(const char *what, ...)
{
	va_list args;

	if (mistakes++ >= MISTAKES_MAX)
		return;
	printf("# observe: ");
	va_start(args, what);
	vprintf(what, args);
	va_end(args);
	printf("\n");
}

static double known(const double *value, const char *name)
{
	if (!value)
		mistake("%s is not told", name);
	return value ? *value : NAN;
}

static double counter(const struct samples *s, const char *arm, const char *name)
{
	return known(find(s, "roost_%s_total{arm=\"%s\"}", name, arm), name);
}

static double sum(const struct samples *s, const char *arm, const char *const *names)
{
	double total = 0;

	for (; *names; names++)
		total += counter(s, arm, *names);
	return total;
}

static double hist_count(const struct samples *s, const char *arm, const char *name)
{
	return known(find(s, "roost_%s_seconds_count{arm=\"%s\"}", name, arm), name);
}

/* ---- names ---- */

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t n = strlen(end);

	return length >= n && !strncmp(text + length - n, end, n);
}

/* A sample that may only grow. */
static bool is_counter(const char *name)
{
	static const char *const ends[] = { "_total", "_count", "_sum", "_bucket", "_gone" };
	size_t length = strcspn(name, "{");

	for (int i = 0; i < 5; i++)
		if (ends_with(name, length, ends[i]))
			return true;
	return false;
}

/* Copies the label's value; false: there is no such label. */
static bool label(const char *name, const char *key, char *value)
{
	size_t length = strlen(key);

	for (const char *at = name; (at = strstr(at, key)); at += length)
		if (sscanf(at + length, "=\"%63[^\"]\"", value) == 1)
			return true;
	return false;
}

static bool arm_lives(const struct samples *s, const char *arm)
{
	return find(s, "roost_wakeup_latency_seconds_count{arm=\"%s\"}", arm);
}

/* Calls @each with the arms of @s. */
static void each_arm(const struct samples *s,
		     void (*each)(const struct samples *, const char *arm, double), double with)
{
	char arm[64];

	for (int i = 0; i < s->n; i++)
		if (!strncmp(s->in_order[i].name, "roost_arm_info{", 15) &&
		    label(s->in_order[i].name, "arm", arm))
			each(s, arm, with);
}

/* ---- checks of one scrape ---- */

/* Buckets are cumulative, and the last one is the count. */
static void check_buckets(const struct samples *s)
{
	double before = 0;
	char le[64], arm[64];

	for (int i = 0; i < s->n; i++) {
		const struct sample *of = &s->in_order[i];
		int stem = strcspn(of->name, "{") - 7;

		if (stem < 0 || strncmp(of->name + stem, "_bucket{", 8) ||
		    !label(of->name, "le", le) || !label(of->name, "arm", arm))
			continue;
		if (of->value < before)
			mistake("%s is %.0f, the bucket before it %.0f", of->name, of->value,
				before);
		before = of->value;
		if (strcmp(le, "+Inf"))
			continue;
		before = 0;
		if (of->value !=
		    known(find(s, "%.*s_count{arm=\"%s\"}", stem, of->name, arm), of->name))
			mistake("%s is %.0f, not the count", of->name, of->value);
	}
}

static double sum_of_arms;
static const char *family;
static int family_length;

static void add_arm(const struct samples *s, const char *arm, double ignored)
{
	const double *value = find(s, "roost_%.*s_total{arm=\"%s\"}", family_length, family, arm);

	sum_of_arms += value ? *value : 0;
}

/*
 * What deleted arms have counted: the sum over all arms less that of the existing ones. It is added
 * as a series of each counter.
 */
static void add_gone(struct samples *s)
{
	char name[NAME_MAX_LENGTH];
	int n = s->n;

	for (int i = 0; i < n; i++) {
		const struct sample *of = &s->in_order[i];

		if (strncmp(of->name, "roost_all_", 10))
			continue;
		family = of->name + 10;
		family_length = strlen(family) - strlen("_total");
		sum_of_arms = 0;
		/* A counter of the machine has no sample of an arm. */
		if (!find(s, "roost_%.*s_total{arm=\"default\"}", family_length, family))
			continue;
		each_arm(s, add_arm, 0);
		if (s->in_order[i].value < sum_of_arms)
			mistake("%s is %.0f, its arms' sum %.0f", of->name, of->value, sum_of_arms);
		snprintf(name, sizeof(name), "%.*s_gone", family_length, family);
		add_sample(s, name, s->in_order[i].value - sum_of_arms);
	}
	sort_samples(s);
}

static bool look(int port, struct samples *s)
{
	if (!scrape(port, s)) {
		mistake("no whole page");
		return false;
	}
	if (known(find(s, "roost_up"), "roost_up") != 1) {
		mistake("no scheduler answers the exporter");
		return false;
	}
	check_buckets(s);
	add_gone(s);
	return true;
}

/* ---- checks of two scrapes ---- */

static void check_growth(const struct samples *old, const struct samples *now)
{
	char arm[64];

	for (int i = 0; i < old->n; i++) {
		const struct sample *was = &old->in_order[i];
		const double *is = find(now, "%s", was->name);

		if (!is_counter(was->name))
			continue;
		if (is && *is < was->value)
			mistake("%s went back from %.17g to %.17g", was->name, was->value, *is);
		if (!is && !(label(was->name, "arm", arm) && !arm_lives(now, arm)))
			mistake("%s is gone, and its arm is not", was->name);
	}
}

/*
 * What had begun by the first scrape has ended by the second, except what is in progress: at most
 * one for each task. And what had ended by the first had begun by the second.
 */
static void in_step(const char *what, const char *arm, const double begun[2], const double ended[2],
		    double tasks)
{
	if (begun[0] - tasks > ended[1] || ended[0] - tasks > begun[1])
		mistake("%s of arm %s: %.0f begun, then %.0f; %.0f ended, then %.0f; %.0f tasks",
			what, arm, begun[0], begun[1], ended[0], ended[1], tasks);
}

static const struct samples *earlier;

static void check_step(const struct samples *now, const char *arm, double tasks)
{
	double placed[2], asked[2], woken[2], ran[2];
	const struct samples *at[2] = { earlier, now };

	if (!arm_lives(earlier, arm))
		return;
	for (int i = 0; i < 2; i++) {
		placed[i] = sum(at[i], arm, rungs);
		asked[i] = sum(at[i], arm, affine);
		woken[i] = placed[i] + sum(at[i], arm, unplaced);
		ran[i] = hist_count(at[i], arm, "wakeup_latency");
	}
	in_step("wake_affine and rungs", arm, asked, placed, tasks);
	in_step("rungs and wakeups", arm, woken, ran, tasks);
}

static int watch(int port, double seconds)
{
	struct samples old = {}, now = {};
	struct timespec begin, t;
	struct sysinfo info;
	int n = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		if (look(port, &now)) {
			if (n++) {
				sysinfo(&info);
				check_growth(&old, &now);
				earlier = &old;
				each_arm(&now, check_step, info.procs);
			}
			free_samples(&old);
			old = now;
			now = (struct samples){};
		}
		free_samples(&now);
		usleep(EXPORTER_AGE_US);
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while (t.tv_sec - begin.tv_sec < seconds);
	printf("# observe: %d scrapes in %.0f s, the last of %d samples; %d mistakes\n", n, seconds,
	       old.n, mistakes);
	return mistakes || n < 2;
}

/* ---- when all is quiet ---- */

static void check_equal(const char *what, const char *arm, double a, double b, double slack)
{
	if (!(fabs(a - b) <= slack))
		mistake("arm %s: %s: %.0f and %.0f", arm, what, a, b);
}

/* The arms that have no tasks. */
static char **quiet;
static int nr_quiet;

static void check_arm(const struct samples *s, const char *arm, double slack)
{
	double placed = sum(s, arm, rungs);

	for (int i = 0; i < nr_quiet; i++)
		if (!strcmp(arm, quiet[i]))
			slack = 0;
	printf("# observe: arm %s: %.0f wakeups, %.0f of them placed, %.0f by fits; %.0f delays\n",
	       arm, hist_count(s, arm, "wakeup_latency"), placed, sum(s, arm, by_fits),
	       sum(s, arm, delayed));
	check_equal("rungs and wakeups", arm, placed + sum(s, arm, unplaced),
		    hist_count(s, arm, "wakeup_latency"), slack);
	check_equal("wake_affine and rungs", arm, sum(s, arm, affine), placed, slack);
	check_equal("placed by fits, and ran", arm, sum(s, arm, by_fits),
		    hist_count(s, arm, "fits_wait"), slack);
	check_equal("delays and their ends", arm, sum(s, arm, delayed), sum(s, arm, delay_ended),
		    slack);
	check_equal("delays and how long", arm, sum(s, arm, delay_ended),
		    hist_count(s, arm, "delay_wait"), slack);
	if (!placed)
		mistake("arm %s has placed nobody", arm);
}

/* The JSON number for an OpenMetrics counter; NAN: none. */
static double in_json(const struct samples *json, const char *name)
{
	int length = strcspn(name, "{") - strlen("_total");
	char arm[64], condition[64];
	const char *stem = name + 6;
	const double *found;

	length -= 6;
	if (!strncmp(stem, "all_", 4))
		found = find(json, "args.resp.%.*s", length - 4, stem + 4);
	else if (label(name, "arm", arm))
		found = find(json, "args.resp.arms.%s.%.*s", arm, length, stem);
	else if (label(name, "condition", condition))
		found = find(json, "args.resp.conditions.%s.count", condition);
	else
		found = find(json, "args.resp.%.*s", length, stem);
	return found ? *found : NAN;
}

/* The same for a bucket of a histogram. In JSON buckets are not cumulative. */
static double bucket_in_json(const struct samples *json, const char *name, int length, int bucket)
{
	double total = 0;
	char arm[64];

	label(name, "arm", arm);
	for (int i = 0; i <= bucket; i++) {
		const double *found = find(json, "args.resp.arms.%s.%.*s.%d", arm, length, name, i);

		total += found ? *found : NAN;
	}
	return total;
}

static int compared, stood_still;

/* The value was read between two readings of a counter, so it is between them. */
static void check_between(const char *name, double before, double value, double after)
{
	compared++;
	stood_still += before == after;
	if (!(before <= value + 1e-6 && value <= after + 1e-6))
		mistake("%s: %.17g, and in JSON %.17g before, %.17g after", name, value, before,
			after);
}

static void compare_metrics(const struct samples *before, const struct samples *metrics,
			    const struct samples *after)
{
	int bucket = 0;

	for (int i = 0; i < metrics->n; i++) {
		const struct sample *of = &metrics->in_order[i];
		size_t length = strcspn(of->name, "{");

		if (ends_with(of->name, length, "_total")) {
			check_between(of->name, in_json(before, of->name), of->value,
				      in_json(after, of->name));
		} else if (ends_with(of->name, length, "_seconds_bucket")) {
			const char *name = of->name + strlen("roost_");

			length -= strlen("roost_") + strlen("_seconds_bucket");
			check_between(of->name, bucket_in_json(before, name, length, bucket),
				      of->value, bucket_in_json(after, name, length, bucket));
			bucket = strstr(of->name, "\"+Inf\"") ? 0 : bucket + 1;
		}
	}
}

/* The counters of all CPUs add up to those of all arms, and each of them is in OpenMetrics. */
static void compare_cpus(const struct samples *before, const struct samples *cpus,
			 const struct samples *after, const struct samples *metrics)
{
	static const char head[] = "args.resp.cpus.0.counters.";

	for (int i = 0; i < cpus->n; i++) {
		const char *name = cpus->in_order[i].name;
		double total = 0;

		if (strncmp(name, head, sizeof(head) - 1))
			continue;
		name += sizeof(head) - 1;
		for (int cpu = 0; cpu < get_nprocs(); cpu++)
			total +=
				known(find(cpus, "args.resp.cpus.%d.counters.%s", cpu, name), name);
		check_between(name, known(find(before, "args.resp.%s", name), name), total,
			      known(find(after, "args.resp.%s", name), name));
		known(find(metrics, "roost_all_%s_total", name), name);
	}
}

static int settled(int port, double slack)
{
	struct samples before = {}, metrics = {}, cpus = {}, after = {};

	if (!ask_stats("totals", &before))
		mistake("no totals");
	usleep(EXPORTER_AGE_US);
	look(port, &metrics);
	usleep(SCHEDULER_AGE_US);
	if (!ask_stats("cpus", &cpus))
		mistake("no CPUs");
	usleep(SCHEDULER_AGE_US);
	if (!ask_stats("totals", &after))
		mistake("no totals");
	for (int i = 0; i < nr_quiet; i++)
		if (!arm_lives(&metrics, quiet[i]))
			mistake("there is no arm %s", quiet[i]);
	each_arm(&metrics, check_arm, slack);
	compare_metrics(&before, &metrics, &after);
	compare_cpus(&before, &cpus, &after, &metrics);
	printf("# observe: %d numbers, of which %d stood still; %d mistakes\n", compared,
	       stood_still, mistakes);
	return mistakes || stood_still < compared / 2;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "watch"))
		return watch(atoi(argv[2]), atof(argv[3]));
	if (argc > 4 && !strcmp(argv[1], "settled")) {
		quiet = argv + 4;
		nr_quiet = argc - 4;
		return settled(atoi(argv[2]), atof(argv[3]));
	}
	fprintf(stderr, "usage: observe watch PORT SECONDS, observe settled PORT SLACK ARM...\n");
	return 1;
}
