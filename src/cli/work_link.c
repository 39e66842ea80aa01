#include "cli/work_link.h"

#include "cli/interrupt.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 100 }; /* for a signal */

const char *work_url(const struct options *options)
{
    const char *url = options_text(options, "provider");

    return url ? url : "agent:";
}

int work_link_open(struct work_link *link, const struct options *options,
                   struct baton_error *reterr)
{
    char name[BATON_NAME_MAX];
    struct provider_config config = {.loop = &link->loop, .url = work_url(options), .node = name};
    int code;

    *link = (struct work_link){.pool = options_text(options, "pool")};
    (void)snprintf(name, sizeof(name), "work.%d", (int)getpid());
    if (uv_loop_init(&link->loop) != 0) {
        return error_set(reterr, BATON_EIO, "no descriptor is left for a loop");
    }
    (void)uv_timer_init(&link->loop, &link->timer);
    link->timer.data = link;
    interrupt_listen();
    code = member_open(&link->member, &config, reterr);
    if (code != BATON_OK) {
        work_link_close(link);
    }
    return code;
}

static void on_closed(void *userdata)
{
    (void)userdata; /* the loop ends by itself */
}

void work_link_close(struct work_link *link)
{
    uv_close((uv_handle_t *)&link->timer, NULL);
    if (link->member) {
        member_close(link->member, on_closed, NULL);
    }
    (void)uv_run(&link->loop, UV_RUN_DEFAULT);
    member_free(link->member);
    (void)uv_loop_close(&link->loop);
}

void work_link_done(void *userdata, int code, const struct baton_error *error)
{
    struct work_link *link = userdata;

    link->is_done = true;
    link->code = code;
    if (error) {
        link->error = *error;
    }
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it wakes the loop */
}

int work_link_wait(struct work_link *link, int code, span time, struct baton_error *reterr)
{
    instant limit = time.ns > 0 ? instant_add(clock_now(), time) : INSTANT_NEVER;

    if (code != BATON_OK) {
        return code;
    }
    (void)uv_timer_start(&link->timer, on_timer, LOOK_MS, LOOK_MS);
    while (!link->is_done) {
        if (interrupt_signal()) {
            return error_set(reterr, BATON_ECANCELED, "interrupted");
        }
        if (!instant_before(clock_now(), limit)) {
            return error_set(reterr, BATON_ETIMEDOUT, "no answer in time");
        }
        (void)uv_run(&link->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&link->timer);
    link->is_done = false;
    if (link->code != BATON_OK && reterr) {
        *reterr = link->error;
    }
    return link->code;
}
