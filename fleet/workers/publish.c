#include "fleet/workers/publish.h"

#include "base/json_text.h"
#include "member/store.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 256 << 10, LINE_MAX_BYTES = PROVIDER_VALUE_MAX - 1 };

/* A channel promises nothing; who reads it hears the next report. */
static void on_published(void *userdata, int code, const struct baton_error *error)
{
    (void)userdata;
    (void)code;
    (void)error;
}

static void flush(struct publisher *publisher)
{
    struct buffer *lines = &publisher->lines;

    (void)uv_timer_stop(&publisher->timer);
    if (lines->bytes > 0) {
        (void)store_publish(publisher->member, publisher->channel, lines->data, lines->bytes,
                            on_published, NULL, NULL);
    }
    buffer_clear(lines);
}

static void on_timer(uv_timer_t *timer)
{
    flush(timer->data);
}

void publisher_init(struct publisher *publisher, struct member *member, const char *channel)
{
    publisher->member = member;
    publisher->channel = channel;
    publisher->is_single = strcmp(member_scheme(member), "redis") == 0;
    buffer_init(&publisher->lines, PROVIDER_VALUE_MAX);
    (void)uv_timer_init(member_loop(member), &publisher->timer); /* cannot fail */
    publisher->timer.data = publisher;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct publisher *publisher = timer->data;

    publisher->closed(publisher->userdata);
}

void publisher_close(struct publisher *publisher, void (*closed)(void *userdata), void *userdata)
{
    flush(publisher);
    buffer_fini(&publisher->lines);
    publisher->closed = closed;
    publisher->userdata = userdata;
    uv_close((uv_handle_t *)&publisher->timer, on_timer_closed);
}

bool publisher_put(struct publisher *publisher, json_t *line)
{
    struct buffer *lines = &publisher->lines;
    char *text = line != NULL ? json_text(line, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    size_t bytes = text != NULL ? strlen(text) : 0;
    bool fits = bytes > 0 && bytes < LINE_MAX_BYTES;

    json_decref(line);
    if (fits) {
        if (lines->bytes + bytes >= MESSAGE_BYTES) {
            flush(publisher);
        }
        if (lines->bytes > 0) {
            buffer_put_u8(lines, '\n');
        }
        buffer_put(lines, text, bytes);
        if (publisher->is_single) {
            flush(publisher);
        } else if (!uv_is_active((uv_handle_t *)&publisher->timer)) {
            (void)uv_timer_start(&publisher->timer, on_timer, 0, 0);
        }
    }
    free(text);
    return fits;
}
