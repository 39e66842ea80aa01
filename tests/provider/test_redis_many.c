/* Many elections of one process: what each costs in memory, through <baton.h>. */
#include "integration/redis/server.h"
#include "provider/group.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MANY = 4000,
    BYTES_MAX = 1024, /* for each election, its listener included */
    /* Of those, what malloc() does not know of: the published lease, the guardian's commands. */
    BYTES_ELSEWHERE = 64 + 80,
    /* Of a process, however many elections: as much as its connections once had to read at once. */
    BYTES_READ_AT_ONCE = 128 << 10,
};

static struct server server;

static int begin(void **state)
{
    server_init(&server);
    server_start(&server);
    for (int i = 0; i <= MANY; i++) {
        char election[32];

        snprintf(election, sizeof(election), "election-%d", i);
        server_trust(&server, election);
    }
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    return 0;
}

static void hear(struct baton_election *election, const struct baton_event *event, void *userdata)
{
}

/* A process with elections 0, 1, …, each with a listener. */
struct process {
    struct baton *baton;
    struct baton_election *elections[MANY + 1];
    int count;
};

static void take_part(struct process *process, int count)
{
    for (; process->count < count; process->count++) {
        struct baton_election **election = &process->elections[process->count];
        char name[64];
        snprintf(name, sizeof(name), "election-%d", process->count);
        ASSERT_OK(baton_campaign(election, process->baton, name, NULL, failure));
        ASSERT_OK(baton_on(NULL, *election, BATON_EVENT_LOST, BATON_ON_LOOP, hear, NULL, failure));
    }
    for (int i = 0; i < count; i++) {
        ASSERT_OK(baton_wait(process->elections[i], PATIENCE_MS, failure));
    }
}

static void open_process(struct process *process)
{
    char url[256];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d?guardian=off", server.port);
    ASSERT_OK(baton_open(&process->baton, url, NULL, failure));
}

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Until what was on its way is answered: then there are no more bytes than this. */
static void await_at_most(size_t bytes)
{
    size_t now = 0;

    for (int looks = 0; looks < 20000; looks++) {
        now = bytes_in_use();
        if (now <= bytes) {
            return;
        }
        group_pause();
    }
    fail_msg("%zu bytes are in use, %zu too many: %zu for each of %d", now, now - bytes,
             (now - bytes) / MANY, MANY);
}

/* The first election of a process pays for what is there once. */
static void check_cost(struct process *process)
{
    size_t before;

    take_part(process, 1);
    before = bytes_in_use();
    take_part(process, 1 + MANY);
    /* Two connections, each of which may once have had to read and to write that much. */
    await_at_most(before + (size_t)MANY * (BYTES_MAX - BYTES_ELSEWHERE) + 4 * BYTES_READ_AT_ONCE);
}

static void one_election_costs_a_kilobyte_at_most(void **state)
{
    struct process *leads;
    struct process *follows;

    if (bytes_in_use() == 0) {
        skip(); /* another allocator than glibc's: a sanitizer's */
    }
    leads = calloc(1, sizeof(*leads));
    follows = calloc(1, sizeof(*follows));
    assert_non_null(leads);
    assert_non_null(follows);
    open_process(leads);
    check_cost(leads);
    for (int i = 0; i < leads->count; i++) {
        assert_true(baton_is_leader(leads->elections[i]));
    }
    open_process(follows);
    check_cost(follows);
    baton_close(follows->baton);
    baton_close(leads->baton);
    free(leads);
    free(follows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_election_costs_a_kilobyte_at_most, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
