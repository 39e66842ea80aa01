/* A user with the permissions of docs/redis.md and no others: they suffice for the whole life of an
 * election, and each part of the rule is needed. The test reads the rule from the document. */
#include "integration/redis/server.h"
#include "lib/process.h"
#include "provider/group.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RULE_WORDS_MAX = 80, RULE_WORD_MAX = 64, LOG_MAX = 65536, TURNS_MAX = 5 };

static struct server server;
static char rule[RULE_WORDS_MAX][RULE_WORD_MAX];
static int rule_count;
static char url[256];

/* ---- The rule -------------------------------------------------------------------------------- */

static void replace(char *word, const char *from, const char *to)
{
    char *at = strstr(word, from);
    char copy[RULE_WORD_MAX];

    if (at) {
        snprintf(copy, sizeof(copy), "%.*s%s%s", (int)(at - word), word, to, at + strlen(from));
        snprintf(word, RULE_WORD_MAX, "%s", copy);
    }
}

static void take_word(const char *text, size_t length)
{
    char *word = rule[rule_count];

    if (length > 1 && text[0] == '\'' && text[length - 1] == '\'') { /* as for a shell */
        text++;
        length -= 2;
    } else if (length != strcspn(text, " \n|&<>~*")) {
        fail_msg("%.*s: a shell takes this apart; it needs quotes", (int)length, text);
    }
    assert_true(rule_count + 1 < RULE_WORDS_MAX && length < RULE_WORD_MAX);
    snprintf(word, RULE_WORD_MAX, "%.*s", (int)length, text);
    replace(word, "PASSWORD", "geheim");
    replace(word, "ELECTION", "race");
    replace(word, "CHANNEL", "news");
    rule_count += strcmp(word, "\\") != 0;
}

/* The words that follow "ACL SETUSER" up to the end of that example. */
static int read_rule(void **state)
{
    static char text[65536];
    FILE *file = fopen(BATON_SOURCE "/docs/redis.md", "r");
    char *at;
    char *end;

    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    at = strstr(text, "ACL SETUSER ");
    assert_non_null(at);
    end = strstr(at, "```");
    assert_non_null(end);
    while ((at += strspn(at, " \n")) < end) {
        size_t length = strcspn(at, " \n");
        take_word(at, length);
        at += length;
    }
    assert_string_equal(rule[2], "baton");
    return 0;
}

static redisReply *ask_words(int count, const char **words)
{
    redisContext *context = redisConnectUnix(server.socket);
    redisReply *reply = redisCommandArgv(context, count, words, NULL);

    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR) {
        fail_msg("%s", reply->str);
    }
    redisFree(context);
    return reply;
}

/* The rule but for its word `left_out`; -1: all of it. */
static void set_user(int left_out)
{
    const char *words[RULE_WORDS_MAX];
    int count = 0;

    server_tell(&server, "ACL DELUSER baton");
    server_tell(&server, "ACL LOG RESET");
    for (int i = 0; i < rule_count; i++) {
        if (i != left_out) {
            words[count++] = rule[i];
        }
    }
    freeReplyObject(ask_words(count, words));
}

/* A server that forgot nothing: the first lease need not be waited for. */
static void forget_all(void)
{
    redisReply *info = server_ask(&server, "INFO replication");
    char *history = strstr(info->str, "master_replid:");

    assert_non_null(history);
    history += strlen("master_replid:");
    history[strcspn(history, "\r")] = '\0';
    server_tell(&server, "FLUSHALL");
    server_tell(&server, "HSET race:epoch server %s since 0", history);
    freeReplyObject(info);
}

static int begin(void **state)
{
    server_init(&server);
    server_start(&server);
    snprintf(url, sizeof(url), "redis://baton:geheim@127.0.0.1:%d", server.port);
    return 0;
}

static int end(void **state)
{
    server_fini(&server);
    return 0;
}

/* ---- A life ---------------------------------------------------------------------------------- */

struct life {
    struct baton *baton[2];
    struct baton_election *election[2];
    pthread_mutex_t lock;
    char trouble[BATON_ERROR_MESSAGE_MAX];
    _Atomic int messages;
    _Atomic int changes;
    FILE *log;
};

static void note(struct life *life, const char *message)
{
    pthread_mutex_lock(&life->lock);
    if (!strstr(life->trouble, "NOPERM")) {
        snprintf(life->trouble, sizeof(life->trouble), "%s", message);
    }
    pthread_mutex_unlock(&life->lock);
}

static void hear_error(struct baton_election *election, const struct baton_event *event,
                       void *userdata)
{
    note(userdata, event->error.message);
}

/* What came before anybody listened, or after, is in the log. */
static void look_into_log(struct life *life)
{
    static char text[LOG_MAX];
    ssize_t bytes = pread(fileno(life->log), text, sizeof(text) - 1, 0);
    char *at;

    text[bytes > 0 ? bytes : 0] = '\0';
    at = strstr(text, "NOPERM");
    if (at) {
        at[strcspn(at, "\n")] = '\0';
        note(life, at);
    }
}

static bool has_trouble(struct life *life)
{
    bool has;

    look_into_log(life);
    pthread_mutex_lock(&life->lock);
    has = life->trouble[0] != '\0';
    pthread_mutex_unlock(&life->lock);
    return has;
}

#define LIVES_UNTIL(condition)                                                                     \
    do {                                                                                           \
        int looks_ = 0;                                                                            \
        while (!(condition)) {                                                                     \
            if (has_trouble(life)) {                                                               \
                return;                                                                            \
            }                                                                                      \
            assert_true(looks_++ < PATIENCE_MS / 5);                                               \
            server_pause();                                                                        \
        }                                                                                          \
    } while (0)

#define LIVES(call)                                                                                \
    do {                                                                                           \
        struct baton_error failure_ = {0};                                                         \
        struct baton_error *failure = &failure_;                                                   \
        if ((call) != BATON_OK) {                                                                  \
            note(life, failure->message);                                                          \
            return;                                                                                \
        }                                                                                          \
    } while (0)

static void on_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                       void *userdata)
{
    struct life *life = userdata;
    life->messages++;
}

static void on_change(struct baton *baton, const struct baton_value *value, void *userdata)
{
    struct life *life = userdata;
    life->changes++;
}

static long long heartbeat(void)
{
    redisReply *reply = server_ask(&server, "GET race:heartbeat");
    long long at = reply->str ? strtoll(reply->str, NULL, 10) : 0;

    freeReplyObject(reply);
    return at;
}

static int members(struct life *life)
{
    struct baton_member *all = NULL;
    size_t count = 0;
    struct baton_error error;

    if (baton_members(life->election[0], &all, &count, &error) == BATON_OK) {
        baton_members_free(all);
    }
    return (int)count;
}

static void elect(struct life *life)
{
    long long before;

    for (int i = 0; i < 2; i++) {
        char full[320];
        struct baton_log log = {
            .size = sizeof(log), .fd = fileno(life->log), .level = BATON_LOG_DEBUG};
        struct baton_options options = {
            .size = sizeof(options), .node = i == 0 ? "a" : "b", .log = &log};
        snprintf(
            full, sizeof(full),
            "%s?lease=600ms&max-lease=600ms&check-interval=200ms&answer-timeout=300ms&guardian=off",
            url);
        LIVES(baton_open(&life->baton[i], full, &options, failure));
        LIVES(baton_campaign(&life->election[i], life->baton[i], "race", NULL, failure));
        LIVES(baton_on(NULL, life->election[i], BATON_EVENT_ERROR, BATON_ON_LOOP, hear_error, life,
                       failure));
        LIVES_UNTIL(i == 1 || baton_is_leader(life->election[0]));
    }
    LIVES_UNTIL(members(life) == 2);
    before = heartbeat();
    LIVES_UNTIL(heartbeat() > before); /* renewed */
    LIVES_UNTIL(
        server_says(&server, "CLIENT LIST", "cmd=ping")); /* a silence that was looked into */
}

static void speak(struct life *life)
{
    struct baton_subscription *news = NULL;

    LIVES(baton_subscribe(&news, life->baton[1], "news", on_message, life, failure));
    while (life->messages == 0) {
        LIVES(baton_publish(life->baton[0], "news", "hello", 5, failure));
        LIVES_UNTIL(true);
        if (has_trouble(life)) {
            return;
        }
        server_pause();
    }
    baton_unsubscribe(news);
}

static void keep(struct life *life)
{
    struct baton_value *value;
    size_t count;

    LIVES(baton_watch(NULL, life->baton[1], "k", on_change, life, failure));
    LIVES(baton_put(life->baton[0], "k1", "v", 1, 0, 0, failure));
    LIVES(baton_put(life->baton[0], "k2", "v", 1, BATON_ANY_REVISION, 60000, failure));
    LIVES_UNTIL(life->changes >= 2);
    LIVES(baton_get(life->baton[1], "k1", &value, failure));
    baton_values_free(value, 1);
    LIVES(baton_list(life->baton[1], "k", &value, &count, failure));
    baton_values_free(value, count);
    LIVES(baton_put(life->baton[0], "k1", NULL, 0, BATON_ANY_REVISION, 0, failure));
    LIVES_UNTIL(life->changes >= 3);
}

/* From the first leader to the second, and to nobody. */
static void hand_on(struct life *life)
{
    LIVES(baton_resign(life->election[0], BATON_TIMEOUT_DEFAULT, failure));
    LIVES_UNTIL(baton_is_leader(life->election[1]));
    baton_stop(life->baton[1]);
    LIVES_UNTIL(baton_is_leader(life->election[0]));
}

/* Whether it all went well; else life->trouble has what did not, in Redis's own words if it can. */
static bool live(struct life *life)
{
    void (*const steps[])(struct life *) = {elect, speak, keep, hand_on};
    bool is_well;

    *life = (struct life){.log = tmpfile()};
    assert_non_null(life->log);
    pthread_mutex_init(&life->lock, NULL);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !has_trouble(life); i++) {
        steps[i](life);
    }
    for (int i = 0; i < 2; i++) {
        baton_close(life->baton[i]);
    }
    is_well = !has_trouble(life);
    pthread_mutex_destroy(&life->lock);
    fclose(life->log);
    return is_well;
}

/* ---- What is shown --------------------------------------------------------------------------- */

static void the_rule_of_the_guide_is_enough(void **state)
{
    struct life life;

    set_user(-1);
    forget_all();
    if (!live(&life)) {
        fail_msg("%s", life.trouble);
    }
    assert_false(server_says(&server, "GET race:master", "-"));
    redisReply *log = server_ask(&server, "ACL LOG");
    for (size_t i = 0; i < log->elements; i++) { /* a name for people, and what a newer one can */
        const char *refused = log->element[i]->element[7]->str;
        assert_true(strcmp(refused, "client|setname") == 0 || strcmp(refused, "command|info") == 0);
    }
    freeReplyObject(log);
}

static bool is_denied(const char *command)
{
    redisReply *log = server_ask(&server, "ACL LOG");
    bool is = false;

    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        for (size_t j = 0; j + 1 < entry->elements; j += 2) {
            is = is || (strcmp(entry->element[j]->str, "object") == 0 &&
                        strcmp(entry->element[j + 1]->str, command) == 0);
        }
    }
    freeReplyObject(log);
    return is;
}

static void each_part_of_the_rule_is_needed(void **state)
{
    int tried = 0;

    for (int i = 0; i < rule_count; i++) {
        struct life life;
        int turns = 0;
        if (!strchr("+~&", rule[i][0])) {
            continue;
        }
        set_user(i);
        forget_all();
        /* A busy machine may not come to it: a late one finds no holder, or gets no answer. */
        while (live(&life) || strstr(life.trouble, "no answer in time")) {
            if (++turns == TURNS_MAX) {
                fail_msg("%s is not needed", rule[i]);
            }
            forget_all();
        }
        if (!strstr(life.trouble, "NOPERM") || (rule[i][0] == '+' && !is_denied(rule[i] + 1))) {
            fail_msg("without %s: %s", rule[i], life.trouble);
        }
        tried++;
    }
    assert_true(tried > 20);
}

static int baton_main(void *userdata)
{
    char full[320];

    snprintf(full, sizeof(full), "%s?lease=600s&max-lease=600s&heartbeat-interval=5s", url);
    execl(BATON_PROGRAM, "baton", "run", "--provider", full, "--election", "race", "--node", "g",
          "--data", server.folder, "--", "sleep", "1000", (char *)NULL);
    return 127;
}

static void a_guardian_releases_under_the_rule(void **state)
{
    pid_t child;

    set_user(-1);
    forget_all();
    child = process_fork(baton_main, NULL);
    SERVER_AWAIT(server_says(&server, "GET race:master", "-"));
    SERVER_AWAIT(server_says(&server, "HVALS race:processes", "\"role\":\"master\""));
    process_end(child);
    SERVER_AWAIT(!server_says(&server, "GET race:master", "-"));
    SERVER_AWAIT(!server_says(&server, "HVALS race:processes", "\"g\""));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(the_rule_of_the_guide_is_enough),
        CASE(each_part_of_the_rule_is_needed),
        CASE(a_guardian_releases_under_the_rule),
    };
    return cmocka_run_group_tests(tests, read_rule, NULL);
}
