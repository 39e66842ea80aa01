/* `baton work ls|show|logs|watch|stats`: what a pool has, and what became of it. */
#include "cli/work.h"

#include "cli/interrupt.h"
#include "cli/print.h"
#include "pool/client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COLUMNS = 8, WORKER_COLUMNS = 7, CELL_MAX = 160, LOOK_MS = 500, PROGRESS_WITHIN_S = 1 };

/* ---- The leader's status --------------------------------------------------------------------- */

struct told {
    struct work_link *link;
    json_t *status;
};

static void on_status(void *userdata, int code, const json_t *status,
                      const struct baton_error *error)
{
    struct told *told = userdata;

    told->status = status ? json_deep_copy(status) : NULL;
    told->link->is_asking = false;
    work_link_done(told->link, code, error);
}

int work_status(json_t **ret, struct work_link *link, span within, struct baton_error *reterr)
{
    struct told told = {.link = link};
    int code = pool_ask_status(link->member, link->pool, instant_add(clock_now(), within),
                               on_status, &told, reterr);

    link->is_asking = code == BATON_OK;
    code = work_link_wait(link, code, SPAN_NS(0), reterr);
    *ret = told.status;
    return code;
}

/* ---- Entries --------------------------------------------------------------------------------- */

struct listing {
    struct work_link *link;
    json_t *entries; /* an array, by id */
};

static json_t *entry_json(const struct ledger_entry *entry)
{
    const char *worker = entry->place ? ledger_place_worker(entry->place) : NULL;
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:i, s:i, s:i, s:I}", "id", entry->id, "state",
                  work_state_name(entry->state), "epoch", (json_int_t)entry->epoch, "attempt",
                  (int)entry->attempt, "failures", (int)entry->failures, "losses",
                  (int)entry->losses, "since_unix_ms", (json_int_t)entry->since_unix_ms);

    if (json && worker) {
        (void)json_object_set_new(json, "worker", json_string(worker));
    }
    if (json && work_state_is_final(entry->state)) {
        (void)json_object_set_new(json, "code", json_integer(entry->code));
    }
    if (json && entry->item) {
        (void)json_object_set_new(json, "item", work_item_json(entry->item));
    }
    return json;
}

struct row {
    const struct ledger_entry *entry;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->entry->id, ((const struct row *)b)->entry->id);
}

static size_t count_entries(const struct ledger *ledger)
{
    size_t count = 0;

    for (const struct ledger_entry *at = ledger_next(ledger, NULL); at;
         at = ledger_next(ledger, at)) {
        count++;
    }
    return count;
}

/* Sorted by id. */
static void add_entries(json_t *ret, const struct ledger *ledger)
{
    size_t count = count_entries(ledger), used = 0;
    struct row *rows = calloc(count + 1, sizeof(*rows));

    for (const struct ledger_entry *at = rows ? ledger_next(ledger, NULL) : NULL; at;
         at = ledger_next(ledger, at)) {
        rows[used++].entry = at;
    }
    if (used > 0) {
        qsort(rows, used, sizeof(*rows), by_id);
    }
    for (size_t i = 0; i < used; i++) {
        (void)json_array_append_new(ret, entry_json(rows[i].entry));
    }
    free(rows);
}

static void on_ledger(void *userdata, int code, const struct ledger *ledger,
                      const struct baton_error *error)
{
    struct listing *listing = userdata;

    listing->entries = json_array();
    if (ledger) {
        add_entries(listing->entries, ledger);
    }
    work_link_done(listing->link, code, error);
}

int work_entries(json_t **ret, const struct invocation *invocation, struct work_link *link,
                 struct baton_error *reterr)
{
    struct listing listing = {.link = link};
    int code = pool_list(link->member, link->pool, on_ledger, &listing, reterr);

    code = work_link_wait(link, code, options_duration(invocation->options, "timeout"), reterr);
    *ret = listing.entries;
    return code;
}

static const char *text_of(const json_t *entry, const char *key)
{
    const char *text = json_string_value(json_object_get(entry, key));

    return text ? text : "";
}

static bool is_any_running(const json_t *entries)
{
    json_t *entry;
    size_t index;

    json_array_foreach(entries, index, entry)
    {
        if (strcmp(text_of(entry, "state"), work_state_name(WORK_PROCESSING)) == 0) {
            return true;
        }
    }
    return false;
}

/* How far the running ones are is in no ledger. Where nobody who knows it replies soon, nothing is
 * added. */
static void add_progress(json_t *entries, struct work_link *link)
{
    json_t *status = NULL, *permille, *entry;
    struct baton_error error;
    size_t index;

    if (!is_any_running(entries) ||
        work_status(&status, link, SPAN_S(PROGRESS_WITHIN_S), &error) != BATON_OK) {
        return;
    }
    json_array_foreach(entries, index, entry)
    {
        permille =
            json_object_get(json_object_get(status, "progress_permille"), text_of(entry, "id"));
        if (permille) {
            (void)json_object_set(entry, "progress_permille", permille);
        }
    }
    json_decref(status);
}

struct entry_cells {
    char attempt[16], progress[16], code[16], since[24];
};

static void fill_cells(const char **row, struct entry_cells *cells, const json_t *entry)
{
    time_t since = (time_t)(json_integer_value(json_object_get(entry, "since_unix_ms")) / 1000);
    const json_t *code = json_object_get(entry, "code");
    const json_t *permille = json_object_get(entry, "progress_permille");
    struct tm local;

    (void)snprintf(cells->attempt, sizeof(cells->attempt), "%lld",
                   (long long)json_integer_value(json_object_get(entry, "attempt")));
    (void)snprintf(cells->progress, sizeof(cells->progress), "%.1f%%",
                   (double)json_integer_value(permille) / 10);
    (void)snprintf(cells->code, sizeof(cells->code), "%lld", (long long)json_integer_value(code));
    cells->since[0] = '\0';
    if (since > 0 && localtime_r(&since, &local)) {
        (void)strftime(cells->since, sizeof(cells->since), "%F %T", &local);
    }
    row[0] = text_of(entry, "id");
    row[1] = text_of(entry, "state");
    row[2] = text_of(entry, "worker");
    row[3] = cells->attempt;
    row[4] = permille ? cells->progress : "";
    row[5] = code ? cells->code : "";
    row[6] = cells->since;
    row[7] = NULL;
}

static void print_entries(const json_t *entries)
{
    static const char *const heads[COLUMNS] = {"ID",       "STATE", "WORKER", "ATTEMPT",
                                               "PROGRESS", "CODE",  "SINCE",  NULL};
    size_t count = json_array_size(entries), index;
    const char **table = calloc((count + 2) * COLUMNS, sizeof(*table));
    struct entry_cells *cells = calloc(count + 1, sizeof(*cells));
    json_t *entry;

    if (table && cells) {
        memcpy((void *)table, (const void *)heads, sizeof(heads));
        json_array_foreach(entries, index, entry)
        {
            fill_cells(&table[(index + 1) * COLUMNS], &cells[index], entry);
        }
        print_table(stdout, table);
    }
    free((void *)table);
    free(cells);
}

int work_list(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    json_t *entries = NULL;
    int code = work_entries(&entries, invocation, link, &error);

    add_progress(entries, link);
    if (code == BATON_OK && options_flag(invocation->options, "json")) {
        print_json(stdout, entries);
    } else if (code == BATON_OK) {
        print_entries(entries);
    }
    json_decref(entries);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

/* ---- One of them ----------------------------------------------------------------------------- */

json_t *work_entry(const json_t *entries, const char *id, const struct work_link *link,
                   struct baton_error *reterr)
{
    json_t *entry;
    size_t index;

    json_array_foreach(entries, index, entry)
    {
        if (strcmp(text_of(entry, "id"), id) == 0) {
            return entry;
        }
    }
    (void)error_set(reterr, BATON_ENOENT, "%s: the pool \"%s\" has no such item", id, link->pool);
    return NULL;
}

int work_show(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    json_t *entries = NULL;
    const json_t *entry = NULL;
    int code = work_entries(&entries, invocation, link, &error);

    add_progress(entries, link);
    if (code == BATON_OK) {
        entry = work_entry(entries, invocation->argv[1], link, &error);
    }
    if (entry) {
        print_json(stdout, entry);
    }
    json_decref(entries);
    return entry ? EXIT_OK : command_fail(invocation, &error);
}

/* The loop that calls ignores SIGPIPE, for its sockets: a reader that has ended is no error. */
void work_print_output(const struct work_result *result)
{
    void (*before)(int number) = signal(SIGPIPE, SIG_DFL);

    if (result->output_bytes > 0) {
        (void)fwrite(result->output, 1, result->output_bytes, stdout);
        (void)fflush(stdout);
    }
    (void)signal(SIGPIPE, before);
}

static void on_result(void *userdata, int code, const struct work_result *result,
                      const struct baton_error *error)
{
    if (result) {
        work_print_output(result);
    }
    work_link_done(userdata, code, error);
}

int work_logs(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    int code = pool_result(link->member, link->pool, invocation->argv[1], on_result, link, &error);

    code = work_link_wait(link, code, options_duration(invocation->options, "timeout"), &error);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

/* ---- Changes --------------------------------------------------------------------------------- */

static bool is_same(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"state", "worker", "attempt"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const json_t *one = json_object_get(a, keys[i]), *other = json_object_get(b, keys[i]);

        if (one != other && !json_equal(one, other)) { /* both may lack it, as an ended item does */
            return false;
        }
    }
    return true;
}

static void print_change(const json_t *entry, bool is_json)
{
    const char *worker = text_of(entry, "worker");

    if (is_json) {
        print_json(stdout, entry);
    } else {
        printf("%s %s%s%s\n", text_of(entry, "id"), text_of(entry, "state"), *worker ? " on " : "",
               worker);
    }
}

/* Both are sorted by id. */
static void print_changes(const json_t *before, const json_t *after, bool is_json)
{
    size_t old = 0, index;
    json_t *entry;

    json_array_foreach(after, index, entry)
    {
        const json_t *same;

        while ((same = json_array_get(before, old)) &&
               strcmp(text_of(same, "id"), text_of(entry, "id")) < 0) {
            old++;
        }
        if (!same || strcmp(text_of(same, "id"), text_of(entry, "id")) != 0 ||
            !is_same(same, entry)) {
            print_change(entry, is_json);
        }
    }
    (void)fflush(stdout);
}

int work_watch(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    json_t *before = json_array();
    int code = BATON_OK;

    while (code == BATON_OK && !ferror(stdout)) {
        json_t *after = NULL;

        code = work_entries(&after, invocation, link, &error);
        if (code == BATON_OK) {
            print_changes(before, after, options_flag(invocation->options, "json"));
            json_decref(before);
            before = after;
            code = work_link_pause(link, SPAN_MS(LOOK_MS), &error);
        } else {
            json_decref(after);
        }
    }
    json_decref(before);
    return code == BATON_OK || interrupt_signal() ? EXIT_OK : command_fail(invocation, &error);
}

/* ---- The pool as a whole --------------------------------------------------------------------- */

static void print_workers(const json_t *workers)
{
    static const char *const heads[WORKER_COLUMNS] = {"WORKER", "STATE",  "ITEMS", "SLOTS",
                                                      "CPU",    "LABELS", NULL};
    size_t count = json_array_size(workers), index;
    const char **table = calloc((count + 2) * WORKER_COLUMNS, sizeof(*table));
    char(*cells)[3][CELL_MAX] = calloc(count + 1, sizeof(*cells));
    json_t *worker;

    if (table && cells) {
        memcpy((void *)table, (const void *)heads, sizeof(heads));
        json_array_foreach(workers, index, worker)
        {
            const char **row = &table[(index + 1) * WORKER_COLUMNS];
            bool drains = json_is_true(json_object_get(worker, "draining")) ||
                          json_is_true(json_object_get(worker, "leaving"));

            (void)snprintf(cells[index][0], CELL_MAX, "%lld",
                           (long long)json_integer_value(json_object_get(worker, "items")));
            (void)snprintf(cells[index][1], CELL_MAX, "%lld",
                           (long long)json_integer_value(json_object_get(worker, "slots")));
            (void)snprintf(cells[index][2], CELL_MAX, "%.0f%%",
                           (double)json_integer_value(json_object_get(worker, "cpu_permille")) /
                               10);
            row[0] = text_of(worker, "worker");
            row[1] = !json_is_true(json_object_get(worker, "online")) ? "silent"
                     : drains                                         ? "draining"
                                                                      : "online";
            row[2] = cells[index][0];
            row[3] = cells[index][1];
            row[4] = cells[index][2];
            row[5] = text_of(worker, "labels");
        }
        print_table(stdout, table);
    }
    free((void *)table);
    free(cells);
}

static void print_numbers(const char *title, const json_t *object)
{
    const char *key;
    json_t *value;

    printf("%s:", title);
    json_object_foreach((json_t *)object, key, value)
    {
        printf(json_is_real(value) ? "  %s %.1f" : "  %s %.0f", key, json_number_value(value));
    }
    (void)putchar('\n');
}

int work_stats(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    json_t *status = NULL;
    int code = work_status(&status, link, options_duration(invocation->options, "timeout"), &error);

    if (code == BATON_OK && options_flag(invocation->options, "json")) {
        print_json(stdout, status);
    } else if (code == BATON_OK) {
        print_workers(json_object_get(status, "workers"));
        print_numbers("items", json_object_get(status, "items"));
        print_numbers("without a place", json_object_get(status, "waiting"));
        print_numbers("since this leader began", json_object_get(status, "counters"));
        print_numbers("processing ms", json_object_get(status, "processing_ms"));
    }
    json_decref(status);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
