/* What a taken-over child may send: a message that is accepted is within bounds, and its texts are
 * texts. */
#include "base/invariant.h"
#include "detector/camera/message.h"
#include "detector/camera/ring.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static bool is_text(const char *text, size_t bytes_max)
{
    size_t bytes = strnlen(text, bytes_max);

    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return false;
        }
    }
    return bytes < bytes_max;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct camera_message message = {0};
    struct ring_layout layout;

    memcpy(&message, data, bytes < sizeof(message) ? bytes : sizeof(message));
    if (message_check(&message, bytes < sizeof(message) ? sizeof(message) : bytes, NULL) == 0) {
        INVARIANT(message.type >= MESSAGE_OPENED && message.type <= MESSAGE_END);
        INVARIANT(message.type != MESSAGE_FRAME ||
                  (ring_layout(&layout, message.width, message.height, NULL) == 0 &&
                   message.slot < RING_SLOTS));
        INVARIANT(message.type != MESSAGE_END || message.code <= 0);
        INVARIANT(is_text(message.codec, sizeof(message.codec)));
        INVARIANT(is_text(message.hardware, sizeof(message.hardware)));
        INVARIANT(is_text(message.text, sizeof(message.text)));
    }
    return 0;
}
