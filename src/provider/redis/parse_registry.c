#include "provider/redis/parse.h"

#include "base/json_load.h"
#include "base/json_text.h"
#include "base/text.h"
#include "net/redis/redis.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT_MAX = 1000000, MAX_LEASE_MS = 24 * 60 * 60 * 1000 };

static bool take_way(char ret[16], const redisReply *way)
{
    static const char *const ways[] = {"hsetex", "hpexpire", "sorted-set"};

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (way->type == REDIS_REPLY_STRING && strcmp(way->str, ways[i]) == 0) {
            (void)snprintf(ret, 16, "%s", ways[i]);
            return true;
        }
    }
    return false;
}

static bool take_count(uint32_t *ret, const redisReply *count)
{
    if (count->type != REDIS_REPLY_INTEGER || count->integer < 1) {
        return false;
    }
    *ret = count->integer < COUNT_MAX ? (uint32_t)count->integer : COUNT_MAX;
    return true;
}

bool parse_registered(struct registered *ret, size_t elections, char ret_way[16],
                      const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1 + 2 * elections) {
        return false;
    }
    for (size_t i = 0; i < elections; i++) {
        if (!take_count(&ret[i].count, reply->element[2 * i + 1]) ||
            !take_count(&ret[i].dated, reply->element[2 * i + 2])) {
            return false;
        }
    }
    return take_way(ret_way, reply->element[0]);
}

bool parse_members(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements % 2 == 0;
}

/* ---- One member ------------------------------------------------------------------------------ */

/* A time as JavaScript writes it, "2025-01-31T12:00:00.000Z", or in milliseconds. */
static bool is_time(const json_t *value, int64_t *ret_unix_ms)
{
    struct tm parts = {0};
    const char *text = json_string_value(value);
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &parts) : NULL;

    if (json_is_number(value)) {
        double ms = json_number_value(value);
        *ret_unix_ms = ms > 0 && ms < 9e15 ? (int64_t)ms : INT64_MAX;
        return ms >= 0;
    }
    if (!end || (*end != '.' && *end != 'Z')) {
        return false;
    }
    *ret_unix_ms = (int64_t)timegm(&parts) * 1000;
    return true;
}

/* Accepts at most a day, as in the lock's record. False: not a valid lease. */
static bool is_max_lease(const json_t *value, span *ret)
{
    json_int_t ms = json_integer_value(value);

    if (ms <= 0) {
        return false;
    }
    *ret = SPAN_MS(ms < MAX_LEASE_MS ? ms : MAX_LEASE_MS);
    return true;
}

static void take_object(struct parsed_member *ret, const json_t *object, int64_t latest_unix_ms)
{
    const json_t *name = json_object_get(object, "identifier");
    const json_t *capabilities = json_object_get(object, "capabilities");
    const json_t *seen = json_object_get(object, "lastSeen");
    const json_t *max_lease = json_object_get(object, "maxLease");

    if (json_string_length(name) > 0) {
        (void)text_clean(ret->name, sizeof(ret->name), json_string_value(name),
                         json_string_length(name));
    }
    if (json_is_object(capabilities)) {
        ret->metadata = json_text(capabilities, JSON_COMPACT);
    }
    ret->is_cordoned = json_is_true(json_object_get(object, "observes"));
    if ((name && !json_is_string(name)) || (capabilities && !json_is_object(capabilities)) ||
        (seen && !is_time(seen, &ret->seen_ms)) ||
        (max_lease && !is_max_lease(max_lease, &ret->max_lease))) {
        ret->fault = MEMBER_ODD;
    } else if (ret->seen_ms > latest_unix_ms) {
        ret->fault = MEMBER_AHEAD;
    }
}

void parse_member(struct parsed_member *ret, const redisReply *id, const redisReply *json,
                  int64_t latest_unix_ms)
{
    json_t *object;

    memset(ret, 0, sizeof(*ret));
    if (id->type != REDIS_REPLY_STRING || id->len == 0 ||
        !text_clean(ret->id, sizeof(ret->id), id->str, (size_t)id->len)) {
        ret->fault = MEMBER_NAMELESS;
        return;
    }
    memcpy(ret->name, ret->id, sizeof(ret->name));
    if (json->type != REDIS_REPLY_STRING || json->len > PARSE_ENTRY_MAX) {
        ret->fault = MEMBER_TOO_LONG;
        return;
    }
    object = json_load_bytes(json->str, (size_t)json->len, 0, NULL);
    if (json_is_object(object)) {
        take_object(ret, object, latest_unix_ms);
    } else {
        ret->fault = MEMBER_NO_JSON;
    }
    json_decref(object);
}

void parsed_member_fini(struct parsed_member *member)
{
    free(member->metadata);
    member->metadata = NULL;
}
