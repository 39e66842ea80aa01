/* Whatever a peer sends: taken as a frame, or refused; and what is taken can be written again. */
#include "provider/raft/frame.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct frame_scratch scratch;
    struct frame frame;
    struct buffer buffer;
    uint32_t cluster = 0;
    int used;

    if (bytes >= 10) { /* nobody guesses the cluster: take the one that the bytes name */
        struct reader reader = reader_of(data + 6, 4);
        cluster = reader_u32(&reader);
    }
    used = frame_take(&frame, &scratch, cluster, data, bytes);
    if (used > 0 && frame.type == FRAME_MESSAGE) {
        buffer_init(&buffer, FRAME_BYTES_MAX + 64);
        frame_put_message(&buffer, cluster, &frame.message);
        if (buffer.failed || buffer.bytes != (size_t)used) {
            abort();
        }
        buffer_fini(&buffer);
    }
    return 0;
}
