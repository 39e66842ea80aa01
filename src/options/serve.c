#include "options/serve.h"

#include "options/notify.h"

#include <signal.h>
#include <sys/resource.h>

uint64_t serve_raise_files(void)
{
    struct rlimit limit = {0};

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max;
        limit.rlim_cur = setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
    }
    return limit.rlim_cur;
}

uint64_t serve_prepare(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE */
    return serve_raise_files();
}

static void on_alive(uv_timer_t *timer)
{
    (void)timer;
    notify_alive();
}

void serve_alive(uv_timer_t *timer, uv_loop_t *loop)
{
    uint64_t interval_ms = (uint64_t)(notify_interval().ns / 1000000);

    (void)uv_timer_init(loop, timer);
    if (interval_ms > 0) {
        (void)uv_timer_start(timer, on_alive, interval_ms, interval_ms);
    }
}

void serve_begin(struct serve *serve, uv_loop_t *loop, size_t count, uv_signal_cb heard,
                 void *userdata)
{
    static const int numbers[SERVE_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < SERVE_SIGNALS; i++) {
        (void)uv_signal_init(loop, &serve->signals[i]);
        serve->signals[i].data = userdata;
        if (i < count) {
            (void)uv_signal_start(&serve->signals[i], heard, numbers[i]);
        }
    }
    serve_alive(&serve->alive, loop);
}

void serve_end(struct serve *serve)
{
    if (serve->alive.loop) {
        for (size_t i = 0; i < SERVE_SIGNALS; i++) {
            uv_close((uv_handle_t *)&serve->signals[i], NULL);
        }
        uv_close((uv_handle_t *)&serve->alive, NULL);
    }
}
