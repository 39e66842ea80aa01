/* The leader's status, asked for over channels, so that it costs nothing while nobody asks:
 *
 *   client ── TOKEN ──▶ work/POOL/ask/status ──▶ leader
 *   client ◀── work/POOL/reply/TOKEN ── JSON ── leader
 */
#include "pool/pool_int.h"

#include "base/json_load.h"
#include "base/json_text.h"
#include "member/feed.h"
#include "member/store.h"
#include "pool/client.h"

#include <ctype.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUESTIONS "ask/status"
#define REPLIES   "reply/"

enum { TOKEN_BYTES = 16 /* hexadecimal digits, without the NUL */, ASK_AGAIN_MS = 250 };

/* ---- The leader ------------------------------------------------------------------------------ */

static bool take_token(char ret[static TOKEN_BYTES + 1], const void *data, size_t bytes)
{
    if (bytes != TOKEN_BYTES) {
        return false;
    }
    memcpy(ret, data, bytes);
    ret[bytes] = '\0';
    for (const char *at = ret; *at; at++) {
        if (!isxdigit((unsigned char)*at)) {
            return false;
        }
    }
    return strlen(ret) == bytes;
}

static void on_question(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct pool *pool = userdata;
    char token[TOKEN_BYTES + 1], name[sizeof(REPLIES) + TOKEN_BYTES];
    json_t *status;
    char *text;
    (void)channel;

    if (!take_token(token, data, bytes)) {
        return;
    }
    status = work_leader_status(pool_leader(pool), clock_now());
    text = status ? json_text(status, JSON_COMPACT) : NULL;
    if (text) { /* otherwise the question comes again */
        (void)snprintf(name, sizeof(name), REPLIES "%s", token);
        pool_publish(pool, name, text, strlen(text));
    }
    free(text);
    json_decref(status);
}

int status_serve(struct feed **ret, struct pool *pool, struct baton_error *reterr)
{
    char channel[POOL_KEY_MAX];

    pool_key(channel, pool->name, QUESTIONS);
    return feed_subscribe(ret, pool->member, channel, on_question, pool, reterr);
}

/* ---- A client -------------------------------------------------------------------------------- */

struct question {
    struct member *member;
    struct feed *replies;
    uv_timer_t timer;
    instant deadline;
    pool_status_cb done;
    void *userdata;
    char pool[POOL_NAME_MAX + 1];
    char token[TOKEN_BYTES + 1];
};

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer->data);
}

static void finish(struct question *question, int code, const json_t *status,
                   const struct baton_error *error)
{
    pool_status_cb done = question->done;
    void *userdata = question->userdata;

    feed_stop(question->replies);
    uv_close((uv_handle_t *)&question->timer, on_timer_closed);
    done(userdata, code, status, error);
}

static void on_reply(void *userdata, const char *channel, const void *data, size_t bytes)
{
    json_t *status = json_load_bytes(data, bytes, 0, NULL);
    (void)channel;

    if (json_is_object(status)) {
        finish(userdata, BATON_OK, status, NULL);
    }
    json_decref(status);
}

static void on_sent(void *userdata, int code, const struct baton_error *error)
{
    (void)userdata;
    (void)code;
    (void)error;
}

static void on_timer(uv_timer_t *timer)
{
    struct question *question = timer->data;
    char channel[POOL_KEY_MAX];
    struct baton_error error;

    if (!member_provider(question->member)) {
        (void)error_set(&error, BATON_ECLOSED, "pool \"%s\": closed", question->pool);
        finish(question, BATON_ECLOSED, NULL, &error);
        return;
    }
    if (!instant_before(clock_now(), question->deadline)) {
        (void)error_set(
            &error, BATON_ETIMEDOUT,
            "pool \"%s\": nobody who leads it has replied; `baton worker` leads a pool, "
            "and runs what is submitted",
            question->pool);
        finish(question, BATON_ETIMEDOUT, NULL, &error);
        return;
    }
    pool_key(channel, question->pool, QUESTIONS);
    /* A question that is not sent is sent again. */
    (void)store_publish(question->member, channel, question->token, TOKEN_BYTES, on_sent, NULL,
                        &error);
}

static void make_token(char ret[static TOKEN_BYTES + 1])
{
    uint64_t number = 0;

    (void)RAND_bytes((unsigned char *)&number, sizeof(number));
    (void)snprintf(ret, TOKEN_BYTES + 1, "%016llx", (unsigned long long)number);
}

int pool_ask_status(struct member *member, const char *pool, instant deadline, pool_status_cb done,
                    void *userdata, struct baton_error *reterr)
{
    int code = pool_name_check(pool, reterr);
    struct question *question = code ? NULL : calloc(1, sizeof(*question));
    char name[sizeof(REPLIES) + TOKEN_BYTES];
    char channel[POOL_KEY_MAX];

    if (!question) {
        return code ? code : error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    question->member = member;
    question->deadline = deadline;
    question->done = done;
    question->userdata = userdata;
    (void)snprintf(question->pool, sizeof(question->pool), "%s", pool);
    make_token(question->token);
    (void)snprintf(name, sizeof(name), REPLIES "%s", question->token);
    pool_key(channel, pool, name);
    code = feed_subscribe(&question->replies, member, channel, on_reply, question, reterr);
    if (code != BATON_OK) {
        free(question);
        return code;
    }
    (void)uv_timer_init(member_loop(member), &question->timer);
    question->timer.data = question;
    (void)uv_timer_start(&question->timer, on_timer, 0, ASK_AGAIN_MS);
    return BATON_OK;
}
