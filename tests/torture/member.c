/* A program that is a member of the group itself, through the library, and acts while it leads.
 *
 *   torture_member URL ELECTION[,ELECTION...] NODE RECORDS STORE [HISTORY [LOCKS]]
 *
 * With HISTORY it reads and writes the group's keys, too (history.h); "": it does not. With LOCKS
 * it records its turns, and its acts in each election under ELECTION:NODE (locks.h); its name is
 * NODE.PID then.
 *
 * An act counts only if this process led before and after the clock was read, in one epoch.
 */
#include "acts.h"
#include "history.h"
#include "locks.h"

#include <baton.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { URL = 1, ELECTIONS, NODE, RECORDS, STORE, HISTORY, LOCKS, ARGUMENTS };

/* Those of the command line; what is not given is NULL. */
static char *arguments[ARGUMENTS];
static struct baton *baton;

static _Noreturn void act_while_leading(struct baton_election *election)
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
        if (arguments[LOCKS]) {
            locks_step(election, was_leading ? epoch : 0);
        }
        acts_rest();
    }
}

static void *contend(void *name)
{
    struct baton_election *election;
    struct baton_error error;
    char node[64];

    (void)snprintf(node, sizeof(node), arguments[LOCKS] ? "%s:%s" : "%.0s%s", (const char *)name,
                   arguments[NODE]);
    acts_open(arguments[RECORDS], arguments[STORE], node);
    if (arguments[LOCKS]) {
        locks_open(arguments[LOCKS], name);
    }
    if (baton_campaign(&election, baton, name, NULL, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        _exit(1);
    }
    act_while_leading(election);
}

/* The last election is this thread's own. */
static _Noreturn void contend_for_all(char *names)
{
    pthread_t thread;

    for (char *comma; (comma = strchr(names, ',')); names = comma + 1) {
        *comma = '\0';
        if (pthread_create(&thread, NULL, contend, names) != 0) {
            perror("torture_member");
            _exit(1);
        }
    }
    (void)contend(names);
    _exit(1);
}

int main(int argc, char **argv)
{
    const struct baton_log log = {.size = sizeof(log), .fd = 2, .level = BATON_LOG_NOTICE};
    struct baton_options options = {
        .size = sizeof(options), .log = &log, .announces_crashes = true};
    struct baton_error error;
    char name[64];

    if (argc <= STORE || argc > ARGUMENTS) {
        (void)fprintf(stderr,
                      "usage: %s URL ELECTION[,ELECTION...] NODE RECORDS STORE [HISTORY [LOCKS]]\n",
                      argv[0]);
        return 64;
    }
    memcpy(arguments, argv, (size_t)argc * sizeof(*argv));
    if (arguments[LOCKS]) {
        (void)snprintf(name, sizeof(name), "%s.%d", arguments[NODE], getpid());
        options.node = name;
    }
    if (baton_open(&baton, arguments[URL], &options, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (arguments[HISTORY] && arguments[HISTORY][0]) {
        history_begin(baton, arguments[HISTORY]);
    }
    contend_for_all(arguments[ELECTIONS]);
}
