#include "provider/redis/parse.h"

#include "base/text.h"
#include "net/redis/redis.h"
#include "provider/redis/scripts.h"

#include <string.h>

enum { LEFT_MAX_MS = 1000000000, NO_LIFETIME = -1 /* of PTTL */ };

/* Reads outcome, epoch and time left; missing numbers are 0. */
static bool take_numbers(long long ret[3], const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 || reply->elements > 6) {
        return false;
    }
    for (size_t i = 0; i < reply->elements && i < 3; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER) {
            return false;
        }
        ret[i] = reply->element[i]->integer;
    }
    return ret[0] >= 0 && ret[0] <= ANSWER_FREE && ret[1] <= (long long)PARSE_NUMBER_MAX &&
           (ret[0] != ANSWER_GRANTED || ret[1] > 0);
}

static void take_holder(struct lock_answer *ret, const redisReply *reply)
{
    const redisReply *holder = reply->elements > 3 ? reply->element[3] : NULL;
    const redisReply *most = reply->elements > 4 ? reply->element[4] : NULL;
    const redisReply *beat = reply->elements > 5 ? reply->element[5] : NULL;
    bool has_most = most && most->type == REDIS_REPLY_INTEGER && most->integer > 0 &&
                    most->integer < LEFT_MAX_MS;

    if (holder && holder->type == REDIS_REPLY_STRING && holder->len > 0) {
        ret->is_odd =
            !text_clean(ret->holder, sizeof(ret->holder), holder->str, (size_t)holder->len);
    } else {
        ret->is_odd = true;
        memcpy(ret->holder, "?", 2);
    }
    ret->max_lease = SPAN_MS(has_most ? most->integer : 0);
    ret->has_beat = beat && beat->type == REDIS_REPLY_INTEGER;
    ret->beat_age_ms = ret->has_beat ? beat->integer : 0;
}

bool parse_lock(struct lock_answer *ret, const redisReply *reply)
{
    static const enum lease_outcome outcomes[] = {[ANSWER_HELD] = LEASE_HELD,
                                                  [ANSWER_GRANTED] = LEASE_GRANTED,
                                                  [ANSWER_NOT_YET] = LEASE_NOT_YET,
                                                  [ANSWER_FREE] = LEASE_FREE};
    long long numbers[3] = {0};

    if (!take_numbers(numbers, reply)) {
        return false;
    }
    ret->reply = (struct majority_reply){
        .outcome = outcomes[numbers[0]],
        .epoch = numbers[1] > 0 ? (uint64_t)numbers[1] : 0,
        .left = SPAN_MS(numbers[2] > 0 && numbers[2] < LEFT_MAX_MS ? numbers[2] : 0)};
    ret->holder[0] = '\0';
    ret->is_odd = false;
    ret->is_endless = numbers[0] == ANSWER_HELD && numbers[2] == NO_LIFETIME;
    ret->max_lease = SPAN_NS(0);
    ret->has_beat = false;
    ret->beat_age_ms = 0;
    ret->spoiled[0] = '\0';
    if (numbers[0] == ANSWER_HELD) {
        take_holder(ret, reply);
    } else if (numbers[0] == ANSWER_GRANTED && reply->elements > 3 &&
               reply->element[3]->type == REDIS_REPLY_STRING) {
        (void)text_clean(ret->spoiled, sizeof(ret->spoiled), reply->element[3]->str,
                         (size_t)reply->element[3]->len);
    }
    return true;
}

bool parse_cursor(char ret[24], const redisReply *reply)
{
    size_t bytes;

    if (reply->type != REDIS_REPLY_STRING || reply->len == 0 || reply->len >= 24) {
        return false;
    }
    bytes = (size_t)reply->len;
    for (size_t i = 0; i < bytes; i++) {
        if (reply->str[i] < '0' || reply->str[i] > '9') {
            return false;
        }
    }
    memcpy(ret, reply->str, bytes);
    ret[bytes] = '\0';
    return strcmp(ret, "0") != 0;
}
