#include "fleet/detections/history.h"

#include "base/json_load.h"
#include "fleet/detections/line.h"
#include "protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

bool history_init(struct history *history)
{
    *history = (struct history){.ring = calloc(HISTORY_LINES_MAX, sizeof(*history->ring))};
    return history->ring != NULL;
}

static void drop_first(struct history *history)
{
    struct history_line *line = &history->ring[history->first];

    history->bytes -= line->bytes;
    free(line->text);
    *line = (struct history_line){0};
    history->first = (history->first + 1) % HISTORY_LINES_MAX;
    history->count--;
}

void history_fini(struct history *history)
{
    while (history->count > 0) {
        drop_first(history);
    }
    free(history->ring);
    *history = (struct history){0};
}

const char *history_add(struct history *history, const char *line, size_t bytes)
{
    char *text = malloc(bytes + 1);
    struct history_line *added;

    if (text == NULL) {
        return NULL;
    }
    memcpy(text, line, bytes);
    text[bytes] = '\0';
    while (history->count == HISTORY_LINES_MAX ||
           (history->count > 0 && history->bytes + bytes > HISTORY_BYTES_MAX)) {
        drop_first(history);
    }
    added = &history->ring[(history->first + history->count) % HISTORY_LINES_MAX];
    *added = (struct history_line){text, bytes};
    history->count++;
    history->bytes += bytes;
    return text;
}

/* ---- Listing --------------------------------------------------------------------------------- */

static bool is_of(const json_t *detection, const char *display, const char *camera)
{
    const char *id = json_string_value(json_object_get(detection, "subscriptionIdentifier"));
    const char *semicolon = id != NULL ? strchr(id, ';') : NULL;

    return semicolon != NULL && (display == NULL || identifier_has_display(id, display)) &&
           (camera == NULL || strcmp(semicolon + 1, camera) == 0);
}

/* What a line of this display and camera has in it, so that the others need not be read. */
static bool write_mark(struct buffer *mark, const char *display, const char *camera)
{
    if (display != NULL) {
        buffer_put_text(mark, "\"subscriptionIdentifier\":\"");
        line_put_text(mark, display);
    }
    if (display != NULL || camera != NULL) {
        buffer_put_u8(mark, ';');
    }
    if (camera != NULL) {
        line_put_text(mark, camera);
        buffer_put_u8(mark, '"');
    }
    return !mark->failed;
}

/* False: out of memory. */
static bool add_if_it_is(json_t *list, const struct history_line *line, const char *display,
                         const char *camera)
{
    json_t *detection = json_load_bytes(line->text, line->bytes, JSON_REJECT_DUPLICATES, NULL);
    bool is_done = true;

    if (is_of(detection, display, camera)) {
        is_done = json_array_append(list, detection) == 0;
    }
    json_decref(detection);
    return is_done;
}

json_t *history_list(const struct history *history, const char *display, const char *camera,
                     size_t limit)
{
    struct buffer mark;
    json_t *list = json_array();
    bool is_done;

    buffer_init(&mark, (size_t)16 * PROTOCOL_IDENTIFIER_MAX);
    is_done = list != NULL && write_mark(&mark, display, camera);
    for (size_t i = history->count; is_done && i > 0 && json_array_size(list) < limit; i--) {
        const struct history_line *line =
            &history->ring[(history->first + i - 1) % HISTORY_LINES_MAX];

        if (mark.bytes == 0 || memmem(line->text, line->bytes, mark.data, mark.bytes) != NULL) {
            is_done = add_if_it_is(list, line, display, camera);
        }
    }
    buffer_fini(&mark);
    if (!is_done) {
        json_decref(list);
        return NULL;
    }
    return list;
}
