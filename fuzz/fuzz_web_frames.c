/* Frames of a WebSocket connection, in two pieces, as a server and as a client read them. */
#include "web/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static bool read_all(struct web_frames *frames, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        size_t taken;
        if (web_frames_read(frames, data, bytes, &taken) == WEB_FRAME_REFUSED) {
            return false;
        }
        data += taken;
        bytes -= taken;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t first = bytes > 0 ? data[0] % bytes : 0;
    struct web_frames frames;

    web_frames_init(&frames, bytes % 2 == 0, 1024);
    if (read_all(&frames, data, first)) {
        (void)read_all(&frames, data + first, bytes - first);
    }
    web_frames_fini(&frames);
    return 0;
}
