/* A group of members of one provider, in this process. */
#include "provider/group.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

void group_pause(void)
{
    struct timespec moment = {.tv_nsec = 1000000};
    (void)nanosleep(&moment, NULL);
}

void group_open(struct group *group, int number, bool campaigns, bool observes)
{
    struct member *member = &group->members[number];
    struct baton_campaign_options campaign = {
        .size = sizeof(campaign), .observes = observes, .metadata = "{\"purpose\":\"test\"}"};
    char url[2048];
    struct baton_options options = {.size = sizeof(options), .node = member->node};

    snprintf(member->node, sizeof(member->node), "n%d", number);
    group->provider->url(group->own, number, url, sizeof(url));
    ASSERT_OK(baton_open(&member->baton, url, &options, failure));
    if (campaigns) {
        ASSERT_OK(baton_campaign(&member->election, member->baton, "race", &campaign, failure));
    }
}

void group_close(struct group *group, int number)
{
    baton_close(group->members[number].baton);
    group->members[number].baton = NULL;
    group->members[number].election = NULL;
}

void group_open_all(struct group *group)
{
    for (int i = 0; i < GROUP_NODES; i++) {
        group_open(group, i, true, false);
    }
    for (int i = 0; i < GROUP_NODES; i++) {
        ASSERT_OK(baton_wait(group->members[i].election, BATON_TIMEOUT_DEFAULT, failure));
    }
}

/* Reading a, b, a: if a led before and after b was read, and in one epoch, it led meanwhile. */
void group_check_one(struct group *group)
{
    for (int a = 0; a < GROUP_NODES; a++) {
        for (int b = 0; b < GROUP_NODES; b++) {
            const struct baton_election *one = group->members[a].election;
            const struct baton_election *other = group->members[b].election;
            uint64_t before;
            uint64_t after;
            bool both;
            if (a == b || !one || !other || !baton_leadership(one, &before)) {
                continue;
            }
            both = baton_is_leader(other);
            if (baton_leadership(one, &after) && before == after) {
                assert_false(both);
            }
        }
    }
}

static int leader_now(const struct group *group)
{
    for (int i = 0; i < GROUP_NODES; i++) {
        if (group->members[i].election && baton_is_leader(group->members[i].election)) {
            return i;
        }
    }
    return -1;
}

int group_leader_but(struct group *group, int other)
{
    int leader = -1;

    GROUP_AWAIT((group_check_one(group), leader = leader_now(group)) >= 0 && leader != other);
    return leader;
}

int group_leader(struct group *group)
{
    return group_leader_but(group, -1);
}
