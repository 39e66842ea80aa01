#include "cron/record.h"

#include "base/json_read.h"
#include "base/json_text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

/* The end of the year 9999, so that sums do not overflow. */
#define TIME_MAX_S  INT64_C(253402300799)
#define TIME_MAX_MS (TIME_MAX_S * 1000)

static const char *const state_names[] = {
#define CRON_STATE(name, text) [CRON_##name] = (text),
    CRON_STATES(CRON_STATE)
#undef CRON_STATE
};

const char *cron_state_name(enum cron_state state)
{
    return state_names[state];
}

/* ---- Writing --------------------------------------------------------------------------------- */

static json_t *run_json(const struct cron_run *run)
{
    return json_pack("{s:I, s:I, s:s, s:I, s:I}", "fire", (json_int_t)run->fire_s, "attempt",
                     (json_int_t)run->attempt, "node", run->node, "epoch", (json_int_t)run->epoch,
                     "start_ms", (json_int_t)run->start_ms);
}

static json_t *end_json(const struct cron_end *end)
{
    json_t *json = run_json(&end->run);
    json_t *more = json_pack("{s:s, s:o*, s:I, s:s}", "state", cron_state_name(end->state),
                             "exit_code", end->exit_code < 0 ? NULL : json_integer(end->exit_code),
                             "end_ms", (json_int_t)end->end_ms, "output", end->output);

    if (!json || !more || json_object_update(json, more) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(more);
    return json;
}

static json_t *running_json(const struct cron_record *record)
{
    json_t *list = json_array();

    for (size_t i = 0; i < record->running_count && list; i++) {
        if (json_array_append_new(list, run_json(&record->running[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *record_json(const struct cron_record *record, const struct cron_text *text)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:s, s:I, s:b, s:o, s:I, s:I, s:I, s:I, s:I}", "schedule",
        text->when, "zone", text->zone, "command", text->command, "since",
        (json_int_t)record->since_s, "fire", (json_int_t)record->fire_s, "state",
        cron_state_name(record->state), "next", (json_int_t)record->next_s, "removed",
        record->is_removed, "running", running_json(record), "runs", (json_int_t)record->runs,
        "failures", (json_int_t)record->failures, "interrupted", (json_int_t)record->interrupted,
        "skipped", (json_int_t)record->skipped, "missed", (json_int_t)record->missed);

    if (json && record->last.run.attempt > 0 &&
        json_object_set_new(json, "last", end_json(&record->last)) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

char *cron_record_write(const struct cron_record *record, const struct cron_text *text)
{
    json_t *json = record_json(record, text);
    char *ret = json ? json_text(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    json_decref(json);
    return ret;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int read_state(enum cron_state *ret, const json_t *object, const char *path,
                      struct baton_error *reterr)
{
    const char *name;
    int code = json_read_text(object, path, "state", true, 16, &name, reterr);

    if (code) {
        return code;
    }
    for (size_t i = 0; i < sizeof(state_names) / sizeof(state_names[0]); i++) {
        if (strcmp(name, state_names[i]) == 0) {
            *ret = (enum cron_state)i;
            return BATON_OK;
        }
    }
    return error_set(reterr, BATON_EPROTO, "%sstate '%s': there is no such state", path, name);
}

static int read_count(uint64_t *ret, const json_t *object, const char *path, const char *key,
                      struct baton_error *reterr)
{
    int64_t number = 0;
    int code = json_read_integer(object, path, key, 0, INT64_MAX, NULL, &number, reterr);

    *ret = (uint64_t)number;
    return code;
}

static int read_run(struct cron_run *ret, const json_t *object, const char *path,
                    struct baton_error *reterr)
{
    const char *node;
    int code = json_read_integer(object, path, "fire", 0, TIME_MAX_S, NULL, &ret->fire_s, reterr);

    code = code ? code
                : json_read_integer(object, path, "attempt", 1, INT64_MAX, NULL, &ret->attempt,
                                    reterr);
    code = code ? code
                : json_read_integer(object, path, "start_ms", 0, TIME_MAX_MS, NULL, &ret->start_ms,
                                    reterr);
    code = code ? code : read_count(&ret->epoch, object, path, "epoch", reterr);
    code =
        code ? code : json_read_text(object, path, "node", true, BATON_NAME_MAX - 1, &node, reterr);
    if (code == BATON_OK) {
        (void)snprintf(ret->node, sizeof(ret->node), "%s", node);
    }
    return code;
}

static int read_last(struct cron_end *ret, const json_t *object, struct baton_error *reterr)
{
    const json_t *output = json_object_get(object, "output");
    int64_t exit_code = -1;
    bool has_code;
    int code = read_run(&ret->run, object, "last.", reterr);

    code = code ? code : read_state(&ret->state, object, "last.", reterr);
    code = code ? code
                : json_read_integer(object, "last.", "exit_code", 0, 255, &has_code, &exit_code,
                                    reterr);
    code = code ? code
                : json_read_integer(object, "last.", "end_ms", 0, TIME_MAX_MS, NULL, &ret->end_ms,
                                    reterr);
    ret->exit_code = (int)exit_code;
    if (!code && (!json_is_string(output) || json_string_length(output) > CRON_OUTPUT_MAX ||
                  strlen(json_string_value(output)) != json_string_length(output))) {
        code = error_set(reterr, BATON_EPROTO, "last.output: must be a text of at most %d bytes",
                         CRON_OUTPUT_MAX);
    }
    if (code == BATON_OK) { /* control characters are welcome: it has several lines */
        (void)snprintf(ret->output, sizeof(ret->output), "%s", json_string_value(output));
    }
    return code;
}

static int read_running(struct cron_record *record, const json_t *object,
                        struct baton_error *reterr)
{
    json_t *list, *one;
    size_t index;
    char path[32];
    int code = json_read_field(object, "", "running", true, JSON_ARRAY, &list, reterr);

    if (code) {
        return code;
    }
    if (json_array_size(list) > CRON_RUNNING_MAX) {
        return error_set(reterr, BATON_EPROTO, "running: has more than %d", CRON_RUNNING_MAX);
    }
    json_array_foreach(list, index, one)
    {
        (void)snprintf(path, sizeof(path), "running[%zu].", index);
        code = code ? code : read_run(&record->running[index], one, path, reterr);
    }
    record->running_count = json_array_size(list);
    return code;
}

static int read_all(struct cron_record *ret, const json_t *object, struct baton_error *reterr)
{
    json_t *last;
    int code = json_read_integer(object, "", "since", 0, TIME_MAX_S, NULL, &ret->since_s, reterr);

    code = code ? code
                : json_read_integer(object, "", "fire", 0, TIME_MAX_S, NULL, &ret->fire_s, reterr);
    code = code ? code
                : json_read_integer(object, "", "next", 0, TIME_MAX_S, NULL, &ret->next_s, reterr);
    code = code ? code : json_read_flag(object, "", "removed", &ret->is_removed, reterr);
    code = code ? code : read_state(&ret->state, object, "", reterr);
    code = code ? code : read_count(&ret->runs, object, "", "runs", reterr);
    code = code ? code : read_count(&ret->failures, object, "", "failures", reterr);
    code = code ? code : read_count(&ret->interrupted, object, "", "interrupted", reterr);
    code = code ? code : read_count(&ret->skipped, object, "", "skipped", reterr);
    code = code ? code : read_count(&ret->missed, object, "", "missed", reterr);
    code = code ? code : read_running(ret, object, reterr);
    code = code ? code : json_read_field(object, "", "last", false, JSON_OBJECT, &last, reterr);
    return code || !last ? code : read_last(&ret->last, last, reterr);
}

int cron_record_read(struct cron_record *ret, const void *data, size_t bytes,
                     struct baton_error *reterr)
{
    struct cron_record *record = calloc(1, sizeof(*record));
    json_t *object = NULL;
    int code = record ? json_read_object(data, bytes, CRON_RECORD_MAX, DEPTH_MAX, &object, reterr)
                      : error_set(reterr, BATON_ENOMEM, "out of memory");

    code = code ? code : read_all(record, object, reterr);
    if (code == BATON_OK) {
        *ret = *record;
    }
    json_decref(object);
    free(record);
    return code;
}
