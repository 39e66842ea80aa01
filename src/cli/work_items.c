/* The items that `baton work submit` is given: one command, or a file of them. */
#include "cli/work.h"

#include "base/json_text.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 32768 };

/* An item is JSON, whose texts are UTF-8. */
static bool is_text(const char *given)
{
    json_t *text = json_string(given);

    json_decref(text);
    return text != NULL;
}

static int refuse_text(const char *what, struct baton_error *reterr)
{
    return error_set(reterr, BATON_EINVAL,
                     "%s: is not UTF-8; let a script have these bytes, and submit the script",
                     what);
}

static int check_texts(const struct invocation *invocation, struct baton_error *reterr)
{
    static const char *const texts[] = {"dir", "id", "name", "together"};
    static const char *const lists[] = {"env", "needs"};
    const struct options *options = invocation->options;
    char what[32];

    for (int i = 1; i < invocation->argc; i++) {
        (void)snprintf(what, sizeof(what), "argument %d", i);
        if (!is_text(invocation->argv[i])) {
            return refuse_text(what, reterr);
        }
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const char *given = options_text(options, texts[i]);

        (void)snprintf(what, sizeof(what), "--%s", texts[i]);
        if (given && !is_text(given)) {
            return refuse_text(what, reterr);
        }
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        (void)snprintf(what, sizeof(what), "--%s", lists[i]);
        for (size_t at = 0; at < options_count(options, lists[i]); at++) {
            if (!is_text(options_item(options, lists[i], at))) {
                return refuse_text(what, reterr);
            }
        }
    }
    return BATON_OK;
}

/* What is given agrees with itself. */
static int check(const struct invocation *invocation, struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    bool has_file = options_text(options, "file") != NULL;

    if (has_file == (invocation->argc > 1)) {
        return error_set(reterr, BATON_EINVAL, "submit takes CMD, or --file FILE");
    }
    if (has_file && options_text(options, "id")) {
        return error_set(reterr, BATON_EINVAL,
                         "--id %s: is of one CMD; the items of a file get their ids from --name",
                         options_text(options, "id"));
    }
    if (options_flag(options, "service") && options_flag(options, "wait")) {
        return error_set(reterr, BATON_EINVAL, "--wait: a service does not end; leave one out");
    }
    return check_texts(invocation, reterr);
}

static json_t *variables(const struct options *options, struct baton_error *reterr)
{
    json_t *object = json_object();

    for (size_t i = 0; i < options_count(options, "env"); i++) {
        const char *given = options_item(options, "env", i);
        const char *equals = strchr(given, '=');
        char *name = equals && equals > given ? strndup(given, (size_t)(equals - given)) : NULL;

        if (!name) {
            (void)error_set(reterr, BATON_EINVAL, "--env %s: must be NAME=VALUE", given);
            json_decref(object);
            return NULL;
        }
        (void)json_object_set_new(object, name, json_string(equals + 1));
        free(name);
    }
    return object;
}

static void set_number(json_t *item, const char *key, int64_t value)
{
    if (value != 0) {
        (void)json_object_set_new(item, key, json_integer(value));
    }
}

static void set_text(json_t *item, const char *key, const char *value)
{
    if (value) {
        (void)json_object_set_new(item, key, json_string(value));
    }
}

static void set_needs(json_t *item, const struct options *options)
{
    json_t *needs = json_array();

    for (size_t i = 0; i < options_count(options, "needs"); i++) {
        (void)json_array_append_new(needs, json_string(options_item(options, "needs", i)));
    }
    if (json_array_size(needs) > 0) {
        (void)json_object_set(item, "needs", needs);
    }
    json_decref(needs);
}

/* An item that runs this command; takes the reference to argv. */
static json_t *item_of(const struct options *options, json_t *argv, const json_t *env)
{
    json_t *body = json_pack("{s:o}", "argv", argv);
    json_t *item = json_object();
    char *text;

    set_text(body, "dir", options_text(options, "dir"));
    if (json_object_size(env) > 0) {
        (void)json_object_set_new(body, "env", json_deep_copy(env));
    }
    text = json_text(body, JSON_COMPACT);
    set_text(item, "body", text);
    set_text(item, "kind", options_flag(options, "service") ? "service" : "job");
    set_number(item, "priority", options_number(options, "priority"));
    set_number(item, "weight", options_number(options, "weight"));
    set_number(item, "retries", options_number(options, "retries"));
    set_number(item, "gpus", options_number(options, "gpus"));
    set_number(item, "memory_mib", options_number(options, "memory-mib"));
    (void)json_object_set_new(item, "backoff_ms", /* 0 is none, and not the default */
                              json_integer(options_duration(options, "backoff").ns / 1000000));
    set_number(item, "timeout_ms", options_duration(options, "time-limit").ns / 1000000);
    set_text(item, "together", options_text(options, "together"));
    set_needs(item, options);
    free(text);
    json_decref(body);
    return item;
}

static json_t *items_of_command(const struct invocation *invocation, const json_t *env)
{
    json_t *argv = json_array();
    json_t *item;

    for (int i = 1; i < invocation->argc; i++) {
        (void)json_array_append_new(argv, json_string(invocation->argv[i]));
    }
    item = item_of(invocation->options, argv, env);
    set_text(item, "id", options_text(invocation->options, "id"));
    return json_pack("[o]", item);
}

/* A command for the shell; an empty line and a comment are none. A line of another system may end
 * with a carriage return. */
static int add_line(json_t *items, const struct options *options, const json_t *env, char *line,
                    size_t bytes, struct baton_error *reterr)
{
    json_t *text;

    while (bytes > 0 && (line[bytes - 1] == '\n' || line[bytes - 1] == '\r')) {
        line[--bytes] = '\0';
    }
    if (line[strspn(line, " \t")] == '#' || strspn(line, " \t") == bytes) {
        return BATON_OK;
    }
    if (strlen(line) != bytes) {
        return error_set(reterr, BATON_EINVAL, "has a NUL byte");
    }
    if (bytes > LINE_MAX_BYTES) {
        return error_set(reterr, BATON_EINVAL, "has %zu bytes; must have at most %d", bytes,
                         LINE_MAX_BYTES);
    }
    if (!(text = json_string(line))) {
        return error_set(reterr, BATON_EINVAL, "is not UTF-8");
    }
    (void)json_array_append_new(
        items, item_of(options, json_pack("[s, s, o]", "/bin/sh", "-c", text), env));
    return BATON_OK;
}

static int read_lines(json_t *items, FILE *file, const struct options *options, const json_t *env,
                      struct baton_error *reterr)
{
    const char *name = options_text(options, "file");
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t bytes;
    int code = BATON_OK;

    while (code == BATON_OK && (bytes = getline(&line, &room, file)) >= 0) {
        size_t mark = number++ == 0 ? text_mark_bytes(line, (size_t)bytes) : 0;

        code = add_line(items, options, env, line + mark, (size_t)bytes - mark, reterr);
    }
    free(line);
    if (code != BATON_OK) {
        return error_wrap(reterr, "--file %s: line %zu", name, number);
    }
    if (ferror(file)) {
        return error_set(reterr, BATON_EINVAL, "--file %s: %s", name, strerror(errno));
    }
    return json_array_size(items) > 0
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL, "--file %s: has no command", name);
}

static json_t *items_of_file(const struct options *options, const json_t *env,
                             struct baton_error *reterr)
{
    const char *name = options_text(options, "file");
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    json_t *items = file ? json_array() : NULL;

    if (!file) {
        (void)error_set(reterr, BATON_EINVAL, "--file %s: %s", name, strerror(errno));
    } else if (read_lines(items, file, options, env, reterr) != BATON_OK) {
        json_decref(items);
        items = NULL;
    }
    if (file && file != stdin) {
        (void)fclose(file);
    }
    return items;
}

json_t *work_items(const struct invocation *invocation, struct baton_error *reterr)
{
    json_t *env =
        check(invocation, reterr) == BATON_OK ? variables(invocation->options, reterr) : NULL;
    json_t *items = NULL;

    if (env && options_text(invocation->options, "file")) {
        items = items_of_file(invocation->options, env, reterr);
    } else if (env) {
        items = items_of_command(invocation, env);
    }
    json_decref(env);
    return items;
}
