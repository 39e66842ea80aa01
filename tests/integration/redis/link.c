#include "link.h"

#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void on_up(void *userdata, const struct redis_identity *identity)
{
    struct link *link = userdata;

    link->identity = *identity;
    link->ups++;
}

static void on_down(void *userdata, const struct baton_error *error)
{
    struct link *link = userdata;

    link->error = *error;
    link->downs++;
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct link *link = userdata;
    (void)channel;

    snprintf(link->heard, sizeof(link->heard), "%.*s", (int)bytes, (const char *)data);
}

static void on_tick(uv_timer_t *timer)
{
    ++*(int *)timer->data;
}

static int ticks;

void link_turn(struct link *link, int *turns)
{
    int before = ticks;

    (void)uv_run(&link->loop, UV_RUN_ONCE);
    *turns += ticks - before;
    if (*turns > LINK_PATIENCE_MS / 5) {
        fail_msg("waited in vain; the last error: %s; the last answer: %s", link->error.message,
                 link->answer);
    }
}

void link_open(struct link *link, const char *url, const char *channel)
{
    struct redis_address address;
    struct baton_error error = {0};
    struct redis_options options = {.loop = &link->loop,
                                    .address = &address,
                                    .name = "link",
                                    .answer_timeout = SPAN_MS(1000),
                                    .look_interval = SPAN_MS(100),
                                    .callbacks = {.on_up = on_up, .on_down = on_down},
                                    .userdata = link};

    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    memset(link, 0, sizeof(*link));
    assert_int_equal(uv_loop_init(&link->loop), 0);
    assert_int_equal(uv_timer_init(&link->loop, &link->tick), 0);
    link->tick.data = &ticks;
    assert_int_equal(uv_timer_start(&link->tick, on_tick, 5, 5), 0);
    link->log = tmpfile();
    assert_non_null(link->log);
    link->logger = logger_new(fileno(link->log), LOG_FORMAT_HUMAN, LOG_DEBUG);
    assert_non_null(link->logger);
    options.logger = link->logger;
    options.callbacks.on_message = channel ? on_message : NULL;
    if (redis_address_parse(&address, url, &error) != BATON_OK ||
        redis_open(&link->redis, &options, &error) != BATON_OK) {
        fail_msg("%s: %s", url, error.message);
    }
    if (channel) {
        assert_int_equal(redis_subscribe(link->redis, channel), BATON_OK);
    }
}

static void on_closed(void *userdata)
{
    ((struct link *)userdata)->redis = NULL;
}

void link_close(struct link *link)
{
    redis_close(link->redis, on_closed, link);
    LINK_AWAIT(link, !link->redis);
    uv_close((uv_handle_t *)&link->tick, NULL);
    (void)uv_run(&link->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&link->loop), 0);
    logger_free(link->logger);
    fclose(link->log);
}

static void on_reply(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct link *link = userdata;
    (void)tag;
    (void)sent;

    link->answers++;
    link->answer_type = reply ? reply->type : 0;
    link->fault = redis_fault_of(reply);
    if (link->fault != REDIS_FINE) {
        (void)redis_fault_error(reply, &link->answer_error);
    }
    if (reply && reply->str) {
        snprintf(link->answer, sizeof(link->answer), "%s", reply->str);
    } else {
        snprintf(link->answer, sizeof(link->answer), "%lld", reply ? reply->integer : -1);
    }
}

void link_ask(struct link *link, int count, const char **words)
{
    int before = link->answers;

    assert_int_equal(redis_command(link->redis, count, words, NULL, on_reply, link, 0), BATON_OK);
    LINK_AWAIT(link, link->answers > before);
}

bool link_has_logged(struct link *link, const char *text)
{
    char line[2048];
    bool has = false;

    rewind(link->log);
    while (!has && fgets(line, sizeof(line), link->log)) {
        has = strstr(line, text) != NULL;
    }
    fseek(link->log, 0, SEEK_END);
    return has;
}
