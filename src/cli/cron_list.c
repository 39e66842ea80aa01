/* `baton cron ls`: the lines of a crontab as their records have them. The state is asked of the
 * agent of this host or of --provider, or, with --data, of a node on this machine. */
#include "cli/cron.h"

#include "base/json_load.h"
#include "base/value.h"
#include "cli/ask.h"
#include "cli/cron_book.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/settings.h"
#include "cli/work_link.h"
#include "member/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 7, CELL_MAX = 80 };

struct listing {
    struct work_link link;
    const char *prefix;
    json_t *lines; /* an array of records, each with its "line" */
};

/* ---- Asking ---------------------------------------------------------------------------------- */

/* What is no record of this version is left out. */
static void take(json_t *lines, const char *id, const void *data, size_t bytes)
{
    struct cron_record record;
    json_t *json = cron_record_read(&record, data, bytes, NULL) == BATON_OK
                       ? json_load_bytes(data, bytes, 0, NULL)
                       : NULL;

    if (json && json_object_set_new(json, "line", json_string(id)) == 0) {
        (void)json_array_append(lines, json);
    }
    json_decref(json);
}

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct listing *listing = userdata;

    for (size_t i = 0; i < count && code == BATON_OK; i++) {
        take(listing->lines, values[i].key + strlen(listing->prefix), values[i].data,
             values[i].bytes);
    }
    work_link_done(&listing->link, code, NULL);
}

static int ask_provider(struct listing *listing, const struct options *options,
                        struct baton_error *reterr)
{
    int code = work_link_open(&listing->link, options, reterr);

    if (code == BATON_OK) {
        code = store_list(listing->link.member, listing->prefix, on_values, listing, reterr);
        code = work_link_wait(&listing->link, code, options_duration(options, "timeout"), reterr);
        work_link_close(&listing->link);
    }
    return code;
}

static int ask_member(struct listing *listing, const struct options *options,
                      struct baton_error *reterr)
{
    json_t *request = json_pack("{s:s, s:s}", "do", "list", "prefix", listing->prefix);
    json_t *answer = NULL, *value;
    size_t index;
    int code = ask_node(options, request, &answer, reterr);

    json_array_foreach(json_object_get(answer, "values"), index, value)
    {
        const char *key = json_string_value(json_object_get(value, "key"));
        const json_t *text = json_object_get(value, "text");
        if (key && json_is_string(text)) {
            take(listing->lines, key + strlen(listing->prefix), json_string_value(text),
                 json_string_length(text));
        }
    }
    json_decref(request);
    json_decref(answer);
    return code;
}

/* ---- Showing --------------------------------------------------------------------------------- */

struct row {
    char last[CELL_MAX], took[VALUE_TEXT_MAX], next[CELL_MAX], schedule[CELL_MAX];
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "-";
}

static int64_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void show_time(char ret[CELL_MAX], const char *zone, int64_t at_s)
{
    char text[CRON_TIME_BYTES] = "-";

    if (at_s > 0) {
        cron_format_time(text, zone, at_s);
    }
    (void)snprintf(ret, CELL_MAX, "%s", text);
}

/* The latest run: one that goes on, or else the one that ended last. */
static void fill_row(const char **cells, struct row *row, const json_t *line)
{
    const json_t *running = json_object_get(line, "running");
    const json_t *last = json_object_get(line, "last");
    const json_t *run = json_array_get(running, json_array_size(running) - 1);
    const char *zone = text_of(line, "zone");
    int64_t took_ms = number_of(last, "end_ms") - number_of(last, "start_ms");

    run = run ? run : last;
    show_time(row->last, zone, number_of(line, "fire"));
    show_time(row->next, zone, number_of(line, "next"));
    (void)snprintf(row->schedule, sizeof(row->schedule), "%s", text_of(line, "schedule"));
    (void)snprintf(row->took, sizeof(row->took), "-");
    if (last && run == last) {
        (void)value_format_span(SPAN_MS(took_ms), row->took);
    }
    cells[0] = text_of(line, "line");
    cells[1] = row->schedule;
    cells[2] = row->last;
    cells[3] = text_of(line, "state");
    cells[4] = row->took;
    cells[5] = run ? text_of(run, "node") : "-";
    cells[6] = row->next;
}

static void print(const json_t *lines)
{
    static const char *const heads[] = {"LINE", "SCHEDULE", "FIRED", "STATE",
                                        "TOOK", "NODE",     "NEXT",  NULL};
    size_t count = json_array_size(lines), used = 0, index;
    const char **cells = calloc((count + 1) * (COLUMNS + 1) + 1, sizeof(*cells));
    struct row *rows = calloc(count + 1, sizeof(*rows));
    json_t *line;

    if (cells && rows) {
        memcpy(cells, heads, sizeof(heads));
        json_array_foreach(lines, index, line)
        {
            if (!json_is_true(json_object_get(line, "removed"))) {
                fill_row(cells + (used + 1) * (COLUMNS + 1), &rows[used], line);
                used++;
            }
        }
        print_table(stdout, cells);
    }
    free(cells);
    free(rows);
}

int cron_list_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    char prefix[CRON_KEY_MAX];
    struct listing listing = {.prefix = prefix, .lines = json_array()};
    struct baton_error error = {0};
    int code = book_prefix(prefix, options_text(options, "election"))
                   ? BATON_OK
                   : error_set(&error, BATON_EINVAL, "--election: is too long");

    code = code                     ? code
           : settings_data(options) ? ask_member(&listing, options, &error)
                                    : ask_provider(&listing, options, &error);
    if (code == BATON_OK && options_flag(options, "json")) {
        print_json(stdout, listing.lines);
    } else if (code == BATON_OK) {
        print(listing.lines);
    }
    json_decref(listing.lines);
    code = code ? (int)command_fail(invocation, &error) : EXIT_OK;
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal() : code;
}
