/* A program that is a member of the group itself, through the library, and acts while it leads.
 *
 *   torture_member URL ELECTION NODE RECORDS STORE [HISTORY]
 *
 * With HISTORY it reads and writes the group's keys, too (history.h).
 *
 * An act counts only if this process led before and after the clock was read, in one epoch.
 */
#include "acts.h"
#include "history.h"

#include <baton.h>
#include <stdbool.h>
#include <stdio.h>

static _Noreturn void act_while_leading(const struct baton_election *election)
{
    uint64_t present = 0; /* the epoch in which it acts */
    for (;;) {
        uint64_t epoch = 0, again = 0;
        bool was_leading = baton_leadership(election, &epoch);
        int64_t now_ns = acts_clock();
        if (was_leading && baton_leadership(election, &again) && epoch == again) {
            if (epoch != present) {
                acts_begin(epoch);
                present = epoch;
            } else {
                acts_act(now_ns);
            }
        }
        acts_rest();
    }
}

int main(int argc, char **argv)
{
    const struct baton_log log = {.size = sizeof(log), .fd = 2, .level = BATON_LOG_NOTICE};
    const struct baton_options options = {
        .size = sizeof(options), .log = &log, .announces_crashes = true};
    struct baton_election *election;
    struct baton_error error;
    struct baton *baton;

    if (argc != 6 && argc != 7) {
        (void)fprintf(stderr, "usage: %s URL ELECTION NODE RECORDS STORE [HISTORY]\n", argv[0]);
        return 64;
    }
    acts_open(argv[4], argv[5], argv[3]);
    if (baton_open(&baton, argv[1], &options, &error) != 0 ||
        baton_campaign(&election, baton, argv[2], NULL, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (argc == 7) {
        history_begin(baton, argv[6]);
    }
    act_while_leading(election);
}
