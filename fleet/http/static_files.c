/* The page, and the description of the API: files that are part of the program. */
#include "fleet/http/handlers.h"
#include "fleet/http/openapi.h"
#include "fleet/page/page.h"

#include <stdio.h>
#include <string.h>

enum { HEADERS_ROOM = 512, PATH_ROOM = ROUTE_ID_MAX + 8 };

/* Scripts, styles and requests of our own only, and no other page around it. */
#define POLICY                                                                                     \
    "content-security-policy: default-src 'self'; img-src 'self' blob: data:; "                    \
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"                              \
    "referrer-policy: no-referrer\r\n"

void page_get(struct call *call)
{
    const struct page_file *file;
    char path[PATH_ROOM], headers[HEADERS_ROOM];
    struct web_answer answer = {.status = 200, .headers = headers};

    (void)snprintf(path, sizeof(path), "%s%s", call->id[0] != '\0' ? "/page/" : "/", call->id);
    file = page_find(path);
    if (file == NULL) {
        call_refuse(call, 404, NULL, "%s: there is no such file of the page", path);
        return;
    }
    (void)snprintf(headers, sizeof(headers), "cache-control: no-cache\r\netag: %s\r\n" POLICY,
                   file->etag);
    if (call_has_tag(call, file->etag)) {
        answer.status = 304;
    } else {
        answer.type = file->type;
        answer.body = file->data;
        answer.bytes = file->bytes;
    }
    call_answer(call, &answer);
}

void openapi_get(struct call *call)
{
    call_bytes(call, 200, "application/json", openapi_text, openapi_bytes);
}
