/* Parsing of replies and notices, correct and hostile ones: wrong types, huge texts, no JSON, NULs,
 * numbers out of range, clocks years ahead. */
#include "cmocka_all.h"
#include "provider/redis/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) (literal), sizeof(literal) - 1
#define NOW_MS        1764547200000 /* the end of November 2025 */

static redisReply *reply;

/* An answer, from the bytes that a server sends. */
static redisReply *answer(const char *bytes, size_t count)
{
    redisReader *reader = redisReaderCreate();

    freeReplyObject(reply);
    reply = NULL;
    assert_int_equal(redisReaderFeed(reader, bytes, count), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, (void **)&reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

static int forget(void **state)
{
    freeReplyObject(reply);
    reply = NULL;
    return 0;
}

/* Whatever it is that these are, it is not what was asked for. */
static const char *const others[] = {
    "+OK\r\n",
    "-ERR no\r\n",
    ":1\r\n",
    ":-1\r\n",
    "$-1\r\n",
    "$0\r\n\r\n",
    "$3\r\nabc\r\n",
    "*-1\r\n",
    "*1\r\n:1\r\n",
    "*1\r\n*1\r\n*0\r\n",
    "*3\r\n$-1\r\n$-1\r\n$-1\r\n",
    "*5\r\n+1\r\n+1\r\n+1\r\n+1\r\n+1\r\n",
};
enum { OTHERS = sizeof(others) / sizeof(others[0]) };

/* ---- The lock -------------------------------------------------------------------------------- */

static void an_answer_about_the_lock_is_taken_apart(void **state)
{
    struct lock_answer lock;

    assert_true(parse_lock(&lock, answer(TEXT("*2\r\n:1\r\n:7\r\n"))));
    assert_int_equal(lock.reply.outcome, LEASE_GRANTED);
    assert_int_equal(lock.reply.epoch, 7);
    assert_string_equal(lock.spoiled, "");

    assert_true(parse_lock(&lock, answer(TEXT("*4\r\n:1\r\n:7\r\n:0\r\n$5\r\nwords\r\n"))));
    assert_string_equal(lock.spoiled, "words");

    assert_true(parse_lock(
        &lock, answer(TEXT("*6\r\n:0\r\n:9\r\n:1500\r\n$2\r\nme\r\n:60000\r\n:40\r\n"))));
    assert_int_equal(lock.reply.outcome, LEASE_HELD);
    assert_int_equal(lock.reply.epoch, 9);
    assert_int_equal(lock.reply.left.ns, SPAN_MS(1500).ns);
    assert_string_equal(lock.holder, "me");
    assert_false(lock.is_odd);
    assert_int_equal(lock.max_lease.ns, SPAN_S(60).ns);
    assert_false(lock.is_endless);
    assert_true(lock.has_beat);
    assert_int_equal(lock.beat_age_ms, 40);

    assert_true(parse_lock(&lock, answer(TEXT("*3\r\n:2\r\n:0\r\n:900\r\n"))));
    assert_int_equal(lock.reply.outcome, LEASE_NOT_YET);
    assert_true(parse_lock(&lock, answer(TEXT("*3\r\n:3\r\n:0\r\n:0\r\n"))));
    assert_int_equal(lock.reply.outcome, LEASE_FREE);
}

static void a_lock_of_others_may_hold_anything(void **state)
{
    static const char without_beat[] = "*6\r\n:0\r\n:0\r\n:-1\r\n$2\r\nme\r\n:0\r\n$4\r\nnone\r\n";
    struct lock_answer lock;
    char bytes[512];

    assert_true(parse_lock(&lock, answer(TEXT(without_beat))));
    assert_false(lock.has_beat);
    assert_int_equal(lock.reply.left.ns, 0);
    assert_true(lock.is_endless);
    assert_int_equal(lock.max_lease.ns, 0);

    assert_true(parse_lock(&lock, answer(TEXT("*4\r\n:0\r\n:0\r\n:1\r\n$0\r\n\r\n"))));
    assert_string_equal(lock.holder, "?");
    assert_true(lock.is_odd);

    assert_true(parse_lock(&lock, answer(TEXT("*4\r\n:0\r\n:0\r\n:1\r\n$5\r\na\0b\033c\r\n"))));
    assert_string_equal(lock.holder, "a?b?c");
    assert_true(lock.is_odd);

    snprintf(bytes, sizeof(bytes), "*4\r\n:0\r\n:0\r\n:1\r\n$256\r\n%0256d\r\n", 1);
    assert_true(parse_lock(&lock, answer(bytes, strlen(bytes))));
    assert_int_equal(strlen(lock.holder), BATON_NAME_MAX - 1);
    assert_true(lock.is_odd);

    /* Longer than any lease: as good as without an end. */
    assert_true(parse_lock(
        &lock,
        answer(TEXT("*6\r\n:0\r\n:0\r\n:9223372036854775807\r\n$1\r\na\r\n:9223372036854775807\r\n"
                    ":-1000000000000000\r\n"))));
    assert_int_equal(lock.max_lease.ns, 0);
    assert_int_equal(lock.reply.left.ns, 0);
    assert_int_equal(lock.beat_age_ms, -1000000000000000);
}

static void what_is_no_answer_about_a_lock_is_refused(void **state)
{
    static const char *const rows[] = {
        "*2\r\n:4\r\n:1\r\n",  /* there is no such outcome */
        "*2\r\n:-1\r\n:1\r\n", /* nor such a one */
        "*2\r\n:1\r\n:0\r\n",  /* granted in no epoch */
        "*2\r\n:1\r\n:-9223372036854775808\r\n",
        "*2\r\n:1\r\n:9007199254740992\r\n", /* 2^53 */
        "*4\r\n:0\r\n:9223372036854775807\r\n:1\r\n$1\r\na\r\n",
        "*2\r\n:1\r\n$1\r\n7\r\n",
        "*2\r\n*0\r\n:1\r\n",
        "*7\r\n:0\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n",
    };
    struct lock_answer lock;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(parse_lock(&lock, answer(rows[i], strlen(rows[i]))));
    }
    for (size_t i = 0; i < OTHERS; i++) {
        assert_false(parse_lock(&lock, answer(others[i], strlen(others[i]))));
    }
}

static void a_sweep_goes_on_where_a_cursor_says(void **state)
{
    char cursor[24];

    assert_true(parse_cursor(cursor, answer(TEXT("$3\r\n288\r\n"))));
    assert_string_equal(cursor, "288");
    assert_true(parse_cursor(cursor, answer(TEXT("$20\r\n18446744073709551615\r\n"))));
    assert_false(parse_cursor(cursor, answer(TEXT("$1\r\n0\r\n"))));
    assert_false(parse_cursor(cursor, answer(TEXT("$24\r\n184467440737095516150000\r\n"))));
    assert_false(parse_cursor(cursor, answer(TEXT("$3\r\n1\0"
                                                  "2\r\n"))));
    for (size_t i = 0; i < OTHERS; i++) {
        assert_false(parse_cursor(cursor, answer(others[i], strlen(others[i]))));
    }
}

/* ---- Notices --------------------------------------------------------------------------------- */

static void a_notice_is_taken_apart(void **state)
{
    struct notice notice;

    assert_true(parse_notice(&notice, TEXT("released one ")));
    assert_int_equal(notice.type, NOTICE_RELEASED);
    assert_string_equal(notice.by, "one");
    assert_string_equal(notice.heir, "");
    assert_true(parse_notice(&notice, TEXT("released one two")));
    assert_string_equal(notice.heir, "two");
    assert_int_equal(notice.epoch, 0);
    assert_false(notice.is_offer);
    assert_true(parse_notice(&notice, TEXT("released one two 1764547200000")));
    assert_string_equal(notice.heir, "two");
    assert_int_equal(notice.epoch, NOW_MS);
    assert_true(parse_notice(&notice, TEXT("released one  12")));
    assert_string_equal(notice.heir, "");
    assert_int_equal(notice.epoch, 12);
    assert_true(parse_notice(&notice, TEXT("released one two words"))); /* a spoiled epoch */
    assert_int_equal(notice.epoch, 0);
    assert_true(parse_notice(&notice, TEXT("offered one two")));
    assert_int_equal(notice.type, NOTICE_RELEASED);
    assert_string_equal(notice.heir, "two");
    assert_true(notice.is_offer);
    assert_true(parse_notice(&notice, TEXT("taken 1764547200000 one")));
    assert_int_equal(notice.type, NOTICE_TAKEN);
    assert_int_equal(notice.epoch, NOW_MS);
    assert_string_equal(notice.by, "one");
    assert_true(parse_notice(&notice, TEXT("members")));
    assert_int_equal(notice.type, NOTICE_MEMBERS);
    assert_string_equal(notice.by, "");
    assert_true(parse_notice(&notice, TEXT("members one")));
    assert_string_equal(notice.by, "one");
}

static void what_is_no_notice_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
        {TEXT("")},
        {TEXT(" ")},
        {TEXT("hello")},
        {TEXT("released")},
        {TEXT("released ")},
        {TEXT("released one")}, /* its end may be missing */
        {TEXT("released  ")},
        {TEXT("released o\0e ")},
        {TEXT("offered one")},
        {TEXT("released one t\0o")},
        {TEXT("taken")},
        {TEXT("taken ")},
        {TEXT("taken -1 one")},
        {TEXT("taken 1e9 one")},
        {TEXT("taken 9007199254740992 one")},
        {TEXT("taken 18446744073709551615 one")},
        {TEXT("taken 18446744073709551617 one")},
        {TEXT("membersone")},
        {TEXT("members o\0e")},
        {TEXT("\0")},
    };
    char *huge = malloc(1 << 20);
    struct notice notice;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (parse_notice(&notice, rows[i].text, rows[i].bytes)) {
            fail_msg("\"%s\" is taken for a notice", rows[i].text);
        }
    }
    assert_false(parse_notice(&notice, NULL, 0));
    memset(huge, 'a', 1 << 20);
    memcpy(huge, "released ", 9);
    assert_false(parse_notice(&notice, huge, 1 << 20));
    huge[20] = ' ';
    assert_false(parse_notice(&notice, huge, 1 << 20)); /* such an heir there is not */
    free(huge);
}

static void a_change_is_taken_apart(void **state)
{
    char name[PROVIDER_KEY_MAX + 1];
    struct provider_value value;

    assert_true(parse_change(&value, name, TEXT("12 3 1 keyvalue")));
    assert_string_equal(value.key, "key");
    assert_int_equal(value.revision, 12);
    assert_int_equal(value.bytes, 5);
    assert_memory_equal(value.data, "value", 5);
    assert_true(parse_change(&value, name, TEXT("12 3 0 key")));
    assert_null(value.data);
    assert_true(parse_change(&value, name, TEXT("12 3 1 key"))); /* an empty one is a value */
    assert_non_null(value.data);
    assert_int_equal(value.bytes, 0);
    assert_true(parse_change(&value, name, TEXT("1 7 1 a key x y"))); /* blanks are theirs */
    assert_string_equal(value.key, "a key x");
    assert_memory_equal(value.data, " y", 2);
}

static void what_is_no_change_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } rows[] = {
        {TEXT("")},
        {TEXT("12")},
        {TEXT("12 3")},
        {TEXT("12 3 1")},
        {TEXT("0 3 1 key")},
        {TEXT("-1 3 1 key")},
        {TEXT("18446744073709551615 3 1 key")},
        {TEXT("9007199254740992 3 1 key")},
        {TEXT("12 4 1 key")},
        {TEXT("12 -1 1 key")},
        {TEXT("12 513 1 key")},
        {TEXT("12 99999999999999999999 1 key")},
        {TEXT("12 3 2 key")},
        {TEXT("12  3 1 key")},
        {TEXT("12 3 1 k\0y")},
    };
    char name[PROVIDER_KEY_MAX + 1];
    size_t bytes = PROVIDER_VALUE_MAX + 16;
    char *huge = malloc(bytes);
    struct provider_value value;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (parse_change(&value, name, rows[i].text, rows[i].bytes)) {
            fail_msg("\"%s\" is taken for a change", rows[i].text);
        }
    }
    memset(huge, 'a', bytes);
    memcpy(huge, "1 3 1 ", 6);
    assert_false(parse_change(&value, name, huge, bytes));
    assert_true(parse_change(&value, name, huge, PROVIDER_VALUE_MAX + 9));
    free(huge);
}

/* ---- The registry ---------------------------------------------------------------------------- */

static void an_answer_to_a_registration_is_taken_apart(void **state)
{
    static const char *const rows[] = {
        "*3\r\n$6\r\nhsetex\r\n:-5\r\n:1\r\n",
        "*3\r\n$6\r\nhsetex\r\n:0\r\n:0\r\n",
        "*3\r\n$5\r\nother\r\n:2\r\n:2\r\n",
        "*3\r\n$-1\r\n:2\r\n:2\r\n",
        "*2\r\n$6\r\nhsetex\r\n:2\r\n",
        "*3\r\n$6\r\nhsetex\r\n$1\r\n2\r\n:2\r\n",
        "*5\r\n$6\r\nhsetex\r\n:2\r\n:2\r\n:2\r\n:2\r\n",
    };
    char way[16];
    struct registered found[2];

    assert_true(parse_registered(
        found, 2, way, answer(TEXT("*5\r\n$10\r\nsorted-set\r\n:2\r\n:1\r\n:1\r\n:1\r\n"))));
    assert_int_equal(found[0].count, 2);
    assert_int_equal(found[0].dated, 1);
    assert_int_equal(found[1].count, 1);
    assert_string_equal(way, "sorted-set");
    assert_true(parse_registered(
        found, 1, way, answer(TEXT("*3\r\n$8\r\nhpexpire\r\n:9223372036854775807\r\n:1\r\n"))));
    assert_int_equal(found[0].count, 1000000);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_false(parse_registered(found, 1, way, answer(rows[i], strlen(rows[i]))));
    }
    for (size_t i = 0; i < OTHERS; i++) {
        assert_false(parse_registered(found, 1, way, answer(others[i], strlen(others[i]))));
    }
}

static void an_answer_with_members_is_a_list_of_pairs(void **state)
{
    assert_true(parse_members(answer(TEXT("*0\r\n"))));
    assert_true(parse_members(answer(TEXT("*2\r\n$1\r\na\r\n$-1\r\n"))));
    assert_false(parse_members(answer(TEXT("*3\r\n$1\r\na\r\n$-1\r\n:1\r\n"))));
    for (size_t i = 0; i < OTHERS; i++) {
        assert_false(parse_members(answer(others[i], strlen(others[i]))));
    }
}

static struct parsed_member member;

static const struct parsed_member *parse(const char *id, size_t id_bytes, const char *json,
                                         size_t json_bytes)
{
    redisReply texts[] = {
        {.type = REDIS_REPLY_STRING, .str = (char *)id, .len = id_bytes},
        {.type = REDIS_REPLY_STRING, .str = (char *)json, .len = json_bytes},
    };

    parsed_member_fini(&member);
    parse_member(&member, &texts[0], &texts[1], NOW_MS);
    return &member;
}

static enum member_fault fault_of(const char *json)
{
    return parse(TEXT("me"), json, strlen(json))->fault;
}

static void a_member_is_taken_apart(void **state)
{
    static const char json[] = "{\"processId\":\"me\",\"identifier\":\"Zoë\",\"role\":\"slave\","
                               "\"capabilities\":{\"a\":[1]},"
                               "\"lastSeen\":\"2025-11-30T11:59:59.123Z\"}";

    (void)parse(TEXT("me"), TEXT(json));
    assert_int_equal(member.fault, MEMBER_FINE);
    assert_string_equal(member.id, "me");
    assert_string_equal(member.name, "Zoë");
    assert_string_equal(member.metadata, "{\"a\":[1]}");
    assert_int_equal(fault_of("{}"), MEMBER_FINE);
    assert_string_equal(member.name, "me");
    assert_null(member.metadata);
    assert_int_equal(fault_of("{\"lastSeen\":1764547199999}"), MEMBER_FINE);
    parsed_member_fini(&member);
}

static void a_member_of_others_may_be_anything(void **state)
{
    static const struct {
        const char *json;
        enum member_fault fault;
    } rows[] = {
        {"", MEMBER_NO_JSON},
        {"not-json", MEMBER_NO_JSON},
        {"[]", MEMBER_NO_JSON},
        {"null", MEMBER_NO_JSON},
        {"{\"identifier\":\"a\"", MEMBER_NO_JSON},
        {"{\"identifier\":\"a\"} x", MEMBER_NO_JSON},
        {"{\"identifier\":\"\\u0000\"}", MEMBER_NO_JSON},
        {"{\"identifier\":\"\xff\"}", MEMBER_NO_JSON},
        {"{\"n\":1e999}", MEMBER_NO_JSON},
        {"{\"n\":99999999999999999999}", MEMBER_NO_JSON},
        {"{\"identifier\":7}", MEMBER_ODD},
        {"{\"maxLease\":\"30000\"}", MEMBER_ODD},
        {"{\"maxLease\":-30000}", MEMBER_ODD},
        {"{\"maxLease\":30000}", MEMBER_FINE},
        {"{\"capabilities\":[]}", MEMBER_ODD},
        {"{\"capabilities\":\"{}\"}", MEMBER_ODD},
        {"{\"lastSeen\":{}}", MEMBER_ODD},
        {"{\"lastSeen\":\"\"}", MEMBER_ODD},
        {"{\"lastSeen\":\"yesterday\"}", MEMBER_ODD},
        {"{\"lastSeen\":-1}", MEMBER_ODD},
        {"{\"lastSeen\":\"2096-10-02T07:06:40.000Z\"}", MEMBER_AHEAD},
        {"{\"lastSeen\":\"9999-12-31T23:59:59Z\"}", MEMBER_AHEAD},
        {"{\"lastSeen\":1764547200001}", MEMBER_AHEAD},
        {"{\"lastSeen\":9e300}", MEMBER_AHEAD},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (fault_of(rows[i].json) != rows[i].fault) {
            fail_msg("%s: fault %d", rows[i].json, (int)member.fault);
        }
        assert_string_equal(member.name, "me");
        assert_null(member.metadata);
    }
    assert_int_equal(parse(TEXT("me"), TEXT("{}\0{}"))->fault, MEMBER_NO_JSON);
}

static void an_id_of_others_may_be_anything(void **state)
{
    char longest[BATON_NAME_MAX];
    redisReply number = {.type = REDIS_REPLY_INTEGER, .integer = 7};
    redisReply nil = {.type = REDIS_REPLY_NIL};

    assert_int_equal(parse(TEXT(""), TEXT("{}"))->fault, MEMBER_NAMELESS);
    assert_int_equal(parse(TEXT("a\0b"), TEXT("{}"))->fault, MEMBER_NAMELESS);
    assert_string_equal(member.id, "a?b");
    assert_int_equal(parse(TEXT("a\nb"), TEXT("{}"))->fault, MEMBER_NAMELESS);
    assert_int_equal(parse(TEXT("\xc0\x80"), TEXT("{}"))->fault, MEMBER_NAMELESS);
    memset(longest, 'i', sizeof(longest));
    assert_int_equal(parse(longest, sizeof(longest), TEXT("{}"))->fault, MEMBER_NAMELESS);
    assert_int_equal(parse(longest, sizeof(longest) - 1, TEXT("{}"))->fault, MEMBER_FINE);
    parse_member(&member, &number, &nil, NOW_MS);
    assert_int_equal(member.fault, MEMBER_NAMELESS);
}

static void huge_and_deep_members_are_survived(void **state)
{
    enum { MANY = PARSE_ENTRY_MAX + 1 };
    static char text[MANY + 1];
    redisReply id = {.type = REDIS_REPLY_STRING, .str = (char *)"me", .len = 2};
    redisReply nil = {.type = REDIS_REPLY_NIL};

    memset(text, '[', MANY);
    assert_int_equal(parse(TEXT("me"), text, MANY)->fault, MEMBER_TOO_LONG);
    assert_int_equal(parse(TEXT("me"), text, MANY - 1)->fault, MEMBER_NO_JSON);
    parse_member(&member, &id, &nil, NOW_MS); /* as the script says it */
    assert_int_equal(member.fault, MEMBER_TOO_LONG);

    /* A name is cut between two characters: 63 bytes are not 21 of three and a half. */
    memset(text, ' ', MANY);
    memcpy(text, "{\"identifier\":\"x", 16);
    for (size_t i = 16; i < 16 + 3 * 40; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
    }
    memcpy(text + 16 + 3 * 40, "\"}", 2);
    assert_int_equal(parse(TEXT("me"), text, MANY - 1)->fault, MEMBER_FINE);
    assert_int_equal(strlen(member.name), 1 + 3 * 20);
    parsed_member_fini(&member);
}

/* ---- State ----------------------------------------------------------------------------------- */

static void a_value_is_taken_apart(void **state)
{
    static const char *const rows[] = {
        "*2\r\n$1\r\nx\r\n$-1\r\n",
        "*2\r\n$-1\r\n$1\r\n7\r\n",
        "*2\r\n$1\r\nx\r\n$0\r\n\r\n",
        "*2\r\n$1\r\nx\r\n$2\r\n-1\r\n",
        "*2\r\n$1\r\nx\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\nx\r\n$7\r\ngarbage\r\n",
        "*2\r\n$1\r\nx\r\n$20\r\n18446744073709551615\r\n",
        "*2\r\n:1\r\n:7\r\n",
    };
    struct provider_value value;
    bool is_there;

    assert_int_equal(
        parse_value(&value, &is_there, answer(TEXT("*2\r\n$3\r\na\0b\r\n$1\r\n7\r\n"))), BATON_OK);
    assert_true(is_there);
    assert_int_equal(value.revision, 7);
    assert_int_equal(value.bytes, 3);
    assert_memory_equal(value.data, "a\0b", 3);
    assert_int_equal(parse_value(&value, &is_there, answer(TEXT("*2\r\n$-1\r\n$-1\r\n"))),
                     BATON_OK);
    assert_false(is_there);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse_value(&value, &is_there, answer(rows[i], strlen(rows[i]))),
                         BATON_EPROTO);
        assert_false(is_there);
    }
    for (size_t i = 0; i < OTHERS; i++) {
        assert_int_equal(parse_value(&value, &is_there, answer(others[i], strlen(others[i]))),
                         BATON_EPROTO);
    }
}

static void values_of_others_are_left_out(void **state)
{
    static const char bytes[] = "*18\r\n"
                                "$1\r\na\r\n$1\r\nx\r\n$1\r\n1\r\n"
                                "$1\r\nb\r\n$0\r\n\r\n$0\r\n\r\n"
                                "$3\r\nc\0c\r\n$1\r\nx\r\n$1\r\n1\r\n"
                                "$1\r\nd\r\n$1\r\nx\r\n$4\r\n1e99\r\n"
                                ":5\r\n$1\r\nx\r\n$1\r\n1\r\n"
                                "$1\r\nf\r\n$1\r\ny\r\n$1\r\n2\r\n";
    struct provider_value *values = NULL;
    size_t count;
    size_t odd;

    assert_int_equal(parse_values(&values, &count, &odd, answer(TEXT(bytes))), BATON_OK);
    assert_int_equal(count, 2);
    assert_int_equal(odd, 4);
    assert_string_equal(values[0].key, "a");
    assert_string_equal(values[1].key, "f");
    assert_int_equal(values[1].revision, 2);
    free(values);
    assert_int_equal(parse_values(&values, &count, &odd, answer(TEXT("*0\r\n"))), BATON_OK);
    assert_int_equal(count, 0);
    free(values);
    assert_int_equal(parse_values(&values, &count, &odd, answer(TEXT("*2\r\n:1\r\n:1\r\n"))),
                     BATON_EPROTO);
    assert_int_equal(parse_values(&values, &count, &odd, answer(TEXT("-ERR no\r\n"))),
                     BATON_EPROTO);
    assert_int_equal(parse_values(&values, &count, &odd, answer(TEXT("$-1\r\n"))), BATON_EPROTO);
}

static void an_answer_to_a_put_is_taken_apart(void **state)
{
    uint64_t revision;

    assert_int_equal(parse_put(&revision, answer(TEXT("*2\r\n:1\r\n:7\r\n"))), BATON_OK);
    assert_int_equal(revision, 7);
    assert_int_equal(parse_put(&revision, answer(TEXT("*2\r\n:0\r\n:3\r\n"))), BATON_ECONFLICT);
    assert_int_equal(revision, 3);
    assert_int_equal(parse_put(&revision, answer(TEXT("*2\r\n:0\r\n:-9223372036854775808\r\n"))),
                     BATON_EPROTO);
    assert_int_equal(parse_put(&revision, answer(TEXT("*2\r\n:1\r\n$1\r\n7\r\n"))), BATON_EPROTO);
    for (size_t i = 0; i < OTHERS; i++) {
        assert_int_equal(parse_put(&revision, answer(others[i], strlen(others[i]))), BATON_EPROTO);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_teardown(name, forget)
    const struct CMUnitTest tests[] = {
        CASE(an_answer_about_the_lock_is_taken_apart),
        CASE(a_lock_of_others_may_hold_anything),
        CASE(what_is_no_answer_about_a_lock_is_refused),
        CASE(a_sweep_goes_on_where_a_cursor_says),
        CASE(a_notice_is_taken_apart),
        CASE(what_is_no_notice_is_refused),
        CASE(a_change_is_taken_apart),
        CASE(what_is_no_change_is_refused),
        CASE(an_answer_to_a_registration_is_taken_apart),
        CASE(an_answer_with_members_is_a_list_of_pairs),
        CASE(a_member_is_taken_apart),
        CASE(a_member_of_others_may_be_anything),
        CASE(an_id_of_others_may_be_anything),
        CASE(huge_and_deep_members_are_survived),
        CASE(a_value_is_taken_apart),
        CASE(values_of_others_are_left_out),
        CASE(an_answer_to_a_put_is_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
