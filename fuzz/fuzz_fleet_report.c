/* A worker's messages on one connection, a line each. Each that is read goes to the pure core of
 * the connection, in which a second passes from one to the next: it is in sync only with the list
 * that it has sent, and never has more to send than one list, a session and a stage, a question, an
 * alarm. */
#include "fleet/workers/sync.h"

#include <stdlib.h>
#include <string.h>

enum { OUTPUTS_MAX = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void on_display(void *userdata, const char *display, struct session_id *ret_session,
                       enum stage *ret_stage)
{
    (void)userdata;
    expect(strcmp(display, "d") == 0);
    *ret_session = (struct session_id){true, 7};
    *ret_stage = STAGE_WELCOME;
}

static void on_camera(void *userdata, const char *identifier, bool is_online)
{
    (void)userdata;
    (void)is_online;
    expect(identifier_has_display(identifier, "d"));
}

static void send_all(struct sync *sync, instant now)
{
    unsigned outputs = 0;

    while (sync_next(sync, now).type != SYNC_NOTHING) {
        expect(++outputs <= OUTPUTS_MAX);
    }
    expect(instant_before(now, sync_deadline(sync)));
}

static void take(struct sync *sync, const uint8_t *line, size_t bytes, instant now)
{
    json_t *message;

    if (worker_message_parse((const char *)line, bytes, &message, NULL) == BATON_OK) {
        if (json_object_get(message, "cameraConnections") != NULL) {
            struct usage usage = usage_of_report(message);
            expect(usage.cpu >= 0 && usage.cpu <= 100);
            sync_report(sync, message, now);
            expect(!sync_is_in_sync(sync) ||
                   json_array_size(json_object_get(message, "cameraConnections")) == 2);
        }
        json_decref(message);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct sync_calls calls = {on_display, on_camera, NULL};
    const struct subscription list[] = {{.identifier = (char *)"d;c", .model_id = 1},
                                        {.identifier = (char *)"d;e", .model_id = 2}};
    struct sync *sync = sync_new(&calls);
    instant now = {SPAN_S(1).ns};

    if (sync == NULL) {
        return 0;
    }
    expect(sync_set_list(sync, list, 2, 1, false, now) == BATON_OK);
    sync_connected(sync, now);
    while (bytes > 0) {
        const uint8_t *end = memchr(data, '\n', bytes);
        size_t line = end != NULL ? (size_t)(end - data) : bytes;

        send_all(sync, now);
        take(sync, data, line, now);
        now = instant_add(now, SPAN_S(1));
        data += line + (end != NULL);
        bytes -= line + (end != NULL);
    }
    sync_free(sync);
    return 0;
}
