/* `baton state`, `baton publish`, `baton subscribe`: state and channels of this host's agent. */
#include "cli/agent_link.h"
#include "cli/command.h"
#include "cli/print.h"
#include "net/local.h"
#include "provider/provider.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VALUE_COLUMNS = 3,
    REVISION_MAX = 24,
    SHOWN_BYTES = 60, /* of a value in a table */
    SHOWN_MAX = 128,
    PATIENCE_S = 10, /* for the reply, of a command that goes on after it */
};

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Puts the argument's or, if there is none or it is "-", standard input's. */
static int put_bytes(json_t *request, const struct invocation *invocation, int argument,
                     struct baton_error *reterr)
{
    const char *given = argument < invocation->argc ? invocation->argv[argument] : "-";
    size_t count = strlen(given);
    char *input;

    if (strcmp(given, "-") != 0) {
        local_put_bytes(request, given, count);
        return BATON_OK;
    }
    input = malloc(PROVIDER_VALUE_MAX + 1);
    if (!input) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    count = fread(input, 1, PROVIDER_VALUE_MAX + 1, stdin);
    if (count <= PROVIDER_VALUE_MAX && !ferror(stdin)) {
        local_put_bytes(request, input, count);
    }
    free(input);
    if (ferror(stdin)) {
        return error_set(reterr, BATON_EIO, "standard input: %s", strerror(errno));
    }
    return count <= PROVIDER_VALUE_MAX
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL, "standard input: has more than %d bytes",
                           PROVIDER_VALUE_MAX);
}

/* As they are: a line of their own only where somebody reads along. */
static void write_bytes(const json_t *message, bool is_line)
{
    struct local_bytes bytes;

    if (local_take_bytes(&bytes, message)) {
        (void)fwrite(bytes.data, 1, bytes.count, stdout);
        if (is_line) {
            (void)putchar('\n');
        }
        free(bytes.own);
    }
}

/* The beginning of a value, on one line of a table. */
static const char *shown(const json_t *value, char ret[SHOWN_MAX])
{
    const char *text = json_string_value(json_object_get(value, "text"));
    const char *base64 = json_string_value(json_object_get(value, "base64"));
    const char *from = text ? text : base64 ? base64 : "";
    size_t bytes = strlen(from);
    bool is_cut = bytes > SHOWN_BYTES;

    while (bytes > 0 && (bytes > SHOWN_BYTES || (is_cut && (from[bytes] & 0xC0) == 0x80))) {
        bytes--; /* between characters */
    }
    (void)snprintf(ret, SHOWN_MAX, "%s%.*s%s", base64 ? "base64:" : "", (int)bytes, from,
                   is_cut ? "..." : "");
    return ret;
}

static void print_line(const json_t *json)
{
    (void)json_dumpf(json, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
    (void)putchar('\n');
}

/* ---- Tables of values ------------------------------------------------------------------------ */

struct value_row {
    char revision[REVISION_MAX], text[SHOWN_MAX];
};

static void fill_row(const char **row, struct value_row *space, const json_t *value)
{
    bool is_deleted = json_is_true(json_object_get(value, "nothing"));
    const char *key = json_string_value(json_object_get(value, "key"));

    (void)snprintf(space->revision, sizeof(space->revision), "%lld",
                   (long long)json_integer_value(json_object_get(value, "revision")));
    row[0] = key ? key : "?";
    row[1] = is_deleted ? "-" : space->revision;
    row[2] = is_deleted ? "deleted" : shown(value, space->text);
}

static void print_values(const json_t *values, bool has_heads)
{
    static const char *const heads[] = {"KEY", "REVISION", "VALUE", NULL};
    size_t count = json_array_size(values), index;
    const char **cells = calloc((count + 1) * (VALUE_COLUMNS + 1) + 1, sizeof(*cells));
    struct value_row *space = calloc(count + 1, sizeof(*space));
    const char **row = cells;
    json_t *value;

    if (cells && space) {
        if (has_heads) {
            memcpy(row, heads, sizeof(heads));
            row += VALUE_COLUMNS + 1;
        }
        json_array_foreach(values, index, value)
        {
            fill_row(row, &space[index], value);
            row += VALUE_COLUMNS + 1;
        }
        print_table(stdout, cells);
    }
    free(cells);
    free(space);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Hands out what `request` begins until `take` returns false, --timeout is over, if it is given, or
 * the agent ends. */
static int follow(const struct invocation *invocation, json_t *request,
                  bool (*take)(const struct options *options, const json_t *event, uint64_t count),
                  struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    bool has_end = options_is_set(options, "timeout");
    instant end =
        has_end ? instant_add(clock_now(), options_duration(options, "timeout")) : INSTANT_NEVER;
    struct agent_link *link = NULL;
    bool goes_on = true;
    int code = agent_link_open(&link, options, SPAN_S(PATIENCE_S), reterr);

    if (code) {
        json_decref(request);
        return code;
    }
    code = agent_link_ask(NULL, link, request, reterr);
    for (uint64_t count = 1; !code && goes_on; count++) {
        json_t *event = NULL;
        code = agent_link_event(&event, link, end, reterr);
        goes_on = !code && take(options, event, count) && fflush(stdout) == 0;
        json_decref(event);
    }
    agent_link_close(link);
    return code == BATON_ETIMEDOUT && has_end
               ? error_set(reterr, code, "--timeout %s: the time is over",
                           options_text(options, "timeout"))
               : code;
}

static bool take_change(const struct options *options, const json_t *event, uint64_t count)
{
    const json_t *values = json_object_get(event, "values");
    const char *why = json_string_value(json_object_get(event, "error"));
    json_t *value;
    size_t index;
    (void)count;

    if (why) {
        (void)fprintf(stderr, "baton state: %s\n", why);
        return false;
    }
    if (!options_flag(options, "json")) {
        print_values(values, false);
        return true;
    }
    json_array_foreach(values, index, value)
    {
        print_line(value);
    }
    return true;
}

static bool take_message(const struct options *options, const json_t *event, uint64_t count)
{
    int64_t most = options_number(options, "count");

    if (options_flag(options, "json")) {
        json_t *message = json_deep_copy(event);
        (void)json_object_del(message, "event");
        print_line(message);
        json_decref(message);
    } else {
        write_bytes(event, true);
    }
    return most == 0 || count < (uint64_t)most;
}

/* ---- baton state ----------------------------------------------------------------------------- */

static int state_get(const struct invocation *invocation, struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    json_t *reply = NULL;
    const json_t *value;
    int code = agent_link_call(
        &reply, options, json_pack("{s:s, s:s}", "do", "get", "key", invocation->argv[1]), reterr);

    if (code == BATON_OK) {
        value = json_array_get(json_object_get(reply, "values"), 0);
        if (options_flag(options, "json")) {
            print_json(stdout, value);
        } else {
            write_bytes(value, isatty(STDOUT_FILENO));
        }
    }
    json_decref(reply);
    return code != BATON_ENOENT
               ? code
               : error_set(reterr, code, "key \"%s\": there is no such key", invocation->argv[1]);
}

static int change(const struct invocation *invocation, bool deletes, struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    json_t *request = json_pack("{s:s, s:s}", "do", "put", "key", invocation->argv[1]);
    span lifetime = options_duration(options, "lifetime");
    json_t *reply = NULL;
    int code = BATON_OK;

    if (request && deletes) {
        (void)json_object_set_new(request, "nothing", json_true());
    } else if (request) {
        code = put_bytes(request, invocation, 2, reterr);
    }
    if (request && options_is_set(options, "revision")) {
        (void)json_object_set_new(request, "revision",
                                  json_integer(options_number(options, "revision")));
    }
    if (request && lifetime.ns > 0) {
        (void)json_object_set_new(request, "lifetime_ms", json_real((double)lifetime.ns / 1e6));
    }
    if (code != BATON_OK) {
        json_decref(request);
        return code;
    }
    code = agent_link_call(&reply, options, request, reterr);
    if (code == BATON_OK && options_flag(options, "json")) {
        json_t *after = json_pack("{s:s, s:O}", "key", invocation->argv[1], "revision",
                                  json_object_get(reply, "revision"));
        print_json(stdout, after);
        json_decref(after);
    }
    json_decref(reply);
    return code;
}

static int state_put(const struct invocation *invocation, struct baton_error *reterr)
{
    return change(invocation, false, reterr);
}

static int state_delete(const struct invocation *invocation, struct baton_error *reterr)
{
    return change(invocation, true, reterr);
}

static const char *prefix_of(const struct invocation *invocation)
{
    return invocation->argc > 1 ? invocation->argv[1] : "";
}

static int state_list(const struct invocation *invocation, struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    json_t *reply = NULL;
    int code = agent_link_call(
        &reply, options, json_pack("{s:s, s:s}", "do", "list", "prefix", prefix_of(invocation)),
        reterr);

    if (code == BATON_OK && options_flag(options, "json")) {
        print_json(stdout, json_object_get(reply, "values"));
    } else if (code == BATON_OK) {
        print_values(json_object_get(reply, "values"), true);
    }
    json_decref(reply);
    return code;
}

static int state_watch(const struct invocation *invocation, struct baton_error *reterr)
{
    return follow(invocation,
                  json_pack("{s:s, s:s}", "do", "watch", "prefix", prefix_of(invocation)),
                  take_change, reterr);
}

static const struct verb {
    const char *name, *arguments;
    int least, most; /* arguments after it */
    int (*run)(const struct invocation *invocation, struct baton_error *reterr);
} verbs[] = {
    {"get", "KEY", 1, 1, state_get},          {"put", "KEY [VALUE]", 1, 2, state_put},
    {"delete", "KEY", 1, 1, state_delete},    {"list", "[PREFIX]", 0, 1, state_list},
    {"watch", "[PREFIX]", 0, 1, state_watch},
};

static int run_verb(const struct invocation *invocation, struct baton_error *reterr)
{
    const char *name = invocation->argv[0];
    int given = invocation->argc - 1;

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verbs[i].name, name) != 0) {
            continue;
        }
        return given >= verbs[i].least && given <= verbs[i].most
                   ? verbs[i].run(invocation, reterr)
                   : error_set(reterr, BATON_EINVAL, "%s takes %s", name, verbs[i].arguments);
    }
    return error_set(reterr, BATON_EINVAL, "'%s': must be get, put, delete, list or watch", name);
}

int state_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    int code = run_verb(invocation, &error);

    return code ? command_fail(invocation, &error) : EXIT_OK;
}

/* ---- Channels -------------------------------------------------------------------------------- */

int publish_main(const struct invocation *invocation)
{
    json_t *request = json_pack("{s:s, s:s}", "do", "publish", "channel", invocation->argv[0]);
    struct baton_error error = {0};
    json_t *reply = NULL;
    int code = request ? put_bytes(request, invocation, 1, &error) : BATON_OK;

    if (code) {
        json_decref(request);
    } else {
        code = agent_link_call(&reply, invocation->options, request, &error);
        json_decref(reply);
    }
    return code ? command_fail(invocation, &error) : EXIT_OK;
}

int subscribe_main(const struct invocation *invocation)
{
    struct baton_error error = {0};
    int code = follow(invocation,
                      json_pack("{s:s, s:s}", "do", "subscribe", "channel", invocation->argv[0]),
                      take_message, &error);

    return code ? command_fail(invocation, &error) : EXIT_OK;
}
