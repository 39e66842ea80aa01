/* `baton status`, `baton members`, `baton watch`: queries to one node. */
#include "base/value.h"
#include "cli/ask.h"
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

static void print_status(const json_t *status)
{
    char provider[PROVIDER_TEXT_MAX];
    char epoch[VALUE_TEXT_MAX];
    char left[VALUE_TEXT_MAX];
    char uptime[VALUE_TEXT_MAX];
    const json_t *leader = json_object_get(status, "leader");
    const json_t *deaths = json_object_get(status, "deaths");
    (void)snprintf(epoch, sizeof(epoch), "%.0f", number_at(status, "epoch"));
    const char *cells[] = {
        "node",
        text_at(status, "node"),
        NULL,
        "election",
        text_at(status, "election"),
        NULL,
        "provider",
        provider_text(status, provider),
        NULL,
        "role",
        text_at(status, "role"),
        NULL,
        "leader",
        text_at(leader, json_object_get(leader, "name") ? "name" : "id"),
        NULL,
        "address",
        text_at(leader, "address"),
        NULL,
        "epoch",
        epoch,
        NULL,
        "lease left",
        lease_text(status, left),
        NULL,
        "cordoned",
        yes_no(status, "cordoned"),
        NULL,
        "up",
        value_format_span((span){(int64_t)(number_at(status, "uptime_s") * 1e9)}, uptime),
        NULL,
        "proved at once",
        text_at(deaths, "at_once"),
        NULL,
        "costs the lease",
        text_at(deaths, "by_lease"),
        NULL,
        NULL};
    print_table(stdout, cells);
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
            (void)snprintf(numbers[2 * index], NUMBERS_MAX, "%.0f", number_at(one, "weight"));
            (void)snprintf(numbers[2 * index + 1], NUMBERS_MAX, "%.0f", number_at(one, "priority"));
            row[0] = text_at(one, "name");
            row[1] = text_at(one, "address");
            row[2] = text_at(one, "kind");
            row[3] = text_at(one, "role");
            row[4] = numbers[2 * index];
            row[5] = numbers[2 * index + 1];
            row[6] = yes_no(one, "alive");
            row[7] = yes_no(one, "cordoned");
        }
        print_table(stdout, cells);
    }
    free(cells);
    free(numbers);
}

static int ask(const struct invocation *invocation, const char *what, json_t **ret_answer)
{
    struct baton_error error = {0};
    json_t *request = json_pack("{s:s}", "do", what);
    int code = ask_node(invocation->options, request, ret_answer, &error);
    json_decref(request);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

int status_main(const struct invocation *invocation)
{
    json_t *answer = NULL;
    int result = ask(invocation, "status", &answer);
    if (result == EXIT_OK) {
        if (options_flag(invocation->options, "json")) {
            print_json(stdout, answer);
        } else {
            print_status(answer);
        }
    }
    json_decref(answer);
    return result;
}

int members_main(const struct invocation *invocation)
{
    json_t *answer = NULL;
    int result = ask(invocation, "members", &answer);
    if (result == EXIT_OK) {
        const json_t *members = json_object_get(answer, "members");
        if (options_flag(invocation->options, "json")) {
            print_json(stdout, members);
        } else {
            print_members(members);
        }
    }
    json_decref(answer);
    return result;
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

int watch_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    char path[4200];
    const struct options *options = invocation->options;
    json_t *request = json_pack("{s:s}", "do", "watch");
    span timeout = options_duration(options, "timeout"); /* 0, the default, means for ever */
    int code = ask_socket_path(options, path, sizeof(path), &error);
    if (!code) {
        code = control_follow(path, request, timeout, print_event, (void *)options, &error);
    }
    if (code == BATON_ETIMEDOUT) {
        error_set(&error, code, "--timeout %s: the time is over", options_text(options, "timeout"));
    }
    json_decref(request);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
