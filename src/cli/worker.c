/* `baton worker`: runs commands of a pool's items on this host, and may lead the pool.
 *
 *   pool ──on_start──▶ job ──▶ cmd (cli/cmd.h), its output into a pipe
 *        ──on_halt───▶     SIGTERM, then SIGKILL at the deadline
 *        ◀──pool_ended──   exit code and the tail of the output, when all of it is dead
 *
 * All commands descend from one supervisor, which ends them before the lease of the worker's
 * session does, if this process hangs or dies.
 */
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/job_body.h"
#include "cli/job_output.h"
#include "cli/job_progress.h"
#include "cli/reload.h"
#include "cli/supervise.h"
#include "cli/work_link.h"
#include "cli/worker_http.h"
#include "member/status_server.h"
#include "net/local.h"
#include "options/notify.h"
#include "options/program.h"
#include "options/serve.h"
#include "pool/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <uthash.h>
#include <utlist.h>

enum { LOAD_MS = 1000, SIGNALS = 3, EXIT_NO_BODY = 64 };

struct worker {
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_timer_t load;
    uv_poll_t supervisor; /* readable: it is dead */
    const struct invocation *invocation;
    struct logger *logger;
    struct supervise supervise;
    struct member *member;
    struct reload reload;
    struct pool *pool;
    struct http_server *http; /* NULL: none */
    struct job *jobs;         /* by id */
    struct job *waiting;      /* of these, in the order in which they start */
    uv_idle_t turns;          /* while any of them waits */
    char name[BATON_NAME_MAX];
    unsigned signals_seen;
    bool has_terminal; /* SIGHUP may mean that the terminal was closed */
    int result;
    struct baton_error failure; /* of the provider; code 0: none */
};

/* A copy of an item: it waits for its start, or its command runs. */
struct job {
    struct worker *worker;
    struct work_item *item; /* a reference */
    char *id;               /* of the item */
    uint32_t attempt;
    bool is_waiting;
    bool is_cut_off; /* its lease was about to end, as the supervisor saw it */
    struct cmd *cmd; /* NULL: it waits, or could not be started */
    struct job_output *output;
    struct job_progress *progress;
    struct work_result result;
    struct job *prev, *next; /* of those that wait */
    UT_hash_handle hh;
};

static int64_t unix_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- A job ----------------------------------------------------------------------------------- */

/* In place of the output of a command that could not be started. */
static void say_why(struct work_result *result, const char *reason)
{
    char *text = NULL;
    int bytes = asprintf(&text, "baton worker: %s\n", reason);

    if (bytes > 0) {
        result->output = (uint8_t *)text;
        result->output_bytes = (size_t)bytes;
    }
}

static void on_permille(void *userdata, int permille)
{
    struct job *job = userdata;

    (void)pool_progress(job->worker->pool, job->id, permille, NULL);
}

static void on_wrong(void *userdata)
{
    struct job *job = userdata;

    log_warning(job->worker->logger, "progress-refused", LOG_STR("item", job->id),
                LOG_STR("text", "a line for BATON_PROGRESS is no number from 0 to 100"));
}

static int job_open_pipes(struct job *job, struct cmd_config *config, struct baton_error *reterr)
{
    const struct job_progress_calls calls = {on_permille, on_wrong, job};
    int code = job_output_open(&job->output, config->loop, &config->output, reterr);

    return code
               ? code
               : job_progress_open(&job->progress, config->loop, &config->progress, &calls, reterr);
}

static void job_close_pipes(struct job *job)
{
    job_output_close(job->output);
    job_progress_close(job->progress);
    job->output = NULL;
    job->progress = NULL;
}

/* `reason`: why it was not started; NULL: it was. */
static void job_finish(struct job *job, const char *reason)
{
    struct worker *worker = job->worker;
    struct work_result result = job->result;

    result.id = job->id;
    result.ended_unix_ms = unix_ms();
    result.is_success = result.code == 0;
    if (reason) {
        say_why(&result, reason);
    } else {
        job_output_take(job->output, &result.output, &result.output_bytes);
    }
    job_close_pipes(job);
    HASH_DEL(worker->jobs, job);
    log_info(worker->logger, "item-ended", LOG_STR("item", job->id),
             LOG_I64("exit_code", result.code));
    if (job->is_cut_off) {
        (void)pool_gave_up(worker->pool, job->id, result.epoch);
    } else {
        (void)pool_ended(worker->pool, &result);
    }
    free(result.output);
    work_item_unref(job->item);
    free(job);
}

static void on_command_end(void *userdata, const struct cmd_end *end)
{
    struct job *job = userdata;

    job->cmd = NULL;
    job->result.code = end->exit_code;
    job->is_cut_off = end->is_overdue;
    member_set_victims(job->worker->member, &job->worker->supervise.victims);
    job_finish(job, NULL);
}

static int job_begin(struct job *job, struct baton_error *reterr)
{
    struct worker *worker = job->worker;
    struct job_body body = {0};
    struct cmd_config config = {.loop = &worker->loop,
                                .supervise = &worker->supervise,
                                .node = worker->name,
                                .election = pool_name(worker->pool),
                                .epoch = job->result.epoch,
                                .on_exit = on_command_end,
                                .userdata = job};
    int code = job_body_read(&body, job->item, job->attempt, reterr);

    if (code == BATON_OK) {
        code = job_open_pipes(job, &config, reterr);
    }
    if (code == BATON_OK) {
        config.argv = body.argv;
        config.variables = (const char *const *)body.variables;
        code = cmd_start(&job->cmd, &config, reterr);
        job_output_started(job->output);
        job_progress_started(job->progress);
    }
    job_body_fini(&body);
    return code;
}

/* This host is short of something: the job waits on, as the first. on_load() tries again. */
static void job_postpone(struct job *job, const struct baton_error *error)
{
    struct worker *worker = job->worker;

    log_warning(worker->logger, "item-waits", LOG_STR("item", job->id),
                LOG_STR("reason", error->message));
    job_close_pipes(job);
    job->is_waiting = true;
    DL_PREPEND(worker->waiting, job);
    (void)uv_idle_stop(&worker->turns);
}

static void job_start(struct job *job)
{
    struct worker *worker = job->worker;
    struct baton_error error;
    int code;

    job->result.began_unix_ms = unix_ms();
    code = job_begin(job, &error);
    if (code == BATON_EIO || code == BATON_ENOMEM) {
        job_postpone(job, &error);
        return;
    }
    if (code != BATON_OK) {
        log_warning(worker->logger, "item-not-started", LOG_STR("item", job->id),
                    LOG_STR("reason", error.message));
        job->result.code =
            code == BATON_EINVAL && !job->output ? EXIT_NO_BODY : (int)cmd_exit_code(code);
        job_finish(job, error.message);
        return;
    }
    member_set_victims(worker->member, &worker->supervise.victims);
    log_info(worker->logger, "item-started", LOG_STR("item", job->id),
             LOG_U64("epoch", job->result.epoch), LOG_U64("attempt", job->attempt));
}

/* One in each turn of the loop: a start takes milliseconds, and the lease is renewed in between. */
static void on_turn(uv_idle_t *handle)
{
    struct worker *worker = handle->data;
    struct job *job = worker->waiting;

    if (job) {
        DL_DELETE(worker->waiting, job);
        job->is_waiting = false;
        job_start(job);
    }
    if (!worker->waiting) {
        (void)uv_idle_stop(handle);
    }
}

static void on_start(void *userdata, const struct pool_start *start)
{
    struct worker *worker = userdata;
    struct job *job = calloc(1, sizeof(*job));

    if (job) {
        job->id = start->item->id;
        HASH_ADD_KEYPTR(hh, worker->jobs, job->id, strlen(job->id), job);
    }
    if (!job || !job->hh.tbl) {
        struct work_result result = {.id = start->item->id, .epoch = start->epoch, .code = 1};

        free(job);
        (void)pool_ended(worker->pool, &result);
        return;
    }
    job->worker = worker;
    job->item = work_item_ref(start->item);
    job->attempt = start->attempt;
    job->result.epoch = start->epoch;
    job->is_waiting = true;
    DL_APPEND(worker->waiting, job);
    (void)uv_idle_start(&worker->turns, on_turn);
}

static void on_halt(void *userdata, const char *id, uint64_t epoch, instant deadline)
{
    struct worker *worker = userdata;
    instant own =
        instant_add(clock_now(), options_duration(worker->invocation->options, "stop-timeout"));
    struct job *job;

    HASH_FIND_STR(worker->jobs, id, job);
    if (!job || job->result.epoch != epoch) {
        return;
    }
    if (job->is_waiting) {
        DL_DELETE(worker->waiting, job);
        job_finish(job, NULL);
    } else if (job->cmd) {
        cmd_stop(job->cmd, instant_min(own, deadline));
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void on_event(void *userdata, const struct pool_event *event)
{
    struct worker *worker = userdata;
    char text[BATON_NAME_MAX + 64];

    LOG_EVENT(worker->logger, event->type == POOL_ERROR ? LOG_WARNING : LOG_NOTICE,
              pool_event_name(event->type), LOG_STR("name", event->name),
              LOG_U64("epoch", event->epoch),
              LOG_STR("text", event->error.code ? event->error.message : NULL));
    if (event->type == POOL_LEADER && event->name) {
        (void)snprintf(text, sizeof(text), "%s leads", *event->name ? event->name : "nobody");
        notify_status(text);
    }
}

/* The share of all processors that was in use since the last look, in thousandths. */
static uint32_t cpu_permille(void)
{
    static unsigned long long last_busy, last_all;
    unsigned long long time[8] = {0}, busy = 0, all = 0;
    FILE *file = fopen("/proc/stat", "re");
    uint32_t share = 0;

    if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &time[0], &time[1],
                       &time[2], &time[3], &time[4], &time[5], &time[6], &time[7]) == 8) {
        for (size_t i = 0; i < 8; i++) {
            all += time[i];
            busy += i == 3 || i == 4 ? 0 : time[i]; /* idle, waiting for disks */
        }
        share = all > last_all ? (uint32_t)((busy - last_busy) * 1000 / (all - last_all)) : 0;
        last_busy = busy;
        last_all = all;
    }
    if (file) {
        (void)fclose(file);
    }
    return share;
}

static void on_load(uv_timer_t *timer)
{
    struct worker *worker = timer->data;

    if (worker->pool) {
        pool_load(worker->pool, cpu_permille());
    }
    notify_alive();
    if (worker->waiting) {
        (void)uv_idle_start(&worker->turns, on_turn);
    }
}

/* ---- The end --------------------------------------------------------------------------------- */

static void on_member_closed(void *userdata)
{
    struct worker *worker = userdata;

    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&worker->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&worker->load, NULL);
    uv_close((uv_handle_t *)&worker->supervisor, NULL);
    uv_close((uv_handle_t *)&worker->turns, NULL);
}

/* The timer and a second signal may come until the member is closed, too. */
static void on_pool_closed(void *userdata)
{
    struct worker *worker = userdata;

    worker->pool = NULL; /* is freed */
    member_close(worker->member, on_member_closed, worker);
}

static void on_left(void *userdata, int code)
{
    struct worker *worker = userdata;
    size_t unconfirmed = pool_unconfirmed(worker->pool);
    (void)code;

    if (unconfirmed > 0) {
        log_warning(
            worker->logger, "results-unconfirmed", LOG_U64("items", unconfirmed),
            LOG_STR("text", "no leader has confirmed them in time: the items may run again"));
    }
    http_server_close(worker->http);
    pool_close(worker->pool, on_pool_closed, worker);
}

static void kill_jobs(struct worker *worker)
{
    for (const struct job *job = worker->jobs; job; job = job->hh.next) {
        if (job->cmd) {
            cmd_kill(job->cmd);
        }
    }
}

static void leave(struct worker *worker, int result)
{
    span patience = options_duration(worker->invocation->options, "drain-timeout");

    worker->result = result;
    notify_stopping();
    log_notice(worker->logger, "leaving", LOG_U64("items", pool_running(worker->pool)));
    if (pool_leave(worker->pool, instant_add(clock_now(), patience), on_left, worker, NULL) !=
        BATON_OK) {
        on_left(worker, BATON_OK);
    }
}

/* The first signal lets jobs end, the second one stops them, so that other workers run them; a
 * further one does not wait for --stop-timeout. SIGHUP without a terminal reloads. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct worker *worker = handle->data;

    if (number == SIGHUP && !worker->has_terminal) {
        if (!worker->signals_seen && worker->reload.member) { /* it has begun, and does not end */
            reload_begin(&worker->reload, true);
        }
        return;
    }
    switch (++worker->signals_seen) {
    case 1:
        leave(worker, EXIT_SIGNAL + number);
        break;
    case 2:
        if (worker->pool) {
            pool_leave_now(worker->pool);
        }
        break;
    default:
        kill_jobs(worker);
        break;
    }
}

/* Comes from within the provider. */
static void on_failed(void *userdata, const struct baton_error *error)
{
    struct worker *worker = userdata;

    if (worker->failure.code == BATON_OK) {
        worker->failure = *error;
        if (error->code != BATON_EUNSAFE && error->code != BATON_EAUTH) {
            worker->failure.code = BATON_EIO;
        }
        uv_stop(&worker->loop);
    }
}

/* No result can be stored any more, so nothing is waited for. */
static int end_failed(struct worker *worker, struct baton_error *reterr)
{
    if (worker->signals_seen++ == 0) {
        leave(worker, EXIT_REFUSED);
    }
    if (worker->pool) {
        pool_leave_now(worker->pool);
    }
    (void)uv_run(&worker->loop, UV_RUN_DEFAULT);
    *reterr = worker->failure;
    return worker->failure.code;
}

/* While a command runs, cmd.c notices this. Else the worker would get an item that it cannot start.
 */
static void on_supervisor_dead(uv_poll_t *handle, int status, int events)
{
    struct worker *worker = handle->data;
    (void)status;
    (void)events;

    if (!worker->supervise.cmds) {
        (void)uv_poll_stop(handle);
        supervise_tell_dead(&worker->supervise);
        if (worker->signals_seen++ == 0) {
            leave(worker, EXIT_REFUSED);
        }
    }
}

/* ---- The beginning --------------------------------------------------------------------------- */

static int name_worker(struct worker *worker, struct baton_error *reterr)
{
    const char *given = options_text(worker->invocation->options, "worker");
    char host[256] = "";

    (void)gethostname(host, sizeof(host) - 1);
    given = given ? given : host;
    if (strlen(given) >= sizeof(worker->name)) {
        return error_set(reterr, BATON_EINVAL, "--worker %s: must have at most %zu bytes", given,
                         sizeof(worker->name) - 1);
    }
    memcpy(worker->name, given, strlen(given) + 1);
    return BATON_OK;
}

static int read_labels(const struct options *options, char ret[static WORK_NEEDS_MAX],
                       struct baton_error *reterr)
{
    json_t *object = json_object(), *labels = json_array();
    size_t count = options_count(options, "label");
    int code;

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(labels, json_string(options_item(options, "label", i)));
    }
    (void)json_object_set_new(object, "--label", labels);
    code = json_array_size(labels) < count
               ? error_set(reterr, BATON_EINVAL, "--label: is not UTF-8")
               : work_labels_read(object, "", "--label", ret, reterr);
    json_decref(object);
    return code == BATON_OK ? BATON_OK : (reterr->code = BATON_EINVAL);
}

static int describe(const struct options *options, struct work_worker_options *ret,
                    struct baton_error *reterr)
{
    struct sysinfo info = {0};

    (void)sysinfo(&info);
    ret->slots = options_is_set(options, "slots") ? (uint32_t)options_number(options, "slots")
                                                  : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    ret->gpus = (uint32_t)options_number(options, "gpus");
    ret->memory_mib = options_is_set(options, "memory-mib")
                          ? (uint64_t)options_number(options, "memory-mib")
                          : (uint64_t)info.totalram * info.mem_unit >> 20;
    ret->report_interval = options_duration(options, "report-interval");
    return read_labels(options, ret->labels, reterr);
}

static void configure(const struct options *options, struct work_leader_options *ret)
{
    *ret = pool_leader_options();
    (void)placement_strategy_parse(options_text(options, "strategy"), &ret->strategy);
    ret->report_interval = options_duration(options, "report-interval");
    ret->silence = options_duration(options, "silence");
    ret->worker_lease = options_duration(options, "worker-lease");
    ret->rebalance_every = options_duration(options, "rebalance-every");
    ret->rebalance_percent = (uint32_t)options_number(options, "rebalance-percent");
    ret->keep = options_duration(options, "keep");
}

static void on_closed_early(void *userdata)
{
    (void)userdata; /* the loop ends by itself */
}

static int open_all(struct worker *worker, struct baton_error *reterr)
{
    const struct options *options = worker->invocation->options;
    struct provider_config provider = {.loop = &worker->loop,
                                       .logger = worker->logger,
                                       .url = work_url(options),
                                       .node = worker->name,
                                       .on_failed = on_failed,
                                       .userdata = worker};
    struct pool_config config = {
        .name = options_text(options, "pool"),
        .may_lead = !options_flag(options, "never-lead"),
        .worker = worker->name,
        .lease = worker->supervise.lease,
        .calls = {
            .on_start = on_start, .on_halt = on_halt, .on_event = on_event, .userdata = worker}};
    int code = describe(options, &config.worker_options, reterr);

    if (code == BATON_OK && config.worker_options.slots == 0) {
        config.worker = NULL;
        code = config.may_lead ? BATON_OK
                               : error_set(reterr, BATON_EINVAL,
                                           "--slots 0: with --never-lead there is nothing to do");
    }
    code = code ? code : member_open(&worker->member, &provider, reterr);
    if (code != BATON_OK) {
        return code;
    }
    member_set_victims(worker->member, &worker->supervise.victims);
    configure(options, &config.leader_options);
    code = pool_open(&worker->pool, worker->member, &config, reterr);
    if (code != BATON_OK) {
        member_close(worker->member, on_closed_early, NULL);
    }
    return code;
}

static void begin_handles(struct worker *worker)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT, SIGHUP};

    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&worker->loop, &worker->signals[i]);
        worker->signals[i].data = worker;
        if (numbers[i] != SIGHUP || !supervise_ignores(SIGHUP)) {
            (void)uv_signal_start(&worker->signals[i], on_signal, numbers[i]);
        }
    }
    (void)uv_timer_init(&worker->loop, &worker->load);
    worker->load.data = worker;
    (void)uv_timer_start(&worker->load, on_load, LOAD_MS, LOAD_MS);
    (void)uv_idle_init(&worker->loop, &worker->turns);
    worker->turns.data = worker;
    command_watch(worker->invocation, &worker->loop, &worker->supervisor,
                  worker->supervise.victims.process, on_supervisor_dead, worker);
}

static int serve(struct worker *worker, struct baton_error *reterr)
{
    int code = command_open_loop(&worker->loop, reterr);

    if (code != BATON_OK) {
        return code;
    }
    code = open_all(worker, reterr);
    if (code == BATON_OK) {
        supervise_tell(&worker->supervise);
        begin_handles(worker);
        code = worker_http_open(&worker->http, worker->pool, worker->invocation->options,
                                worker->logger, reterr);
        if (code != BATON_OK) {
            on_left(worker, code);
        }
    }
    if (code == BATON_OK) {
        worker->reload = (struct reload){.options = worker->invocation->options,
                                         .logger = worker->logger,
                                         .member = worker->member,
                                         .http = worker->http};
        notify_ready();
        if (reload_was_held()) {
            reload_begin(&worker->reload, true);
        }
    }
    (void)uv_run(&worker->loop, UV_RUN_DEFAULT);
    code = worker->failure.code ? end_failed(worker, reterr) : code;
    http_server_free(worker->http);
    member_free(worker->member);
    (void)uv_loop_close(&worker->loop);
    return code;
}

static int begin_supervisor(struct worker *worker, struct baton_error *reterr)
{
    const char *url = work_url(worker->invocation->options);
    bool has_agent = strncmp(url, "agent:", 6) == 0;
    char agent[LOCAL_PATH_MAX];
    struct supervise_config config = {.agent = has_agent ? agent : NULL, .logger = worker->logger};
    int code = has_agent ? local_agent_url(agent, url, reterr) : work_check_url(url, reterr);

    return code ? code : supervise_init(&worker->supervise, &config, reterr);
}

int worker_main(const struct invocation *invocation)
{
    struct worker worker = {.invocation = invocation,
                            .logger = program_logger(invocation->options),
                            .supervise = {.orders = -1},
                            .has_terminal = reload_has_terminal()};
    struct baton_error error = {0};
    int code = worker.logger ? name_worker(&worker, &error)
                             : error_set(&error, BATON_ENOMEM, "out of memory");

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond RLIMIT_FSIZE becomes an ordinary error */
    if (!worker.has_terminal && !supervise_ignores(SIGHUP)) {
        reload_hold();
    }
    code = code ? code : begin_supervisor(&worker, &error);
    (void)serve_raise_files(); /* each command has two pipes. Commands keep the limit of before: the
                                  supervisor has begun */
    code = code ? code : serve(&worker, &error);
    supervise_fini(&worker.supervise);
    logger_free(worker.logger);
    return code ? command_fail(invocation, &error) : worker.result;
}
