#include "cli/ask.h"

#include "base/buffer.h"
#include "base/json_load.h"
#include "cli/settings.h"
#include "member/status_server.h"
#include "net/control.h"
#include "options/exit_code.h"
#include "options/program.h"
#include "web/client.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    REASON_MAX = 160,
    HEAD_MAX = 16384,
};

int ask_socket_path(const struct options *options, char *ret, size_t bytes,
                    struct baton_error *reterr)
{
    const char *data = settings_data(options);
    if (!data) {
        return error_set(reterr, BATON_EINVAL,
                         "--data is missing: name the data directory of a node on this machine%s",
                         options_find(options, "election")
                             ? "; or start `baton agent`, which is asked by --election"
                             : "");
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

long ask_wait_ms(const struct options *options)
{
    long timeout_ms = ask_timeout_ms(options);

    return timeout_ms > 10 ? timeout_ms * 9 / 10 : timeout_ms;
}

/* ---- By HTTP --------------------------------------------------------------------------------- */

struct reply {
    unsigned status;
    json_t *json; /* NULL: no answer came */
    struct baton_error error;
};

static void on_response(void *userdata, const struct web_response *response)
{
    struct reply *reply = userdata;
    reply->status = response->status;
    reply->json = json_load_bytes((const char *)response->body.data, response->body.bytes, 0, NULL);
}

static void on_close(void *userdata, const struct baton_error *error)
{
    struct reply *reply = userdata;
    reply->error = *error;
}

/* Returns how many bytes of a refusal's reason can be printed. */
static int printable(const char *text)
{
    int length = (int)strnlen(text, REASON_MAX);
    int bytes = 0;
    while (bytes < length && (uint8_t)text[bytes] >= ' ' && (uint8_t)text[bytes] < 0x7f) {
        bytes++;
    }
    return bytes;
}

static int refuse_status(const char *url, const struct reply *reply, struct baton_error *reterr)
{
    const char *text = json_string_value(json_object_get(reply->json, "error"));
    unsigned status = reply->status;
    text = text ? text : "no reason is given";
    return error_set(reterr, status == 401 || status == 403 ? BATON_EAUTH : BATON_EPROTO,
                     "%s: refused with status %u: %.*s", url, status, printable(text), text);
}

static int fetch(struct reply *ret, const struct options *options, const char *url,
                 struct baton_error *reterr)
{
    const char *shown;
    char token[HTTP_TOKEN_MAX], header[HTTP_TOKEN_MAX + 32] = "";
    void (*before)(int);
    uv_loop_t loop;
    struct web_client *client;
    struct web_client_options wanted = {
        .loop = &loop,
        .url = url,
        .headers = header,
        .head_max = HEAD_MAX,
        .body_max = CONTROL_ANSWER_MAX,
        .within_ms = (uint64_t)ask_timeout_ms(options),
        .limits_lookup = true,
        .callbacks = {.on_response = on_response, .on_close = on_close},
        .userdata = ret};
    int code = program_token(&shown, token, sizeof(token), options, "http-token-file", reterr);
    if (code) {
        return code;
    }
    if (shown) {
        (void)snprintf(header, sizeof(header), "authorization: Bearer %s\r\n", shown);
    }
    if (uv_loop_init(&loop) != 0) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    before = signal(SIGPIPE, SIG_IGN); /* a closed connection becomes an error */
    code = web_client_open(&client, &wanted, reterr);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    (void)signal(SIGPIPE, before);
    if (!code && ret->error.code) {
        code = error_set(reterr, ret->error.code, "%s", ret->error.message);
    }
    return !code && ret->status != 200 ? refuse_status(url, ret, reterr) : code;
}

/* The status contains the members. */
static int ask_http(const struct options *options, json_t **ret_answer, struct baton_error *reterr)
{
    char url[OPTION_TEXT_MAX + 32];
    struct reply reply = {.status = 0};
    (void)snprintf(url, sizeof(url), "http://%s/status", options_text(options, "http"));
    int code = fetch(&reply, options, url, reterr);
    if (!code && !json_is_object(reply.json)) {
        code = error_set(reterr, BATON_EPROTO,
                         "%s: the answer is not a baton node's; is the address right?", url);
    }
    if (code) {
        json_decref(reply.json);
        return code;
    }
    *ret_answer = reply.json;
    return 0;
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
    /* --data on the command line names a node, even if a shared configuration file sets --http. */
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
