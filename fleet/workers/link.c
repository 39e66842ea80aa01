#include "fleet/workers/link.h"

#include "base/backoff.h"
#include "base/error.h"
#include "base/text.h"
#include "web/client.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_WITHIN_MS = 5000,
    RETRY_FIRST_MS = 100,
    RETRY_MAX_MS = 5000,
    CLOSE_WITHIN_MS = 500,
    STEADY_MS = 1000, /* a connection that lasts so long is no failure */
    PING_AFTER_S = 5,
    GOING_AWAY = 1001, /* RFC 6455, 7.4.1 */
    HEAD_MAX = 8192,
    BODY_MAX = 4096, /* of a refusal */
    BACKLOG_MAX = PROTOCOL_MESSAGE_MAX + (64 << 10),
    HEADERS_ROOM = 512,
    FAREWELL_ROOM = 160,
};

enum presence { PRESENCE_UNKNOWN, PRESENCE_ONLINE, PRESENCE_OFFLINE };

struct link {
    struct link_config config;
    char *url, *headers; /* headers: NULL: none */
    struct sync *sync;
    struct web_client *client; /* NULL: none */
    struct web_socket *socket; /* NULL: it is not open */
    uint64_t connection;       /* its number */
    uv_timer_t timer;
    enum presence presence;
    bool has_reported; /* the worker, on this connection */
    bool has_opened;   /* once */
    bool has_wanted;   /* a list, since it was offline */
    bool is_full;      /* the worker has to read first, */
    bool is_waiting;   /* and something is to be sent */
    bool was_brief;    /* the latest connection that had a report */
    unsigned failures; /* since the latest steady connection that had a report */
    instant opened_at; /* of the connection */
    instant heard;     /* of the latest report; before it, of the beginning */
    instant retry_at;
    instant offline_at;
    bool is_closing;
    instant close_at;
    void (*closed)(void *userdata);
    struct link_counters counters;
    struct baton_error fault;     /* the latest */
    char farewell[FAREWELL_ROOM]; /* the worker's, of this connection: " with code …", or "" */
};

static void on_timer(uv_timer_t *timer);

/* ---- Events ---------------------------------------------------------------------------------- */

static void tell(struct link *link, const char *name, json_t *fields)
{
    link->config.calls.on_event(link->config.userdata, name, fields);
}

/* The first, second, fourth …: a flood of one kind does not become a flood of events. */
static void tell_counted(struct link *link, const char *name, const char *error, uint64_t count)
{
    if ((count & (count - 1)) == 0) {
        tell(link, name, json_pack("{s:s, s:I}", "error", error, "count", (json_int_t)count));
    }
}

static void set_presence(struct link *link, enum presence presence, const char *reason)
{
    if (link->presence != presence) {
        link->presence = presence;
        link->config.calls.on_online(link->config.userdata, presence == PRESENCE_ONLINE, reason);
    }
}

static void on_camera(void *userdata, const char *identifier, bool is_online)
{
    tell(userdata, is_online ? "camera-online" : "camera-offline",
         json_pack("{s:s}", "subscription", identifier));
}

static void on_display(void *userdata, const char *display, struct session_id *ret_session,
                       enum stage *ret_stage)
{
    struct link *link = userdata;

    link->config.calls.display(link->config.userdata, display, ret_session, ret_stage);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static span retry_after(const struct link *link)
{
    uint32_t chance = 0;

    (void)RAND_bytes((unsigned char *)&chance, sizeof(chance)); /* without it, all wait alike */
    return link->failures > 0 ? backoff_after(link->failures, SPAN_MS(RETRY_FIRST_MS),
                                              SPAN_MS(RETRY_MAX_MS), chance)
                              : SPAN_NS(0);
}

static instant deadline(const struct link *link)
{
    instant next = link->offline_at;

    if (link->is_closing) {
        return link->close_at;
    }
    if (link->client == NULL) {
        next = instant_min(next, link->retry_at);
    }
    if (link->socket != NULL && !link->is_full) {
        next = instant_min(next, sync_deadline(link->sync));
    }
    return next;
}

static void arm(struct link *link, instant now)
{
    instant next = deadline(link);
    int64_t ns = instant_since(next, now).ns;

    if (next.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(&link->timer);
    } else {
        (void)uv_timer_start(&link->timer, on_timer, ns > 0 ? (uint64_t)ns / 1000000 + 1 : 0, 0);
    }
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* At once, without a closing handshake: on_closing and on_close follow. */
static void cut(struct link *link)
{
    if (link->client != NULL) {
        web_client_close(link->client);
    }
}

/* Sends and releases; NULL is not sent. */
static bool send_text(struct link *link, char *text)
{
    bool may_send = link->config.calls.may_send(link->config.userdata);
    bool is_sent = text != NULL && may_send && link->socket != NULL &&
                   web_socket_send(link->socket, text, strlen(text));

    free(text);
    if (!may_send) {
        cut(link);
    }
    return is_sent;
}

static void send_command(struct link *link, const struct command *command)
{
    (void)send_text(link, format_command(command)); /* there is room: sync.h is asked only then */
}

static void carry_out(struct link *link, const struct sync_output *output)
{
    struct command command = {.session = output->session, .stage = output->stage};

    if (output->display != NULL) {
        (void)snprintf(command.display, sizeof(command.display), "%s", output->display);
    }
    switch (output->type) {
    case SYNC_LIST: /* one that is not sent is sent again: it is never confirmed */
        (void)send_text(link, link->config.calls.list(link->config.userdata));
        break;
    case SYNC_SESSION:
        command.type = COMMAND_SET_SESSION_ID;
        send_command(link, &command);
        break;
    case SYNC_STAGE:
        command.type = COMMAND_SET_PROGRESSION_STAGE;
        send_command(link, &command);
        break;
    case SYNC_REQUEST:
        command.type = COMMAND_REQUEST_STATE;
        send_command(link, &command);
        break;
    case SYNC_ALARM:
        tell(link, "worker-not-in-sync", json_pack("{s:i}", "for_s", SYNC_ALARM_S));
        break;
    case SYNC_NOTHING:
        break;
    }
}

static void pump(struct link *link, instant now)
{
    while (link->socket != NULL) {
        struct sync_output output;

        if (web_socket_backlog(link->socket) > 0) {
            bool is_waiting = !instant_before(now, sync_deadline(link->sync));
            link->counters.stalls += is_waiting && !link->is_waiting;
            link->is_waiting |= is_waiting;
            link->is_full = true;
            return;
        }
        output = sync_next(link->sync, now);
        if (output.type == SYNC_NOTHING) {
            return;
        }
        carry_out(link, &output);
    }
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static void refuse(struct link *link, const char *reason)
{
    link->counters.refused++;
    tell_counted(link, "message-refused", reason, link->counters.refused);
}

static bool is_steady(const struct link *link, instant now)
{
    return !instant_before(now, instant_add(link->opened_at, SPAN_MS(STEADY_MS)));
}

static void take_report(struct link *link, json_t *report, instant now)
{
    bool was_alarmed = sync_is_alarmed(link->sync);

    link->heard = now;
    link->has_reported = true;
    link->offline_at = instant_add(now, link->config.silence);
    sync_report(link->sync, report, now);
    set_presence(link, PRESENCE_ONLINE, NULL);
    if (was_alarmed && sync_is_in_sync(link->sync)) {
        tell(link, "worker-in-sync", json_object());
    }
    link->config.calls.on_report(link->config.userdata, report);
}

static void take(struct link *link, json_t *message, instant now)
{
    const char *type = json_string_value(json_object_get(message, "type"));

    if (strcmp(type, "stateReport") == 0) {
        take_report(link, message, now);
    } else if (strcmp(type, "imageDetection") == 0) {
        link->counters.detections++;
        link->config.calls.on_detection(link->config.userdata, message);
    } else {
        link->config.calls.on_patch_session(link->config.userdata, message, link->connection);
    }
}

static void on_text(void *userdata, const char *text, size_t bytes)
{
    struct link *link = userdata;
    struct baton_error error = {0};
    json_t *message = NULL;
    instant now = clock_now();

    if (worker_message_parse(text, bytes, &message, &error) != BATON_OK) {
        refuse(link, error.message);
        return;
    }
    take(link, message, now);
    json_decref(message);
    if (!link->is_closing && !instant_before(now, sync_deadline(link->sync))) {
        pump(link, now);
    }
    arm(link, now);
}

static void on_refused(void *userdata, const char *reason)
{
    refuse(userdata, reason);
}

static void on_drain(void *userdata)
{
    struct link *link = userdata;
    instant now = clock_now();

    link->is_full = link->is_waiting = false;
    if (!link->is_closing) {
        pump(link, now);
        arm(link, now);
    }
}

static void forget_list(struct link *link)
{
    link->has_wanted = false;
    sync_forget_list(link->sync);
    link->config.calls.on_wanted(link->config.userdata, false);
}

/* ---- The connection -------------------------------------------------------------------------- */

static void on_open(void *userdata, struct web_socket *socket)
{
    struct link *link = userdata;
    instant now = clock_now();
    bool is_offline = link->presence == PRESENCE_OFFLINE;

    link->socket = socket;
    link->connection = ++*link->config.connections;
    link->counters.reconnects += link->has_opened;
    link->has_opened = true;
    link->opened_at = now;
    link->offline_at = instant_add(is_offline ? now : link->heard, link->config.silence);
    sync_connected(link->sync, now);
    if (!sync_has_list(link->sync)) {
        link->has_wanted = true;
        link->config.calls.on_wanted(link->config.userdata, true);
    }
    pump(link, now);
    arm(link, now);
}

/* Says that another backend has taken the worker, for example. */
static void note_farewell(struct link *link)
{
    const char *text;
    char reason[FAREWELL_ROOM - 32];
    size_t bytes;
    unsigned code = web_socket_farewell(link->socket, &text, &bytes);

    (void)text_clean(reason, sizeof(reason), text, bytes);
    if (code != 0) {
        (void)snprintf(link->farewell, sizeof(link->farewell), " with code %u%s%s", code,
                       reason[0] != '\0' ? ": " : "", reason);
    }
}

static void on_socket_closing(void *userdata)
{
    struct link *link = userdata;

    note_farewell(link);
    link->socket = NULL;
    link->is_full = link->is_waiting = false;
    sync_disconnected(link->sync);
}

static void on_socket_close(void *userdata)
{
    (void)userdata;
}

static void on_response(void *userdata, const struct web_response *response)
{
    (void)userdata; /* on_close has the error */
    (void)response;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct link *link = timer->data;

    link->closed(link->config.userdata);
    sync_free(link->sync);
    free(link->url);
    free(link->headers);
    free(link);
}

static void end(struct link *link)
{
    uv_close((uv_handle_t *)&link->timer, on_timer_closed);
}

static void note_fault(struct link *link, const struct baton_error *error)
{
    link->fault = *error;
    if (error->code == BATON_OK) {
        (void)error_set(&link->fault, BATON_ECLOSED, "the worker closed the connection%s",
                        link->farewell);
    }
    if (link->failures > 0) {
        tell_counted(link, "connection-failed", link->fault.message, link->failures);
    }
}

/* After a connection with a report the next try is at once, and no failure; but not after brief
 * ones in a row, as of a worker that crashes after its report, or that two backends fight for. */
static void on_close(void *userdata, const struct baton_error *error)
{
    struct link *link = userdata;
    instant now = clock_now();

    link->client = NULL;
    if (link->is_closing) {
        end(link);
        return;
    }
    if (link->has_reported && is_steady(link, now)) {
        link->failures = 0;
        link->was_brief = false;
    } else {
        link->failures += !link->has_reported || link->was_brief;
        link->was_brief |= link->has_reported;
    }
    note_fault(link, error);
    link->retry_at = instant_add(now, retry_after(link));
    if (link->presence != PRESENCE_OFFLINE) {
        link->offline_at = instant_min(link->offline_at, instant_add(now, link->config.grace));
    } else {
        link->offline_at = INSTANT_NEVER;
        if (link->has_wanted) {
            forget_list(link); /* it sent no report */
        }
    }
    arm(link, now);
}

static void connect_worker(struct link *link, instant now)
{
    const struct web_socket_options socket = {.message_max = PROTOCOL_MESSAGE_MAX,
                                              .backlog_max = BACKLOG_MAX,
                                              .ping_after_s = PING_AFTER_S,
                                              .callbacks = {.on_text = on_text,
                                                            .on_refused = on_refused,
                                                            .on_drain = on_drain,
                                                            .on_closing = on_socket_closing,
                                                            .on_close = on_socket_close},
                                              .userdata = link};
    const struct web_client_options options = {
        .loop = link->config.loop,
        .url = link->url,
        .tls = link->config.tls,
        .headers = link->headers,
        .head_max = HEAD_MAX,
        .body_max = BODY_MAX,
        .within_ms = CONNECT_WITHIN_MS,
        .socket = &socket,
        .callbacks = {.on_response = on_response, .on_open = on_open, .on_close = on_close},
        .userdata = link};
    struct baton_error error = {0};

    link->has_reported = false;
    link->farewell[0] = '\0';
    if (!link->config.calls.may_send(link->config.userdata)) {
        link->retry_at = instant_add(now, SPAN_MS(RETRY_FIRST_MS));
    } else if (web_client_open(&link->client, &options, &error) != BATON_OK) {
        link->client = NULL;
        link->failures++;
        note_fault(link, &error);
        link->retry_at = instant_add(now, retry_after(link));
    }
}

/* ---- The timer ------------------------------------------------------------------------------- */

static void go_offline(struct link *link)
{
    char reason[BATON_ERROR_MESSAGE_MAX];

    if (link->socket != NULL) {
        (void)snprintf(reason, sizeof(reason), "no stateReport for %.1f s",
                       (double)link->config.silence.ns / 1e9);
    } else {
        (void)snprintf(reason, sizeof(reason), "%s",
                       link->fault.code != BATON_OK ? link->fault.message : "no connection yet");
    }
    link->offline_at = INSTANT_NEVER;
    forget_list(link);
    set_presence(link, PRESENCE_OFFLINE, reason);
    if (link->socket != NULL) {
        cut(link);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct link *link = timer->data;
    instant now = clock_now();

    if (link->is_closing) {
        cut(link);
        return;
    }
    if (!instant_before(now, link->offline_at)) {
        go_offline(link);
    }
    if (link->client == NULL && !instant_before(now, link->retry_at)) {
        connect_worker(link, now);
    }
    pump(link, now);
    arm(link, now);
}

/* ---- Outside --------------------------------------------------------------------------------- */

static bool copy_texts(struct link *link, const struct link_config *config)
{
    link->url = strdup(config->url);
    if (config->token != NULL) {
        link->headers = malloc(HEADERS_ROOM);
        if (link->headers != NULL) {
            (void)snprintf(link->headers, HEADERS_ROOM, "authorization: Bearer %s\r\n",
                           config->token);
        }
    }
    return link->url != NULL && (config->token == NULL || link->headers != NULL);
}

int link_open(struct link **ret, const struct link_config *config, struct baton_error *reterr)
{
    struct link *link = calloc(1, sizeof(*link));
    struct sync_calls calls = {.display = on_display, .camera = on_camera, .userdata = link};
    bool is_whole = link != NULL && copy_texts(link, config);

    if (is_whole) {
        link->sync = sync_new(&calls);
        is_whole = link->sync != NULL;
    }
    if (!is_whole) {
        if (link != NULL) {
            free(link->url);
            free(link->headers);
        }
        free(link);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a worker's connection");
    }
    link->config = *config;
    link->config.url = link->config.token = NULL; /* they are the caller's */
    link->heard = link->retry_at = clock_now();
    link->offline_at = instant_add(link->heard, config->grace);
    (void)uv_timer_init(config->loop, &link->timer); /* cannot fail */
    link->timer.data = link;
    arm(link, link->heard);
    *ret = link;
    return BATON_OK;
}

void link_close(struct link *link, bool at_once, void (*closed)(void *userdata))
{
    bool was_closing = link->is_closing;
    instant now = clock_now();

    link->closed = closed;
    link->is_closing = true;
    link->close_at = instant_add(now, SPAN_MS(CLOSE_WITHIN_MS));
    if (link->client == NULL) {
        if (!was_closing) {
            end(link);
        }
        return;
    }
    if (link->socket != NULL && !at_once) {
        web_socket_close(link->socket, GOING_AWAY, "this backend gives the worker up");
        arm(link, now);
    } else {
        (void)uv_timer_stop(&link->timer);
        cut(link);
    }
}

int link_set_list(struct link *link, const struct subscription *list, size_t count,
                  uint64_t revision, bool is_other)
{
    instant now = clock_now();
    int code = sync_set_list(link->sync, list, count, revision, is_other, now);

    if (code == BATON_OK && !link->is_closing) {
        pump(link, now);
        arm(link, now);
    }
    return code;
}

void link_display_changed(struct link *link, const char *display)
{
    instant now = clock_now();

    sync_display_changed(link->sync, display);
    if (!link->is_closing) {
        pump(link, now);
        arm(link, now);
    }
}

bool link_answer_patch(struct link *link, uint64_t ticket, int64_t session, bool is_success,
                       const char *text)
{
    struct command command = {
        .type = COMMAND_PATCH_SESSION_RESULT, .session = {true, session}, .is_success = is_success};

    (void)snprintf(command.text, sizeof(command.text), "%s", text);
    return ticket == link->connection && !link->is_closing &&
           send_text(link, format_command(&command));
}

const char *link_url(const struct link *link)
{
    return link->url;
}

bool link_is_in_sync(const struct link *link)
{
    return sync_is_in_sync(link->sync);
}

uint64_t link_revision(const struct link *link)
{
    return sync_revision(link->sync);
}

const struct link_counters *link_counters(const struct link *link)
{
    return &link->counters;
}
