#include "cli/fleet_link.h"

#include "base/buffer.h"
#include "base/json_load.h"
#include "base/json_text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "options/program.h"
#include "web/client.h"

#include <signal.h>
#include <string.h>
#include <strings.h>

enum {
    LOOK_MS = 100, /* for a signal */
    HEAD_MAX = 16384,
    BODY_MAX = 32 << 20,
    LINE_MAX_BYTES = 1 << 20,
    PATH_ROOM = 4096,
};

struct asking {
    struct fleet_link *link;
    struct web_client *client;
    const struct fleet_stream *stream; /* NULL: the answer comes whole */
    struct buffer line;
    unsigned status; /* 0: no answer came */
    json_t *json;
    struct baton_error error;
    bool is_done;
};

/* ---- Lines ----------------------------------------------------------------------------------- */

static void take_line(struct asking *asking)
{
    const char *line = buffer_text(&asking->line);

    if (line != NULL) {
        asking->stream->on_line(asking->stream->userdata, line);
    }
    buffer_clear(&asking->line);
}

static void on_part(void *userdata, const void *data, size_t bytes)
{
    struct asking *asking = userdata;
    const char *at = data, *end;

    while ((end = memchr(at, '\n', bytes)) != NULL) {
        buffer_put(&asking->line, at, (size_t)(end - at));
        take_line(asking);
        bytes -= (size_t)(end - at) + 1;
        at = end + 1;
    }
    buffer_put(&asking->line, at, bytes);
}

/* ---- One request ------------------------------------------------------------------------------
 */

static void on_response(void *userdata, const struct web_response *response)
{
    struct asking *asking = userdata;

    asking->status = response->status;
    if (asking->stream != NULL && response->status == 200) {
        if (response->body.bytes > 0) {
            on_part(asking, response->body.data, response->body.bytes);
        }
        if (asking->line.bytes > 0) {
            take_line(asking);
        }
    } else if (response->body.bytes > 0) {
        asking->json =
            json_load_bytes((const char *)response->body.data, response->body.bytes, 0, NULL);
    }
}

static void on_close(void *userdata, const struct baton_error *error)
{
    struct asking *asking = userdata;

    asking->is_done = true;
    asking->error = *error;
}

static void on_timer(uv_timer_t *timer)
{
    (void)timer; /* it wakes the loop */
}

/* Until the answer is whole, or a signal has come. */
static void run(struct asking *asking)
{
    struct fleet_link *link = asking->link;
    void (*before)(int number) = signal(SIGPIPE, SIG_IGN);
    bool is_closed = false;

    (void)uv_timer_start(&link->timer, on_timer, LOOK_MS, LOOK_MS);
    while (!asking->is_done) {
        if (interrupt_signal() && !is_closed) {
            is_closed = true;
            web_client_close(asking->client);
        }
        (void)uv_run(&link->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&link->timer);
    (void)signal(SIGPIPE, before);
}

static int code_of(unsigned status)
{
    return status == 401 || status == 403 ? BATON_EAUTH
           : status == 404                ? BATON_ENOENT
           : status >= 500                ? BATON_EUNAVAILABLE
                                          : BATON_ECONFLICT;
}

static int result(const struct asking *asking, const char *url, struct baton_error *reterr)
{
    const char *reason = json_string_value(json_object_get(asking->json, "error"));

    if (asking->status == 0 && asking->error.code == BATON_EUNAVAILABLE) {
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "%s; `baton-fleet --http` serves it, and --fleet names another one",
                         asking->error.message);
    }
    if (asking->status == 0) {
        return error_set(reterr, asking->error.code ? asking->error.code : BATON_ECLOSED, "%s",
                         asking->error.message);
    }
    if (asking->status >= 200 && asking->status < 300) {
        return asking->error.code == BATON_OK
                   ? BATON_OK
                   : error_set(reterr, asking->error.code, "%s", asking->error.message);
    }
    return reason != NULL ? error_set(reterr, code_of(asking->status), "%s", reason)
                          : error_set(reterr, code_of(asking->status), "%s: refused with status %u",
                                      url, asking->status);
}

/* `asking` has what the callbacks need. */
static int ask(struct asking *asking, const struct web_client_options *given, const char *path,
               struct baton_error *reterr)
{
    struct fleet_link *link = asking->link;
    struct web_client_options options = *given;
    char url[FLEET_URL_MAX + PATH_ROOM];
    int code;

    (void)snprintf(url, sizeof(url), "%s%s", link->base, path);
    options.loop = &link->loop;
    options.url = url;
    options.tls = link->tls;
    options.head_max = HEAD_MAX;
    options.body_max = BODY_MAX;
    options.callbacks.on_response = on_response;
    options.callbacks.on_close = on_close;
    options.userdata = asking;
    options.limits_lookup = true;
    code = web_client_open(&asking->client, &options, reterr);
    if (code == BATON_OK) {
        run(asking);
        code = result(asking, url, reterr);
    }
    return code;
}

int fleet_ask(struct fleet_link *link, const char *method, const char *path, const json_t *body,
              json_t **ret, struct baton_error *reterr)
{
    char headers[HTTP_TOKEN_MAX + 128];
    char *text = body != NULL ? json_text(body, JSON_COMPACT) : NULL;
    struct asking asking = {.link = link};
    struct web_client_options options = {.method = method,
                                         .headers = headers,
                                         .body = text,
                                         .bytes = text != NULL ? strlen(text) : 0,
                                         .within_ms = (uint64_t)(link->timeout.ns / 1000000)};
    int code;

    (void)snprintf(headers, sizeof(headers), "%s%s", link->headers,
                   text != NULL ? "content-type: application/json\r\n" : "");
    code = ask(&asking, &options, path, reterr);
    free(text);
    if (code == BATON_OK && ret != NULL) {
        *ret = json_incref(asking.json);
    }
    json_decref(asking.json);
    return code;
}

int fleet_read_lines(struct fleet_link *link, const struct fleet_stream *stream,
                     struct baton_error *reterr)
{
    char headers[HTTP_TOKEN_MAX + 512];
    struct asking asking = {.link = link, .stream = stream};
    struct web_client_options options = {.method = stream->method,
                                         .headers = headers,
                                         .body = stream->body,
                                         .bytes = stream->bytes,
                                         .within_ms = (uint64_t)(stream->silence.ns / 1000000),
                                         .callbacks.on_part = on_part};
    int code;

    buffer_init(&asking.line, LINE_MAX_BYTES);
    (void)snprintf(headers, sizeof(headers), "%s%s", link->headers, stream->headers);
    code = ask(&asking, &options, stream->path, reterr);
    buffer_fini(&asking.line);
    json_decref(asking.json);
    return code;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

int fleet_path(char *ret, size_t bytes, const char *before, const char *id, const char *after,
               struct baton_error *reterr)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
    size_t used = (size_t)snprintf(ret, bytes, "%s", before);

    for (const char *at = id; *at != '\0' && used < bytes; at++) {
        used += (size_t)snprintf(ret + used, bytes - used, strchr(plain, *at) ? "%c" : "%%%02X",
                                 (unsigned char)*at);
    }
    if (used < bytes) {
        used += (size_t)snprintf(ret + used, bytes - used, "%s", after);
    }
    return used < bytes ? BATON_OK : error_set(reterr, BATON_EINVAL, "'%.40s...': is too long", id);
}

int fleet_list(struct fleet_link *link, const char *path, json_t **ret, struct baton_error *reterr)
{
    json_t *items = json_array(), *page = NULL;
    char at[PATH_ROOM], after[PATH_ROOM];
    const char *next = NULL;
    int code;

    (void)snprintf(at, sizeof(at), "%s", path);
    do {
        json_decref(page);
        page = NULL;
        code = fleet_ask(link, "GET", at, NULL, &page, reterr);
        if (code == BATON_OK) {
            (void)json_array_extend(items, json_object_get(page, "items"));
            next = json_string_value(json_object_get(page, "next"));
        }
        if (code == BATON_OK && next != NULL) {
            (void)snprintf(after, sizeof(after), "%s%cafter=", path, strchr(path, '?') ? '&' : '?');
            code = fleet_path(at, sizeof(at), after, next, "", reterr);
        }
    } while (code == BATON_OK && next != NULL);
    json_decref(page);
    if (code != BATON_OK) {
        json_decref(items);
        return code;
    }
    *ret = items;
    return BATON_OK;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int set_up(struct fleet_link *link, const struct options *options,
                  struct baton_error *reterr)
{
    const struct tls_client_options tls = {.ca_file = options_text(options, "tls-ca")};
    const char *shown, *url = options_text(options, "fleet");
    char token[HTTP_TOKEN_MAX];
    size_t bytes = strlen(url);
    int code = BATON_OK;

    while (bytes > 0 && url[bytes - 1] == '/') {
        bytes--;
    }
    if (bytes >= sizeof(link->base)) {
        return error_set(reterr, BATON_EINVAL, "--fleet: is too long");
    }
    if (link->timeout.ns == 0) {
        return error_set(reterr, BATON_EINVAL, "--timeout 0: leaves no time for the answer");
    }
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) {
        return error_set(reterr, BATON_EINVAL,
                         "--fleet %s: must begin with http:// or https://, as http://HOST:8090",
                         url);
    }
    (void)snprintf(link->base, sizeof(link->base), "%.*s", (int)bytes, url);
    if (strncasecmp(url, "https:", 6) == 0) {
        code = tls_new_client(&link->tls, &tls, reterr);
    }
    code = code ? code : program_token(&shown, token, sizeof(token), options, "token-file", reterr);
    if (code == BATON_OK && shown != NULL) {
        (void)snprintf(link->headers, sizeof(link->headers), "authorization: Bearer %s\r\n", shown);
    }
    return code;
}

int fleet_link_open(struct fleet_link *link, const struct options *options,
                    struct baton_error *reterr)
{
    int code;

    *link = (struct fleet_link){.timeout = options_duration(options, "timeout")};
    code = set_up(link, options, reterr);
    code = code ? code : command_open_loop(&link->loop, reterr);
    if (code != BATON_OK) {
        tls_free(link->tls);
        return code;
    }
    (void)uv_timer_init(&link->loop, &link->timer);
    interrupt_listen();
    return BATON_OK;
}

void fleet_link_close(struct fleet_link *link)
{
    uv_close((uv_handle_t *)&link->timer, NULL);
    (void)uv_run(&link->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&link->loop);
    tls_free(link->tls);
}
