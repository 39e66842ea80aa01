#include "cli/bench_work_process.h"

#include "base/clock.h"
#include "pool/pool.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the process has not ended, be it reaped or not. */
static bool is_alive(pid_t pid)
{
    int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    bool is_over = fd < 0 || poll(&poller, 1, 0) != 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return !is_over;
}

static struct bench_item *item_of(struct bench_yard *yard, const char *id)
{
    unsigned number;

    return sscanf(id, "item-%u", &number) == 1 ? &yard->items[number] : NULL;
}

/* A service is noted and runs on; an item of a submission ends at once. */
static void on_start(void *userdata, const struct pool_start *start)
{
    struct bench_process *own = userdata;
    struct bench_yard *yard = own->yard;
    struct bench_item *item = item_of(yard, start->item->id);
    int64_t none = 0;

    yard->starts++;
    if (item) {
        uint32_t before = atomic_exchange(&item->process, own->number + 1);

        yard->doubles += before != 0 && is_alive(yard->pids[before - 1]);
        item->epoch = start->epoch;
        item->started_ns = clock_now().ns;
    } else {
        (void)atomic_compare_exchange_strong(&yard->first_start_ns, &none, clock_now().ns);
    }
}

static void end(struct pool *pool, const char *id, uint64_t epoch)
{
    char text[WORK_ID_MAX];
    struct work_result result = {.id = text, .epoch = epoch, .is_success = true};

    (void)snprintf(text, sizeof(text), "%s", id);
    (void)pool_ended(pool, &result);
}

struct hosted {
    struct bench_process *own;
    struct pool *pool;
};

static void on_hosted_start(void *userdata, const struct pool_start *start)
{
    struct hosted *hosted = userdata;

    on_start(hosted->own, start);
    if (start->item->kind == WORK_JOB) {
        end(hosted->pool, start->item->id, start->epoch);
    }
}

static void on_halt(void *userdata, const char *id, uint64_t epoch, instant deadline)
{
    struct hosted *hosted = userdata;
    struct bench_item *item = item_of(hosted->own->yard, id);
    uint32_t ours = hosted->own->number + 1;

    (void)deadline;
    if (item) {
        (void)atomic_compare_exchange_strong(&item->process, &ours, 0);
    }
    end(hosted->pool, id, epoch);
}

static void on_event(void *userdata, const struct pool_event *event)
{
    struct hosted *hosted = userdata;
    struct bench_process *own = hosted->own;

    if (own->workers == 0 && event->type == POOL_READY) {
        own->yard->leader[own->number] = event->epoch;
    } else if (own->workers == 0 && event->type == POOL_LEADS_NO_MORE) {
        own->yard->leader[own->number] = 0;
    }
}

static int open_pool(struct hosted *hosted, struct member *member, unsigned worker)
{
    char name[16];
    const struct bench_process *own = hosted->own;
    struct pool_config config = {
        .name = BENCH_POOL,
        .may_lead = own->workers == 0,
        .worker = own->workers > 0 ? name : NULL,
        .worker_options = {.slots = own->slots, .report_interval = SPAN_S(1)},
        .leader_options = pool_leader_options(),
        .calls = {.on_start = on_hosted_start,
                  .on_halt = on_halt,
                  .on_event = on_event,
                  .userdata = hosted},
    };

    config.leader_options.rebalance_percent = 1; /* a new worker gets its share between rounds */
    (void)snprintf(name, sizeof(name), "w%u", worker);
    return pool_open(&hosted->pool, member, &config, NULL);
}

int bench_process_run(const struct bench_process *process)
{
    static struct bench_process own;
    unsigned count = process->workers > 0 ? process->workers : 1;
    static struct hosted *hosted; /* for as long as the process lives */
    struct member *member;
    uv_loop_t loop;
    char name[16];
    struct provider_config config = {.loop = &loop, .url = process->url, .node = name};

    own = *process;
    hosted = calloc(count, sizeof(*hosted));
    (void)snprintf(name, sizeof(name), "p%u", process->number);
    if (!hosted || uv_loop_init(&loop) != 0 || member_open(&member, &config, NULL) != BATON_OK) {
        return EXIT_FAILURE;
    }
    for (unsigned i = 0; i < count; i++) {
        hosted[i].own = &own;
        if (open_pool(&hosted[i], member, own.first_worker + i) != BATON_OK) {
            return EXIT_FAILURE;
        }
    }
    return uv_run(&loop, UV_RUN_DEFAULT);
}
