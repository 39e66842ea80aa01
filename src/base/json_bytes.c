#include "base/json_bytes.h"

#include "base/error.h"
#include "base/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void coded_key(char ret[static JSON_KEY_MAX], const char *key)
{
    (void)snprintf(ret, JSON_KEY_MAX, "%s_base64", key);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* jansson refuses what is not UTF-8. A text with NUL is one that few can read; and a control
 * character takes up to six bytes in JSON. */
static bool is_short_as_text(const uint8_t *data, size_t bytes)
{
    size_t length = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (data[i] == '\0') {
            return false;
        }
        length += strchr("\"\\\b\f\n\r\t", data[i]) != NULL ? 2 : data[i] < 0x20 ? 6 : 1;
    }
    return length <= 2 * bytes;
}

static void encode_three(char ret[static 4], const uint8_t *data, size_t bytes)
{
    uint32_t group = (uint32_t)data[0] << 16 | (bytes > 1 ? (uint32_t)data[1] << 8 : 0) |
                     (bytes > 2 ? (uint32_t)data[2] : 0);

    for (size_t i = 0; i < 4; i++) {
        ret[i] = i <= bytes ? digits[group >> (18 - 6 * i) & 63] : '=';
    }
}

static json_t *coded(const uint8_t *data, size_t bytes)
{
    size_t length = (bytes + 2) / 3 * 4;
    char *text = malloc(length);
    json_t *value = NULL;

    if (text != NULL) {
        for (size_t i = 0; i < bytes; i += 3) {
            encode_three(text + i / 3 * 4, data + i, bytes - i);
        }
        value = json_stringn_nocheck(text, length);
        free(text);
    }
    return value;
}

bool json_put_bytes(json_t *object, const char *key, const void *data, size_t bytes)
{
    json_t *text = NULL;
    char name[JSON_KEY_MAX];

    if (bytes == 0) {
        return true;
    }
    if (is_short_as_text(data, bytes)) {
        text = json_stringn(data, bytes);
    }
    if (text != NULL) {
        return json_object_set_new(object, key, text) == 0;
    }
    coded_key(name, key);
    return json_object_set_new(object, name, coded(data, bytes)) == 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int value_of(char digit)
{
    return digit >= 'A' && digit <= 'Z'   ? digit - 'A'
           : digit >= 'a' && digit <= 'z' ? digit - 'a' + 26
           : digit >= '0' && digit <= '9' ? digit - '0' + 52
           : digit == '+'                 ? 62
           : digit == '/'                 ? 63
                                          : -1;
}

/* How many bytes a valid base64 text stands for; -1: it is none. */
static int64_t decoded_bytes(const char *text, size_t length)
{
    size_t padding = 0;

    while (padding < 2 && padding < length && text[length - 1 - padding] == '=') {
        padding++;
    }
    if (length % 4 != 0) {
        return -1;
    }
    for (size_t i = 0; i < length - padding; i++) {
        if (value_of(text[i]) < 0) {
            return -1;
        }
    }
    return (int64_t)(length / 4 * 3 - padding);
}

static void decode(uint8_t *ret, size_t bytes, const char *text)
{
    for (size_t at = 0; at < bytes; at += 3, text += 4) {
        uint32_t group = 0;
        for (size_t i = 0; i < 4; i++) {
            group = group << 6 | (text[i] == '=' ? 0 : (uint32_t)value_of(text[i]));
        }
        for (size_t i = 0; i < 3 && at + i < bytes; i++) {
            ret[at + i] = (uint8_t)(group >> (16 - 8 * i));
        }
    }
}

static int take(const char *path, const char *key, int64_t bytes, size_t bytes_max, uint8_t **ret,
                struct baton_error *reterr)
{
    if (bytes < 0) {
        return error_set(reterr, BATON_EPROTO, "%s%s is not base64", path, key);
    }
    if ((uint64_t)bytes > bytes_max) {
        return error_set(reterr, BATON_EPROTO, "%s%s has %lld bytes: must be at most %zu", path,
                         key, (long long)bytes, bytes_max);
    }
    *ret = malloc((size_t)bytes + 1);
    return *ret != NULL ? 0 : error_set(reterr, BATON_ENOMEM, "%s%s: out of memory", path, key);
}

int json_read_bytes(const json_t *object, const char *path, const char *key, size_t bytes_max,
                    uint8_t **ret, size_t *ret_bytes, struct baton_error *reterr)
{
    char name[JSON_KEY_MAX];
    json_t *text, *code;
    int64_t bytes = 0;
    uint8_t *data = NULL;
    int rc;

    coded_key(name, key);
    if ((rc = json_read_field(object, path, key, false, JSON_STRING, &text, reterr)) != 0 ||
        (rc = json_read_field(object, path, name, false, JSON_STRING, &code, reterr)) != 0) {
        return rc;
    }
    if (text != NULL && code != NULL) {
        return error_set(reterr, BATON_EPROTO, "%s%s and %s: only one of them can be given", path,
                         key, name);
    }
    if (text != NULL) {
        bytes = (int64_t)json_string_length(text);
        rc = take(path, key, bytes, bytes_max, &data, reterr);
    } else if (code != NULL) {
        bytes = decoded_bytes(json_string_value(code), json_string_length(code));
        rc = take(path, name, bytes, bytes_max, &data, reterr);
    }
    if (rc != 0) {
        return rc;
    }
    if (text != NULL) {
        memcpy(data, json_string_value(text), (size_t)bytes);
    } else if (code != NULL) {
        decode(data, (size_t)bytes, json_string_value(code));
    }
    if (bytes == 0) {
        free(data);
        data = NULL;
    }
    *ret = data;
    *ret_bytes = (size_t)bytes;
    return 0;
}
