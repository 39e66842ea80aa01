#include "detector/model/fetch.h"

#include "base/clock.h"
#include "base/error.h"
#include "detector/camera/dial.h"
#include "detector/model/address.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

enum { REDIRECTS_MAX = 4, RETRY_DOUBLINGS = 5, OTHER_BODY_MAX = 64 << 10, POLL_MS = 1000 };

/* What follows a try. */
enum verdict { VERDICT_DONE, VERDICT_FAILED, VERDICT_AGAIN, VERDICT_LATER };

struct fetch {
    const struct fetch_rules *rules;
    CURL *easy;
    CURLM *multi;
    atomic_bool is_stopped;
    uv_mutex_t lock;
    char *latest;  /* under the lock: the address of the newest list */
    bool is_fresh; /* under the lock: no try has used it yet */

    /* Of the thread that runs it. */
    struct curl_slist *headers;
    char *url;
    struct url first, at;       /* the address that was named; the one to which redirects led */
    int fd;                     /* borrowed */
    uint64_t bytes, bytes_best; /* in the file; the most that a try has reached */
    char known[ETAG_BYTES];     /* of the archive that the caller has */
    char validator[ETAG_BYTES]; /* of the bytes in the file; "": these cannot be continued */
    char etag[ETAG_BYTES];      /* of the last reply */
    int64_t total;              /* of the file, as a reply with a part says; -1: unknown */
    uint64_t other_bytes;       /* of a body that is not the file */
    bool is_judged, is_file;    /* the body's first bytes came; the body is the file */
    bool is_same;               /* the file has the ETag `known` */
    bool is_changed;            /* the file is another one than the bytes that came already */
    const char *refusal;        /* why an address was not dialled; NULL: all were */
    int asked, fruitless, redirects;
    struct baton_error error; /* code 0: none, or another try may mend it */
};

struct fetch_rules fetch_rules_default(void)
{
    return (struct fetch_rules){.bytes_max = 1U << 30,
                                .connect_ms = 10000,
                                .silent_ms = 30000,
                                .total_ms = 15 * 60 * 1000,
                                .tries_max = 5,
                                .retry_ms = 500};
}

const atomic_bool *fetch_is_stopped(const struct fetch *fetch)
{
    return &fetch->is_stopped;
}

const char *fetch_shown(const struct fetch *fetch)
{
    return fetch->at.masked;
}

/* An error that another try would not mend. */
static enum verdict fail(struct fetch *fetch, int code, const char *why)
{
    (void)error_set(&fetch->error, code, "%s", why);
    return VERDICT_FAILED;
}

/* ---- The reply ------------------------------------------------------------------------------ */

static long status_of(const struct fetch *fetch)
{
    long status = 0;

    (void)curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* The header's value; "": there is none. */
static const char *header_of(const struct fetch *fetch, const char *name)
{
    struct curl_header *header;

    return curl_easy_header(fetch->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK
               ? header->value
               : "";
}

/* Takes an ETag that can be sent back in a header; another one counts as none. */
static void take_etag(char ret[ETAG_BYTES], const char *value)
{
    size_t bytes = strlen(value);

    for (const char *c = value; *c != '\0'; c++) {
        bytes = *c > 0x20 && *c < 0x7f ? bytes : ETAG_BYTES;
    }
    (void)snprintf(ret, ETAG_BYTES, "%s", bytes < ETAG_BYTES ? value : "");
}

/* "bytes 100-199/200": true if the part begins where our bytes end. */
static bool continues(struct fetch *fetch)
{
    const char *range = header_of(fetch, "Content-Range");
    const char *slash = strchr(range, '/');
    char want[32];

    (void)snprintf(want, sizeof(want), "bytes %llu-", (unsigned long long)fetch->bytes);
    fetch->total = slash != NULL && slash[1] != '*' ? strtoll(slash + 1, NULL, 10) : -1;
    return strncasecmp(range, want, strlen(want)) == 0;
}

static enum verdict clear_file(struct fetch *fetch)
{
    fetch->bytes = 0;
    return ftruncate(fetch->fd, 0) == 0
               ? VERDICT_DONE
               : fail(fetch, error_from_errno(errno), "the file cannot be emptied");
}

/* Judges a reply by its head: whether its body is the file, and continues ours. False: the body is
 * not wanted. */
static bool judge_head(struct fetch *fetch)
{
    long status = status_of(fetch);

    fetch->is_judged = true;
    fetch->is_file = status == 200 || status == 206;
    take_etag(fetch->etag, header_of(fetch, "ETag"));
    if (status == 206 && !continues(fetch)) {
        (void)fail(fetch, BATON_EPROTO, "the server sends another part than asked");
    } else if (status == 206 && fetch->bytes > 0 && fetch->etag[0] != '\0' &&
               strcmp(fetch->etag, fetch->validator) != 0) {
        fetch->is_changed = true; /* the server ignores If-Range */
    } else if (status == 200 && fetch->known[0] != '\0' && !strcmp(fetch->etag, fetch->known)) {
        fetch->is_same = true; /* the server ignores If-None-Match */
    } else if (status == 200 && fetch->bytes > 0) {
        (void)clear_file(fetch); /* the file has changed, or the server cannot send parts */
    }
    if (fetch->is_file) { /* a weak ETag does not promise the same bytes */
        (void)snprintf(fetch->validator, ETAG_BYTES, "%s",
                       fetch->etag[0] == '"' ? fetch->etag : "");
    }
    return fetch->error.code == 0 && !fetch->is_changed && !fetch->is_same;
}

static bool put(struct fetch *fetch, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = pwrite(fetch->fd, bytes, count, (off_t)fetch->bytes);

        if (done < 0 && errno != EINTR) {
            (void)fail(fetch, error_from_errno(errno), "it cannot be written to the disk");
            return false;
        }
        done = done > 0 ? done : 0;
        bytes += done;
        count -= (size_t)done;
        fetch->bytes += (uint64_t)done;
    }
    return true;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *userdata)
{
    struct fetch *fetch = userdata;
    size_t length = one * count;

    if (!fetch->is_judged && !judge_head(fetch)) {
        return CURL_WRITEFUNC_ERROR;
    }
    if (!fetch->is_file) { /* libcurl tells where a redirect leads only once its body has come */
        fetch->other_bytes += length;
        return fetch->other_bytes <= OTHER_BODY_MAX ? length : CURL_WRITEFUNC_ERROR;
    }
    if (fetch->bytes + length > fetch->rules->bytes_max) {
        (void)fail(fetch, BATON_ETOOBIG, "it is larger than a model archive may be");
        return CURL_WRITEFUNC_ERROR;
    }
    return put(fetch, bytes, length) ? length : CURL_WRITEFUNC_ERROR;
}

static curl_socket_t on_open_socket(void *userdata, curlsocktype purpose,
                                    struct curl_sockaddr *address)
{
    struct fetch *fetch = userdata;
    bool is_elsewhere =
        strcasecmp(fetch->at.host, fetch->first.host) != 0 || fetch->at.port != fetch->first.port;

    (void)purpose;
    if (!dial_is_allowed(&address->addr, address->addrlen)) {
        fetch->refusal = "its address is not one that models may come from";
    } else if (is_elsewhere && !fetch->rules->leads_inside && address_is_private(&address->addr)) {
        fetch->refusal = "it is redirected into a private network: name that address in the "
                         "subscription, or allow it with --model-redirect-private";
    } else {
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    }
    return CURL_SOCKET_BAD;
}

/* ---- One try -------------------------------------------------------------------------------- */

static CURLcode set_condition(struct fetch *fetch)
{
    const char *name = fetch->bytes > 0 ? "If-Range" : "If-None-Match";
    const char *etag = fetch->bytes > 0 ? fetch->validator : fetch->known;
    char line[ETAG_BYTES + 32];

    curl_slist_free_all(fetch->headers);
    fetch->headers = NULL;
    (void)snprintf(line, sizeof(line), "%s: %s", name, etag);
    if (etag[0] != '\0' && (fetch->headers = curl_slist_append(NULL, line)) == NULL) {
        return CURLE_OUT_OF_MEMORY;
    }
    return curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers);
}

static CURLcode set_up_try(struct fetch *fetch, int64_t left_ms)
{
    uint64_t room = fetch->rules->bytes_max - fetch->bytes;
    CURL *easy = fetch->easy;
    char range[32];
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_URL, fetch->url);

    (void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)fetch->bytes);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_RANGE, fetch->bytes > 0 ? range : NULL);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)left_ms);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)room);
    return rc ? rc : set_condition(fetch);
}

static CURLcode set_up(struct fetch *fetch)
{
    const struct fetch_rules *rules = fetch->rules;
    CURL *easy = fetch->easy;
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
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetch);
    if (rc == CURLE_OK && rules->ca_file != NULL) {
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO, rules->ca_file);
    }
    return rc;
}

/* curl_easy_perform(), except that fetch_stop() ends it. */
static CURLcode perform(struct fetch *fetch)
{
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    const CURLMsg *message;
    int running = 1, left;

    if (curl_multi_add_handle(fetch->multi, fetch->easy) != CURLM_OK) {
        return CURLE_OUT_OF_MEMORY;
    }
    while (running > 0 && !atomic_load(&fetch->is_stopped) &&
           curl_multi_perform(fetch->multi, &running) == CURLM_OK && running > 0) {
        (void)curl_multi_poll(fetch->multi, NULL, 0, POLL_MS, NULL);
    }
    message = curl_multi_info_read(fetch->multi, &left);
    if (message != NULL) {
        result = message->data.result;
    }
    (void)curl_multi_remove_handle(fetch->multi, fetch->easy);
    return result;
}

/* ---- The verdict on a try ------------------------------------------------------------------- */

/* Another try, unless the last `tries_max` ones brought nothing. */
static enum verdict retry(struct fetch *fetch, int code, const char *why)
{
    fetch->fruitless = fetch->bytes > fetch->bytes_best ? 0 : fetch->fruitless + 1;
    fetch->bytes_best = fetch->bytes > fetch->bytes_best ? fetch->bytes : fetch->bytes_best;
    return fetch->fruitless < fetch->rules->tries_max ? VERDICT_LATER : fail(fetch, code, why);
}

static enum verdict redirect(struct fetch *fetch)
{
    struct baton_error error;
    struct url at;
    char *target = NULL;

    (void)curl_easy_getinfo(fetch->easy, CURLINFO_REDIRECT_URL, &target);
    if (target == NULL || ++fetch->redirects > REDIRECTS_MAX) {
        return fail(fetch, BATON_EPROTO, "it is redirected to nowhere, or too often");
    }
    if (address_parse(&at, target, fetch->rules->hosts, &error) != 0) {
        return fail(fetch, error.code, error.message);
    }
    if (strcmp(fetch->at.scheme, "https") == 0 && strcmp(at.scheme, "https") != 0) {
        return fail(fetch, BATON_EAUTH,
                    "it is redirected from https to http, where all could read it");
    }
    target = strdup(target);
    if (target == NULL) {
        return fail(fetch, BATON_ENOMEM, "out of memory");
    }
    free(fetch->url);
    fetch->url = target;
    fetch->at = at;
    return VERDICT_AGAIN;
}

static enum verdict judge_status(struct fetch *fetch, long status)
{
    char why[96];

    (void)snprintf(why, sizeof(why), "the server answers %ld in place of 200", status);
    switch (status) {
    case 304:
        fetch->is_same = fetch->known[0] != '\0' && fetch->bytes == 0;
        return fetch->is_same ? VERDICT_DONE : fail(fetch, BATON_EPROTO, why);
    case 301:
    case 302:
    case 303:
    case 307:
    case 308:
        return redirect(fetch);
    case 401:
    case 403:
        return fail(fetch, BATON_EAUTH,
                    "the server refuses: its signature may be too old, or wrong");
    case 404:
    case 410:
        return fail(fetch, BATON_ENOENT, "the server does not have it");
    case 416: /* our file is longer than the server's */
        fetch->validator[0] = '\0';
        return retry(fetch, BATON_EPROTO, why);
    case 408:
    case 429:
        return retry(fetch, BATON_EUNAVAILABLE, why);
    default:
        return status >= 500 ? retry(fetch, BATON_EUNAVAILABLE, why)
                             : fail(fetch, BATON_EPROTO, why);
    }
}

static enum verdict judge_failure(struct fetch *fetch, CURLcode result)
{
    if (fetch->refusal != NULL) {
        return fail(fetch, BATON_EAUTH, fetch->refusal);
    }
    switch (result) {
    case CURLE_FILESIZE_EXCEEDED:
        take_etag(fetch->etag, header_of(fetch, "ETag"));
        return fail(fetch, BATON_ETOOBIG, "it is larger than a model archive may be");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return fail(fetch, BATON_EAUTH, curl_easy_strerror(result));
    case CURLE_OUT_OF_MEMORY:
        return fail(fetch, BATON_ENOMEM, "out of memory");
    case CURLE_OPERATION_TIMEDOUT:
        return retry(fetch, BATON_ETIMEDOUT, "the server is silent");
    default:
        return retry(fetch, BATON_EUNAVAILABLE, curl_easy_strerror(result));
    }
}

static enum verdict judge(struct fetch *fetch, CURLcode result)
{
    long status = status_of(fetch);

    if (result == CURLE_OK && !fetch->is_judged) {
        (void)judge_head(fetch); /* the reply has no body */
    }
    if (fetch->error.code != 0) {
        return VERDICT_FAILED;
    }
    if (fetch->is_same) {
        return VERDICT_DONE;
    }
    if (fetch->is_changed) {
        fetch->validator[0] = '\0'; /* from the start */
        return retry(fetch, BATON_EUNAVAILABLE, "it becomes another file while it is fetched");
    }
    if (fetch->is_judged && !fetch->is_file) {
        return judge_status(fetch, status);
    }
    if (result != CURLE_OK) {
        return judge_failure(fetch, result);
    }
    return fetch->total < 0 || fetch->bytes == (uint64_t)fetch->total
               ? VERDICT_DONE
               : retry(fetch, BATON_EUNAVAILABLE, "only a part of it came");
}

static enum verdict try_once(struct fetch *fetch, int64_t left_ms)
{
    if (left_ms <= 0) {
        return fail(fetch, BATON_ETIMEDOUT, "it takes longer than is allowed");
    }
    if (fetch->bytes > 0 && fetch->validator[0] == '\0' && clear_file(fetch) != VERDICT_DONE) {
        return VERDICT_FAILED;
    }
    fetch->etag[0] = '\0';
    fetch->total = -1;
    fetch->other_bytes = 0;
    fetch->is_judged = fetch->is_file = fetch->is_same = fetch->is_changed = false;
    fetch->refusal = NULL;
    fetch->asked++;
    return set_up_try(fetch, left_ms) == CURLE_OK ? judge(fetch, perform(fetch))
                                                  : fail(fetch, BATON_ENOMEM, "out of memory");
}

/* ---- All tries ------------------------------------------------------------------------------ */

/* Takes the address of the newest list, if no try has used it yet. */
static bool take_fresh(struct fetch *fetch)
{
    char *fresh;

    uv_mutex_lock(&fetch->lock);
    fresh = fetch->is_fresh ? strdup(fetch->latest) : NULL;
    fetch->is_fresh = false;
    uv_mutex_unlock(&fetch->lock);
    if (fresh == NULL || address_parse(&fetch->first, fresh, fetch->rules->hosts, NULL) != 0) {
        free(fresh);
        return false;
    }
    free(fetch->url);
    fetch->url = fresh;
    fetch->at = fetch->first;
    fetch->redirects = fetch->fruitless = 0;
    fetch->error.code = 0;
    return true;
}

/* The pause before another try, which fetch_renew() and fetch_stop() end. */
static void pause_before(struct fetch *fetch)
{
    int doublings = fetch->fruitless < RETRY_DOUBLINGS ? fetch->fruitless : RETRY_DOUBLINGS;

    (void)curl_multi_poll(fetch->multi, NULL, 0, fetch->rules->retry_ms << doublings, NULL);
}

int fetch_run(struct fetch *fetch, const char *etag, int file_fd, struct fetch_result *ret,
              struct baton_error *reterr)
{
    instant deadline = instant_add(clock_now(), SPAN_MS(fetch->rules->total_ms));
    enum verdict verdict = VERDICT_AGAIN;
    bool is_fresh;

    fetch->fd = file_fd;
    take_etag(fetch->known, etag);
    (void)take_fresh(fetch);
    while (verdict > VERDICT_FAILED && !atomic_load(&fetch->is_stopped)) {
        verdict = try_once(fetch, instant_since(deadline, clock_now()).ns / 1000000);
        is_fresh = verdict != VERDICT_DONE && take_fresh(fetch);
        if (verdict == VERDICT_LATER && !is_fresh) {
            pause_before(fetch);
            is_fresh = take_fresh(fetch);
        }
        verdict = is_fresh ? VERDICT_AGAIN : verdict;
    }
    if (atomic_load(&fetch->is_stopped)) {
        return error_set(reterr, BATON_ECANCELED, "the fetch was given up");
    }
    if (verdict == VERDICT_DONE || fetch->error.code == BATON_ETOOBIG) {
        *ret = (struct fetch_result){
            .is_same = fetch->is_same, .bytes = fetch->bytes, .asked = fetch->asked};
        (void)snprintf(ret->etag, ETAG_BYTES, "%s", fetch->is_same ? fetch->known : fetch->etag);
    }
    return verdict == VERDICT_DONE ? 0
                                   : error_set(reterr, fetch->error.code, "model from %s: %s",
                                               fetch->at.masked, fetch->error.message);
}

/* ---- Life ----------------------------------------------------------------------------------- */

int fetch_new(struct fetch **ret, const struct fetch_rules *rules, const char *url,
              struct baton_error *reterr)
{
    struct url first;
    int rc = address_parse(&first, url, rules->hosts, reterr);
    struct fetch *fetch = rc == 0 ? calloc(1, sizeof(*fetch)) : NULL;

    if (rc != 0) {
        return rc;
    }
    if (fetch == NULL || uv_mutex_init(&fetch->lock) != 0) {
        free(fetch);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a fetch");
    }
    fetch->rules = rules;
    fetch->at = first;
    fetch->is_fresh = true;
    fetch->latest = strdup(url);
    fetch->easy = curl_easy_init();
    fetch->multi = curl_multi_init();
    if (fetch->latest == NULL || fetch->easy == NULL || fetch->multi == NULL ||
        set_up(fetch) != CURLE_OK) {
        fetch_free(fetch);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a fetch");
    }
    *ret = fetch;
    return 0;
}

void fetch_free(struct fetch *fetch)
{
    if (fetch != NULL) {
        curl_easy_cleanup(fetch->easy);
        (void)curl_multi_cleanup(fetch->multi);
        curl_slist_free_all(fetch->headers);
        uv_mutex_destroy(&fetch->lock);
        free(fetch->latest);
        free(fetch->url);
        free(fetch);
    }
}

void fetch_renew(struct fetch *fetch, const char *url)
{
    struct url parsed;
    char *copy = strdup(url);

    uv_mutex_lock(&fetch->lock);
    if (copy != NULL && strcmp(fetch->latest, url) != 0 &&
        address_parse(&parsed, url, fetch->rules->hosts, NULL) == 0) {
        char *old = fetch->latest;
        fetch->latest = copy;
        fetch->is_fresh = true;
        copy = old;
        (void)curl_multi_wakeup(fetch->multi);
    }
    uv_mutex_unlock(&fetch->lock);
    free(copy);
}

bool fetch_is_fresh(struct fetch *fetch)
{
    bool is_fresh;

    uv_mutex_lock(&fetch->lock);
    is_fresh = fetch->is_fresh;
    uv_mutex_unlock(&fetch->lock);
    return is_fresh;
}

void fetch_stop(struct fetch *fetch)
{
    atomic_store(&fetch->is_stopped, true);
    (void)curl_multi_wakeup(fetch->multi);
}
