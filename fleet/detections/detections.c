#include "fleet/detections/detections.h"

#include "base/error.h"
#include "fleet/detections/history.h"
#include "fleet/detections/known.h"
#include "fleet/detections/line.h"
#include "member/feed.h"
#include "member/store.h"

#include <stdlib.h>
#include <string.h>

static const char channel[] = "worker:responses";

/* A message is full before it has the largest that a provider takes. */
enum { BATCH_BYTES = 128 * 1024 };

struct detections {
    struct detections_config config;
    struct detections_counters counters;
    struct history history;
    struct known known;
    struct line_writer writer;
    struct buffer batch; /* lines that wait to be published, with "\n" between them */
    size_t batch_lines;
    bool sends_singly; /* a message is one line */
    struct feed *feed;
    uv_prepare_t turn; /* runs at the end of a turn of the loop in which something waits */
    unsigned holds;    /* the handle, and messages under way */
    char process[];
};

static struct member *member_of(const struct detections *detections)
{
    return fleet_state_member(detections->config.state);
}

/* ---- New lines ------------------------------------------------------------------------------- */

/* A line whose key is new, of this process or another. */
static void add(struct detections *detections, const char *line, size_t bytes, bool is_own)
{
    const char *kept = history_add(&detections->history, line, bytes);

    if (kept != NULL && detections->config.on_line != NULL) {
        detections->config.on_line(detections->config.userdata, kept, bytes, is_own);
    }
}

static void hear(struct detections *detections, const char *line, size_t bytes)
{
    uint64_t key;

    if (!line_is_detection(line, bytes)) {
        return; /* a state report */
    }
    if (!line_key(line, bytes, &key)) {
        detections->counters.foreign++;
    } else if (known_add(&detections->known, key)) { /* else it may be our own */
        detections->counters.heard++;
        add(detections, line, bytes, false);
    }
}

static void on_message(void *userdata, const char *name, const void *data, size_t bytes)
{
    const char *line = data, *after = line + bytes;
    (void)name;

    while (line < after) {
        const char *newline = memchr(line, '\n', (size_t)(after - line));
        const char *line_end = newline != NULL ? newline : after;

        hear(userdata, line, (size_t)(line_end - line));
        line = newline != NULL ? newline + 1 : after;
    }
}

/* ---- Publishing ------------------------------------------------------------------------------ */

struct message {
    struct detections *detections;
    size_t lines;
};

static void release(struct detections *detections)
{
    if (--detections->holds > 0) {
        return;
    }
    history_fini(&detections->history);
    known_fini(&detections->known);
    line_writer_fini(&detections->writer);
    buffer_fini(&detections->batch);
    free(detections);
}

static void on_published(void *userdata, int code, const struct baton_error *error)
{
    struct message *message = userdata;
    (void)error; /* the provider has reported it */

    message->detections->counters.unpublished += code != BATON_OK ? message->lines : 0;
    release(message->detections);
    free(message);
}

static void publish(struct detections *detections, const void *data, size_t bytes, size_t lines)
{
    struct message *message = malloc(sizeof(*message));

    if (message == NULL) {
        detections->counters.unpublished += lines;
        return;
    }
    *message = (struct message){detections, lines};
    detections->holds++;
    if (store_publish(member_of(detections), channel, data, bytes, on_published, message, NULL) !=
        BATON_OK) {
        detections->counters.unpublished += lines;
        detections->holds--;
        free(message);
    }
}

static void publish_singly(struct detections *detections)
{
    const char *line = (const char *)detections->batch.data;

    for (size_t left = detections->batch_lines; left > 0; left--) {
        size_t rest = detections->batch.bytes - (size_t)(line - (char *)detections->batch.data);
        const char *newline = memchr(line, '\n', rest);
        size_t bytes = newline != NULL ? (size_t)(newline - line) : rest;

        publish(detections, line, bytes, 1);
        line += bytes + 1;
    }
}

static void publish_batch(struct detections *detections)
{
    (void)uv_prepare_stop(&detections->turn);
    if (detections->sends_singly) {
        publish_singly(detections);
    } else if (detections->batch_lines > 0) {
        publish(detections, detections->batch.data, detections->batch.bytes,
                detections->batch_lines);
    }
    buffer_clear(&detections->batch);
    detections->batch_lines = 0;
}

static void on_turn(uv_prepare_t *turn)
{
    publish_batch(turn->data);
}

static void queue(struct detections *detections, const struct buffer *line)
{
    struct buffer *batch = &detections->batch;

    if (batch->bytes + line->bytes + 1 > BATCH_BYTES) {
        publish_batch(detections);
    }
    if (batch->bytes > 0) {
        buffer_put_u8(batch, '\n');
    }
    buffer_put(batch, line->data, line->bytes);
    if (batch->failed) { /* out of memory: all that waits */
        detections->counters.unpublished += detections->batch_lines + 1;
        buffer_clear(batch);
        detections->batch_lines = 0;
        return;
    }
    detections->batch_lines++;
    (void)uv_prepare_start(&detections->turn, on_turn);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void refuse(struct detections *detections, const char *worker,
                   const struct baton_error *error)
{
    detections->counters.refused++;
    if (detections->config.on_refused != NULL) {
        detections->config.on_refused(detections->config.userdata, worker, error);
    }
}

/* The worker's own, be it null; else the display's. */
static const json_t *session_of(const struct detections *detections, const char *display,
                                const json_t *message)
{
    const json_t *own = json_object_get(message, "sessionId");

    return own != NULL ? own
                       : json_object_get(fleet_state_data(detections->config.state, display, NULL),
                                         "sessionId");
}

/* False with the reason. */
static bool write_line(struct detections *detections, const char *worker, const json_t *message,
                       const char *display, uint64_t *ret_key, struct baton_error *reterr)
{
    const struct line_parts parts = {
        .worker = worker,
        .process = detections->process,
        .subscription = text_of(message, "subscriptionIdentifier"),
        .timestamp = text_of(message, "timestamp"),
        .session = session_of(detections, display, message),
        .data = json_object_get(message, "data"),
    };

    if (fleet_state_object(detections->config.state, FLEET_SUBSCRIPTION, parts.subscription,
                           NULL) == NULL) {
        (void)error_set(reterr, BATON_ENOENT, "detection of \"%.128s\": no such subscription",
                        parts.subscription);
        return false;
    }
    if (!line_write(&detections->writer, &parts, ret_key)) {
        (void)error_set(reterr, BATON_ETOOBIG, "detection of \"%.128s\": more than %d bytes",
                        parts.subscription, LINE_BYTES_MAX);
        return false;
    }
    return true;
}

void detections_take(struct detections *detections, const char *worker, const json_t *message)
{
    const struct detections_config *config = &detections->config;
    const struct buffer *line = &detections->writer.line;
    char display[FLEET_ID_MAX + 1];
    struct baton_error error;
    uint64_t key;

    (void)snprintf(display, sizeof(display), "%s", text_of(message, "subscriptionIdentifier"));
    display[strcspn(display, ";")] = '\0';
    if (!write_line(detections, worker, message, display, &key, &error)) {
        refuse(detections, worker, &error);
        return;
    }
    if (!known_add(&detections->known, key)) {
        detections->counters.duplicates++;
        return;
    }
    detections->counters.accepted++;
    queue(detections, line);
    if (config->on_accepted != NULL) {
        config->on_accepted(config->userdata, display,
                            json_object_get(json_object_get(message, "data"), "detection"));
    }
    add(detections, (const char *)line->data, line->bytes, true);
}

json_t *detections_list(const struct detections *detections, const char *display,
                        const char *camera, size_t limit)
{
    return history_list(&detections->history, display, camera, limit);
}

const struct detections_counters *detections_counters(const struct detections *detections)
{
    return &detections->counters;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_turn_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void discard(struct detections *detections)
{
    uv_close((uv_handle_t *)&detections->turn, on_turn_closed);
}

int detections_open(struct detections **ret, const struct detections_config *config,
                    struct baton_error *reterr)
{
    size_t bytes = strlen(config->process) + 1;
    struct detections *detections = calloc(1, sizeof(*detections) + bytes);
    int code;

    if (detections == NULL || !history_init(&detections->history)) {
        free(detections);
        return error_set(reterr, BATON_ENOMEM, "out of memory for detections");
    }
    detections->config = *config;
    memcpy(detections->process, config->process, bytes);
    detections->config.process = detections->process;
    line_writer_init(&detections->writer);
    buffer_init(&detections->batch, BATCH_BYTES);
    (void)uv_prepare_init(member_loop(member_of(detections)), &detections->turn);
    detections->turn.data = detections;
    detections->holds = 1; /* the handle's */
    detections->sends_singly = strcmp(member_scheme(member_of(detections)), "redis") == 0;
    code = feed_subscribe(&detections->feed, member_of(detections), channel, on_message, detections,
                          reterr);
    if (code != BATON_OK) {
        discard(detections);
        return code;
    }
    *ret = detections;
    return BATON_OK;
}

void detections_close(struct detections *detections)
{
    if (detections == NULL) {
        return;
    }
    feed_stop(detections->feed);
    detections->feed = NULL;
    publish_batch(detections);
    discard(detections);
}
