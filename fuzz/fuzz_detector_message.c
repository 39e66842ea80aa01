/* A worker between two hostile backends: each line of the input is one message, the lines by turns.
 * Whatever they say, what the worker answers is a valid message of a worker. */
#include "detector/worker.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool on_send(void *userdata, uint64_t backend, const char *text, size_t bytes,
                    uint64_t *ret_end)
{
    json_t *message = NULL;
    (void)userdata;
    (void)backend;
    (void)ret_end;
    assert(worker_message_parse(text, bytes, &message, NULL) == 0);
    json_decref(message);
    return true;
}

static void on_close(void *userdata, uint64_t backend, int code, const char *reason)
{
    (void)userdata;
    (void)code;
    assert(backend != 0 && reason != NULL);
}

static void on_event(void *userdata, const struct worker_event *event)
{
    (void)userdata;
    assert(worker_event_name(event->type) != NULL);
}

static void feed(struct worker *worker, const uint8_t *data, size_t size)
{
    uint64_t turn = 0;

    while (size > 0) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t bytes = end != NULL ? (size_t)(end - data) : size;
        (void)worker_receive(worker, 1 + turn++ % 2, (const char *)data, bytes);
        data += bytes + (end != NULL);
        size -= bytes + (end != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct worker_hooks hooks = {on_send, on_close, on_event, NULL,
                                       sizeof(struct subscription)};
    struct worker worker;

    worker_init(&worker, &hooks, 4);
    worker_connected(&worker, 1);
    worker_connected(&worker, 2);
    feed(&worker, data, size);
    worker_fini(&worker);
    return 0;
}
