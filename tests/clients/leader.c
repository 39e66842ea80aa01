/* leader URL POOL: leads the pool for the tests of the clients, which never lead. Says "ready",
 * and ends with its standard input. */
#include <baton/work.h>
#include <stdio.h>

static void on_event(struct baton_work *work, const struct baton_work_event *event, void *userdata)
{
    if (event->type == BATON_WORK_EVENT_READY) {
        (void)puts("ready");
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct baton_work_options options = {.size = sizeof(options),
                                         .report_interval_ms = 100,
                                         .worker_lease_ms = 3000,
                                         .on_event = on_event};
    struct baton_error error = {0};
    struct baton_work *work;
    struct baton *baton;

    if (argc != 3 || baton_open(&baton, argv[1], NULL, &error) != 0) {
        (void)fprintf(stderr, "leader: %s\n", error.message);
        return 1;
    }
    if (baton_work_open(&work, baton, argv[2], &options, &error) != 0) {
        (void)fprintf(stderr, "leader: %s\n", error.message);
        baton_close(baton);
        return 1;
    }
    while (getchar() != EOF) {
    }
    baton_close(baton);
    return 0;
}
