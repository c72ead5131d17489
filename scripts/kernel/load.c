/*
 * load DEVICE JOB...: the load of a recording. Each job is a process, described by words `key=value`:
 *
 *   name=STR          the process's name                     rw=read|write|rw|randread|randwrite|randrw|trim
 *   mix=N             percentage of reads of rw and randrw   bs=N[-M]     length of an I/O, in steps of 4 KiB
 *   off=N size=N      part of the device                     ios=N        number of I/Os
 *   qd=N              I/Os in flight; 1: read and write, more: asynchronous
 *   batch=N           I/Os of one submission                 stride=N     distance of sequential I/Os; by default bs
 *   order=O           of sequential I/Os: fwd, rev, evenodd (in groups of 2 x batch), shuf:N (in groups of N)
 *   start=US          wait before the first I/O              linger=US    wait before the device is closed
 *   think=US every=N  wait after each N I/Os                 fsync=N      fdatasync after each N writes
 *   direct=0|1        through the page cache or not          sync=1       O_DSYNC
 *   sfr=N             start write-back after each N writes   part=N       use off, size as partition N of the device
 *   prio=CLASS:LEVEL  1 real-time, 2 best-effort, 3 idle     cg=PATH      cgroup, below /cgroup
 *   cpu=N             the CPU it runs on                     seed=N       of everything random
 *
 * Numbers may end in k, m or g. Prints `PROCESS pid name class:level cgroup` for each job, and exits with 1 if one of them fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/blkpg.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Processes start this far apart, in their order: otherwise the CPU scheduler's choice would decide between two kernels. */
enum { BLOCK = 4096, GROUP_MAX = 1024, APART_US = 1000 };

/* All numbers are int64_t, so that one table reads them. */
struct job {
	const char *name, *rw, *cgroup, *order;
	int64_t mix, bs, bs_max, off, size, ios, qd, batch, stride, start, linger, think, every, fsync, direct, sync, sfr, part;
	int64_t prio_class, prio_level, cpu, seed;
	/* Derived from rw and order. */
	int random, trim;
	int64_t group;
};

static uint64_t state;

static void fail(const char *name, const char *what)
{
	fprintf(stderr, "load: %s: %s: %s\n", name, what, strerror(errno));
	_exit(1);
}

/* splitmix64: any seed will do, also 0. */
static uint64_t below(uint64_t bound)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % bound;
}

static void pause_us(int64_t us)
{
	struct timespec left = { us / 1000000, us % 1000000 * 1000 };

	if (us > 0)
		while (nanosleep(&left, &left) && errno == EINTR)
			;
}

static int64_t number(const char *word, const char *text, char **end)
{
	int64_t value = strtoll(text, end, 10);
	const char *unit = **end ? strchr("kmg", **end) : NULL;

	if (*end == text) {
		fprintf(stderr, "load: %s: no number (expected digits, and k, m or g)\n", word);
		exit(2);
	}
	if (unit) {
		value <<= 10 * (unit - "kmg" + 1);
		++*end;
	}
	return value;
}

static void parse(struct job *job, char *words)
{
	struct {
		const char *key;
		int64_t *value, *second;
		char between;
	} numbers[] = {
		{ "mix", &job->mix }, { "bs", &job->bs, &job->bs_max, '-' }, { "off", &job->off }, { "size", &job->size },
		{ "ios", &job->ios }, { "qd", &job->qd }, { "batch", &job->batch }, { "stride", &job->stride }, { "start", &job->start },
		{ "linger", &job->linger }, { "think", &job->think }, { "every", &job->every }, { "fsync", &job->fsync },
		{ "direct", &job->direct }, { "sync", &job->sync }, { "sfr", &job->sfr }, { "part", &job->part },
		{ "prio", &job->prio_class, &job->prio_level, ':' }, { "cpu", &job->cpu }, { "seed", &job->seed },
	};
	struct {
		const char *key, **value;
	} texts[] = { { "name", &job->name }, { "rw", &job->rw }, { "cg", &job->cgroup }, { "order", &job->order } };
	const size_t numbers_count = sizeof(numbers) / sizeof(*numbers), texts_count = sizeof(texts) / sizeof(*texts);

	*job = (struct job){ .name = "load", .rw = "read", .cgroup = "", .order = "fwd", .mix = 50, .bs = BLOCK, .size = 64 << 20,
			     .ios = 100, .qd = 1, .batch = 1, .every = 1, .direct = 1, .prio_level = 4, .cpu = -1, .seed = 1 };
	for (char *word = strtok(words, " \n"); word; word = strtok(NULL, " \n")) {
		char *equals = strchr(word, '='), *end = "";
		size_t n = 0, t = 0;

		if (equals)
			*equals = 0;
		while (n < numbers_count && strcmp(word, numbers[n].key))
			n++;
		while (t < texts_count && strcmp(word, texts[t].key))
			t++;
		if (!equals || (n == numbers_count && t == texts_count)) {
			fprintf(stderr, "load: %s: is no key of a job (expected key=value)\n", word);
			exit(2);
		}
		if (t < texts_count) {
			*texts[t].value = equals + 1;
			continue;
		}
		*numbers[n].value = number(word, equals + 1, &end);
		if (numbers[n].second && *end == numbers[n].between)
			*numbers[n].second = number(word, end + 1, &end);
		if (*end) {
			fprintf(stderr, "load: %s=%s: ends in %s (expected a number)\n", word, equals + 1, end);
			exit(2);
		}
	}
	job->random = !strncmp(job->rw, "rand", 4);
	job->trim = !strcmp(job->rw, "trim");
	if (strstr(job->rw, "read"))
		job->mix = 100;
	else if (strstr(job->rw, "write"))
		job->mix = 0;
	if (job->bs_max < job->bs)
		job->bs_max = job->bs;
	if (!job->stride)
		job->stride = job->bs;
	job->group = !strcmp(job->order, "evenodd") ? 2 * job->batch : 1;
	if (!strncmp(job->order, "shuf:", 5))
		job->group = atoi(job->order + 5);
	if (job->bs < BLOCK || job->bs_max > job->size || job->qd < 1 || job->batch < 1 || job->batch > job->qd || job->group < 1 ||
	    job->group > GROUP_MAX || job->every < 1) {
		fprintf(stderr, "load: %s: bs, size, qd, batch, every or order out of range\n", job->name);
		exit(2);
	}
}

/* The next I/O: its place, and whether it reads. */
static int next(const struct job *job, int64_t index, int64_t *off, int64_t *len)
{
	static int64_t shuffled[GROUP_MAX];
	const int64_t steps = (job->bs_max - job->bs) / BLOCK + 1;
	const int64_t places = (job->size - job->bs_max) / job->stride + 1;
	int64_t place = index % places;
	int reads;

	*len = job->bs + (steps > 1 ? BLOCK * (int64_t)below(steps) : 0);
	reads = job->mix >= 100 || (job->mix > 0 && (int64_t)below(100) < job->mix);
	if (job->random) {
		*off = job->off + (int64_t)below((job->size - *len) / BLOCK + 1) * BLOCK;
		return reads;
	}
	if (!strcmp(job->order, "rev")) {
		place = places - 1 - place;
	} else if (job->group > 1) {
		const int64_t within = place % job->group, first = place - within;

		if (!strncmp(job->order, "shuf:", 5)) {
			if (within == 0) {
				for (int64_t i = 0; i < job->group; i++) {
					int64_t j = (int64_t)below(i + 1);

					shuffled[i] = shuffled[j];
					shuffled[j] = i;
				}
			}
			place = first + shuffled[within];
		} else {
			place = first + (within < job->batch ? 2 * within : 2 * (within - job->batch) + 1);
		}
		if (place >= places)
			place = index % places;
	}
	*off = job->off + place * job->stride;
	return reads;
}

static void write_number(const char *path, int64_t value)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%lld", (long long)value) < 0 || fclose(file))
		fail(path, "write");
}

/* One I/O at a time. */
static void run_plain(const struct job *job, int fd, char *buffer)
{
	int64_t writes = 0;

	for (int64_t i = 0; i < job->ios; i++) {
		int64_t off, len;
		const int reads = next(job, i, &off, &len);

		if (job->trim) {
			uint64_t range[2] = { off, len };

			if (ioctl(fd, BLKDISCARD, range))
				fail(job->name, "discard");
		} else if ((reads ? pread(fd, buffer, len, off) : pwrite(fd, buffer, len, off)) != len) {
			fail(job->name, "I/O");
		} else if (!reads) {
			writes++;
			if (job->fsync && writes % job->fsync == 0)
				fdatasync(fd);
			if (job->sfr && writes % job->sfr == 0)
				sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
		}
		if (job->think && (i + 1) % job->every == 0)
			pause_us(job->think);
	}
}

/* Batches of asynchronous I/Os. The process exits with its context still open, as most programs do. */
static void run_deep(const struct job *job, int fd, char *buffer)
{
	aio_context_t context = 0;
	struct iocb *blocks = calloc(job->qd, sizeof(*blocks)), **batch = calloc(job->qd, sizeof(*batch));
	struct io_event *events = calloc(job->qd, sizeof(*events));
	int64_t *unused = calloc(job->qd, sizeof(*unused)), unused_count = job->qd;
	int64_t submitted = 0, completed = 0, unsynced = 0, since_pause = 0;

	if (!blocks || !batch || !events || !unused || syscall(SYS_io_setup, job->qd, &context))
		fail(job->name, "io_setup");
	for (int64_t i = 0; i < job->qd; i++)
		unused[i] = job->qd - 1 - i;
	while (completed < job->ios) {
		const int64_t left = job->ios - submitted, count = left < job->batch ? left : job->batch;

		if (count && unused_count >= count) {
			for (int64_t i = 0; i < count; i++) {
				const int64_t slot = unused[--unused_count];
				int64_t off, len;
				const int reads = next(job, submitted++, &off, &len);

				blocks[slot] = (struct iocb){ .aio_fildes = fd, .aio_lio_opcode = reads ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE,
							      .aio_buf = (uintptr_t)(buffer + slot * job->bs_max), .aio_nbytes = len,
							      .aio_offset = off, .aio_data = slot };
				batch[i] = &blocks[slot];
				unsynced += !reads;
			}
			for (int64_t done = 0; done < count;) {
				const long now = syscall(SYS_io_submit, context, count - done, batch + done);

				if (now < 0 && errno != EAGAIN)
					fail(job->name, "io_submit");
				done += now > 0 ? now : 0;
			}
			if (job->fsync && unsynced >= job->fsync) {
				unsynced = 0;
				fdatasync(fd);
			}
			since_pause += count;
			if (job->think && since_pause >= job->every) {
				since_pause = 0;
				pause_us(job->think);
			}
		}
		/* Without room for a batch there is nothing to do but to wait. */
		const int must_wait = submitted == job->ios || unused_count < job->batch;
		const long got = syscall(SYS_io_getevents, context, must_wait, job->qd, events, NULL);

		if (got < 0)
			fail(job->name, "io_getevents");
		for (long i = 0; i < got; i++) {
			if (events[i].res < 0) {
				errno = -events[i].res;
				fail(job->name, "I/O");
			}
			unused[unused_count++] = events[i].data;
			completed++;
		}
	}
}

static void run(const char *device, struct job *job, int index, int starts)
{
	char path[256], byte;

	if (*job->cgroup) {
		snprintf(path, sizeof(path), "/cgroup/%s/cgroup.procs", job->cgroup);
		write_number(path, getpid());
	}
	if (job->prio_class && syscall(SYS_ioprio_set, 1, 0, job->prio_class << 13 | job->prio_level))
		fail(job->name, "ioprio_set");
	if (job->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(job->cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			fail(job->name, "sched_setaffinity");
	}
	prctl(PR_SET_NAME, job->name);
	snprintf(path, sizeof(path), job->part ? "%sp%d" : "%s", device, (int)job->part);
	if (job->part)
		job->off = 0;

	const int fd = open(path, O_RDWR | (job->direct ? O_DIRECT : 0) | (job->sync ? O_DSYNC : 0));

	if (fd < 0)
		fail(path, "open");

	/* Filled, so that the load has no page faults. */
	char *buffer = mmap(NULL, job->bs_max * job->qd, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (buffer == MAP_FAILED)
		fail(job->name, "mmap");
	state = job->seed;
	/* The parent closes its end when all are ready. */
	if (read(starts, &byte, 1) < 0)
		fail(job->name, "start");
	prctl(PR_SET_TIMERSLACK, 1);
	pause_us(job->start + index * APART_US);
	if (job->qd == 1)
		run_plain(job, fd, buffer);
	else
		run_deep(job, fd, buffer);
	pause_us(job->linger);
}

int main(int count, char **words)
{
	int starts[2], status, failed = 0;

	if (count < 3 || pipe(starts)) {
		fprintf(stderr, "usage: load DEVICE JOB...\n");
		return 2;
	}
	for (int i = 2; i < count; i++) {
		struct job job;

		parse(&job, words[i]);
		if (job.part) {
			struct blkpg_partition partition = { .start = job.off, .length = job.size, .pno = job.part };
			struct blkpg_ioctl_arg add = { .op = BLKPG_ADD_PARTITION, .datalen = sizeof(partition), .data = &partition };
			const int fd = open(words[1], O_RDONLY);

			if (fd < 0 || ioctl(fd, BLKPG, &add))
				fail(words[1], "partition");
			close(fd);
		}
		const pid_t child = fork();

		if (child < 0)
			fail(job.name, "fork");
		if (!child) {
			close(starts[1]);
			run(words[1], &job, i - 2, starts[0]);
			_exit(0);
		}
		printf("PROCESS %d %s %d:%d /%s\n", child, job.name, (int)job.prio_class, (int)(job.prio_class ? job.prio_level : 0), job.cgroup);
	}
	fflush(stdout);
	close(starts[0]);
	/* Time to set up, and for the device to become idle. */
	pause_us(300000);
	close(starts[1]);
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
