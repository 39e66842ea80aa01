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
#include "cli/job_output.h"
#include "cli/settings.h"
#include "cli/supervise.h"
#include "cli/work_link.h"
#include "cli/worker_http.h"
#include "member/status_server.h"
#include "net/local.h"
#include "options/notify.h"
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

enum { LOAD_MS = 1000, SIGNALS = 2, VARIABLES_MAX = 256, FOLDER_WORDS = 4, EXIT_NO_BODY = 64 };

struct worker {
    uv_loop_t loop;
    uv_signal_t signals[SIGNALS];
    uv_timer_t load;
    const struct invocation *invocation;
    struct logger *logger;
    struct supervise supervise;
    struct member *member;
    struct pool *pool;
    struct http_server *http; /* NULL: none */
    struct job *jobs;
    char name[BATON_NAME_MAX];
    bool is_leaving;
    int result;
};

struct job {
    struct worker *worker;
    struct cmd *cmd; /* NULL: it could not be started */
    struct job_output *output;
    struct work_result result;
    bool is_over; /* the command is; its output may still come */
    UT_hash_handle hh;
    char id[WORK_ID_MAX];
};

static int64_t unix_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- A job ----------------------------------------------------------------------------------- */

static void job_finish(struct job *job)
{
    struct worker *worker = job->worker;
    struct work_result result = job->result;

    result.id = job->id;
    result.ended_unix_ms = unix_ms();
    result.is_success = result.code == 0;
    job_output_take(job->output, &result.output, &result.output_bytes);
    job_output_close(job->output);
    HASH_DEL(worker->jobs, job);
    log_info(worker->logger, "item-ended", LOG_STR("item", job->id),
             LOG_I64("exit_code", result.code));
    (void)pool_ended(worker->pool, &result);
    free(result.output);
    free(job);
}

static void on_command_end(void *userdata, const struct cmd_end *end)
{
    struct job *job = userdata;

    job->cmd = NULL;
    job->result.code = end->exit_code;
    member_set_victims(job->worker->member, &job->worker->supervise.victims);
    job_finish(job);
}

/* The command of an item's body. */
struct order_of_body {
    json_t *json;
    char **argv;
    char **variables;
};

static void body_fini(struct order_of_body *body)
{
    for (char **at = body->variables; at && *at; at++) {
        free(*at);
    }
    free((void *)body->variables);
    free((void *)body->argv);
    json_decref(body->json);
}

static void add_variable(struct order_of_body *body, size_t *used, const char *name,
                         const char *value)
{
    if (*used < VARIABLES_MAX && asprintf(&body->variables[*used], "%s=%s", name, value) > 0) {
        (*used)++;
    }
}

static void add_variables(struct order_of_body *body, const struct pool_start *start)
{
    const json_t *env = json_object_get(body->json, "env");
    const char *name;
    char attempt[16];
    size_t used = 0;
    json_t *value;

    (void)snprintf(attempt, sizeof(attempt), "%u", start->attempt);
    add_variable(body, &used, "BATON_ITEM", start->item->id);
    add_variable(body, &used, "BATON_ATTEMPT", attempt);
    json_object_foreach((json_t *)env, name, value)
    {
        if (json_is_string(value) && !strchr(name, '=') && *name) {
            add_variable(body, &used, name, json_string_value(value));
        }
    }
}

/* The words before CMD by which it starts in "dir"; how many they are. */
static size_t go_to_folder(const struct order_of_body *body)
{
    static const char *const words[] = {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\""};
    const char *folder = json_string_value(json_object_get(body->json, "dir"));

    if (!folder) {
        return 0;
    }
    memcpy((void *)body->argv, (const void *)words, sizeof(words));
    body->argv[FOLDER_WORDS - 1] = (char *)folder;
    return FOLDER_WORDS;
}

/* {"argv": ["cmd", "arg"], "env": {"A": "B"}, "dir": "/x"} */
static int body_read(struct order_of_body *body, const struct pool_start *start,
                     struct baton_error *reterr)
{
    const struct work_item *item = start->item;
    json_t *argv, *word;
    char **words;
    size_t index;

    body->json = json_loadb((const char *)item->body, item->body_bytes, 0, NULL);
    argv = json_object_get(body->json, "argv");
    body->argv = calloc(json_array_size(argv) + FOLDER_WORDS + 1, sizeof(*body->argv));
    body->variables = calloc(VARIABLES_MAX + 1, sizeof(*body->variables));
    if (!body->argv || !body->variables) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    words = body->argv + go_to_folder(body);
    json_array_foreach(argv, index, word)
    {
        words[index] = (char *)json_string_value(word);
        if (!words[index]) {
            break;
        }
    }
    if (index == 0 || index != json_array_size(argv)) {
        return error_set(reterr, BATON_EINVAL,
                         "the body is no command: {\"argv\": [\"CMD\", …]} is wanted");
    }
    add_variables(body, start);
    return BATON_OK;
}

static int job_begin(struct job *job, const struct pool_start *start, struct baton_error *reterr)
{
    struct worker *worker = job->worker;
    struct order_of_body body = {0};
    struct cmd_config config = {.loop = &worker->loop,
                                .supervise = &worker->supervise,
                                .node = worker->name,
                                .election = pool_name(worker->pool),
                                .epoch = start->epoch,
                                .on_exit = on_command_end,
                                .userdata = job};
    int code = body_read(&body, start, reterr);

    if (code == BATON_OK) {
        code = job_output_open(&job->output, &worker->loop, &config.output, reterr);
    }
    if (code == BATON_OK) {
        config.argv = body.argv;
        config.variables = (const char *const *)body.variables;
        code = cmd_start(&job->cmd, &config, reterr);
        job_output_started(job->output);
    }
    body_fini(&body);
    return code;
}

static void on_start(void *userdata, const struct pool_start *start)
{
    struct worker *worker = userdata;
    struct job *job = calloc(1, sizeof(*job));
    struct baton_error error;
    int code;

    if (!job) {
        struct work_result result = {.id = start->item->id, .epoch = start->epoch, .code = 1};

        (void)pool_ended(worker->pool, &result);
        return;
    }
    job->worker = worker;
    memcpy(job->id, start->item->id, strlen(start->item->id) + 1);
    job->result.epoch = start->epoch;
    job->result.began_unix_ms = unix_ms();
    HASH_ADD_STR(worker->jobs, id, job);
    code = job_begin(job, start, &error);
    if (code != BATON_OK) {
        log_warning(worker->logger, "item-not-started", LOG_STR("item", job->id),
                    LOG_STR("reason", error.message));
        job->result.code =
            code == BATON_EINVAL && !job->output ? EXIT_NO_BODY : (int)cmd_exit_code(code);
        job_finish(job);
        return;
    }
    member_set_victims(worker->member, &worker->supervise.victims);
    log_info(worker->logger, "item-started", LOG_STR("item", job->id),
             LOG_U64("epoch", start->epoch), LOG_U64("attempt", start->attempt));
}

static void on_halt(void *userdata, const char *id, uint64_t epoch, instant deadline)
{
    struct worker *worker = userdata;
    instant own =
        instant_add(clock_now(), options_duration(worker->invocation->options, "stop-timeout"));
    struct job *job;

    HASH_FIND_STR(worker->jobs, id, job);
    if (job && job->cmd && job->result.epoch == epoch) {
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

    pool_load(worker->pool, cpu_permille());
    notify_alive();
}

/* ---- The end --------------------------------------------------------------------------------- */

static void on_member_closed(void *userdata)
{
    struct worker *worker = userdata;

    for (size_t i = 0; i < SIGNALS; i++) {
        uv_close((uv_handle_t *)&worker->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&worker->load, NULL);
}

static void on_pool_closed(void *userdata)
{
    struct worker *worker = userdata;

    member_close(worker->member, on_member_closed, worker);
}

static void on_left(void *userdata, int code)
{
    struct worker *worker = userdata;

    (void)code;
    http_server_close(worker->http);
    pool_close(worker->pool, on_pool_closed, worker);
}

/* The first signal lets jobs end; the second one stops them. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct worker *worker = handle->data;
    span patience = options_duration(worker->invocation->options, "drain-timeout");
    struct job *job, *next;

    if (worker->is_leaving) {
        HASH_ITER (hh, worker->jobs, job, next) {
            if (job->cmd) {
                cmd_kill(job->cmd);
            }
        }
        return;
    }
    worker->is_leaving = true;
    worker->result = EXIT_SIGNAL + number;
    notify_stopping();
    log_notice(worker->logger, "leaving", LOG_U64("items", pool_running(worker->pool)));
    if (pool_leave(worker->pool, instant_add(clock_now(), patience), on_left, worker, NULL) !=
        BATON_OK) {
        on_left(worker, BATON_OK);
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

static void describe(const struct options *options, struct work_worker_options *ret)
{
    struct sysinfo info = {0};
    size_t used = 0;

    (void)sysinfo(&info);
    ret->slots = options_is_set(options, "slots") ? (uint32_t)options_number(options, "slots")
                                                  : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    ret->gpus = (uint32_t)options_number(options, "gpus");
    ret->memory_mib = options_is_set(options, "memory-mib")
                          ? (uint64_t)options_number(options, "memory-mib")
                          : (uint64_t)info.totalram * info.mem_unit / (1024 * 1024);
    ret->report_interval = options_duration(options, "report-interval");
    for (size_t i = 0; i < options_count(options, "label") && used < sizeof(ret->labels); i++) {
        int wrote = snprintf(ret->labels + used, sizeof(ret->labels) - used, "%s%s",
                             used ? " " : "", options_item(options, "label", i));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

static void configure(const struct options *options, struct work_leader_options *ret)
{
    *ret = pool_leader_options();
    (void)placement_strategy_parse(options_text(options, "strategy"), &ret->strategy);
    ret->report_interval = options_duration(options, "report-interval");
    ret->silence = options_duration(options, "silence");
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
                                       .node = worker->name};
    struct pool_config config = {
        .name = options_text(options, "pool"),
        .may_lead = !options_flag(options, "never-lead"),
        .worker = worker->name,
        .lease = worker->supervise.lease,
        .calls = {
            .on_start = on_start, .on_halt = on_halt, .on_event = on_event, .userdata = worker}};
    int code = member_open(&worker->member, &provider, reterr);

    if (code != BATON_OK) {
        return code;
    }
    member_set_victims(worker->member, &worker->supervise.victims);
    describe(options, &config.worker_options);
    configure(options, &config.leader_options);
    code = pool_open(&worker->pool, worker->member, &config, reterr);
    if (code != BATON_OK) {
        member_close(worker->member, on_closed_early, NULL);
    }
    return code;
}

static void listen_for_signals(struct worker *worker)
{
    static const int numbers[SIGNALS] = {SIGTERM, SIGINT};

    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&worker->loop, &worker->signals[i]);
        worker->signals[i].data = worker;
        (void)uv_signal_start(&worker->signals[i], on_signal, numbers[i]);
    }
    (void)uv_timer_init(&worker->loop, &worker->load);
    worker->load.data = worker;
    (void)uv_timer_start(&worker->load, on_load, LOAD_MS, LOAD_MS);
}

static int serve(struct worker *worker, struct baton_error *reterr)
{
    int code;

    if (uv_loop_init(&worker->loop) != 0) {
        return error_set(reterr, BATON_EIO, "no descriptor is left for a loop");
    }
    code = open_all(worker, reterr);
    if (code == BATON_OK) {
        listen_for_signals(worker);
        code = worker_http_open(&worker->http, worker->pool, worker->invocation->options, reterr);
        if (code != BATON_OK) {
            on_left(worker, code);
        }
    }
    if (code == BATON_OK) {
        notify_ready();
    }
    (void)uv_run(&worker->loop, UV_RUN_DEFAULT);
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
    int code = has_agent ? local_agent_url(agent, url, reterr) : BATON_OK;

    return code ? code : supervise_init(&worker->supervise, &config, reterr);
}

int worker_main(const struct invocation *invocation)
{
    struct worker worker = {.invocation = invocation,
                            .logger = settings_logger(invocation->options),
                            .supervise = {.orders = -1}};
    struct baton_error error = {0};
    int code = worker.logger ? name_worker(&worker, &error)
                             : error_set(&error, BATON_ENOMEM, "out of memory");

    code = code ? code : begin_supervisor(&worker, &error);
    code = code ? code : serve(&worker, &error);
    supervise_fini(&worker.supervise);
    logger_free(worker.logger);
    return code ? command_fail(invocation, &error) : worker.result;
}
