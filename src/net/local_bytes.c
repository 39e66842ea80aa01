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

size_t local_bytes_taken(const json_t *message)
{
    return json_string_length(json_object_get(message, "text")) +
           json_string_length(json_object_get(message, "base64"));
}

size_t local_values(const char *line, size_t bytes)
{
    bool is_text = false;
    size_t count = 1;

    for (size_t i = 0; i < bytes; i++) {
        if (line[i] == '"') {
            is_text = !is_text;
        } else if (is_text) {
            i += line[i] == '\\'; /* and what it quotes */
        } else {
            count += line[i] == ',' || line[i] == '[' || line[i] == '{';
        }
    }
    return count;
}

/* ---- Bytes behind the line ------------------------------------------------------------------- */

enum { RAW_FROM = 256 }; /* bytes of a text that JSON is too slow for */

/* Returns how many bytes of the object go behind the line; 0: none. */
static size_t raw_of(const json_t *object)
{
    size_t bytes = json_string_length(json_object_get(object, "text"));

    return bytes >= RAW_FROM ? bytes : 0;
}

/* A new reference: the object, or a copy that has the number of the bytes instead of these. */
static json_t *split(json_t *object, struct buffer *raw)
{
    size_t bytes = raw_of(object);
    json_t *rest = bytes > 0 ? json_copy(object) : json_incref(object);

    if (bytes > 0 && rest) {
        buffer_put(raw, json_string_value(json_object_get(object, "text")), bytes);
        (void)json_object_del(rest, "text");
        if (json_object_set_new(rest, "raw", json_integer((json_int_t)bytes)) != 0) {
            raw->failed = true;
        }
    }
    return rest;
}

static json_t *split_values(const json_t *values, struct buffer *raw)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < json_array_size(values); i++) {
        if (json_array_append_new(list, split(json_array_get(values, i), raw)) != 0) {
            raw->failed = true;
        }
    }
    return list;
}

json_t *local_raw_split(const json_t *message, struct buffer *raw)
{
    const json_t *values = json_object_get(message, "values");
    json_t *whole = (json_t *)message; /* of which a copy only takes references */
    json_t *rest = json_is_array(values) ? json_copy(whole) : split(whole, raw);

    if (rest && json_is_array(values) &&
        json_object_set_new(rest, "values", split_values(values, raw)) != 0) {
        raw->failed = true;
    }
    if (raw->failed) {
        json_decref(rest);
        rest = NULL;
    }
    return rest;
}

/* -1: it is wrong. */
static long bytes_behind(const json_t *object)
{
    const json_t *raw = json_object_get(object, "raw");
    json_int_t bytes = json_integer_value(raw);

    return !raw                                                           ? 0
           : json_is_integer(raw) && bytes > 0 && bytes <= LOCAL_LINE_MAX ? (long)bytes
                                                                          : -1;
}

long local_raw_bytes(const json_t *message)
{
    const json_t *values = json_object_get(message, "values");
    long total = bytes_behind(message);

    for (size_t i = 0; i < json_array_size(values) && total >= 0; i++) {
        long bytes = bytes_behind(json_array_get(values, i));

        total = bytes < 0 || total + bytes > LOCAL_LINE_MAX ? -1 : total + bytes;
    }
    return total;
}

/* Returns what follows; NULL: out of memory. */
static const char *join(json_t *object, const char *data)
{
    long bytes = bytes_behind(object);

    if (bytes > 0 &&
        json_object_set_new(object, "text", json_stringn_nocheck(data, (size_t)bytes)) != 0) {
        return NULL;
    }
    return data + bytes;
}

bool local_raw_join(json_t *message, const char *data)
{
    const json_t *values = json_object_get(message, "values");

    data = join(message, data);
    for (size_t i = 0; i < json_array_size(values) && data; i++) {
        data = join(json_array_get(values, i), data);
    }
    return data != NULL;
}

/* ---- The agent's place ----------------------------------------------------------------------- */

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
