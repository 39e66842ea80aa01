/* What a WebSocket client sends, in pieces whose size is the first byte. */
#include "detector/frame_heads.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct frame_heads whole = {0}, parts = {0};
    size_t piece = bytes > 0 && data[0] > 0 ? data[0] : 1;

    frame_heads_read(&whole, data, bytes);
    for (size_t at = 0; at < bytes; at += piece) {
        frame_heads_read(&parts, data + at, bytes - at < piece ? bytes - at : piece);
    }
    if (parts.control_bytes != whole.control_bytes || parts.payload != whole.payload ||
        parts.fault != whole.fault || whole.control_bytes > bytes ||
        whole.head_bytes >= FRAME_HEAD_MAX) {
        abort();
    }
    return 0;
}
