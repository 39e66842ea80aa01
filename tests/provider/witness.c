#include "witness.h"

#include "base/clock.h"
#include "lib/process.h"
#include "provider/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct node {
    struct witness *witness;
    int number;
    const char *url;
};

/* It led in one epoch before and after, hence all the time between. */
static void note(struct witness *witness, uint64_t epoch, int64_t before_ns, int64_t after_ns)
{
    int count = witness->count;

    if (count == 0 || witness->seen[count - 1].epoch != epoch) {
        if (count == WITNESS_LEADERSHIPS_MAX) {
            abort(); /* a test that elects so often has gone wrong */
        }
        witness->seen[count] =
            (struct leadership){.epoch = epoch, .first_ns = after_ns, .last_ns = after_ns};
        witness->count = count + 1;
    } else if (before_ns > witness->seen[count - 1].last_ns) {
        witness->seen[count - 1].last_ns = before_ns;
    }
    witness->epoch = epoch;
}

static int node_main(void *userdata)
{
    struct node *node = userdata;
    struct witness *witness = node->witness;
    struct timespec pause = {.tv_nsec = 200000};
    struct baton *baton;
    struct baton_election *election;
    char name[8];
    struct baton_options options = {.size = sizeof(options), .node = name};

    snprintf(name, sizeof(name), "n%d", node->number);
    if (baton_open(&baton, node->url, &options, NULL) != BATON_OK ||
        baton_campaign(&election, baton, "race", NULL, NULL) != BATON_OK) {
        return 1;
    }
    for (;;) {
        uint64_t epoch;
        int64_t before = clock_now().ns;
        bool leads = baton_leadership(election, &epoch);
        int64_t after = clock_now().ns;
        if (leads) {
            note(witness, epoch, before, after);
        }
        witness->leads = leads;
        (void)nanosleep(&pause, NULL);
    }
}

void witness_start(struct witnesses *witnesses, int number, const char *url)
{
    struct node node = {.number = number, .url = url};

    if (!witnesses->of[number]) {
        witnesses->of[number] = mmap(NULL, sizeof(struct witness), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(witnesses->of[number], MAP_FAILED);
    }
    node.witness = witnesses->of[number];
    witnesses->pids[number] = process_fork(node_main, &node);
}

void witnesses_start(struct witnesses *witnesses, const char *url)
{
    for (int i = 0; i < WITNESS_NODES; i++) {
        witness_start(witnesses, i, url);
    }
}

void witness_kill(struct witnesses *witnesses, int number)
{
    process_end(witnesses->pids[number]);
    witnesses->pids[number] = 0;
    witnesses->of[number]->leads = false;
}

void witnesses_end(struct witnesses *witnesses)
{
    for (int i = 0; i < WITNESS_NODES; i++) {
        if (witnesses->pids[i] > 0) {
            process_end(witnesses->pids[i]);
        }
        if (witnesses->of[i]) {
            (void)munmap(witnesses->of[i], sizeof(struct witness));
        }
    }
    memset(witnesses, 0, sizeof(*witnesses));
}

int witnesses_await_leader(struct witnesses *witnesses, uint64_t above)
{
    for (int looks = 0; looks < PATIENCE_MS; looks++) {
        for (int i = 0; i < WITNESS_NODES; i++) {
            if (witnesses->pids[i] > 0 && witnesses->of[i]->leads &&
                witnesses->of[i]->epoch > above) {
                return i;
            }
        }
        group_pause();
    }
    fail_msg("nobody leads in an epoch above %llu", (unsigned long long)above);
    return -1;
}

static void check_two(int a, const struct leadership *one, int b, const struct leadership *other)
{
    if (one->epoch == other->epoch) {
        fail_msg("epoch %llu: of n%d and of n%d", (unsigned long long)one->epoch, a, b);
    }
    if (one->first_ns < other->last_ns && other->first_ns < one->last_ns) {
        fail_msg("n%d led in epoch %llu until %lld, n%d in epoch %llu from %lld", a,
                 (unsigned long long)one->epoch, (long long)one->last_ns, b,
                 (unsigned long long)other->epoch, (long long)other->first_ns);
    }
}

void witnesses_check(const struct witnesses *witnesses)
{
    for (int a = 0; a < WITNESS_NODES; a++) {
        for (int b = a + 1; witnesses->of[a] && b < WITNESS_NODES && witnesses->of[b]; b++) {
            for (int i = 0; i < witnesses->of[a]->count; i++) {
                for (int j = 0; j < witnesses->of[b]->count; j++) {
                    check_two(a, &witnesses->of[a]->seen[i], b, &witnesses->of[b]->seen[j]);
                }
            }
        }
    }
}
