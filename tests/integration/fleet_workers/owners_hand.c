/* usage: fleet-owners-hand URL NAME SILENCE_MS
 *
 * A process of a fleet that only owns workers. It prints lines of JSON with "at", in seconds of
 * CLOCK_BOOTTIME: each event of its owners; "detection" with worker and n; "live" for each change
 * in the table of workers. It reads commands, a line each:
 *
 *   put KEY JSON       writes a key of the fleet's state        delete KEY
 *   marks fail|hang    owners cannot write theirs any more; or one write has no answer
 *   line               prints "line" for each election: name, leader, waiting; then "lines": code
 *   close              closes the owners, then all, and ends    (so does the end of the input)
 *
 * A model's URL is fresh each time: it gets ?n= with a number that grows.
 */
#include "base/buffer.h"
#include "base/error.h"
#include "fleet/workers/owners.h"
#include "fleet/workers/table.h"
#include "member/store.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUT_MAX = 1 << 20, PREFIX_ROOM = 8 };

static uv_loop_t loop;
static uv_pipe_t input;
static struct member *member;
static struct fleet_state *state;
static struct worker_table *table;
static struct worker_observer observer;
static struct owners *owners;
static struct buffer lines;
static bool is_closing;
static bool marks_fail, marks_hang;
static provider_put_cb hung; /* NULL: no mark hangs */
static void *hung_userdata;
static span silence;

static void say(const char *event, json_t *fields)
{
    char *text;

    (void)json_object_set_new(fields, "event", json_string(event));
    (void)json_object_set_new(fields, "at", json_real((double)clock_now().ns / 1e9));
    text = json_dumps(fields, JSON_COMPACT);
    (void)printf("%s\n", text);
    (void)fflush(stdout);
    free(text);
    json_decref(fields);
}

static void must(int code, const struct baton_error *error)
{
    if (code != BATON_OK) {
        (void)fprintf(stderr, "owners-hand: %s\n", error->message);
        exit(1);
    }
}

/* ---- What is told ---------------------------------------------------------------------------- */

static void on_detection(void *userdata, const char *worker, json_t *message)
{
    const json_t *data = json_object_get(message, "data");
    json_t *detection = json_object_get(data, "detection");

    say("detection",
        json_pack("{s:s, s:O?}", "worker", worker, "n", json_object_get(detection, "n")));
}

static void on_patch(void *userdata, const char *worker, json_t *message, uint64_t ticket)
{
    json_int_t session = json_integer_value(json_object_get(message, "sessionId"));

    owners_answer_patch(owners, worker, ticket, session, true, "merged");
}

static char *model_url(void *userdata, const struct fleet_object *model)
{
    static unsigned calls;
    char *url = NULL;

    return asprintf(&url, "%s?n=%u", model->model.url, ++calls) > 0 ? url : NULL;
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    say(name, fields);
}

static void on_change(struct worker_observer *self, const struct worker_live *worker,
                      enum worker_change change)
{
    static const char *const names[] = {"online", "offline", "owner", "sync", "report"};

    if (change != WORKER_CHANGED_REPORT) {
        say("live",
            json_pack("{s:s, s:s, s:s, s:b, s:b, s:I, s:I}", "worker", worker->id, "change",
                      names[change], "process", worker->process, "online", (int)worker->is_online,
                      "inSync", (int)worker->is_in_sync, "revision",
                      (json_int_t)worker->synced_revision, "stalls", (json_int_t)worker->stalls));
    }
}

/* Only owners write by this. */
int __real_fleet_state_put_json(struct fleet_state *fleet, const char *key, const json_t *json,
                                uint64_t revision, provider_put_cb done, void *userdata,
                                struct baton_error *reterr);
int __wrap_fleet_state_put_json(struct fleet_state *fleet, const char *key, const json_t *json,
                                uint64_t revision, provider_put_cb done, void *userdata,
                                struct baton_error *reterr);

int __wrap_fleet_state_put_json(struct fleet_state *fleet, const char *key, const json_t *json,
                                uint64_t revision, provider_put_cb done, void *userdata,
                                struct baton_error *reterr)
{
    if (marks_hang && hung == NULL) {
        hung = done;
        hung_userdata = userdata;
        say("hung", json_object());
        return BATON_OK;
    }
    return marks_fail
               ? error_set(reterr, BATON_EUNAVAILABLE, "no")
               : __real_fleet_state_put_json(fleet, key, json, revision, done, userdata, reterr);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_ready(void *userdata)
{
    const struct owners_config config = {.state = state,
                                         .process = userdata,
                                         .silence = silence,
                                         .callbacks = {.on_detection = on_detection,
                                                       .on_patch_session = on_patch,
                                                       .model_url = model_url,
                                                       .on_event = on_event}};
    struct baton_error error;

    must(owners_open(&owners, &config, &error), &error);
    say("ready", json_object());
}

static void on_member_closed(void *userdata)
{
}

static void on_owners_closed(void *userdata)
{
    say("closed", json_object());
    if (hung != NULL) {
        hung(hung_userdata, BATON_ECANCELED, 0, NULL);
    }
    worker_table_close(table);
    fleet_state_close(state);
    member_close(member, on_member_closed, NULL);
}

static void close_all(void)
{
    if (!is_closing) {
        is_closing = true;
        uv_close((uv_handle_t *)&input, NULL);
        if (owners != NULL) {
            owners_close(owners, on_owners_closed, NULL);
        } else {
            on_owners_closed(NULL);
        }
    }
}

/* ---- Commands -------------------------------------------------------------------------------- */

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    char *key = userdata;

    say("put",
        json_pack("{s:s, s:i, s:I}", "key", key, "code", code, "revision", (json_int_t)revision));
    free(key);
}

static void put(const char *key, const char *value)
{
    char *copy = strdup(key);
    char whole[PROVIDER_KEY_MAX];
    size_t bytes = value != NULL ? strlen(value) : 0;
    struct baton_error error;

    (void)snprintf(whole, sizeof(whole), "fleet/%s", key);
    must(store_put(member, whole, value, bytes, PROVIDER_ANY_REVISION, SPAN_S(0), on_put, copy,
                   &error),
         &error); /* NOLINT(clang-analyzer-unix.Malloc): on_put() frees the copy */
}

static void on_elections(void *userdata, int code, const struct provider_election_state *elections,
                         size_t count)
{
    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        say("line", json_pack("{s:s, s:s, s:I}", "name", elections[i].name, "leader",
                              elections[i].leader, "waiting", (json_int_t)elections[i].waiting));
    }
    say("lines", json_pack("{s:i}", "code", code));
}

static void obey(char *line)
{
    struct provider *provider = member_provider(member);
    char *word = strtok_r(line, " ", &line);

    if (word != NULL && strcmp(word, "put") == 0) {
        word = strtok_r(line, " ", &line);
        put(word, line);
    } else if (word != NULL && strcmp(word, "delete") == 0) {
        put(strtok_r(line, " ", &line), NULL);
    } else if (word != NULL && strcmp(word, "marks") == 0) {
        word = strtok_r(line, " ", &line);
        marks_hang = word != NULL && strcmp(word, "hang") == 0;
        marks_fail = !marks_hang;
    } else if (word != NULL && strcmp(word, "line") == 0) {
        (void)provider->ops->elections(provider, on_elections, NULL, NULL);
    } else {
        close_all();
    }
}

static void on_input(uv_stream_t *stream, ssize_t bytes, const uv_buf_t *buf)
{
    char *end;

    if (bytes < 0) {
        close_all();
        free(buf->base);
        return;
    }
    buffer_put(&lines, buf->base, (size_t)bytes);
    free(buf->base);
    while (lines.bytes > 0 && (end = memchr(lines.data, '\n', lines.bytes)) != NULL) {
        size_t line = (size_t)((uint8_t *)end - lines.data);
        *end = '\0';
        obey((char *)lines.data);
        buffer_consume(&lines, line + 1);
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): on_input() frees it */
    *buf = uv_buf_init(malloc(suggested), (unsigned)suggested);
}

int main(int argc, char **argv)
{
    struct provider_config provider = {.loop = &loop, .url = argv[1], .node = argv[2]};
    struct worker_table_config config = {0};
    struct baton_error error = {0};

    if (argc != 4) {
        return 64;
    }
    silence = SPAN_MS(strtol(argv[3], NULL, 10));
    (void)signal(SIGPIPE, SIG_IGN);
    (void)uv_loop_init(&loop);
    buffer_init(&lines, INPUT_MAX);
    must(member_open(&member, &provider, &error), &error);
    must(member_begin(member, &error), &error);
    must(fleet_state_open(&state, member, "fleet", on_ready, argv[2], &error), &error);
    config.member = member;
    must(worker_table_open(&table, &config, &error), &error);
    observer.on_change = on_change;
    worker_table_observe(table, &observer);
    (void)uv_pipe_init(&loop, &input, 0);
    (void)uv_pipe_open(&input, 0);
    (void)uv_read_start((uv_stream_t *)&input, on_alloc, on_input);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    member_free(member);
    buffer_fini(&lines);
    return uv_loop_close(&loop) == 0 ? 0 : 2;
}
