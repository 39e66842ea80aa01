/* `baton work submit`: one command, or a file of them; with --wait until they have ended. */
#include "cli/work.h"

#include "cli/print.h"
#include "pool/submit.h"
#include "pool/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 32768 };

/* ---- Items ----------------------------------------------------------------------------------- */

static json_t *variables(const struct options *options, struct baton_error *reterr)
{
    json_t *object = json_object();

    for (size_t i = 0; i < options_count(options, "env"); i++) {
        const char *given = options_item(options, "env", i);
        const char *equals = strchr(given, '=');
        char name[128];

        if (!equals || equals == given || (size_t)(equals - given) >= sizeof(name)) {
            (void)error_set(reterr, BATON_EINVAL, "--env %s: must be NAME=VALUE", given);
            json_decref(object);
            return NULL;
        }
        (void)snprintf(name, sizeof(name), "%.*s", (int)(equals - given), given);
        (void)json_object_set_new(object, name, json_string(equals + 1));
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
    text = json_dumps(body, JSON_COMPACT);
    set_text(item, "body", text);
    set_text(item, "kind", options_flag(options, "service") ? "service" : "job");
    set_number(item, "priority", options_number(options, "priority"));
    set_number(item, "weight", options_number(options, "weight"));
    set_number(item, "retries", options_number(options, "retries"));
    set_number(item, "gpus", options_number(options, "gpus"));
    set_number(item, "memory_mib", options_number(options, "memory-mib"));
    set_number(item, "backoff_ms", options_duration(options, "backoff").ns / 1000000);
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

/* Each line that is not empty or a comment is a command for the shell. */
static json_t *items_of_file(const struct options *options, const json_t *env,
                             struct baton_error *reterr)
{
    const char *name = options_text(options, "file");
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    json_t *items = json_array();
    char *line = malloc(LINE_MAX_BYTES);
    int number = 0;

    if (!file || !line) {
        (void)error_set(reterr, BATON_EINVAL, "--file %s: %s", name, strerror(errno));
        json_decref(items);
        items = NULL;
    }
    while (items && fgets(line, LINE_MAX_BYTES, file)) {
        size_t bytes = strcspn(line, "\n");
        json_t *text;

        number++;
        if (line[bytes] != '\n' && !feof(file)) {
            (void)error_set(reterr, BATON_EINVAL, "--file %s: line %d is longer than %d bytes",
                            name, number, LINE_MAX_BYTES - 2);
            json_decref(items);
            items = NULL;
            break;
        }
        line[bytes] = '\0';
        if (line[strspn(line, " \t")] == '\0' || line[strspn(line, " \t")] == '#') {
            continue;
        }
        text = json_string(line);
        if (!text) {
            (void)error_set(reterr, BATON_EINVAL, "--file %s: line %d is not UTF-8", name, number);
            json_decref(items);
            items = NULL;
            break;
        }
        (void)json_array_append_new(
            items, item_of(options, json_pack("[s, s, o]", "/bin/sh", "-c", text), env));
    }
    free(line);
    if (file && file != stdin) {
        (void)fclose(file);
    }
    return items;
}

static json_t *items_of(const struct invocation *invocation, struct baton_error *reterr)
{
    bool has_file = options_text(invocation->options, "file") != NULL;
    json_t *env = variables(invocation->options, reterr);
    json_t *items = NULL;

    if (env && has_file == (invocation->argc > 1)) {
        (void)error_set(reterr, BATON_EINVAL, "submit takes CMD, or --file FILE");
    } else if (env && has_file) {
        items = items_of_file(invocation->options, env, reterr);
    } else if (env) {
        items = items_of_command(invocation, env);
    }
    if (items && json_array_size(items) == 0) {
        (void)error_set(reterr, BATON_EINVAL, "--file %s: has no command",
                        options_text(invocation->options, "file"));
        json_decref(items);
        items = NULL;
    }
    json_decref(env);
    return items;
}

/* ---- The end --------------------------------------------------------------------------------- */

struct bag {
    struct work_link *link;
    struct pool_wait *wait;
    bool is_json, shows_output;
    char **ids;
    size_t count, ended, failed;
    int exit_code; /* of the last that failed */
    instant began;
};

static void show_progress(const struct bag *bag)
{
    double share = (double)bag->ended / (double)bag->count;
    double seconds = (double)instant_since(clock_now(), bag->began).ns / 1e9;
    double rate = seconds > 0 ? (double)bag->ended / seconds : 0;
    char text[128];

    (void)snprintf(text, sizeof(text), "%zu of %zu, %.1f a second, %.0f s left", bag->ended,
                   bag->count, rate, rate > 0 ? (double)(bag->count - bag->ended) / rate : 0);
    print_progress(stderr, bag->ended < bag->count ? text : NULL, share);
}

static void on_end(void *userdata, const struct pool_end *end)
{
    struct bag *bag = userdata;
    bool is_completed = end->state == WORK_COMPLETED;

    bag->ended++;
    if (!is_completed) {
        bag->failed++;
        bag->exit_code = end->result && end->result->code > 0 ? end->result->code : 1;
    }
    if (bag->is_json) {
        json_t *line = json_pack("{s:s, s:s}", "id", end->id, "state", work_state_name(end->state));

        if (end->result) {
            (void)json_object_set_new(line, "code", json_integer(end->result->code));
        }
        print_json(stdout, line);
        json_decref(line);
    } else if (bag->shows_output && end->result) {
        (void)fwrite(end->result->output, 1, end->result->output_bytes, stdout);
    } else if (!is_completed) {
        printf("%s %s\n", end->id, work_state_name(end->state));
    }
    (void)fflush(stdout);
    show_progress(bag);
    if (bag->ended == bag->count) {
        work_link_done(bag->link, BATON_OK, NULL);
    }
}

static int await(const struct invocation *invocation, struct bag *bag)
{
    struct baton_error error = {0};
    int code;

    bag->began = clock_now();
    bag->shows_output = bag->count == 1;
    code = pool_wait_begin(&bag->wait, bag->link->member, bag->link->pool,
                           (const char *const *)bag->ids, bag->count, on_end, bag, &error);
    code = work_link_wait(bag->link, code,
                          options_is_set(invocation->options, "timeout")
                              ? options_duration(invocation->options, "timeout")
                              : SPAN_NS(0),
                          &error);
    print_progress(stderr, NULL, 0);
    pool_wait_stop(bag->wait);
    return code          ? command_fail(invocation, &error)
           : bag->failed ? (bag->count == 1 ? bag->exit_code : EXIT_REFUSED)
                         : EXIT_OK;
}

/* ---- The submission -------------------------------------------------------------------------- */

static void on_submitted(void *userdata, int code, const struct pool_submission *what,
                         const struct baton_error *error)
{
    struct bag *bag = userdata;

    bag->ids = what ? calloc(what->count + 1, sizeof(*bag->ids)) : NULL;
    for (size_t i = 0; bag->ids && i < what->count; i++) {
        bag->ids[bag->count++] = strdup(what->ids[i]);
    }
    work_link_done(bag->link, code, error);
}

static void print_ids(const struct bag *bag, bool is_json)
{
    json_t *ids = json_array();

    for (size_t i = 0; i < bag->count; i++) {
        if (is_json) {
            (void)json_array_append_new(ids, json_string(bag->ids[i]));
        } else {
            (void)puts(bag->ids[i]);
        }
    }
    if (is_json) {
        print_json(stdout, ids);
    }
    json_decref(ids);
}

int work_submit(const struct invocation *invocation, struct work_link *link)
{
    struct baton_error error = {0};
    struct bag bag = {.link = link, .is_json = options_flag(invocation->options, "json")};
    json_t *items = items_of(invocation, &error);
    int code = items ? BATON_OK : BATON_EINVAL;
    int result = EXIT_OK;

    if (items) {
        code = pool_submit(link->member, link->pool, options_text(invocation->options, "name"),
                           items, on_submitted, &bag, &error);
        code = work_link_wait(link, code, options_duration(invocation->options, "timeout"), &error);
    }
    if (code) {
        result = command_fail(invocation, &error);
    } else if (options_flag(invocation->options, "wait")) {
        result = await(invocation, &bag);
    } else {
        print_ids(&bag, bag.is_json);
    }
    for (size_t i = 0; i < bag.count; i++) {
        free(bag.ids[i]);
    }
    free((void *)bag.ids);
    json_decref(items);
    return result;
}
