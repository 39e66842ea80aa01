/* A service that runs always, in one place at a time: when its process ends, hangs or dies, another
 * one goes on from the last checkpoint. This one counts.
 *
 *   service URL NAME        in several processes; interrupt one (SIGINT, SIGTERM), or kill it
 *
 * URL: agent:, redis://…, raft://…?group=…; alone with memory:.
 */
#include <baton/work.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *serve(void *argument)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    struct baton_work_run *run = argument;
    struct baton_error error;
    char state[32];
    long count = run->checkpoint ? strtol(run->checkpoint, NULL, 10) : 0;

    while (!baton_work_is_halted(run)) { /* it moves, is cancelled, or may not act any more */
        snprintf(state, sizeof(state), "%ld", ++count);
        if (baton_work_checkpoint(run, state, strlen(state), &error) != 0) {
            fprintf(stderr, "%s\n", error.message); /* ELOST: another attempt has begun */
        } else if (baton_work_may_act(run, NULL)) {
            printf("count %ld epoch %llu\n", count, (unsigned long long)run->epoch);
            fflush(stdout);
        }
        nanosleep(&pause, NULL);
    }
    (void)baton_work_ended(run, true, 0, NULL, 0, NULL);
    return NULL;
}

/* On the library's thread: the service has one of its own. */
static void start(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    pthread_t thread;
    (void)work;
    (void)userdata;

    if (pthread_create(&thread, NULL, serve, run) == 0) {
        (void)pthread_detach(thread);
    } else {
        (void)baton_work_ended(run, false, 1, NULL, 0, NULL); /* it is started anew */
    }
}

/* By one name: whichever process comes first, and however often, it is submitted once. */
static int run(struct baton_work *work, struct baton *baton, const sigset_t *ends,
               struct baton_error *reterr)
{
    int number;
    int code = baton_work_submit(baton, "services", "counter",
                                 "{\"id\":\"counter\",\"kind\":\"service\"}", NULL, reterr);

    if (code == 0) {
        sigwait(ends, &number);
    }
    (void)baton_work_leave(work, 10000, NULL); /* it moves, if there is another worker */
    return code;
}

int main(int argc, char **argv)
{
    struct baton_options options = {.size = sizeof(options), .announces_crashes = true};
    struct baton_work_options part = {.size = sizeof(part), .on_start = start};
    struct baton_error error = {0};
    struct baton *baton = NULL;
    struct baton_work *work;
    sigset_t ends;
    int code;

    if (argc != 3) {
        fprintf(stderr, "usage: %s URL NAME\n", argv[0]);
        return 2;
    }
    options.node = part.worker = argv[2];
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads */
    if ((code = baton_open(&baton, argv[1], &options, &error)) == 0 &&
        (code = baton_work_open(&work, baton, "services", &part, &error)) == 0) {
        code = run(work, baton, &ends, &error);
    }
    if (code != 0) {
        fprintf(stderr, "%s\n", error.message);
    }
    baton_close(baton);
    return code != 0;
}
