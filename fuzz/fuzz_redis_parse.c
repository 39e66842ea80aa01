/* What Redis says to an election, its registry and the state, and what others may have put there:
 * the first byte says which it is, the rest is the notice, the JSON, or the answer as it comes in
 * the protocol. */
#include "base/text.h"
#include "net/redis/reader.h"
#include "net/redis/redis.h"
#include "provider/redis/parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* What may be shown: it ends, and cleaning it again changes nothing. */
static void expect_text(const char *text, size_t text_max)
{
    char again[BATON_NAME_MAX];

    expect(strnlen(text, text_max) < text_max);
    expect(text_clean(again, sizeof(again), text, strlen(text)));
    expect(strcmp(again, text) == 0);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static void notice(const char *text, size_t bytes)
{
    struct notice notice;

    if (parse_notice(&notice, text, bytes)) {
        expect(notice.epoch <= PARSE_NUMBER_MAX);
        expect(strnlen(notice.by, sizeof(notice.by)) < sizeof(notice.by));
        expect(strnlen(notice.heir, sizeof(notice.heir)) < sizeof(notice.heir));
    }
}

static void change(const char *text, size_t bytes)
{
    char name[PROVIDER_KEY_MAX + 1];
    struct provider_value value;

    if (parse_change(&value, name, text, bytes)) {
        expect(value.revision > 0 && value.revision <= PARSE_NUMBER_MAX);
        expect(strlen(name) <= PROVIDER_KEY_MAX);
        expect(!value.data || (const char *)value.data + value.bytes == text + bytes);
        expect(value.data || value.bytes == 0);
    }
}

static void member_of(const redisReply *id, const redisReply *json)
{
    struct parsed_member member;

    parse_member(&member, id, json, 1764547200000);
    expect_text(member.id, sizeof(member.id));
    expect_text(member.name, sizeof(member.name));
    expect(member.fault == MEMBER_NAMELESS || (member.id[0] && member.name[0]));
    expect(!member.metadata || member.metadata[0] == '{');
    parsed_member_fini(&member);
}

static void json(const char *text, size_t bytes)
{
    redisReply id = {.type = REDIS_REPLY_STRING, .str = (char *)"me", .len = 2};
    redisReply entry = {.type = REDIS_REPLY_STRING, .str = (char *)text, .len = bytes};

    member_of(&id, &entry);
}

static void clean(const char *text, size_t bytes)
{
    char ret[BATON_NAME_MAX];
    bool is_clean = text_clean(ret, sizeof(ret), text, bytes);

    expect_text(ret, sizeof(ret));
    expect(!is_clean || (strlen(ret) == bytes && memcmp(ret, text, bytes) == 0));
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void lock(const redisReply *reply)
{
    struct lock_answer answer;

    if (parse_lock(&answer, reply)) {
        bool is_held = answer.reply.outcome == LEASE_HELD;
        expect(answer.reply.epoch <= PARSE_NUMBER_MAX && answer.reply.left.ns >= 0);
        expect(answer.reply.outcome != LEASE_GRANTED || answer.reply.epoch > 0);
        expect(is_held == (answer.holder[0] != '\0') && (is_held || !answer.has_beat));
        expect_text(answer.holder, sizeof(answer.holder));
        expect_text(answer.spoiled, sizeof(answer.spoiled));
    }
}

static void registry(const redisReply *reply)
{
    char way[16];
    struct registered found[2];

    for (size_t elections = 1; elections <= 2; elections++) {
        if (parse_registered(found, elections, way, reply)) {
            expect(found[elections - 1].count > 0 && strlen(way) < sizeof(way));
        }
    }
    for (size_t i = 0; parse_members(reply) && i < reply->elements; i += 2) {
        member_of(reply->element[i], reply->element[i + 1]);
    }
}

static void state(const redisReply *reply)
{
    struct provider_value value;
    struct provider_value *values = NULL;
    uint64_t revision;
    size_t count;
    size_t odd;
    bool is_there;

    if (parse_value(&value, &is_there, reply) == BATON_OK && is_there) {
        expect(value.data && value.revision > 0 && value.revision <= PARSE_NUMBER_MAX);
    }
    if (parse_values(&values, &count, &odd, reply) == BATON_OK) {
        expect(3 * (count + odd) == reply->elements);
        for (size_t i = 0; i < count; i++) {
            expect(values[i].data && strlen(values[i].key) <= PROVIDER_KEY_MAX);
        }
        free(values);
    }
    if (parse_put(&revision, reply) != BATON_EPROTO) {
        expect(revision <= PARSE_NUMBER_MAX);
    }
}

static void answers(const char *data, size_t bytes)
{
    struct redis_reader reader;
    redisReply *reply = NULL;
    char cursor[24];

    if (redis_reader_init(&reader) && redis_reader_feed(&reader, data, bytes)) {
        while (redis_reader_next(&reader, &reply) && reply) {
            lock(reply);
            registry(reply);
            state(reply);
            if (parse_cursor(cursor, reply)) {
                expect(strspn(cursor, "0123456789") == strlen(cursor));
            }
            freeReplyObject(reply);
        }
    }
    redis_reader_fini(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const parsers[])(const char *, size_t) = {notice, change, json, clean, answers};
    char *copy;

    if (bytes == 0 || !(copy = malloc(bytes - 1 > 0 ? bytes - 1 : 1))) {
        return 0;
    }
    memcpy(copy, data + 1, bytes - 1); /* with its end where the bytes' end is */
    /* '0' …: so that inputs can be read and written by hand. */
    parsers[(data[0] - (unsigned)'0') % (sizeof(parsers) / sizeof(parsers[0]))](copy, bytes - 1);
    free(copy);
    return 0;
}
