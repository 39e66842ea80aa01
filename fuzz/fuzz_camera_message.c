/* What a taken-over child may send: a message that is accepted is within bounds and encodes to the
 * same meaning again. */
#include "base/invariant.h"
#include "detector/camera/message.h"
#include "detector/camera/ring.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct camera_message message, again;
    struct camera_config config;
    struct ring_layout layout;
    struct buffer buffer;

    (void)config_decode(&config, data, bytes, NULL);
    if (message_decode(&message, data, bytes, NULL) != 0) {
        return 0;
    }
    INVARIANT(message.slot < RING_SLOTS);
    INVARIANT(message.type != MESSAGE_RING || ring_layout(&layout, message.width, message.height));
    buffer_init(&buffer, MESSAGE_BYTES_MAX);
    message_encode(&buffer, &message);
    INVARIANT(!buffer.failed && buffer.bytes <= bytes);
    INVARIANT(message_decode(&again, buffer.data, buffer.bytes, NULL) == 0);
    INVARIANT(again.type == message.type && again.sequence == message.sequence);
    INVARIANT(strcmp(again.text, message.text) == 0);
    buffer_fini(&buffer);
    return 0;
}
