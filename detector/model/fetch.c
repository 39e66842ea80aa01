#include "detector/model/fetch.h"

#include "base/clock.h"
#include "base/error.h"
#include "detector/camera/dial.h"
#include "detector/model/address.h"
#include "detector/model/fetch_file.h"
#include "detector/model/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { REDIRECTS_MAX = 4, RETRY_DOUBLINGS = 5, OTHER_BODY_MAX = 64 << 10 };

_Static_assert((int)ETAG_BYTES == (int)REPLY_ETAG_BYTES,
               "an ETag is as long in an answer as in the cache");

struct fetch {
    struct transfers *transfers;
    const struct fetch_rules *rules;
    struct transfer transfer;
    struct fetch_file file;
    uv_timer_t timer;
    struct curl_slist *headers;
    struct address address;
    char *url;
    char known[ETAG_BYTES];     /* ETag of the archive that the caller has */
    char validator[ETAG_BYTES]; /* of the bytes that came already; "": these cannot be resumed */
    struct reply reply;
    uint64_t other_bytes;    /* of a body that is not the file */
    bool is_judged, is_file; /* the body's first bytes came; the body is the file */
    bool is_known;           /* the file has the ETag `known` */
    bool is_changed;         /* the file is another one than the bytes that came already */
    instant deadline;
    uint64_t bytes_best; /* the most bytes that a try has reached */
    int asked, fruitless, redirects;
    bool is_running, is_over, is_paused, is_stopped, is_address_refused;
    bool is_renewed; /* the address was renewed since this try began */
    CURLcode result;
    struct baton_error error; /* of a callback that gave the transfer up; code 0: none did */
    fetch_end on_end;
    void *userdata;
};

static void begin(struct fetch *fetch);
static void on_retry(uv_timer_t *timer);
static void judge(struct fetch *fetch);

struct fetch_rules fetch_rules_default(void)
{
    return (struct fetch_rules){.bytes_max = 1U << 30,
                                .connect_ms = 10000,
                                .silent_ms = 30000,
                                .total_ms = 15 * 60 * 1000,
                                .tries_max = 5,
                                .retry_ms = 500};
}

/* ---- The end -------------------------------------------------------------------------------- */

static void free_fetch(struct fetch *fetch)
{
    curl_easy_cleanup(fetch->transfer.easy);
    curl_slist_free_all(fetch->headers);
    fetch_file_fini(&fetch->file);
    free(fetch->url);
    free(fetch);
}

static void on_closed(uv_handle_t *handle)
{
    free_fetch(handle->data);
}

/* While a thread of libuv writes, the close waits: see on_step(). */
static void close_when_idle(struct fetch *fetch)
{
    if (fetch_file_is_idle(&fetch->file)) {
        uv_close((uv_handle_t *)&fetch->timer, on_closed);
    }
}

static void end(struct fetch *fetch, const struct fetch_result *result,
                const struct baton_error *error)
{
    fetch_end on_end = fetch->on_end;
    void *userdata = fetch->userdata;

    fetch_stop(fetch);
    on_end(userdata, result, error);
}

/* Ends the fetch with an error that another try would not mend. */
static void fail(struct fetch *fetch, int code, const char *why)
{
    struct fetch_result result = {.asked = fetch->asked};
    bool is_large = code == BATON_ETOOBIG && fetch->reply.etag[0] != '\0';
    struct baton_error error;

    (void)snprintf(result.etag, sizeof(result.etag), "%s", fetch->reply.etag);
    (void)error_set(&error, code, "model from %s: %s", fetch->address.url.masked, why);
    end(fetch, is_large ? &result : NULL, &error);
}

void fetch_stop(struct fetch *fetch)
{
    fetch->is_stopped = true;
    if (fetch->is_running) {
        transfer_stop(fetch->transfers, &fetch->transfer);
        fetch->is_running = false;
    }
    (void)uv_timer_stop(&fetch->timer);
    close_when_idle(fetch);
}

/* ---- Headers and body ----------------------------------------------------------------------- */

static long status_of(const struct fetch *fetch)
{
    long status = 0;

    (void)curl_easy_getinfo(fetch->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static size_t on_header(char *bytes, size_t one, size_t count, void *userdata)
{
    struct fetch *fetch = userdata;

    reply_line(&fetch->reply, bytes, one * count);
    return one * count;
}

/* Gives the transfer up; judge() reports the error. */
static size_t give_up(struct fetch *fetch, int code, const char *why)
{
    (void)error_set(&fetch->error, code, "%s", why);
    return CURL_WRITEFUNC_ERROR;
}

/* Judges an answer by its headers: whether its body is the file, and continues it where it ends.
 * Not 0: the rest of the body is not wanted. */
static int judge_answer(struct fetch *fetch)
{
    const struct reply *reply = &fetch->reply;
    uint64_t have = fetch_file_bytes(&fetch->file);
    long status = status_of(fetch);

    fetch->is_judged = true;
    fetch->is_file = status == 200 || status == 206;
    if (status == 206 && (reply->range_start < 0 || (uint64_t)reply->range_start != have)) {
        return error_set(&fetch->error, BATON_EPROTO, "the server sends another part than asked");
    }
    if (status == 206 && have > 0 && reply->etag[0] != '\0' &&
        strcmp(reply->etag, fetch->validator) != 0) {
        fetch->is_changed = true; /* the server ignores If-Range */
        return BATON_ECONFLICT;
    }
    if (status == 200 && have > 0) { /* the file has changed, or the server cannot send parts */
        int rc = fetch_file_clear(&fetch->file);
        if (rc != 0) {
            return error_set(&fetch->error, rc, "the file cannot be emptied");
        }
    }
    fetch->is_known =
        status == 200 && fetch->known[0] != '\0' && strcmp(reply->etag, fetch->known) == 0;
    if (fetch->is_file) { /* a weak ETag does not promise the same bytes */
        (void)snprintf(fetch->validator, sizeof(fetch->validator), "%s",
                       reply->etag[0] == '"' ? reply->etag : "");
    }
    return 0;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *userdata)
{
    struct fetch *fetch = userdata;
    size_t length = one * count;

    if (!fetch->is_judged && judge_answer(fetch) != 0) {
        return CURL_WRITEFUNC_ERROR;
    }
    if (fetch->is_known) { /* the server ignores If-None-Match */
        return CURL_WRITEFUNC_ERROR;
    }
    if (!fetch->is_file) {
        fetch->other_bytes += length;
        return fetch->other_bytes <= OTHER_BODY_MAX ? length : CURL_WRITEFUNC_ERROR;
    }
    if (fetch->file.code != 0) {
        return give_up(fetch, fetch->file.code, "it cannot be written to the disk");
    }
    if (fetch_file_bytes(&fetch->file) + length > fetch->rules->bytes_max) {
        return give_up(fetch, BATON_ETOOBIG, "it is larger than a model archive may be");
    }
    if (!fetch_file_put(&fetch->file, bytes, length)) {
        fetch->is_paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return length;
}

static void on_step(struct fetch_file *file)
{
    struct fetch *fetch = (struct fetch *)((char *)file - offsetof(struct fetch, file));

    if (fetch->is_stopped) {
        close_when_idle(fetch);
    } else if (fetch->is_over) {
        judge(fetch);
    } else if (fetch->is_paused) {
        fetch->is_paused = false;
        (void)curl_easy_pause(fetch->transfer.easy, CURLPAUSE_CONT);
    }
}

static curl_socket_t on_open_socket(void *userdata, curlsocktype purpose,
                                    struct curl_sockaddr *address)
{
    struct fetch *fetch = userdata;

    (void)purpose;
    if (!dial_is_allowed(&address->addr, address->addrlen)) {
        fetch->is_address_refused = true;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* ---- One try -------------------------------------------------------------------------------- */

static CURLcode set_headers(struct fetch *fetch, CURL *easy, uint64_t have)
{
    char line[ETAG_BYTES + 32];
    struct curl_slist *headers = NULL;

    if (have > 0) {
        (void)snprintf(line, sizeof(line), "If-Range: %s", fetch->validator);
        headers = curl_slist_append(NULL, line);
    } else if (fetch->known[0] != '\0') {
        (void)snprintf(line, sizeof(line), "If-None-Match: %s", fetch->known);
        headers = curl_slist_append(NULL, line);
    }
    if (headers == NULL && (have > 0 || fetch->known[0] != '\0')) {
        return CURLE_OUT_OF_MEMORY;
    }
    curl_slist_free_all(fetch->headers);
    fetch->headers = headers;
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

static CURLcode set_up_try(struct fetch *fetch, uint64_t have, long left_ms)
{
    const struct fetch_rules *rules = fetch->rules;
    CURL *easy = fetch->transfer.easy;
    char range[32];
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_URL, fetch->url);

    (void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)have);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_RANGE, have > 0 ? range : NULL);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, left_ms);
    rc = rc ? rc
            : curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE,
                               (curl_off_t)(rules->bytes_max - have));
    return rc ? rc : set_headers(fetch, easy, have);
}

static CURLcode set_up(struct fetch *fetch)
{
    const struct fetch_rules *rules = fetch->rules;
    CURL *easy = fetch->transfer.easy;
    long silent_s = (rules->silent_ms + 999) / 1000;
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");

    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L); /* see redirect() */
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);     /* the path may be signed */
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_PROXY, "");
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC | CURLAUTH_DIGEST);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)rules->connect_ms);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, silent_s);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_USERAGENT, "baton-detector");
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetch);
    if (rc == CURLE_OK && rules->ca_file != NULL) {
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO, rules->ca_file);
    }
    return rc;
}

static void begin(struct fetch *fetch)
{
    int64_t left_ms = instant_since(fetch->deadline, clock_now()).ns / 1000000;
    uint64_t have = fetch_file_bytes(&fetch->file);

    if (left_ms <= 0) {
        fail(fetch, BATON_ETIMEDOUT, "it takes longer than is allowed");
        return;
    }
    if (have > 0 && fetch->validator[0] == '\0') {
        (void)fetch_file_clear(&fetch->file);
        have = 0;
    }
    reply_init(&fetch->reply);
    fetch->other_bytes = 0;
    fetch->is_judged = fetch->is_file = fetch->is_known = fetch->is_changed = false;
    fetch->is_over = fetch->is_paused = fetch->is_renewed = false;
    fetch->asked++;
    if (set_up_try(fetch, have, (long)left_ms) != CURLE_OK ||
        transfer_start(fetch->transfers, &fetch->transfer, NULL) != 0) {
        fail(fetch, BATON_ENOMEM, "out of memory");
        return;
    }
    fetch->is_running = true;
}

static void on_retry(uv_timer_t *timer)
{
    begin(timer->data);
}

/* Tries again later, unless the last `tries_max` tries brought nothing. */
static void retry(struct fetch *fetch, int code, const char *why)
{
    uint64_t wait_ms = (uint64_t)fetch->rules->retry_ms;
    uint64_t have = fetch_file_bytes(&fetch->file);

    fetch->fruitless = have > fetch->bytes_best ? 0 : fetch->fruitless + 1;
    fetch->bytes_best = have > fetch->bytes_best ? have : fetch->bytes_best;
    if (fetch->fruitless >= fetch->rules->tries_max) {
        fail(fetch, code, why);
        return;
    }
    wait_ms <<= fetch->fruitless < RETRY_DOUBLINGS ? fetch->fruitless : RETRY_DOUBLINGS;
    if (uv_timer_start(&fetch->timer, on_retry, wait_ms, 0) != 0) {
        fail(fetch, BATON_EIO, why);
    }
}

void fetch_renew(struct fetch *fetch, const char *url)
{
    struct address address;
    char *copy = NULL;

    if (address_parse(&address, url, fetch->rules->hosts, NULL) != 0 ||
        (copy = strdup(url)) == NULL) {
        return;
    }
    free(fetch->url);
    fetch->url = copy;
    fetch->address = address;
    fetch->is_renewed = true;
    fetch->redirects = fetch->fruitless = 0;
    if (uv_is_active((uv_handle_t *)&fetch->timer)) { /* it waits for its next try */
        (void)uv_timer_start(&fetch->timer, on_retry, 0, 0);
    }
}

/* ---- The outcome of a try ------------------------------------------------------------------- */

static void redirect(struct fetch *fetch)
{
    struct address address;
    struct baton_error error;
    char *target = NULL;

    (void)curl_easy_getinfo(fetch->transfer.easy, CURLINFO_REDIRECT_URL, &target);
    if (target == NULL || ++fetch->redirects > REDIRECTS_MAX) {
        fail(fetch, BATON_EPROTO, "it is redirected to nowhere, or too often");
        return;
    }
    if (address_parse(&address, target, fetch->rules->hosts, &error) != 0) {
        fail(fetch, error.code, error.message);
        return;
    }
    if (fetch->address.is_https && !address.is_https) {
        fail(fetch, BATON_EAUTH, "it is redirected from https to http, where all could read it");
        return;
    }
    target = strdup(target);
    if (target == NULL) {
        fail(fetch, BATON_ENOMEM, "out of memory");
        return;
    }
    free(fetch->url);
    fetch->url = target;
    fetch->address = address;
    begin(fetch);
}

static void succeed(struct fetch *fetch, enum fetch_outcome outcome)
{
    struct fetch_result result = {.outcome = outcome, .asked = fetch->asked};

    result.bytes = fetch_file_bytes(&fetch->file);
    (void)snprintf(result.etag, sizeof(result.etag), "%s",
                   outcome == FETCH_SAME ? fetch->known : fetch->reply.etag);
    end(fetch, &result, NULL);
}

static void judge_status(struct fetch *fetch, long status)
{
    char why[96];

    (void)snprintf(why, sizeof(why), "the server answers %ld in place of 200", status);
    if (status == 304 && fetch->known[0] != '\0' && fetch_file_bytes(&fetch->file) == 0) {
        succeed(fetch, FETCH_SAME);
    } else if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
        redirect(fetch);
    } else if (fetch->is_renewed && status >= 400) {
        begin(fetch); /* the old address was refused; try the renewed one */
    } else if (status == 401 || status == 403) {
        fail(fetch, BATON_EAUTH, "the server refuses: its signature may be too old, or wrong");
    } else if (status == 404 || status == 410) {
        fail(fetch, BATON_ENOENT, "the server does not have it");
    } else if (status == 416) { /* the local file is longer than the server's */
        fetch->validator[0] = '\0';
        retry(fetch, BATON_EPROTO, why);
    } else if (status == 408 || status == 429 || status >= 500) {
        retry(fetch, BATON_EUNAVAILABLE, why);
    } else {
        fail(fetch, BATON_EPROTO, why);
    }
}

static void judge_result(struct fetch *fetch)
{
    CURLcode result = fetch->result;

    switch (result) {
    case CURLE_FILESIZE_EXCEEDED:
        fail(fetch, BATON_ETOOBIG, "it is larger than a model archive may be");
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        fail(fetch, BATON_EAUTH, curl_easy_strerror(result));
        break;
    case CURLE_OUT_OF_MEMORY:
        fail(fetch, BATON_ENOMEM, "out of memory");
        break;
    case CURLE_OPERATION_TIMEDOUT:
        retry(fetch, BATON_ETIMEDOUT, "the server is silent");
        break;
    default:
        retry(fetch, BATON_EUNAVAILABLE, curl_easy_strerror(result));
    }
}

/* True if the status decides: the answer has no file. Its body may be an endless error page. */
static bool is_other_answer(const struct fetch *fetch, long status)
{
    return fetch->result == CURLE_OK ? status != 200 && status != 206
                                     : fetch->result == CURLE_WRITE_ERROR && !fetch->is_file;
}

static void judge_try(struct fetch *fetch)
{
    const struct reply *reply = &fetch->reply;
    long status = status_of(fetch);

    if (fetch->is_address_refused) {
        fail(fetch, BATON_EAUTH, "its address is not one that models may come from");
    } else if (is_other_answer(fetch, status)) {
        judge_status(fetch, status);
    } else if (fetch->result != CURLE_OK) {
        judge_result(fetch);
    } else if (reply->range_total >= 0 &&
               fetch_file_bytes(&fetch->file) != (uint64_t)reply->range_total) {
        retry(fetch, BATON_EUNAVAILABLE, "only a part of it came");
    } else {
        succeed(fetch, FETCH_NEW);
    }
}

/* Judges the try once all bytes are on the disk, or their write has failed. */
static void judge(struct fetch *fetch)
{
    long status = status_of(fetch);

    if (!fetch_file_is_idle(&fetch->file)) {
        return; /* on_step() calls again */
    }
    fetch->is_over = false;
    if (fetch->result == CURLE_OK && (status == 200 || status == 206) && !fetch->is_judged) {
        (void)judge_answer(fetch); /* the answer had no body; the error is in `error` */
    }
    if (fetch->error.code != 0) {
        char why[BATON_ERROR_MESSAGE_MAX];
        (void)snprintf(why, sizeof(why), "%s", fetch->error.message);
        fail(fetch, fetch->error.code, why);
    } else if (fetch->is_known) {
        succeed(fetch, FETCH_SAME);
    } else if (fetch->is_changed) {
        fetch->validator[0] = '\0'; /* from the start */
        retry(fetch, BATON_EUNAVAILABLE, "it becomes another file while it is fetched");
    } else if (fetch->file.code != 0) {
        fail(fetch, fetch->file.code, "it cannot be written to the disk");
    } else {
        judge_try(fetch);
    }
}

static void on_transfer_end(struct transfer *transfer, CURLcode result)
{
    struct fetch *fetch = (struct fetch *)((char *)transfer - offsetof(struct fetch, transfer));

    fetch->is_running = false;
    fetch->is_over = true;
    fetch->result = result;
    judge(fetch);
}

/* ---- The beginning -------------------------------------------------------------------------- */

static int init(struct fetch *fetch, uv_loop_t *loop, const char *url, int file_fd,
                struct baton_error *reterr)
{
    int rc = fetch_file_init(&fetch->file, loop, file_fd, reterr);

    if (rc != 0) {
        return rc;
    }
    fetch->file.on_step = on_step;
    fetch->url = strdup(url);
    fetch->transfer.easy = curl_easy_init();
    fetch->transfer.on_end = on_transfer_end;
    if (fetch->url == NULL || fetch->transfer.easy == NULL || set_up(fetch) != CURLE_OK ||
        uv_timer_init(loop, &fetch->timer) != 0) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a fetch");
    }
    fetch->timer.data = fetch;
    return 0;
}

int fetch_start(struct fetch **ret, struct transfers *transfers, uv_loop_t *loop,
                const struct fetch_rules *rules, const char *url, const char *etag, int file_fd,
                fetch_end on_end, void *userdata, struct baton_error *reterr)
{
    struct address address;
    struct fetch *fetch;
    int rc = address_parse(&address, url, rules->hosts, reterr);

    if (rc != 0) {
        return rc;
    }
    fetch = calloc(1, sizeof(*fetch));
    if (fetch == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a fetch");
    }
    fetch->file.fd = -1;
    fetch->transfers = transfers;
    fetch->rules = rules;
    fetch->address = address;
    fetch->on_end = on_end;
    fetch->userdata = userdata;
    fetch->deadline = instant_add(clock_now(), SPAN_MS(rules->total_ms));
    reply_etag(fetch->known, etag, strlen(etag));
    rc = init(fetch, loop, url, file_fd, reterr);
    if (rc != 0) {
        free_fetch(fetch);
        return rc;
    }
    /* The timer starts it, so that no callback runs before the caller has the fetch. */
    if (uv_timer_start(&fetch->timer, on_retry, 0, 0) != 0) {
        uv_close((uv_handle_t *)&fetch->timer, on_closed);
        return error_set(reterr, BATON_EIO, "a timer cannot be started");
    }
    *ret = fetch;
    return 0;
}
