/* A service that works where the leader is, in a loop of its own, and stops its work before it
 * hands over.
 *
 *   leader 'raft://127.0.0.1:7001?node=a&peers=…&data=DIR'    one of a group
 *   leader memory:                                            alone
 *
 * Interrupt it (SIGINT, SIGTERM) and it drains, hands over and ends.
 */
#include <baton.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

/* Real work would store the epoch at what it writes to, before it reads there, and carry it into
 * each write. */
static void work(struct baton_election *election)
{
    uint64_t epoch;

    if (baton_leadership(election, &epoch)) {
        printf("working, epoch %llu\n", (unsigned long long)epoch);
    }
}

static void on_event(struct baton_election *election, const struct baton_event *event,
                     void *userdata)
{
    (void)userdata;
    switch (event->type) {
    case BATON_EVENT_ACQUIRED:
        printf("leading %s\n", baton_election_name(election));
        break;
    case BATON_EVENT_DRAIN:
        printf("draining\n"); /* the work is not running now: it is this very thread's */
        break;
    case BATON_EVENT_LOST:
        printf("no longer leading: %s\n", baton_loss_name(event->loss));
        break;
    case BATON_EVENT_LEADER:
        printf("leader: %s\n", event->member.name[0] ? event->member.name : "nobody");
        break;
    default:
        break;
    }
}

static void serve(struct baton *baton, struct baton_election *election, int signals)
{
    struct pollfd waits[] = {{.fd = baton_fd(baton), .events = POLLIN},
                             {.fd = signals, .events = POLLIN}};

    while (!(waits[1].revents & POLLIN)) {
        (void)baton_dispatch(baton);
        work(election);
        (void)fflush(stdout);
        (void)poll(waits, 2, 1000);
    }
}

int main(int argc, char **argv)
{
    struct baton_log log = {.size = sizeof(log), .fd = 2, .level = BATON_LOG_WARNING};
    struct baton_options options = {
        .size = sizeof(options), .log = &log, .announces_crashes = true};
    struct baton_election *election;
    struct baton_error error;
    struct baton *baton;
    sigset_t ends;

    if (argc != 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads */
    if (baton_open(&baton, argv[1], &options, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (baton_campaign(&election, baton, "example", NULL, &error) != 0 ||
        baton_on(NULL, election, BATON_EVENT_ALL, BATON_ON_DISPATCH, on_event, NULL, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        baton_close(baton);
        return 1;
    }
    serve(baton, election, signalfd(-1, &ends, SFD_CLOEXEC));
    if (baton_cordon(election, &error) != 0) { /* drains, hands over, and wins nothing back */
        fprintf(stderr, "%s\n", error.message);
    }
    baton_stop(baton);
    (void)baton_dispatch(baton); /* what the end had to say */
    baton_close(baton);
    return 0;
}
