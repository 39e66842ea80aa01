/* `baton status`, `baton members`, `baton watch`: queries to one node, or of an election of the
 * agent. */
#include "base/value.h"
#include "cli/ask.h"
#include "cli/by_agent.h"
#include "cli/print.h"
#include "net/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text && *text ? text : "-";
}

static double number_at(const json_t *json, const char *key)
{
    return json_number_value(json_object_get(json, key));
}

static const char *yes_no(const json_t *json, const char *key)
{
    return json_is_true(json_object_get(json, key)) ? "yes" : "no";
}

enum { PROVIDER_TEXT_MAX = 128 };

/* Returns "redis at 127.0.0.1:6379" where there is a server. */
static const char *provider_text(const json_t *status, char ret[PROVIDER_TEXT_MAX])
{
    const char *scheme = text_at(status, "provider");
    const char *server =
        json_string_value(json_object_get(json_object_get(status, scheme), "server"));

    (void)snprintf(ret, PROVIDER_TEXT_MAX, "%s%s%s", scheme, server ? " at " : "",
                   server ? (server[0] ? server : "no server") : "");
    return ret;
}

/* null: the lease of a member that is a quorum by itself has no end. */
static const char *lease_text(const json_t *status, char ret[VALUE_TEXT_MAX])
{
    bool is_endless = json_is_null(json_object_get(status, "lease_left_ms"));
    double left_ns = number_at(status, "lease_left_ms") * 1e6;
    return is_endless ? "no end" : value_format_span((span){(int64_t)left_ns}, ret);
}

enum { ROWS_MAX = 16, ROW_CELLS = 3 };

struct rows {
    const char *cells[ROWS_MAX * ROW_CELLS + 1];
    size_t count;
};

static void add_row(struct rows *rows, const char *name, const char *text)
{
    rows->cells[rows->count++] = name;
    rows->cells[rows->count++] = text;
    rows->cells[rows->count++] = NULL;
}

/* What is absent is not known here, and has no row. */
static void add_text(struct rows *rows, const char *name, const json_t *json, const char *key)
{
    if (json_object_get(json, key)) {
        add_row(rows, name, text_at(json, key));
    }
}

static void add_number(struct rows *rows, const char *name, const json_t *json, const char *key,
                       char space[VALUE_TEXT_MAX])
{
    if (json_object_get(json, key)) {
        (void)snprintf(space, VALUE_TEXT_MAX, "%.0f", number_at(json, key));
        add_row(rows, name, space);
    }
}

static void print_status(const json_t *status)
{
    char provider[PROVIDER_TEXT_MAX];
    char numbers[4][VALUE_TEXT_MAX];
    char left[VALUE_TEXT_MAX];
    char uptime[VALUE_TEXT_MAX];
    const json_t *leader = json_object_get(status, "leader");
    const json_t *deaths = json_object_get(status, "deaths");
    const char *role = json_string_value(json_object_get(status, "role"));
    struct rows rows = {.count = 0};

    add_row(&rows, "node", text_at(status, "node"));
    add_text(&rows, "election", status, "election");
    add_row(&rows, "provider", provider_text(status, provider));
    add_text(&rows, "role", status, "role");
    if (leader) {
        add_row(&rows, "leader", text_at(leader, json_object_get(leader, "name") ? "name" : "id"));
    }
    add_text(&rows, "address", leader, "address");
    add_number(&rows, "epoch", status, "epoch", numbers[0]);
    if (json_object_get(status, "lease_left_ms") && (!role || strcmp(role, "leader") == 0)) {
        add_row(&rows, "lease left", lease_text(status, left));
    }
    add_number(&rows, "waiting", status, "waiting", numbers[1]);
    add_number(&rows, "clients", status, "clients", numbers[2]);
    add_number(&rows, "processes", status, "processes", numbers[3]);
    if (json_object_get(status, "cordoned")) {
        add_row(&rows, "cordoned", yes_no(status, "cordoned"));
    }
    if (json_object_get(status, "uptime_s")) {
        span up = {(int64_t)(number_at(status, "uptime_s") * 1e9)};
        add_row(&rows, "up", value_format_span(up, uptime));
    }
    add_text(&rows, "proved at once", deaths, "at_once");
    add_text(&rows, "costs the lease", deaths, "by_lease");
    print_table(stdout, rows.cells);
}

enum { MEMBER_COLUMNS = 8, NUMBERS_MAX = 24 };

static void print_members(const json_t *members)
{
    size_t count = json_array_size(members);
    const char **cells = calloc((count + 1) * (MEMBER_COLUMNS + 1) + 1, sizeof(*cells));
    char(*numbers)[NUMBERS_MAX] = calloc(count * 2 + 1, sizeof(*numbers));
    static const char *const heads[] = {"NODE",     "ADDRESS", "KIND",     "ROLE", "WEIGHT",
                                        "PRIORITY", "ALIVE",   "CORDONED", NULL};
    size_t index;
    json_t *one;
    if (cells && numbers) {
        memcpy(cells, heads, sizeof(heads));
        json_array_foreach(members, index, one)
        {
            const char **row = cells + (index + 1) * (MEMBER_COLUMNS + 1);
            bool has_weight = json_object_get(one, "weight") != NULL; /* a process has none */
            (void)snprintf(numbers[2 * index], NUMBERS_MAX, "%.0f", number_at(one, "weight"));
            (void)snprintf(numbers[2 * index + 1], NUMBERS_MAX, "%.0f", number_at(one, "priority"));
            row[0] = text_at(one, "name");
            row[1] = text_at(one, "address");
            row[2] = text_at(one, "kind");
            row[3] = text_at(one, "role");
            row[4] = has_weight ? numbers[2 * index] : "-";
            row[5] = numbers[2 * index + 1];
            row[6] = yes_no(one, "alive");
            row[7] = yes_no(one, "cordoned");
        }
        print_table(stdout, cells);
    }
    free(cells);
    free(numbers);
}

static int ask_by_node(json_t **ret, const struct options *options, const char *what,
                       struct baton_error *reterr)
{
    json_t *request = json_pack("{s:s}", "do", what);
    int code = ask_node(options, request, ret, reterr);
    json_decref(request);
    return code;
}

int status_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct baton_error error = {0};
    json_t *answer = NULL;
    int code = by_agent(options) ? by_agent_status(&answer, options, &error)
                                 : ask_by_node(&answer, options, "status", &error);
    if (code) {
        return command_fail(invocation, &error);
    }
    if (options_flag(options, "json")) {
        print_json(stdout, answer);
    } else {
        print_status(answer);
    }
    json_decref(answer);
    return EXIT_OK;
}

int members_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct baton_error error = {0};
    json_t *answer = NULL;
    int code = by_agent(options) ? by_agent_members(&answer, options, &error)
                                 : ask_by_node(&answer, options, "members", &error);
    if (code) {
        return command_fail(invocation, &error);
    }
    if (options_flag(options, "json")) {
        print_json(stdout, json_object_get(answer, "members"));
    } else {
        print_members(json_object_get(answer, "members"));
    }
    json_decref(answer);
    return EXIT_OK;
}

static bool print_event(void *userdata, const json_t *line)
{
    const struct options *options = userdata;
    if (options_flag(options, "json")) {
        (void)json_dumpf(line, stdout, JSON_COMPACT);
        (void)putchar('\n');
    } else {
        char epoch[VALUE_TEXT_MAX];
        (void)snprintf(epoch, sizeof(epoch), "%.0f", number_at(line, "epoch"));
        const char *cells[] = {text_at(line, "event"),
                               "member",
                               text_at(line, "member"),
                               "epoch",
                               epoch,
                               text_at(line, "loss"),
                               text_at(line, "text"),
                               NULL,
                               NULL};
        print_table(stdout, cells);
    }
    return fflush(stdout) == 0; /* false: the reader of the pipe has ended */
}

static int watch_node(const struct options *options, struct baton_error *reterr)
{
    char path[4200];
    json_t *request = json_pack("{s:s}", "do", "watch");
    span timeout = options_duration(options, "timeout"); /* 0, the default, means for ever */
    int code = ask_socket_path(options, path, sizeof(path), reterr);
    if (!code) {
        code = control_follow(path, request, timeout, print_event, (void *)options, reterr);
    }
    json_decref(request);
    return code;
}

int watch_main(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct baton_error error = {0};
    int code = by_agent(options) ? by_agent_watch(options, print_event, (void *)options, &error)
                                 : watch_node(options, &error);
    if (code == BATON_ETIMEDOUT) {
        error_set(&error, code, "--timeout %s: the time is over", options_text(options, "timeout"));
    }
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
