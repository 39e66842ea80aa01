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

enum { REDIRECTS_MAX = 4, RETRY_DOUBLINGS = 5, OTHER_BODY_MAX = 64 << 10, CONNECT_MS = 10000 };

/* What is known of a request, and of a try. */
enum verdict {
    VERDICT_OPEN, /* no reply so far */
    VERDICT_FILE, /* its body is the file */
    VERDICT_OTHER,
    VERDICT_DONE,
    VERDICT_SAME, /* the file has the ETag `known` */
    VERDICT_REDIRECTED,
    VERDICT_LATER, /* another try may mend it */
    VERDICT_FAILED,
};

struct fetch {
    const struct fetch_rules *rules;
    CURL *easy; /* with the address to ask */
    struct curl_slist *headers;
    struct url first, at;       /* the address that was named; the one to which redirects led */
    int fd;                     /* borrowed */
    instant deadline;           /* of all tries */
    uint64_t bytes, bytes_best; /* in the file; the most that a try has reached */
    char known[ETAG_BYTES];     /* of the archive that the caller has */
    char validator[ETAG_BYTES]; /* of the bytes in the file; "": these cannot be continued */
    int fruitless, redirects;

    /* Of the last request. */
    enum verdict verdict;
    char etag[ETAG_BYTES];
    int64_t total;        /* of the file, as a reply with a part says; -1: unknown */
    uint64_t other_bytes; /* of a body that is not the file */
    const char *refusal;  /* why an address was not dialled; NULL: all were */
    struct baton_error error;
};

struct fetch_rules fetch_rules_default(void)
{
    return (struct fetch_rules){.bytes_max = 1U << 30,
                                .silent_ms = 30000,
                                .total_ms = 15 * 60 * 1000,
                                .tries_max = 5,
                                .retry_ms = 500};
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

/* Another try, unless the last `tries_max` ones brought nothing. */
static enum verdict retry(struct fetch *fetch, int code, const char *why)
{
    fetch->fruitless = fetch->bytes > fetch->bytes_best ? 0 : fetch->fruitless + 1;
    fetch->bytes_best = fetch->bytes > fetch->bytes_best ? fetch->bytes : fetch->bytes_best;
    (void)fail(fetch, code, why);
    return fetch->fruitless < fetch->rules->tries_max ? VERDICT_LATER : VERDICT_FAILED;
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
               ? VERDICT_FILE
               : fail(fetch, error_from_errno(errno), "the file cannot be emptied");
}

/* Judges a reply by its head: whether its body is the file, and continues ours. */
static enum verdict judge_head(struct fetch *fetch)
{
    long status = status_of(fetch);

    take_etag(fetch->etag, header_of(fetch, "ETag"));
    if (status != 200 && status != 206) {
        return VERDICT_OTHER;
    }
    if (status == 206 && !continues(fetch)) {
        return fail(fetch, BATON_EPROTO, "the server sends another part than asked");
    }
    if (status == 206 && fetch->bytes > 0 && fetch->etag[0] != '\0' &&
        strcmp(fetch->etag, fetch->validator) != 0) { /* the server ignores If-Range */
        fetch->validator[0] = '\0';                   /* from the start */
        return retry(fetch, BATON_EUNAVAILABLE, "it becomes another file while it is fetched");
    }
    if (status == 200 && fetch->known[0] != '\0' && strcmp(fetch->etag, fetch->known) == 0) {
        return VERDICT_SAME; /* the server ignores If-None-Match */
    }
    /* A weak ETag does not promise the same bytes. */
    (void)snprintf(fetch->validator, ETAG_BYTES, "%s", fetch->etag[0] == '"' ? fetch->etag : "");
    /* With 200 the file has changed, or the server cannot send parts. */
    return status == 200 && fetch->bytes > 0 ? clear_file(fetch) : VERDICT_FILE;
}

static enum verdict put(struct fetch *fetch, const char *bytes, size_t count)
{
    if (fetch->bytes + count > fetch->rules->bytes_max) {
        return fail(fetch, BATON_ETOOBIG, "it is larger than a model archive may be");
    }
    while (count > 0) {
        ssize_t done = pwrite(fetch->fd, bytes, count, (off_t)fetch->bytes);

        if (done < 0 && errno != EINTR) {
            return fail(fetch, error_from_errno(errno), "it cannot be written to the disk");
        }
        done = done > 0 ? done : 0;
        bytes += done;
        count -= (size_t)done;
        fetch->bytes += (uint64_t)done;
    }
    return VERDICT_FILE;
}

static size_t on_body(char *bytes, size_t one, size_t count, void *userdata)
{
    struct fetch *fetch = userdata;
    size_t length = one * count;

    if (fetch->verdict == VERDICT_OPEN) {
        fetch->verdict = judge_head(fetch);
    }
    if (fetch->verdict == VERDICT_FILE) {
        fetch->verdict = put(fetch, bytes, length);
    } else if (fetch->verdict == VERDICT_OTHER) {
        /* libcurl tells where a redirect leads only once its body has come. */
        fetch->other_bytes += length;
        return fetch->other_bytes <= OTHER_BODY_MAX ? length : CURL_WRITEFUNC_ERROR;
    }
    return fetch->verdict == VERDICT_FILE ? length : CURL_WRITEFUNC_ERROR;
}

/* About once a second, and with each piece that comes. Returns whether that is the end. */
static int on_progress(void *userdata, curl_off_t total, curl_off_t now, curl_off_t total_sent,
                       curl_off_t sent)
{
    const struct fetch *fetch = userdata;

    (void)total, (void)now, (void)total_sent, (void)sent;
    return fetch->rules->is_canceled != NULL && atomic_load(fetch->rules->is_canceled);
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

/* ---- One request ---------------------------------------------------------------------------- */

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

static CURLcode set_up_request(struct fetch *fetch, int64_t left_ms)
{
    uint64_t room = fetch->rules->bytes_max - fetch->bytes;
    CURL *easy = fetch->easy;
    char range[32];
    CURLcode rc;

    (void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)fetch->bytes);
    rc = curl_easy_setopt(easy, CURLOPT_RANGE, fetch->bytes > 0 ? range : NULL);
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
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, silent_s);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_USERAGENT, "baton-detector");
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_XFERINFODATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetch);
    if (rc == CURLE_OK && rules->ca_file != NULL) {
        rc = curl_easy_setopt(easy, CURLOPT_CAINFO, rules->ca_file);
    }
    return rc;
}

/* ---- The verdict on a request --------------------------------------------------------------- */

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
    if (curl_easy_setopt(fetch->easy, CURLOPT_URL, target) != CURLE_OK) {
        return fail(fetch, BATON_ENOMEM, "out of memory");
    }
    fetch->at = at;
    return VERDICT_REDIRECTED;
}

static enum verdict judge_status(struct fetch *fetch)
{
    long status = status_of(fetch);
    char why[96];

    (void)snprintf(why, sizeof(why), "the server answers %ld in place of 200", status);
    switch (status) {
    case 304:
        return fetch->known[0] != '\0' && fetch->bytes == 0 ? VERDICT_SAME
                                                            : fail(fetch, BATON_EPROTO, why);
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
    if (result == CURLE_OK && fetch->verdict == VERDICT_OPEN) {
        fetch->verdict = judge_head(fetch); /* the reply has no body */
    }
    if (fetch->verdict == VERDICT_OTHER) {
        return judge_status(fetch);
    }
    if (fetch->verdict > VERDICT_OTHER) {
        return fetch->verdict;
    }
    if (result != CURLE_OK) {
        return judge_failure(fetch, result);
    }
    return fetch->total < 0 || fetch->bytes == (uint64_t)fetch->total
               ? VERDICT_DONE
               : retry(fetch, BATON_EUNAVAILABLE, "only a part of it came");
}

static enum verdict ask(struct fetch *fetch)
{
    int64_t left_ms = instant_since(fetch->deadline, clock_now()).ns / 1000000;

    if (left_ms <= 0) {
        return fail(fetch, BATON_ETIMEDOUT, "it takes longer than is allowed");
    }
    if (fetch->bytes > 0 && fetch->validator[0] == '\0' && clear_file(fetch) != VERDICT_FILE) {
        return VERDICT_FAILED;
    }
    fetch->verdict = VERDICT_OPEN;
    fetch->etag[0] = '\0';
    fetch->total = -1;
    fetch->other_bytes = 0;
    fetch->refusal = NULL;
    return set_up_request(fetch, left_ms) == CURLE_OK ? judge(fetch, curl_easy_perform(fetch->easy))
                                                      : fail(fetch, BATON_ENOMEM, "out of memory");
}

/* ---- A try ---------------------------------------------------------------------------------- */

static int take_address(struct fetch *fetch, const char *url, struct baton_error *reterr)
{
    int rc = address_parse(&fetch->first, url, fetch->rules->hosts, reterr);

    if (rc == 0 && curl_easy_setopt(fetch->easy, CURLOPT_URL, url) != CURLE_OK) {
        rc = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    fetch->at = fetch->first;
    fetch->redirects = fetch->fruitless = 0;
    return rc;
}

int fetch_try(struct fetch *fetch, const char *url, struct fetch_result *ret,
              struct baton_error *reterr)
{
    int rc = url != NULL ? take_address(fetch, url, reterr) : 0;
    enum verdict verdict = VERDICT_REDIRECTED;

    *ret = (struct fetch_result){.etag = ""};
    if (rc != 0) {
        return rc;
    }
    while (verdict == VERDICT_REDIRECTED) {
        verdict = ask(fetch);
    }
    ret->is_same = verdict == VERDICT_SAME;
    (void)snprintf(ret->etag, ETAG_BYTES, "%s", ret->is_same ? fetch->known : fetch->etag);
    if (verdict == VERDICT_LATER) {
        int doublings = fetch->fruitless < RETRY_DOUBLINGS ? fetch->fruitless : RETRY_DOUBLINGS;
        ret->pause = SPAN_MS(fetch->rules->retry_ms << doublings);
    }
    return verdict < VERDICT_REDIRECTED ? 0
                                        : error_set(reterr, fetch->error.code, "model from %s: %s",
                                                    fetch->at.masked, fetch->error.message);
}

/* ---- Life ----------------------------------------------------------------------------------- */

int fetch_new(struct fetch **ret, const struct fetch_rules *rules, const char *etag, int file_fd,
              struct baton_error *reterr)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));

    if (fetch != NULL) {
        fetch->rules = rules;
        fetch->fd = file_fd;
        fetch->deadline = instant_add(clock_now(), SPAN_MS(rules->total_ms));
        take_etag(fetch->known, etag);
        fetch->easy = curl_easy_init();
    }
    if (fetch == NULL || fetch->easy == NULL || set_up(fetch) != CURLE_OK) {
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
        curl_slist_free_all(fetch->headers);
        free(fetch);
    }
}
