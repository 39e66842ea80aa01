#include "fixture.h"

#include "cmocka_all.h"
#include "lib/process.h"

#include <time.h>

void pause_a_moment(void)
{
    struct timespec moment = {.tv_nsec = 1000000};
    (void)nanosleep(&moment, NULL);
}

void await(const atomic_int *number, int least)
{
    for (int i = 0; *number < least; i++) {
        assert_true(i < PATIENCE_MS);
        pause_a_moment();
    }
}

struct baton *open_memory(const char *node)
{
    struct baton_options options = {.size = sizeof(options), .node = node};
    struct baton_error error;
    struct baton *baton = NULL;

    if (baton_open(&baton, "memory:unit", &options, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    return baton;
}

struct baton_election *campaign(struct baton *baton, const char *name)
{
    struct baton_error error;
    struct baton_election *election = NULL;

    if (baton_campaign(&election, baton, name, NULL, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
    return election;
}

struct baton_election *lead(struct baton *baton, const char *name)
{
    struct baton_election *election = campaign(baton, name);

    assert_int_equal(baton_wait_leadership(election, -1, NULL), BATON_OK);
    return election;
}

void count(struct baton_election *election, const struct baton_event *event, void *userdata)
{
    (*(atomic_int *)userdata)++;
}

/* Leading comes first, the event of it a moment later. */
void dispatch_one(struct baton *baton)
{
    process_wait_readable(baton_fd(baton));
    while (baton_dispatch(baton) == 0) {
        pause_a_moment();
    }
}
