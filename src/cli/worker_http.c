#include "cli/worker_http.h"

#include "cli/http_options.h"
#include "web/exposition.h"

#include <stdio.h>
#include <string.h>

static json_t *status_of(const struct pool *pool)
{
    const struct work_leader *leader = pool_leader(pool);
    json_t *status = json_pack("{s:s, s:I, s:I, s:b}", "pool", pool_name(pool), "session",
                               (json_int_t)pool_session(pool), "running",
                               (json_int_t)pool_running(pool), "leads", leader != NULL);

    if (status && leader) {
        (void)json_object_set_new(status, "leader", work_leader_status(leader, clock_now()));
    }
    return status;
}

/* ---- Metrics --------------------------------------------------------------------------------- */

static void put_counters(struct buffer *ret, const struct work_counters *counters)
{
#define WORK_COUNTER(name, text)                                                                   \
    exposition_single(ret, "baton_work_" #name "_total", "counter", text, (double)counters->name);
    WORK_COUNTERS(WORK_COUNTER)
#undef WORK_COUNTER
}

static void put_items(struct buffer *ret, const struct ledger *ledger)
{
    char label[64];

    exposition_family(ret, "baton_work_items", "gauge", "items of the ledger by state");
    for (int state = 0; state < WORK_STATE_COUNT; state++) {
        (void)snprintf(label, sizeof(label), "state=\"%s\"",
                       work_state_name((enum work_state)state));
        exposition_sample(ret, "baton_work_items", label,
                          (double)ledger_count(ledger, (enum work_state)state));
    }
}

static void put_workers(struct buffer *ret, const json_t *status)
{
    const json_t *workers = json_object_get(status, "workers"), *worker;
    const json_t *times = json_object_get(status, "processing_ms");
    size_t index, online = 0;

    json_array_foreach(workers, index, worker)
    {
        online += json_is_true(json_object_get(worker, "online"));
    }
    exposition_single(ret, "baton_work_workers_online", "gauge", "workers that report",
                      (double)online);
    exposition_family(ret, "baton_work_processing_seconds", "summary",
                      "time of completed attempts");
    exposition_sample(ret, "baton_work_processing_seconds", "quantile=\"0.5\"",
                      json_number_value(json_object_get(times, "p50")) / 1000);
    exposition_sample(ret, "baton_work_processing_seconds", "quantile=\"0.99\"",
                      json_number_value(json_object_get(times, "p99")) / 1000);
    exposition_sample(ret, "baton_work_processing_seconds_sum", NULL,
                      json_number_value(json_object_get(times, "sum")) / 1000);
    exposition_sample(ret, "baton_work_processing_seconds_count", NULL,
                      json_number_value(json_object_get(times, "count")));
}

static void put_metrics(struct buffer *ret, const struct pool *pool)
{
    const struct work_leader *leader = pool_leader(pool);
    json_t *status = leader ? work_leader_status(leader, clock_now()) : NULL;

    exposition_single(ret, "baton_work_leads", "gauge", "1 if this process leads the pool",
                      leader != NULL);
    exposition_single(ret, "baton_work_running", "gauge", "items that run on this worker",
                      (double)pool_running(pool));
    if (status) {
        put_counters(ret, work_leader_counters(leader));
        put_items(ret, work_leader_ledger(leader));
        put_workers(ret, status);
    }
    json_decref(status);
}

static void on_request(void *userdata, const char *path, struct http_answer *answer)
{
    const struct pool *pool = userdata;

    if (strcmp(path, "/status") == 0) {
        http_answer_json(answer, 200, status_of(pool));
    } else if (strcmp(path, "/healthz") == 0) {
        http_answer_json(answer, 200, json_pack("{s:b}", "ok", 1));
    } else if (strcmp(path, "/metrics") == 0) {
        answer->status = 200;
        answer->type = EXPOSITION_TYPE;
        put_metrics(&answer->body, pool);
    }
}

int worker_http_open(struct http_server **ret, struct pool *pool, const struct options *options,
                     struct logger *logger, struct baton_error *reterr)
{
    struct http_config config = {.loop = member_loop(pool_member(pool)),
                                 .logger = logger,
                                 .on_request = on_request,
                                 .userdata = pool};
    struct http_options space;
    int code = http_options_read(&config, &space, options, reterr);

    *ret = NULL;
    code = code || !config.host ? code : http_server_open(ret, &config, reterr);
    explicit_bzero(space.token, sizeof(space.token));
    return code;
}
