#include "fleet/outlets/webhook.h"

#include "base/backoff.h"
#include "base/error.h"
#include "base/version.h"
#include "fleet/outlets/signature.h"
#include "web/client.h"
#include "web/url.h"

#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WITHIN_MS = 10000,
    ANSWER_HEAD_MAX = 8192,
    HEADERS_ROOM = 256,
    STATUS_TIMEOUT = 408,
    STATUS_TOO_MANY = 429,
};

/*   message │ client │ timer
 *   NULL    │ NULL   │ off    nothing to do
 *   set     │ set    │ off    a request is under way
 *   set     │ NULL   │ on     it failed, and waits
 */
struct webhook {
    struct webhook_config config;
    char *url;
    char shown[WEBHOOK_SHOWN_MAX];
    struct queue queue;
    struct message *message;   /* that is being delivered */
    struct web_client *client; /* NULL: none */
    unsigned status;           /* of its answer; 0: none yet */
    unsigned failures;         /* of this message, in a row */
    bool is_failing;           /* it was told since the last success */
    bool is_closing;
    uv_timer_t timer;
    unsigned holds; /* the timer, and the request */
};

/* ---- Its end --------------------------------------------------------------------------------- */

static void release(struct webhook *webhook)
{
    if (--webhook->holds > 0) {
        return;
    }
    webhook->config.on_closed(webhook->config.userdata);
    explicit_bzero(webhook->url, strlen(webhook->url));
    free(webhook->url);
    free(webhook);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void webhook_close(struct webhook *webhook)
{
    webhook->is_closing = true;
    queue_clear(&webhook->queue);
    message_unref(webhook->message);
    webhook->message = NULL;
    if (webhook->client != NULL) {
        web_client_close(webhook->client);
    }
    uv_close((uv_handle_t *)&webhook->timer, on_timer_closed);
}

/* ---- Results --------------------------------------------------------------------------------- */

static void next(struct webhook *webhook);

static void done(struct webhook *webhook, uint64_t *counter)
{
    (*counter)++;
    message_unref(webhook->message);
    webhook->message = NULL;
    webhook->failures = 0;
    next(webhook);
}

static void complain(struct webhook *webhook, const struct baton_error *error)
{
    if (!webhook->is_failing) {
        webhook->is_failing = true;
        webhook->config.on_failed(webhook->config.userdata, webhook->shown, error);
    }
}

static uint32_t any_number(void)
{
    uint32_t number = 0;

    (void)RAND_bytes((unsigned char *)&number, sizeof(number)); /* 0 is a number, too */
    return number;
}

static void on_timer(uv_timer_t *timer);

static void try_later(struct webhook *webhook, const struct baton_error *error)
{
    complain(webhook, error);
    if (++webhook->failures > RETRIES_MAX) {
        done(webhook, &webhook->config.counters->webhook_failed);
    } else {
        span wait = backoff_after(webhook->failures, SPAN_S(RETRY_FIRST_S), SPAN_S(RETRY_MOST_S),
                                  any_number());
        (void)uv_timer_start(&webhook->timer, on_timer, (uint64_t)(wait.ns / 1000000), 0);
    }
}

static bool is_worth_repeating(unsigned status)
{
    return status >= 500 || status == STATUS_TIMEOUT || status == STATUS_TOO_MANY;
}

static void settle(struct webhook *webhook)
{
    struct baton_error error;

    if (webhook->status / 100 == 2) {
        webhook->is_failing = false;
        done(webhook, &webhook->config.counters->webhook_sent);
        return;
    }
    (void)error_set(&error, BATON_EPROTO, "it answers with status %u", webhook->status);
    if (is_worth_repeating(webhook->status)) {
        try_later(webhook, &error);
    } else {
        complain(webhook, &error);
        done(webhook, &webhook->config.counters->webhook_failed);
    }
}

static void on_response(void *userdata, const struct web_response *response)
{
    struct webhook *webhook = userdata;

    webhook->status = response->status;
}

/* The message of web/client.h begins with the URL, whose path may be secret. */
static void fail(struct webhook *webhook, const struct baton_error *error)
{
    struct baton_error bare;
    struct web_url url;
    const char *text = error->message;
    size_t bytes = web_url_parse(&url, webhook->url, NULL) == BATON_OK ? strlen(url.shown) : 0;

    if (strncmp(text, url.shown, bytes) == 0 && strncmp(text + bytes, ": ", 2) == 0) {
        text += bytes + 2;
    } else {
        text = baton_strerror(error->code);
    }
    (void)error_set(&bare, error->code, "%s", text);
    try_later(webhook, &bare);
}

static void on_close(void *userdata, const struct baton_error *error)
{
    struct webhook *webhook = userdata;

    webhook->client = NULL;
    if (!webhook->is_closing) {
        if (webhook->status != 0) {
            settle(webhook);
        } else {
            fail(webhook, error);
        }
    }
    release(webhook);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool put_headers(const struct webhook *webhook, char ret[static HEADERS_ROOM])
{
    const int64_t now_s = (int64_t)time(NULL);
    char signature[SIGNATURE_ROOM];
    int used = snprintf(ret, HEADERS_ROOM,
                        "content-type: application/json\r\nuser-agent: baton-fleet/%s\r\n"
                        "baton-timestamp: %" PRId64 "\r\n",
                        BATON_VERSION_TEXT, now_s);

    if (webhook->config.secret == NULL) {
        return true;
    }
    if (!signature_of(signature, webhook->config.secret, now_s, webhook->message->body,
                      webhook->message->bytes)) {
        return false;
    }
    (void)snprintf(ret + used, HEADERS_ROOM - (size_t)used, "baton-signature: %s\r\n", signature);
    return true;
}

static void post(struct webhook *webhook)
{
    char headers[HEADERS_ROOM];
    struct baton_error error = {.code = BATON_ENOMEM, .message = "out of memory"};
    struct web_client_options options = {
        .loop = webhook->config.loop,
        .url = webhook->url,
        .tls = webhook->config.tls,
        .method = "POST",
        .headers = headers,
        .body = webhook->message->body,
        .bytes = webhook->message->bytes,
        .head_max = ANSWER_HEAD_MAX,
        .wants_head_only = true,
        .within_ms = WITHIN_MS,
        .callbacks = {.on_response = on_response, .on_close = on_close},
        .userdata = webhook};

    webhook->status = 0;
    webhook->config.counters->webhook_retries += webhook->failures > 0;
    if (put_headers(webhook, headers) &&
        web_client_open(&webhook->client, &options, &error) == BATON_OK) {
        webhook->holds++;
    } else {
        fail(webhook, &error);
    }
}

static void on_timer(uv_timer_t *timer)
{
    post(timer->data);
}

static void next(struct webhook *webhook)
{
    webhook->message = queue_take(&webhook->queue);
    if (webhook->message != NULL) {
        post(webhook);
    }
}

void webhook_put(struct webhook *webhook, struct message *message)
{
    webhook->config.counters->webhook_dropped += !queue_put(&webhook->queue, message);
    if (webhook->message == NULL) {
        next(webhook);
    }
}

/* ---- Its beginning --------------------------------------------------------------------------- */

void webhook_shown(char ret[static WEBHOOK_SHOWN_MAX], const char *text)
{
    struct web_url url;
    bool is_url = web_url_parse(&url, text, NULL) == BATON_OK;

    if (is_url) {
        (void)snprintf(ret, WEBHOOK_SHOWN_MAX, "%s://%s/***", url.is_tls ? "https" : "http",
                       url.authority);
    } else {
        (void)snprintf(ret, WEBHOOK_SHOWN_MAX, "***");
    }
}

static int check(const char *text, struct baton_error *reterr)
{
    struct web_url url;

    if (web_url_parse(&url, text, NULL) == BATON_OK && !url.is_socket) {
        return BATON_OK;
    }
    return error_set(
        reterr, BATON_EINVAL,
        "--webhook: a URL must be http://HOST[:PORT]/PATH or https://…, at most %d "
        "bytes, without blanks and without a user; a token may be in its path or query",
        WEB_URL_MAX);
}

int webhook_open(struct webhook **ret, const struct webhook_config *config,
                 struct baton_error *reterr)
{
    struct webhook *webhook;
    int code = check(config->url, reterr);

    if (code != BATON_OK) {
        return code;
    }
    webhook = calloc(1, sizeof(*webhook));
    if (webhook == NULL || (webhook->url = strdup(config->url)) == NULL) {
        free(webhook);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a webhook");
    }
    webhook->config = *config;
    webhook->config.url = NULL; /* borrowed */
    webhook_shown(webhook->shown, webhook->url);
    webhook->holds = 1;
    (void)uv_timer_init(config->loop, &webhook->timer); /* cannot fail */
    webhook->timer.data = webhook;
    *ret = webhook;
    return BATON_OK;
}
