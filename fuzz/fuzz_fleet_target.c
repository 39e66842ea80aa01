/* Targets and headers of strangers, as far as the API takes them apart: the route and its id, the
 * parameters, who may ask, where a client goes on, how often an address asks. */
#include "fleet/http/gate.h"
#include "fleet/http/image_url.h"
#include "fleet/http/rates.h"
#include "fleet/http/ring.h"

#include <stdlib.h>
#include <string.h>

static const struct route table[] = {
    {.method = "GET", .pattern = "/"},
    {.method = "GET", .pattern = "/api/cameras/{id}"},
    {.method = "GET", .pattern = "/api/cameras/{id}/image"},
    {.method = NULL},
};

static void use(const struct web_request *request)
{
    static const char *const hosts[] = {"fleet", NULL};
    const struct gate gates[] = {{.host = "127.0.0.1", .hosts = hosts},
                                 {.host = "0.0.0.0", .read = "token", .change = "other"}};
    char id[ROUTE_ID_MAX], methods[ROUTE_METHODS_MAX], text[16], url[IMAGE_URL_MAX];
    const char *last = web_header(&request->head, "last-event-id"), *reason;
    static struct ring ring;
    static struct rates rates;
    bool has_missed;

    if (route_find(table, request->method, request->target, id, methods) != NULL) {
        (void)image_url(url, "ws://worker", id, web_query(request->target), NULL);
        if (strlen(id) >= ROUTE_ID_MAX) {
            abort();
        }
    }
    if (route_parameter(request->target, "limit", text, sizeof(text)) >= (int)sizeof(text)) {
        abort();
    }
    for (size_t i = 0; i < 2; i++) {
        (void)gate_check(&gates[i], request, RIGHT_CHANGE, &reason);
    }
    ring_init(&ring, 1);
    rates_init(&rates, 1, 1);
    (void)ring_begin(&ring, last, &has_missed);
    (void)rates_take(&rates, request->target, (instant){1});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct web_request request;
    size_t taken;

    web_request_init(&request, 8192, 1024);
    if (web_request_read(&request, data, bytes, &taken) == WEB_READ_WHOLE) {
        use(&request);
    }
    web_request_fini(&request);
    return 0;
}
