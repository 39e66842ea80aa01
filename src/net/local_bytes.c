/* Bytes in JSON, and where the agent listens. */
#include "net/local.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void local_put_bytes(json_t *message, const void *data, size_t bytes)
{
    json_t *text = bytes <= LOCAL_TEXT_MAX ? json_stringn(data, bytes) : NULL;
    char *coded;

    if (text) {
        (void)json_object_set_new(message, "text", text);
        return;
    }
    coded = malloc(4 * (bytes / 3 + 1) + 1);
    if (coded) {
        int length = EVP_EncodeBlock((unsigned char *)coded, data, (int)bytes);
        (void)json_object_set_new(message, "base64", json_stringn(coded, (size_t)length));
        free(coded);
    }
}

static bool decode(struct local_bytes *ret, const char *text, size_t length)
{
    int got;

    ret->own = malloc(length / 4 * 3 + 1);
    got = ret->own && length % 4 == 0
              ? EVP_DecodeBlock(ret->own, (const unsigned char *)text, (int)length)
              : -1;
    if (got < 0) {
        free(ret->own);
        ret->own = NULL;
        return false;
    }
    for (size_t i = length; i > 0 && text[i - 1] == '=' && length - i < 2; i--) {
        got--; /* OpenSSL counts the padding */
    }
    ret->data = ret->own;
    ret->count = (size_t)got;
    return true;
}

bool local_take_bytes(struct local_bytes *ret, const json_t *message)
{
    const json_t *text = json_object_get(message, "text");
    const json_t *coded = json_object_get(message, "base64");

    *ret = (struct local_bytes){.data = NULL};
    if (json_is_string(text)) {
        ret->data = json_string_value(text);
        ret->count = json_string_length(text);
        return true;
    }
    return json_is_string(coded) &&
           decode(ret, json_string_value(coded), json_string_length(coded));
}

void local_agent_path(char ret[static LOCAL_PATH_MAX], const char *given, bool serves)
{
    const char *variable = getenv("BATON_AGENT");
    const char *runtime = geteuid() != 0 ? getenv("XDG_RUNTIME_DIR") : NULL;

    given = given ? given : variable && *variable ? variable : NULL;
    (void)snprintf(ret, LOCAL_PATH_MAX, "%s%s",
                   given     ? given
                   : runtime ? runtime
                             : "/run",
                   given ? "" : "/baton/agent.sock");
    if (!given && runtime && !serves && access(ret, F_OK) != 0) {
        (void)snprintf(ret, LOCAL_PATH_MAX, "/run/baton/agent.sock");
    }
}

int local_agent_url(char ret[static LOCAL_PATH_MAX], const char *url, struct baton_error *reterr)
{
    const char *path = strchr(url, ':') + 1;
    char given[LOCAL_PATH_MAX];
    size_t length;

    path += strncmp(path, "///", 3) == 0 ? 2 : 0;
    length = strcspn(path, "?");
    if (length >= sizeof(given) || (length > 0 && path[0] != '/')) {
        return error_set(reterr, BATON_EINVAL,
                         "URL \"%.60s\": must be agent: or agent:/path/of/the/socket", url);
    }
    (void)snprintf(given, sizeof(given), "%.*s", (int)length, path);
    local_agent_path(ret, length > 0 ? given : NULL, false);
    return BATON_OK;
}
