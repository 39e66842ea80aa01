#include "fleet/http/image_url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static size_t put(char *ret, size_t used, const char *text, size_t bytes)
{
    if (used + bytes < IMAGE_URL_MAX) {
        memcpy(ret + used, text, bytes);
    }
    return used + bytes;
}

static size_t put_encoded(char *ret, size_t used, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-_.~/";
    char code[4];

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL) {
            used = put(ret, used, text, 1);
        } else {
            (void)snprintf(code, sizeof(code), "%%%02X", (unsigned char)*text);
            used = put(ret, used, code, 3);
        }
    }
    return used;
}

int image_url(char ret[static IMAGE_URL_MAX], const char *worker, const char *subscription,
              const char *query, struct baton_error *reterr)
{
    const char *authority = strstr(worker, "://");
    bool is_tls = strncmp(worker, "wss://", 6) == 0;
    size_t used = 0;

    if (authority == NULL || (!is_tls && strncmp(worker, "ws://", 5) != 0)) {
        return error_set(reterr, BATON_EINVAL, "the worker's URL is none of ws or wss");
    }
    authority += 3;
    used = put(ret, used, is_tls ? "https://" : "http://", is_tls ? 8 : 7);
    used = put(ret, used, authority, strcspn(authority, "/?#"));
    used = put(ret, used, "/camera/", 8);
    used = put_encoded(ret, used, subscription);
    used = put(ret, used, "/image", 6);
    if (*query != '\0') {
        used = put(ret, used, "?", 1);
        used = put(ret, used, query, strlen(query));
    }
    if (used >= IMAGE_URL_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "the request for the picture is too long");
    }
    ret[used] = '\0';
    return BATON_OK;
}
