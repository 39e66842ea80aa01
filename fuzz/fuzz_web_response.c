/* The response to a request, in two pieces; to a HEAD if the number of its bytes is odd. */
#include "web/response.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t first = bytes > 0 ? data[0] % bytes : 0, taken;
    struct web_response response;

    web_response_init(&response, bytes % 2 == 1, 512, 64);
    if (web_response_read(&response, data, first, &taken) == WEB_READ_MORE &&
        web_response_read(&response, data + first, bytes - first, &taken) == WEB_READ_WHOLE) {
        (void)web_header(&response.head, "etag");
        (void)web_header_lists(&response.head, "connection", "upgrade");
    }
    web_response_fini(&response);
    return 0;
}
