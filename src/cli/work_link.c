#include "cli/work_link.h"

#include "cli/command.h"
#include "cli/interrupt.h"
#include "member/store.h"
#include "net/line_client.h"
#include "net/local.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 100 /* for a signal */, RETRY_MS = 20 };

const char *work_url(const struct options *options)
{
    const char *url = options_text(options, "provider");

    return url ? url : "agent:";
}

/* What nobody listens at, or holds no pool, is said at once. */
static int check_url(const char *url, span timeout, struct baton_error *reterr)
{
    static const struct line_server server = {
        "agent", "`baton agent` serves it, and --provider names another one"};
    struct line_client client;
    char path[LOCAL_PATH_MAX];
    int code;

    if (strncmp(url, "raft:", 5) == 0) {
        return error_set(reterr, BATON_EINVAL,
                         "--provider %s: would be a voter of its own; give these words to `baton "
                         "agent` or a worker, and let this command use that agent",
                         url);
    }
    if (strncmp(url, "agent:", 6) != 0) {
        return work_check_url(url, reterr);
    }
    code = local_agent_url(path, url, reterr);
    code = code ? code : line_client_open(&client, &server, path, 1, timeout, reterr);
    if (code == BATON_OK) {
        line_client_close(&client);
    }
    return code;
}

int work_check_url(const char *url, struct baton_error *reterr)
{
    if (strncmp(url, "memory:", 7) != 0) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_EINVAL,
                     "--provider %s is within one process; start `baton agent --provider memory:`, "
                     "and use that agent",
                     url);
}

static void on_closed(void *userdata)
{
    struct work_link *link = userdata;

    link->is_closed = true;
}

/* The provider's connection may end while it is written to: then that is an error. */
static void run_loop(struct work_link *link, uv_run_mode mode)
{
    void (*before)(int number) = signal(SIGPIPE, SIG_IGN);

    (void)uv_run(&link->loop, mode);
    (void)signal(SIGPIPE, before);
}

static void close_member(struct work_link *link)
{
    if (link->member && !link->is_closed) {
        member_close(link->member, on_closed, link);
        while (!link->is_closed) {
            run_loop(link, UV_RUN_ONCE);
        }
    }
}

void work_link_close(struct work_link *link)
{
    close_member(link);
    uv_close((uv_handle_t *)&link->timer, NULL);
    run_loop(link, UV_RUN_DEFAULT);
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

/* Until it is done, at the latest for `time`, 0: without an end. */
static int run(struct work_link *link, span time, struct baton_error *reterr)
{
    instant limit = time.ns > 0 ? instant_add(clock_now(), time) : INSTANT_NEVER;
    int code = BATON_OK;

    (void)uv_timer_start(&link->timer, on_timer, LOOK_MS, LOOK_MS);
    while (!link->is_done && code == BATON_OK) {
        if (interrupt_signal()) {
            code = error_set(reterr, BATON_ECANCELED, "interrupted");
        } else if (!instant_before(clock_now(), limit)) {
            code = error_set(reterr, BATON_ETIMEDOUT, "no answer in time");
        } else {
            run_loop(link, UV_RUN_ONCE);
        }
    }
    (void)uv_timer_stop(&link->timer);
    return code;
}

int work_link_wait(struct work_link *link, int code, span time, struct baton_error *reterr)
{
    if (code != BATON_OK) {
        return code;
    }
    code = run(link, time, reterr);
    if (code != BATON_OK) {
        close_member(link);
        while (link->is_asking) {
            run_loop(link, UV_RUN_ONCE);
        }
        return code;
    }
    link->is_done = false;
    if (link->code != BATON_OK && reterr) {
        *reterr = link->error;
    }
    return link->code;
}

int work_link_pause(struct work_link *link, span time, struct baton_error *reterr)
{
    int code = run(link, time, reterr);

    return code == BATON_ETIMEDOUT ? BATON_OK : code;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void on_probed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct baton_error error;
    (void)values;
    (void)count;

    (void)error_set(&error, code, "%s", baton_strerror(code));
    work_link_done(userdata, code, &error);
}

static void on_failed(void *userdata, const struct baton_error *error)
{
    ((struct work_link *)userdata)->failure = *error;
}

/* Some providers refuse requests until they are connected. What else fails is the request's. */
static int await_provider(struct work_link *link, span time, struct baton_error *reterr)
{
    instant limit = instant_add(clock_now(), time);
    int code;

    do {
        code = store_get(link->member, "work", on_probed, link, reterr);
        code = work_link_wait(link, code, time, reterr);
        if (code != BATON_EUNAVAILABLE) {
            return code == BATON_ETIMEDOUT || code == BATON_ECANCELED ? code : BATON_OK;
        }
        if (link->failure.code != BATON_OK) {
            *reterr = link->failure;
            return reterr->code;
        }
    } while (instant_before(clock_now(), limit) &&
             work_link_pause(link, SPAN_MS(RETRY_MS), NULL) == BATON_OK);
    return code;
}

int work_link_open(struct work_link *link, const struct options *options,
                   struct baton_error *reterr)
{
    char name[BATON_NAME_MAX];
    struct provider_config config = {.loop = &link->loop,
                                     .url = work_url(options),
                                     .node = name,
                                     .on_failed = on_failed,
                                     .userdata = link};
    int code = check_url(config.url, options_duration(options, "timeout"), reterr);

    if (code != BATON_OK) {
        return code;
    }
    *link = (struct work_link){.pool = options_find(options, "pool") ? options_text(options, "pool")
                                                                     : NULL};
    (void)snprintf(name, sizeof(name), "work.%d", (int)getpid());
    if (command_open_loop(&link->loop, reterr) != BATON_OK) {
        return reterr->code;
    }
    (void)uv_timer_init(&link->loop, &link->timer);
    link->timer.data = link;
    interrupt_listen();
    code = member_open(&link->member, &config, reterr);
    code = code ? code : await_provider(link, options_duration(options, "timeout"), reterr);
    if (code != BATON_OK) {
        work_link_close(link);
    }
    return code;
}
