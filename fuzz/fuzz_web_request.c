/* Requests of an HTTP connection, in two pieces; what was read is looked at as a server does. */
#include "web/request.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void look(const struct web_request *request)
{
    char path[WEB_PATH_MAX];

    (void)web_path(request->target, path);
    (void)web_query(request->target);
    (void)web_header(&request->head, "host");
    (void)web_header_lists(&request->head, "connection", "upgrade");
}

static bool read_all(struct web_request *request, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        size_t taken;
        enum web_read read = web_request_read(request, data, bytes, &taken);
        if (read == WEB_READ_REFUSED) {
            return false;
        }
        if (read == WEB_READ_WHOLE) {
            look(request);
            web_request_next(request);
        }
        data += taken;
        bytes -= taken;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t first = bytes > 0 ? data[0] % bytes : 0;
    struct web_request request;

    web_request_init(&request, 512, bytes % 2 == 0 ? 64 : 0);
    if (read_all(&request, data, first)) {
        (void)read_all(&request, data + first, bytes - first);
    }
    web_request_fini(&request);
    return 0;
}
