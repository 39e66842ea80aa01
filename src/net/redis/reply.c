/* The meaning of replies. */
#include "net/redis/redis.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    enum redis_fault fault;
    const char *word;
    const char *text;
} faults[] = {
#define REDIS_FAULT_ROW(symbol, word, text) {symbol, word, text},
    REDIS_FAULTS(REDIS_FAULT_ROW)
#undef REDIS_FAULT_ROW
};

static bool begins_with(const redisReply *reply, const char *text)
{
    size_t length = strlen(text);

    return (size_t)reply->len >= length && memcmp(reply->str, text, length) == 0;
}

static bool begins_with_word(const redisReply *reply, const char *word)
{
    size_t length = strlen(word);

    return begins_with(reply, word) && ((size_t)reply->len == length || reply->str[length] == ' ');
}

enum redis_fault redis_fault_of(const redisReply *reply)
{
    if (!reply) {
        return REDIS_OTHER;
    }
    if (reply->type != REDIS_REPLY_ERROR) {
        return REDIS_FINE;
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (begins_with_word(reply, faults[i].word)) {
            return faults[i].fault;
        }
    }
    /* Up to Redis 7.0 a forbidden command in a script has this error. */
    return begins_with(reply, "ERR The user executing the script can't") ? REDIS_NOPERM
                                                                         : REDIS_OTHER;
}

static int code_of(enum redis_fault fault)
{
    switch (fault) {
    case REDIS_NOPERM:
    case REDIS_NOAUTH:
    case REDIS_WRONGPASS:
        return BATON_EAUTH;
    case REDIS_OOM:
        return BATON_EFULL;
    case REDIS_WRONGTYPE:
        return BATON_EPROTO;
    default:
        return BATON_EUNAVAILABLE;
    }
}

int redis_fault_error(const redisReply *reply, struct baton_error *reterr)
{
    enum redis_fault fault = redis_fault_of(reply);
    const char *text = "the server refused";
    const char *word = "";
    char said[121];

    if (!reply) {
        return error_set(reterr, BATON_EUNAVAILABLE, "Redis: no answer");
    }
    (void)text_clean(said, sizeof(said), reply->str ? reply->str : "", reply->str ? reply->len : 0);
    if (fault == REDIS_FINE) {
        return error_set(reterr, BATON_EPROTO, "Redis: unexpected answer (%s)",
                         said[0] ? said : "of another type");
    }
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (faults[i].fault == fault) {
            text = faults[i].text;
            word = begins_with_word(reply, faults[i].word) ? "" : faults[i].word;
        }
    }
    return error_set(reterr, code_of(fault), "Redis: %s (%s%s%s)", text, word, word[0] ? ": " : "",
                     said);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

bool redis_is_host(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] <= ' ' || text[i] >= 0x7f) {
            return false;
        }
    }
    return bytes > 0 && bytes < REDIS_HOST_MAX;
}

/* ---- Messages -------------------------------------------------------------------------------- */

bool redis_parse_message(const redisReply *reply, const char **ret_channel, const char **ret_data,
                         size_t *ret_bytes)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) {
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        if (reply->element[i]->type != REDIS_REPLY_STRING) {
            return false;
        }
    }
    *ret_channel = reply->element[1]->str;
    *ret_data = reply->element[2]->str;
    *ret_bytes = (size_t)reply->element[2]->len;
    return strcmp(reply->element[0]->str, "message") == 0 &&
           strlen(*ret_channel) == (size_t)reply->element[1]->len;
}

/* ---- INFO ------------------------------------------------------------------------------------ */

/* Finds the value of "name:" at the beginning of a line; returns its length, 0: not found. */
static size_t field(const char *info, size_t bytes, const char *name, const char **ret)
{
    size_t length = strlen(name);
    const char *end = info + bytes;
    const char *line = info;

    while (line && line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        size_t rest = (size_t)((next ? next : end) - line);
        if (rest > length && memcmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;
            size_t value_bytes = rest - length - 1;
            *ret = value;
            return value_bytes > 0 && value[value_bytes - 1] == '\r' ? value_bytes - 1
                                                                     : value_bytes;
        }
        line = next ? next + 1 : NULL;
    }
    return 0;
}

static void text_field(char *ret, size_t ret_bytes, const char *info, size_t bytes,
                       const char *name)
{
    const char *value = "";
    size_t length = field(info, bytes, name, &value);

    (void)snprintf(ret, ret_bytes, "%.*s", (int)(length < ret_bytes ? length : ret_bytes), value);
}

static int64_t number_field(const char *info, size_t bytes, const char *name, int64_t otherwise)
{
    char text[24];
    char *end;
    long long number;

    text_field(text, sizeof(text), info, bytes, name);
    number = strtoll(text, &end, 10);
    return end == text || *end ? otherwise : number;
}

void redis_identity_parse(struct redis_identity *ret, const char *info, size_t bytes)
{
    char role[16];
    int64_t uptime;

    *ret = (struct redis_identity){.run_id = ""};
    text_field(ret->run_id, sizeof(ret->run_id), info, bytes, "run_id");
    text_field(ret->history, sizeof(ret->history), info, bytes, "master_replid");
    text_field(ret->version, sizeof(ret->version), info, bytes, "redis_version");
    text_field(role, sizeof(role), info, bytes, "role");
    ret->is_master = strcmp(role, "master") == 0;
    ret->is_cluster = number_field(info, bytes, "cluster_enabled", 0) == 1;
    ret->was_promoted = number_field(info, bytes, "second_repl_offset", -1) >= 0;
    uptime = number_field(info, bytes, "uptime_in_seconds", 0);
    ret->uptime = SPAN_S(uptime > 0 && uptime < INT64_MAX / 1000000000 ? uptime : 0);
}
