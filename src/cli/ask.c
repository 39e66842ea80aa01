#include "cli/ask.h"

#include "base/buffer.h"
#include "cli/settings.h"
#include "member/status_server.h"
#include "net/control.h"

#define CURL_DISABLE_TYPECHECK /* its macros name the functions, which are not linked */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_MAX = 160 };

int ask_socket_path(const struct options *options, char *ret, size_t bytes,
                    struct baton_error *reterr)
{
    const char *data = settings_data(options);
    if (!data) {
        return error_set(reterr, BATON_EINVAL,
                         "--data: is needed, the data directory of a node on this machine");
    }
    int written = snprintf(ret, bytes, "%s/control.sock", data);
    return written > 0 && (size_t)written < bytes
               ? 0
               : error_set(reterr, BATON_EINVAL, "--data %s: too long", data);
}

long ask_timeout_ms(const struct options *options)
{
    return (long)((options_duration(options, "timeout").ns + 999999) / 1000000);
}

/* libcurl brings thirty libraries with it. A node, which never asks, must not carry them (4 MB, and
 * the time that the kernel takes to tear them down when the leader dies), so they are loaded here.
 */
struct curl {
    void *library;
    __typeof__(&curl_easy_init) init;
    __typeof__(&curl_easy_setopt) setopt;
    __typeof__(&curl_easy_perform) perform;
    __typeof__(&curl_easy_getinfo) getinfo;
    __typeof__(&curl_easy_cleanup) cleanup;
    __typeof__(&curl_easy_strerror) strerror;
    __typeof__(&curl_slist_append) append;
    __typeof__(&curl_slist_free_all) free_all;
};

static int load_curl(struct curl *ret, struct baton_error *reterr)
{
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return error_set(reterr, BATON_ENOTSUP, "--http: needs libcurl: %s", dlerror());
    }
    ret->library = library;
    *(void **)&ret->init = dlsym(library, "curl_easy_init");
    *(void **)&ret->setopt = dlsym(library, "curl_easy_setopt");
    *(void **)&ret->perform = dlsym(library, "curl_easy_perform");
    *(void **)&ret->getinfo = dlsym(library, "curl_easy_getinfo");
    *(void **)&ret->cleanup = dlsym(library, "curl_easy_cleanup");
    *(void **)&ret->strerror = dlsym(library, "curl_easy_strerror");
    *(void **)&ret->append = dlsym(library, "curl_slist_append");
    *(void **)&ret->free_all = dlsym(library, "curl_slist_free_all");
    return 0;
}

static size_t on_body(char *data, size_t size, size_t count, void *userdata)
{
    struct buffer *body = userdata;
    buffer_put(body, data, size * count);
    return body->failed ? 0 : size * count;
}

static struct curl_slist *token_header(const struct curl *api, const char *path,
                                       struct baton_error *reterr)
{
    char token[HTTP_TOKEN_MAX];
    char line[HTTP_TOKEN_MAX + 32];
    if (settings_token(token, sizeof(token), path, reterr)) {
        return NULL;
    }
    (void)snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
    struct curl_slist *header = api->append(NULL, line);
    if (!header) {
        error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    return header;
}

/* How many bytes of a refusal's reason can be shown. */
static int printable(const char *text)
{
    int length = (int)strnlen(text, REASON_MAX);
    int bytes = 0;
    while (bytes < length && (uint8_t)text[bytes] >= ' ' && (uint8_t)text[bytes] < 0x7f) {
        bytes++;
    }
    return bytes;
}

static int refuse_status(const char *url, long status, const struct buffer *body,
                         struct baton_error *reterr)
{
    json_t *json = json_loadb((const char *)body->data, body->bytes, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "error"));
    int code = status == 401 || status == 403 ? BATON_EAUTH : BATON_EPROTO;
    text = text ? text : "no reason is given";
    error_set(reterr, code, "%s: refused with status %ld: %.*s", url, status, printable(text),
              text);
    json_decref(json);
    return code;
}

static int fetch(const struct options *options, const char *url, struct buffer *body,
                 struct baton_error *reterr)
{
    const char *token_file = options_text(options, "http-token-file");
    struct curl_slist *headers = NULL;
    struct curl api = {0};
    long status = 0;
    int loaded = load_curl(&api, reterr);
    if (loaded) {
        return loaded;
    }
    if (token_file && !(headers = token_header(&api, token_file, reterr))) {
        return reterr->code;
    }
    CURL *curl = api.init();
    if (!curl) {
        api.free_all(headers);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    api.setopt(curl, CURLOPT_URL, url);
    api.setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    api.setopt(curl, CURLOPT_PROXY, ""); /* a token must not meet a proxy */
    api.setopt(curl, CURLOPT_TIMEOUT_MS, ask_timeout_ms(options));
    api.setopt(curl, CURLOPT_HTTPHEADER, headers);
    api.setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    api.setopt(curl, CURLOPT_WRITEDATA, body);
    CURLcode done = api.perform(curl);
    api.getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    api.cleanup(curl);
    api.free_all(headers);
    if (done != CURLE_OK) {
        int code = done == CURLE_OPERATION_TIMEDOUT ? BATON_ETIMEDOUT : BATON_EUNAVAILABLE;
        return error_set(reterr, code, "%s: %s", url, api.strerror(done));
    }
    if (status != 200) {
        return refuse_status(url, status, body, reterr);
    }
    return 0;
}

/* Members are part of the status. */
static int ask_http(const struct options *options, json_t **ret_answer, struct baton_error *reterr)
{
    char url[OPTION_TEXT_MAX + 32];
    struct buffer body;
    (void)snprintf(url, sizeof(url), "http://%s/status", options_text(options, "http"));
    buffer_init(&body, CONTROL_ANSWER_MAX);
    int code = fetch(options, url, &body, reterr);
    json_t *json = code ? NULL : json_loadb((const char *)body.data, body.bytes, 0, NULL);
    buffer_fini(&body);
    if (!code && !json_is_object(json)) {
        json_decref(json);
        code = error_set(reterr, BATON_EPROTO, "%s: not the answer of a baton node", url);
    }
    if (!code) {
        *ret_answer = json;
    }
    return code;
}

static int check_answer(json_t **answer, struct baton_error *reterr)
{
    const char *text = json_string_value(json_object_get(*answer, "error"));
    json_int_t code = json_integer_value(json_object_get(*answer, "code"));
    if (json_is_true(json_object_get(*answer, "ok"))) {
        return 0;
    }
    error_set(reterr, code < 0 && code > -1000 ? (int)code : BATON_EPROTO, "%s",
              text ? text : "the node refused and gave no reason");
    json_decref(*answer);
    *answer = NULL;
    return reterr->code;
}

int ask_node(const struct options *options, const json_t *request, json_t **ret_answer,
             struct baton_error *reterr)
{
    char path[4200];
    json_t *answer = NULL;
    int code;
    if (options_duration(options, "timeout").ns <= 0) {
        return error_set(reterr, BATON_EINVAL, "--timeout 0: leaves no time for the answer");
    }
    /* A data directory on the command line means that node, whatever a shared file says of HTTP. */
    bool by_http = options_find(options, "http") && options_is_set(options, "http") &&
                   !(options_is_set(options, "data") &&
                     options_source(options, "data") >= options_source(options, "http"));
    if (by_http) {
        code = ask_http(options, &answer, reterr);
    } else {
        code = ask_socket_path(options, path, sizeof(path), reterr);
        code = code ? code
                    : control_call(path, request, options_duration(options, "timeout"), &answer,
                                   reterr);
    }
    code = code ? code : check_answer(&answer, reterr);
    if (!code) {
        *ret_answer = answer;
    }
    return code;
}
