#include "provider/redis/parse.h"

#include <stdlib.h>
#include <string.h>

static bool is_text(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING;
}

static bool take_value(struct provider_value *ret, const redisReply *data,
                       const redisReply *revision)
{
    uint64_t number;

    if (!is_text(data) || !is_text(revision) || data->len > PROVIDER_VALUE_MAX ||
        !parse_number(&number, revision->str, (size_t)revision->len) || number == 0) {
        return false;
    }
    *ret =
        (struct provider_value){.data = data->str, .bytes = (size_t)data->len, .revision = number};
    return true;
}

int parse_value(struct provider_value *ret, bool *ret_there, const redisReply *reply)
{
    *ret_there = false;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        return BATON_EPROTO;
    }
    if (reply->element[0]->type == REDIS_REPLY_NIL && reply->element[1]->type == REDIS_REPLY_NIL) {
        return BATON_OK;
    }
    *ret_there = take_value(ret, reply->element[0], reply->element[1]);
    return *ret_there ? BATON_OK : BATON_EPROTO;
}

static bool is_key(const redisReply *reply)
{
    return is_text(reply) && reply->len <= PROVIDER_KEY_MAX &&
           strlen(reply->str) == (size_t)reply->len;
}

int parse_values(struct provider_value **ret, size_t *ret_count, size_t *ret_odd,
                 const redisReply *reply)
{
    struct provider_value *values;
    size_t used = 0;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements % 3 != 0) {
        return BATON_EPROTO;
    }
    values = calloc(reply->elements / 3 + 1, sizeof(*values));
    if (!values) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < reply->elements; i += 3) {
        redisReply *const *part = &reply->element[i];
        if (is_key(part[0]) && take_value(&values[used], part[1], part[2])) {
            values[used++].key = part[0]->str;
        }
    }
    *ret = values;
    *ret_count = used;
    *ret_odd = reply->elements / 3 - used;
    return BATON_OK;
}

int parse_put(uint64_t *ret_revision, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_INTEGER ||
        reply->element[1]->type != REDIS_REPLY_INTEGER || reply->element[1]->integer < 0 ||
        reply->element[1]->integer > (long long)PARSE_NUMBER_MAX) {
        return BATON_EPROTO;
    }
    *ret_revision = (uint64_t)reply->element[1]->integer;
    return reply->element[0]->integer == 0 ? BATON_ECONFLICT : BATON_OK;
}
