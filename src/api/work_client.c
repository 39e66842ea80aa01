/* Submitting to a pool and asking about it: for that no part in it is needed. */
#include "api/work.h"

#include "api/perform.h"
#include "base/json_load.h"
#include "base/json_text.h"
#include "pool/client.h"
#include "pool/submit.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 500 }; /* a question to the leader is asked anew; so a stop waits no longer */

struct client_call {
    struct call base;
    char *pool;
    char *name; /* of the submission, item or worker; or NULL */
    bool is_drained;
    json_t *items;
    instant deadline;
    /* What came: */
    struct baton_work_submission *submission;
    struct baton_work_result *result;
    char *text;
};

static void drop_client_call(struct call *base)
{
    struct client_call *call = (struct client_call *)base;

    free(call->pool);
    free(call->name);
    json_decref(call->items);
    baton_work_submission_free(call->submission);
    baton_work_results_free(call->result, 1);
    free(call->text);
}

/* On failure *reterr is written. */
static struct client_call *client_call_new(struct baton *baton, const char *pool, const char *name,
                                           void (*run)(struct call *call),
                                           struct baton_error *reterr)
{
    struct client_call *call = call_new(baton, sizeof(*call), run);

    if (call) {
        call->base.drop = drop_client_call;
        call->pool = strdup(pool);
        call->name = name ? strdup(name) : NULL;
    }
    if (!call || !call->pool || (name && !call->name)) {
        (void)error_set(reterr, BATON_ENOMEM, "pool \"%.60s\": out of memory", pool);
        if (call) {
            call_unref(&call->base);
        }
        return NULL;
    }
    return call;
}

/* ---- Submitting ------------------------------------------------------------------------------ */

void baton_work_submission_free(struct baton_work_submission *submission)
{
    if (submission) {
        for (size_t i = 0; submission->ids && i < submission->count; i++) {
            free(submission->ids[i]);
        }
        free((void *)submission->ids);
        free(submission->name);
        free(submission);
    }
}

/* NULL when out of memory. */
static struct baton_work_submission *copy_submission(const struct pool_submission *submission)
{
    struct baton_work_submission *copy = calloc(1, sizeof(*copy));

    if (!copy) {
        return NULL;
    }
    copy->name = strdup(submission->name);
    copy->ids = (char **)calloc(submission->count + 1, sizeof(*copy->ids));
    for (size_t i = 0; copy->ids && i < submission->count; i++) {
        copy->ids[i] = strdup(submission->ids[i]);
        copy->count += copy->ids[i] != NULL;
    }
    if (!copy->name || !copy->ids || copy->count < submission->count) {
        copy->count = submission->count; /* a NULL among them is freed, too */
        baton_work_submission_free(copy);
        return NULL;
    }
    return copy;
}

static void on_submitted(void *userdata, int code, const struct pool_submission *submission,
                         const struct baton_error *error)
{
    struct client_call *call = userdata;

    if (code == BATON_OK && !(call->submission = copy_submission(submission))) {
        code = BATON_ENOMEM;
        error = NULL;
    }
    call_finish(&call->base, code, error);
}

static void run_submit(struct call *base)
{
    struct client_call *call = (struct client_call *)base;
    struct baton_error error = {0};
    int code = pool_submit(base->baton->member, call->pool, call->name, call->items, on_submitted,
                           call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

/* An array; one object becomes an array of it. */
static int parse_items(json_t **ret, const char *items, struct baton_error *reterr)
{
    json_error_t where;
    json_t *root = json_load_text(items, JSON_REJECT_DUPLICATES, &where);

    if (!root) {
        return error_set(reterr, BATON_EINVAL,
                         "items: no JSON array or object at line %d, column %d: %s", where.line,
                         where.column, where.text);
    }
    *ret = json_is_array(root) ? root : json_pack("[o]", root);
    return *ret ? BATON_OK : error_set(reterr, BATON_ENOMEM, "out of memory");
}

int baton_work_submit(struct baton *baton, const char *pool, const char *name, const char *items,
                      struct baton_work_submission **ret, struct baton_error *reterr)
{
    struct client_call *call;
    json_t *parsed = NULL;
    int code = work_may_wait(baton, reterr);

    code = code ? code : parse_items(&parsed, items, reterr);
    if (code != BATON_OK) {
        return code;
    }
    call = client_call_new(baton, pool, name, run_submit, reterr);
    if (!call) {
        json_decref(parsed);
        return BATON_ENOMEM;
    }
    call->items = parsed;
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_EDEADLK, reterr);
    if (code == BATON_OK && ret) {
        *ret = call->submission;
        call->submission = NULL;
    }
    call_unref(&call->base);
    return code;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static void run_cancel(struct call *base)
{
    struct client_call *call = (struct client_call *)base;
    struct baton_error error = {0};
    int code = pool_cancel(base->baton->member, call->pool, call->name, call_done, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static void run_drain(struct call *base)
{
    struct client_call *call = (struct client_call *)base;
    struct baton_error error = {0};
    int code = pool_drain(base->baton->member, call->pool, call->name, call->is_drained, call_done,
                          call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static int order(struct baton *baton, const char *pool, const char *name, bool is_drained,
                 void (*run)(struct call *call), struct baton_error *reterr)
{
    struct client_call *call;
    int code = check_owner(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = client_call_new(baton, pool, name, run, reterr);
    if (!call) {
        return BATON_ENOMEM;
    }
    call->is_drained = is_drained;
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_OK, reterr);
    call_unref(&call->base);
    return code;
}

int baton_work_cancel(struct baton *baton, const char *pool, const char *id,
                      struct baton_error *reterr)
{
    return order(baton, pool, id, false, run_cancel, reterr);
}

int baton_work_drain(struct baton *baton, const char *pool, const char *worker, bool is_drained,
                     struct baton_error *reterr)
{
    return order(baton, pool, worker, is_drained, run_drain, reterr);
}

/* ---- Questions ------------------------------------------------------------------------------- */

static void on_result(void *userdata, int code, const struct work_result *result,
                      const struct baton_error *error)
{
    struct client_call *call = userdata;

    if (code == BATON_OK) {
        struct baton_work_result *shown = calloc(1, sizeof(*shown));

        code = shown
                   ? work_result_show(shown, result->id,
                                      result->is_success ? BATON_WORK_COMPLETED : BATON_WORK_FAILED,
                                      result)
                   : BATON_ENOMEM;
        call->result = shown;
        error = NULL;
    }
    call_finish(&call->base, code, error);
}

static void run_result(struct call *base)
{
    struct client_call *call = (struct client_call *)base;
    struct baton_error error = {0};
    int code = pool_result(base->baton->member, call->pool, call->name, on_result, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

int baton_work_result(struct baton *baton, const char *pool, const char *id,
                      struct baton_work_result **ret, struct baton_error *reterr)
{
    struct client_call *call;
    int code = work_may_wait(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = client_call_new(baton, pool, id, run_result, reterr);
    if (!call) {
        return BATON_ENOMEM;
    }
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_EDEADLK, reterr);
    if (code == BATON_OK) {
        *ret = call->result;
        call->result = NULL;
    }
    call_unref(&call->base);
    return code;
}

struct row {
    const struct ledger_entry *entry;
};

static int by_id(const void *one, const void *other)
{
    return strcmp(((const struct row *)one)->entry->id, ((const struct row *)other)->entry->id);
}

static json_t *entry_json(const struct ledger_entry *entry)
{
    const struct ledger_place *place = entry->place;

    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:I}", "id", entry->id, "state",
        work_state_name(entry->state), "worker", place ? ledger_place_worker(place) : "", "session",
        (json_int_t)(place ? ledger_place_session(place) : 0), "epoch", (json_int_t)entry->epoch,
        "attempt", (json_int_t)entry->attempt, "failures", (json_int_t)entry->failures, "losses",
        (json_int_t)entry->losses, "code", (int)entry->code, "since_unix_ms",
        (json_int_t)entry->since_unix_ms, "began_unix_ms", (json_int_t)entry->began_unix_ms);
}

/* NULL when out of memory. */
static char *rows_text(struct row *rows, size_t count)
{
    json_t *list = json_array();
    bool is_whole = list != NULL;
    char *text;

    qsort(rows, count, sizeof(*rows), by_id);
    for (size_t i = 0; is_whole && i < count; i++) {
        is_whole = json_array_append_new(list, entry_json(rows[i].entry)) == 0;
    }
    text = is_whole ? json_text(list, JSON_COMPACT) : NULL;
    json_decref(list);
    return text;
}

static char *list_text(const struct ledger *ledger)
{
    const struct ledger_entry *entry;
    size_t count = 0, i = 0;
    struct row *rows;
    char *text;

    for (int state = 0; state < WORK_STATE_COUNT; state++) {
        count += ledger_count(ledger, (enum work_state)state);
    }
    rows = calloc(count + 1, sizeof(*rows));
    if (!rows) {
        return NULL;
    }
    for (entry = ledger_next(ledger, NULL); entry; entry = ledger_next(ledger, entry)) {
        rows[i++].entry = entry;
    }
    text = rows_text(rows, count);
    free(rows);
    return text;
}

static void finish_text(struct client_call *call, char *text)
{
    call->text = text;
    call_finish(&call->base, text ? BATON_OK : BATON_ENOMEM, NULL);
}

static void on_list(void *userdata, int code, const struct ledger *ledger,
                    const struct baton_error *error)
{
    if (code == BATON_OK) {
        finish_text(userdata, list_text(ledger));
    } else {
        call_finish(userdata, code, error);
    }
}

static void run_list(struct call *base)
{
    struct client_call *call = (struct client_call *)base;
    struct baton_error error = {0};
    int code = pool_list(base->baton->member, call->pool, on_list, call, &error);

    if (code != BATON_OK) {
        call_finish(base, code, &error);
    }
}

static void on_status(void *userdata, int code, const json_t *status,
                      const struct baton_error *error);

static void run_status(struct call *base)
{
    struct client_call *call = (struct client_call *)base;
    struct baton *baton = base->baton;
    instant turn = instant_add(clock_now(), SPAN_MS(LOOK_MS));
    struct baton_error error = {0};
    int code;

    baton->work_questions++;
    code = pool_ask_status(baton->member, call->pool, instant_min(turn, call->deadline), on_status,
                           call, &error);
    if (code != BATON_OK) {
        baton->work_questions--;
        call_finish(base, code, &error);
    }
}

static void on_status(void *userdata, int code, const json_t *status,
                      const struct baton_error *error)
{
    struct client_call *call = userdata;
    struct baton *baton = call->base.baton;
    const struct baton_error closed = {BATON_ECLOSED, "the handle was closed: open another one"};

    baton->work_questions--;
    if (code == BATON_OK) {
        finish_text(call, json_text(status, JSON_COMPACT));
    } else if (baton->works_stopped) {
        call_finish(&call->base, BATON_ECLOSED, &closed);
    } else if (code == BATON_ETIMEDOUT && instant_before(clock_now(), call->deadline)) {
        run_status(&call->base);
    } else {
        call_finish(&call->base, code, error);
    }
    works_settle(baton);
}

static int ask_text(struct baton *baton, const char *pool, int64_t timeout_ms,
                    void (*run)(struct call *call), char **ret, struct baton_error *reterr)
{
    struct client_call *call;
    int code = work_may_wait(baton, reterr);

    if (code != BATON_OK) {
        return code;
    }
    call = client_call_new(baton, pool, NULL, run, reterr);
    if (!call) {
        return BATON_ENOMEM;
    }
    call->deadline = perform_deadline(timeout_ms);
    code = perform(&call->base, perform_and_a_turn(timeout_ms), BATON_EDEADLK, reterr);
    if (code == BATON_OK) {
        *ret = call->text;
        call->text = NULL;
    }
    call_unref(&call->base);
    return code;
}

int baton_work_list(struct baton *baton, const char *pool, char **ret, struct baton_error *reterr)
{
    return ask_text(baton, pool, BATON_TIMEOUT_DEFAULT, run_list, ret, reterr);
}

int baton_work_status(struct baton *baton, const char *pool, int64_t timeout_ms, char **ret,
                      struct baton_error *reterr)
{
    return ask_text(baton, pool, timeout_ms, run_status, ret, reterr);
}
