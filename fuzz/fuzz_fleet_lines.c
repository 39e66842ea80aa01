/* What another process, or a foreign program, publishes as detections: one a line. Whatever it is,
 * the history can be listed as JSON. */
#include "fleet/detections/history.h"
#include "fleet/detections/line.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void take(struct history *history, const char *line, size_t bytes)
{
    uint64_t key;

    if (line_key(line, bytes, &key) && history_add(history, line, bytes) == NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct history history;
    json_t *list;

    if (!history_init(&history)) {
        return 0;
    }
    while (bytes > 0) {
        const uint8_t *end = memchr(data, '\n', bytes);
        size_t line = end != NULL ? (size_t)(end - data) : bytes;

        take(&history, (const char *)data, line);
        data += line + (end != NULL);
        bytes -= line + (end != NULL);
    }
    for (int i = 0; i < 4; i++) {
        list = history_list(&history, i & 1 ? "d" : NULL, i & 2 ? "c" : NULL, 10);
        if (list == NULL) {
            abort();
        }
        json_decref(list);
    }
    history_fini(&history);
    return 0;
}
