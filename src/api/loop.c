/* Opening, stopping, closing: the life of the loop's thread. */
#include "net/loop.h"
#include "api/election.h"
#include "api/listener.h"
#include "api/measure.h"
#include "api/notice.h"
#include "api/perform.h"
#include "api/sized.h"
#include "api/subscription.h"
#include "api/work.h"
#include "guardian/fatal.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TEXT_OF(number)  #number
#define VALUE_OF(number) TEXT_OF(number)

const char *baton_version(void)
{
    return VALUE_OF(BATON_VERSION_MAJOR) "." VALUE_OF(BATON_VERSION_MINOR) "." VALUE_OF(
        BATON_VERSION_PATCH);
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void on_wake(uv_async_t *wake)
{
    call_run_queued(wake->data);
}

/* Signals are the program's business: none is delivered to this thread but the fatal ones, which
 * the kernel sends to the thread that caused them. */
static void *run_loop(void *argument)
{
    struct baton *baton = argument;

    loop_begins_here(baton);
    if (baton->announces_crashes) {
        (void)fatal_guard_thread(); /* without it, an overflow of this one stack goes unannounced */
    }
    (void)uv_run(&baton->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

struct open_call {
    struct call base;
    const struct provider_config *config; /* its caller waits without a limit */
};

static void run_open(struct call *base)
{
    struct open_call *call = (struct open_call *)base;
    struct baton_error error = {0};
    int code = member_open(&base->baton->member, call->config, &error);

    call_finish(base, code, &error);
}

static int open_provider(struct baton *baton, const char *url, const struct baton_options *options,
                         struct baton_error *reterr)
{
    struct provider_config config = {
        .loop = &baton->loop,
        .logger = baton->logger,
        .url = url,
        .node = options->node,
        .option_count = options->setting_count,
        .alive_ns = &baton->alive_ns,
    };
    struct provider_option *settings = calloc(options->setting_count + 1, sizeof(*settings));
    struct open_call *call = call_new(baton, sizeof(*call), run_open);
    int code = BATON_ENOMEM;

    if (!settings || !call) {
        (void)error_set(reterr, code, "out of memory");
    } else {
        for (size_t i = 0; i < options->setting_count; i++) {
            settings[i].key = options->settings[i].key;
            settings[i].value = options->settings[i].value;
        }
        config.options = settings;
        call->config = &config;
        code = perform(&call->base, INT64_MAX, BATON_EDEADLK, reterr);
    }
    if (call) {
        call_unref(&call->base);
    }
    free(settings);
    return code;
}

void baton_alive(struct baton *baton)
{
    atomic_store(&baton->alive_ns, clock_now().ns);
}

struct provider *baton_provider(const struct baton *baton)
{
    return member_provider(baton->member);
}

static struct logger *make_logger(const struct baton_log *log)
{
    return logger_new(log->fd, log_format_for(log->fd, log->json), (enum log_level)log->level);
}

static void destroy(struct baton *baton)
{
    if (baton->event_fd >= 0) {
        (void)close(baton->event_fd);
    }
    logger_free(baton->logger);
    (void)pthread_cond_destroy(&baton->changed);
    (void)pthread_mutex_destroy(&baton->lock);
    free(baton);
}

static void init_locks(struct baton *baton)
{
    (void)pthread_mutex_init(&baton->lock, NULL);
    perform_condition(&baton->changed);
}

/* All but the thread; on failure nothing of the loop is left. */
static int prepare(struct baton *baton, const struct baton_options *options,
                   struct baton_error *reterr)
{
    if (options->log && !(baton->logger = make_logger(options->log))) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the log");
    }
    baton->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (baton->event_fd < 0 || loop_init(&baton->loop) != 0) {
        return error_set(reterr, BATON_EIO, "a loop: no descriptor left (raise RLIMIT_NOFILE)");
    }
    if (uv_async_init(&baton->loop, &baton->wake, on_wake) != 0) {
        (void)uv_loop_close(&baton->loop);
        return error_set(reterr, BATON_EIO, "a loop: no descriptor left (raise RLIMIT_NOFILE)");
    }
    baton->wake.data = baton;
    return BATON_OK;
}

static void discard_loop(struct baton *baton)
{
    uv_close((uv_handle_t *)&baton->wake, NULL);
    (void)uv_run(&baton->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&baton->loop);
}

static int open_with(struct baton **ret, const char *url, const struct baton_options *options,
                     struct baton_error *reterr)
{
    struct baton *baton = calloc(1, sizeof(*baton));
    int code;

    if (!baton) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    baton->owner = getpid();
    baton->event_fd = -1;
    baton->calls_last = &baton->calls_first;
    mailbox_init(&baton->dispatch);
    init_locks(baton);
    code = prepare(baton, options, reterr);
    if (code != BATON_OK) {
        destroy(baton);
        return code;
    }
    if (options->announces_crashes) {
        code = fatal_install(reterr);
        baton->announces_crashes = code == BATON_OK;
    }
    if (code == BATON_OK && thread_begin(&baton->thread, run_loop, baton) != 0) {
        code = error_set(reterr, BATON_EIO, "a loop: no thread left (raise RLIMIT_NPROC)");
    }
    if (code != BATON_OK) {
        if (baton->announces_crashes) {
            fatal_uninstall();
        }
        discard_loop(baton);
        destroy(baton);
        return code;
    }
    code = open_provider(baton, url, options, reterr);
    if (code != BATON_OK) {
        baton_close(baton);
        return code;
    }
    *ret = baton;
    return BATON_OK;
}

int baton_open(struct baton **ret, const char *url, const struct baton_options *options,
               struct baton_error *reterr)
{
    struct baton_options own;
    struct baton_log log;
    int code = sized_copy(&own, sizeof(own), options, "struct baton_options", reterr);

    code = code ? code : sized_copy(&log, sizeof(log), own.log, "struct baton_log", reterr);
    if (code != BATON_OK) {
        return code;
    }
    own.log = own.log ? &log : NULL;
    return open_with(ret, url, &own, reterr);
}

/* ---- Stopping -------------------------------------------------------------------------------- */

static void on_member_closed(void *userdata)
{
    struct baton *baton = userdata;

    call_run_queued(baton); /* those see the phase, or are cut off here: */
    lock(baton);
    baton->phase = BATON_STOPPED;
    (void)pthread_cond_broadcast(&baton->changed);
    unlock(baton);
    uv_close((uv_handle_t *)&baton->wake, NULL);
}

static void close_member(struct baton *baton)
{
    if (baton->member) {
        member_close(baton->member, on_member_closed, baton);
    } else {
        on_member_closed(baton);
    }
}

/* A pool cannot be closed in one of its callbacks: then the stop waits for the loop's next turn. */
static void run_stop(struct call *call)
{
    struct baton *baton = call->baton;
    bool is_early = baton->work_calls > 0;

    lock(baton);
    if (is_early) {
        call_queue_locked(call);
    } else {
        baton->phase = BATON_STOPPING;
    }
    unlock(baton);
    if (!is_early) {
        works_stop(baton, close_member);
        call_finish(call, BATON_OK, NULL);
    }
}

/* One thread joins; the others wait until it has, since any of them may close afterwards. */
static void join(struct baton *baton)
{
    lock(baton);
    while (baton->phase != BATON_STOPPED) {
        (void)pthread_cond_wait(&baton->changed, &baton->lock);
    }
    if (!baton->is_joining) {
        baton->is_joining = true;
        unlock(baton);
        (void)pthread_join(baton->thread, NULL);
        lock(baton);
        baton->is_joined = true;
        (void)pthread_cond_broadcast(&baton->changed);
    }
    while (!baton->is_joined) {
        (void)pthread_cond_wait(&baton->changed, &baton->lock);
    }
    unlock(baton);
}

void baton_stop(struct baton *baton)
{
    struct call *call;

    if (!baton || check_owner(baton, NULL) != BATON_OK) {
        return;
    }
    /* Out of memory must not keep a leader in office: try until there is some. */
    while (!(call = call_new(baton, sizeof(*call), run_stop))) {
        (void)sched_yield();
    }
    (void)perform(call, INT64_MAX, BATON_OK, NULL); /* BATON_ECLOSED: stopped before */
    call_unref(call);
    if (!on_loop(baton)) {
        join(baton);
    }
}

void baton_close(struct baton *baton)
{
    if (!baton || check_owner(baton, NULL) != BATON_OK) {
        return; /* the loop and its descriptors are the parent's */
    }
    baton_stop(baton);
    while (baton->elections) {
        struct baton_election *election = baton->elections;
        baton->elections = election->next;
        listeners_end(election);
        handle_free(election);
    }
    listeners_bury_locked(baton);
    works_free(baton);
    subscriptions_free(baton);
    member_free(baton->member);
    (void)uv_loop_close(&baton->loop);
    if (baton->announces_crashes) {
        fatal_uninstall();
    }
    destroy(baton);
}
