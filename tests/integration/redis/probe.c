#include "probe.h"

#include "cmocka_all.h"
#include "lib/patience.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void on_up(void *userdata, const struct redis_identity *identity)
{
    struct probe *probe = userdata;

    probe->identity = *identity;
    probe->ups++;
}

static void on_down(void *userdata, const struct baton_error *error)
{
    struct probe *probe = userdata;

    probe->error = *error;
    probe->downs++;
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct probe *probe = userdata;

    snprintf(probe->heard, sizeof(probe->heard), "%.*s", (int)bytes, (const char *)data);
}

static void on_tick(uv_timer_t *timer)
{
    ++*(int *)timer->data;
}

static int ticks;

void probe_turn(struct probe *probe, int *turns)
{
    int before = ticks;

    (void)uv_run(&probe->loop, UV_RUN_ONCE);
    *turns += ticks - before;
    if (*turns > PATIENCE_MS / 5) {
        fail_msg("waited in vain; the last error: %s; the last answer: %s", probe->error.message,
                 probe->answer);
    }
}

void probe_open(struct probe *probe, const char *url, const char *channel)
{
    struct redis_address address;
    struct baton_error error = {0};
    struct redis_options options = {.loop = &probe->loop,
                                    .address = &address,
                                    .name = "probe",
                                    .answer_timeout = SPAN_S(4),
                                    .look_interval = SPAN_MS(100),
                                    .callbacks = {.on_up = on_up, .on_down = on_down},
                                    .userdata = probe};

    (void)signal(SIGPIPE, SIG_IGN); /* as every program of a loop does */
    memset(probe, 0, sizeof(*probe));
    assert_int_equal(uv_loop_init(&probe->loop), 0);
    assert_int_equal(uv_timer_init(&probe->loop, &probe->tick), 0);
    probe->tick.data = &ticks;
    assert_int_equal(uv_timer_start(&probe->tick, on_tick, 5, 5), 0);
    probe->log = tmpfile();
    assert_non_null(probe->log);
    probe->logger = logger_new(fileno(probe->log), LOG_FORMAT_HUMAN, LOG_DEBUG);
    assert_non_null(probe->logger);
    options.logger = probe->logger;
    options.callbacks.on_message = channel ? on_message : NULL;
    if (redis_address_parse(&address, url, &error) != BATON_OK ||
        redis_open(&probe->redis, &options, &error) != BATON_OK) {
        fail_msg("%s: %s", url, error.message);
    }
    if (channel) {
        assert_int_equal(redis_subscribe(probe->redis, channel), BATON_OK);
    }
}

static void on_closed(void *userdata)
{
    ((struct probe *)userdata)->redis = NULL;
}

void probe_close(struct probe *probe)
{
    redis_close(probe->redis, on_closed, probe);
    PROBE_AWAIT(probe, !probe->redis);
    uv_close((uv_handle_t *)&probe->tick, NULL);
    (void)uv_run(&probe->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&probe->loop), 0);
    logger_free(probe->logger);
    fclose(probe->log);
}

static void on_reply(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct probe *probe = userdata;

    probe->answers++;
    probe->answer_type = reply ? reply->type : 0;
    probe->fault = redis_fault_of(reply);
    if (probe->fault != REDIS_FINE) {
        (void)redis_fault_error(reply, &probe->answer_error);
    }
    if (reply && reply->str) {
        snprintf(probe->answer, sizeof(probe->answer), "%s", reply->str);
    } else {
        snprintf(probe->answer, sizeof(probe->answer), "%lld", reply ? reply->integer : -1);
    }
}

void probe_ask(struct probe *probe, int count, const char **words)
{
    int before = probe->answers;

    assert_int_equal(redis_command(probe->redis, count, words, NULL, on_reply, probe, 0), BATON_OK);
    PROBE_AWAIT(probe, probe->answers > before);
}

bool probe_has_logged(struct probe *probe, const char *text)
{
    char line[2048];
    bool has = false;

    rewind(probe->log);
    while (!has && fgets(line, sizeof(line), probe->log)) {
        has = strstr(line, text) != NULL;
    }
    fseek(probe->log, 0, SEEK_END);
    return has;
}
