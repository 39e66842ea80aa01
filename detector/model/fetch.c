#include "detector/model/fetch.h"

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

enum { REDIRECTS_MAX = 4, OTHER_BODY_MAX = 64 << 10, POLL_MS = 1000 };

/* What follows a reply. */
enum verdict { VERDICT_DONE, VERDICT_FAILED, VERDICT_REDIRECTED };

struct fetch {
    const struct fetch_rules *rules;
    CURL *easy;
    CURLM *multi;
    atomic_bool is_stopped;

    /* Of the thread that runs it. */
    struct curl_slist *headers;
    char *url;
    struct url first, at;    /* the address that was named; the one to which redirects led */
    int fd;                  /* borrowed */
    uint64_t bytes;          /* in the file */
    char known[ETAG_BYTES];  /* of the archive that the caller has */
    char etag[ETAG_BYTES];   /* of the last reply */
    uint64_t other_bytes;    /* of a body that is not the file */
    bool is_judged, is_file; /* the body's first bytes came; the body is the file */
    bool is_same;            /* the file has the ETag `known` */
    const char *refusal;     /* why an address was not dialled; NULL: all were */
    int redirects;
    struct baton_error error; /* code 0: none */
};

struct fetch_rules fetch_rules_default(void)
{
    return (struct fetch_rules){
        .bytes_max = 1U << 30, .connect_ms = 10000, .silent_ms = 30000, .total_ms = 15 * 60 * 1000};
}

const atomic_bool *fetch_is_stopped(const struct fetch *fetch)
{
    return &fetch->is_stopped;
}

const char *fetch_shown(const struct fetch *fetch)
{
    return fetch->at.masked;
}

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

/* Judges a reply by its head: whether its body is the file. False: the body is not wanted. */
static bool judge_head(struct fetch *fetch)
{
    fetch->is_judged = true;
    fetch->is_file = status_of(fetch) == 200;
    take_etag(fetch->etag, header_of(fetch, "ETag"));
    fetch->is_same = /* the server ignores If-None-Match */
        fetch->is_file && fetch->known[0] != '\0' && strcmp(fetch->etag, fetch->known) == 0;
    return !fetch->is_same;
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
    if (!fetch->is_file) { /* it may be an endless error page */
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

/* ---- One request ---------------------------------------------------------------------------- */

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
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)rules->total_ms);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, silent_s);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_USERAGENT, "baton-detector");
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_WRITEDATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, fetch);
    rc = rc ? rc : curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)rules->bytes_max);
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

/* ---- The verdict on it ---------------------------------------------------------------------- */

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
    return VERDICT_REDIRECTED;
}

static enum verdict judge_status(struct fetch *fetch, long status)
{
    char why[96];

    (void)snprintf(why, sizeof(why), "the server answers %ld in place of 200", status);
    switch (status) {
    case 304:
        fetch->is_same = fetch->known[0] != '\0';
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
    default:
        return fail(fetch,
                    status >= 500 || status == 408 || status == 429 ? BATON_EUNAVAILABLE
                                                                    : BATON_EPROTO,
                    why);
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
        return fail(fetch, BATON_ETIMEDOUT, "the server is silent, or too slow");
    default:
        return fail(fetch, BATON_EUNAVAILABLE, curl_easy_strerror(result));
    }
}

static enum verdict judge(struct fetch *fetch, CURLcode result)
{
    if (result == CURLE_OK && !fetch->is_judged) {
        (void)judge_head(fetch); /* the reply has no body */
    }
    if (fetch->error.code != 0) {
        return VERDICT_FAILED;
    }
    if (fetch->is_same) {
        return VERDICT_DONE;
    }
    if (fetch->is_judged && !fetch->is_file) {
        return judge_status(fetch, status_of(fetch));
    }
    return result == CURLE_OK ? VERDICT_DONE : judge_failure(fetch, result);
}

static enum verdict ask(struct fetch *fetch)
{
    fetch->other_bytes = 0;
    fetch->is_judged = false;
    fetch->refusal = NULL;
    return curl_easy_setopt(fetch->easy, CURLOPT_URL, fetch->url) == CURLE_OK
               ? judge(fetch, perform(fetch))
               : fail(fetch, BATON_ENOMEM, "out of memory");
}

/* ---- The whole fetch ------------------------------------------------------------------------ */

/* False: out of memory. */
static bool set_known(struct fetch *fetch, const char *etag)
{
    char line[ETAG_BYTES + 32];

    take_etag(fetch->known, etag);
    if (fetch->known[0] == '\0') {
        return true;
    }
    (void)snprintf(line, sizeof(line), "If-None-Match: %s", fetch->known);
    fetch->headers = curl_slist_append(NULL, line);
    return fetch->headers != NULL &&
           curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, fetch->headers) == CURLE_OK;
}

int fetch_run(struct fetch *fetch, const char *etag, int file_fd, struct fetch_result *ret,
              struct baton_error *reterr)
{
    enum verdict verdict = VERDICT_REDIRECTED;

    fetch->fd = file_fd;
    if (!set_known(fetch, etag)) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a fetch");
    }
    while (verdict == VERDICT_REDIRECTED && !atomic_load(&fetch->is_stopped)) {
        verdict = ask(fetch);
    }
    if (atomic_load(&fetch->is_stopped)) {
        return error_set(reterr, BATON_ECANCELED, "the fetch was given up");
    }
    if (verdict == VERDICT_DONE || fetch->error.code == BATON_ETOOBIG) {
        *ret = (struct fetch_result){.is_same = fetch->is_same, .bytes = fetch->bytes};
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
    if (fetch == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a fetch");
    }
    fetch->rules = rules;
    fetch->first = fetch->at = first;
    fetch->url = strdup(url);
    fetch->easy = curl_easy_init();
    fetch->multi = curl_multi_init();
    if (fetch->url == NULL || fetch->easy == NULL || fetch->multi == NULL ||
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
        free(fetch->url);
        free(fetch);
    }
}

void fetch_stop(struct fetch *fetch)
{
    atomic_store(&fetch->is_stopped, true);
    (void)curl_multi_wakeup(fetch->multi);
}
