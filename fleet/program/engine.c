#include "fleet/program/engine.h"

#include "base/json_text.h"
#include "base/version.h"
#include "fleet/detections/detections.h"
#include "fleet/http/api.h"
#include "fleet/outlets/commands.h"
#include "fleet/outlets/outlets.h"
#include "fleet/outlets/seed_names.h"
#include "fleet/program/s3_credentials.h"
#include "fleet/workers/owners.h"
#include "fleet/workers/table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    REQUESTS_PER_S = 200,
    PATIENCE_MS = 5000,  /* without an answer of the provider, until the log says so */
    REMINDER_MS = 60000, /* and says so again */
};

struct engine {
    struct engine_config config;
    struct s3_credentials credentials; /* for models at s3:// */
    struct tls *tls;                   /* of workers by wss */
    struct member *member;
    struct fleet_state *state;
    struct worker_table *table;
    struct worker_observer observer;
    struct displays *displays;
    struct detections *detections;
    struct owners *owners;
    struct master *master;
    struct commands *commands;
    struct seed_names *names; /* NULL: the provider is not Redis */
    struct fleet_http *http;
    struct outlets *outlets;    /* NULL: closed */
    uv_idle_t turn;             /* opens the parts outside of the state's callback */
    uv_timer_t patience;        /* until the state is loaded */
    unsigned waiting;           /* parts that close */
    struct baton_error failure; /* of the provider; code 0: none */
    bool is_ready, is_closing;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* ---- What flows between the parts ------------------------------------------------------------ */

static void tell(struct engine *engine, const char *name, json_t *fields)
{
    if (engine->http) {
        fleet_http_event(engine->http, name, fields);
    } else {
        json_decref(fields);
    }
}

/* With the event's members as fields of the line. */
static void log_event(struct engine *engine, const char *name, const json_t *event)
{
    enum { MOST = 16 };
    struct log_field fields[MOST];
    char *texts[MOST];
    size_t count = 0;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)event, key, value)
    {
        if (count == MOST) {
            break;
        }
        texts[count] = json_is_object(value) || json_is_array(value)
                           ? json_text(value, JSON_COMPACT | JSON_SORT_KEYS)
                           : NULL;
        fields[count] = json_is_integer(value)   ? LOG_I64(key, json_integer_value(value))
                        : json_is_real(value)    ? LOG_F64(key, json_real_value(value))
                        : json_is_boolean(value) ? LOG_BOOL(key, json_is_true(value))
                        : texts[count]           ? LOG_STR(key, texts[count])
                                                 : LOG_STR(key, json_string_value(value));
        count++;
    }
    log_emit(engine->config.logger, LOG_NOTICE, name, fields, count);
    while (count > 0) {
        free(texts[--count]);
    }
}

static void send_out(struct engine *engine, const char *name, const json_t *fields)
{
    if (engine->outlets && fields) {
        outlets_event(engine->outlets, name, fields);
    }
}

/* Events of this process alone go to its log and out; those that all processes hear, to their
 * streams. */
static void on_own_event(void *userdata, const char *name, json_t *fields)
{
    struct engine *engine = userdata;

    log_event(engine, name, fields);
    send_out(engine, name, fields);
    json_decref(fields);
}

/* Every process has these events: one of them sends them out. Of a new leader it is the new one,
 * which may not know its lease yet; that none can be elected, there is none to say. */
static bool speaks_for_fleet(const struct engine *engine, const char *name, const json_t *fields)
{
    const char *leader = json_string_value(json_object_get(fields, "leader"));

    if (strcmp(name, "leader-changed") == 0) {
        return leader && strcmp(leader, engine->config.node) == 0;
    }
    return strcmp(name, "election-failed") == 0 ||
           (engine->master && master_leads(engine->master, NULL));
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    struct engine *engine = userdata;

    log_event(engine, name, fields);
    if (speaks_for_fleet(engine, name, fields)) {
        send_out(engine, name, fields);
    }
    tell(engine, name, fields);
}

static void on_workers_change(struct worker_observer *observer, const struct worker_live *worker,
                              enum worker_change change)
{
    (void)observer;
    (void)worker;
    (void)change;
}

static void on_workers_event(struct worker_observer *observer, const char *name,
                             const json_t *fields)
{
    struct engine *engine = (struct engine *)((char *)observer - offsetof(struct engine, observer));

    tell(engine, name, json_deep_copy(fields));
}

static void on_detection(void *userdata, const char *worker, json_t *message)
{
    struct engine *engine = userdata;

    detections_take(engine->detections, worker, message);
}

static void on_accepted(void *userdata, const char *display, const json_t *attributes)
{
    struct engine *engine = userdata;

    displays_detected(engine->displays, display, attributes);
}

static void on_refused(void *userdata, const char *worker, const struct baton_error *error)
{
    struct engine *engine = userdata;

    log_info(engine->config.logger, "detection-refused", LOG_STR("worker", worker),
             LOG_STR("error", error->message));
}

static void on_line(void *userdata, const char *line, size_t bytes, bool is_own)
{
    struct engine *engine = userdata;

    if (is_own && engine->outlets) {
        outlets_detection(engine->outlets, line, bytes);
    }
    if (engine->http) {
        fleet_http_detection(engine->http, line, bytes);
    }
}

/* A worker that waits for the answer to its patch. */
struct asked {
    struct engine *engine;
    uint64_t ticket;
    int64_t session;
    char worker[];
};

static void answer_patch(struct asked *asked, int code, const struct baton_error *error)
{
    if (asked->engine->owners) {
        owners_answer_patch(asked->engine->owners, asked->worker, asked->ticket, asked->session,
                            code == BATON_OK, displays_result_text(code, error));
    }
    free(asked);
}

static void on_patched(void *userdata, int code, const struct baton_error *error)
{
    answer_patch(userdata, code, error);
}

static void on_patch_session(void *userdata, const char *worker, json_t *message, uint64_t ticket)
{
    struct engine *engine = userdata;
    struct asked *asked = malloc(sizeof(*asked) + strlen(worker) + 1);
    struct baton_error error;
    int code;

    if (!asked) {
        return; /* the worker asks again or drops it, as without an answer by the network */
    }
    asked->engine = engine;
    asked->ticket = ticket;
    asked->session = json_integer_value(json_object_get(message, "sessionId"));
    memcpy(asked->worker, worker, strlen(worker) + 1);
    code = displays_patch_session(engine->displays, asked->session,
                                  json_object_get(message, "data"), on_patched, asked, &error);
    if (code != BATON_OK) {
        answer_patch(asked, code, &error);
    }
}

static char *on_model_url(void *userdata, const struct fleet_object *model)
{
    struct engine *engine = userdata;
    struct baton_error error;
    char *url = NULL;

    if (fleet_model_url(&url, model->model.url, &engine->credentials.access, time(NULL), &error) !=
        BATON_OK) {
        log_warning(engine->config.logger, "model-url-missing", LOG_STR("model", model->id),
                    LOG_STR("error", error.message));
    }
    return url;
}

/* ---- The beginning --------------------------------------------------------------------------- */

static int open_displays(struct engine *engine, struct baton_error *reterr)
{
    const struct displays_config displays = {
        .state = engine->state, .on_event = on_event, .userdata = engine};
    int code = displays_open(&engine->displays, &displays, reterr);
    struct detections_config detections = {.state = engine->state,
                                           .process = engine->config.node,
                                           .on_line = on_line,
                                           .on_accepted = on_accepted,
                                           .on_refused = on_refused,
                                           .userdata = engine};

    return code ? code : detections_open(&engine->detections, &detections, reterr);
}

static void on_end(uv_idle_t *idle)
{
    const struct engine *engine = idle->data;

    (void)uv_idle_stop(idle);
    if (!engine->is_closing) {
        engine->config.on_failed(engine->config.userdata, &engine->failure);
    }
}

static void on_provider_failed(void *userdata, const struct baton_error *error)
{
    struct engine *engine = userdata;

    if (engine->failure.code == 0) {
        engine->failure = *error;
        (void)uv_idle_stop(&engine->turn);
        (void)uv_idle_start(&engine->turn, on_end); /* not from within the provider's callback */
    }
}

static void on_error(void *userdata, const struct baton_error *error)
{
    const struct engine *engine = userdata;

    log_warning(engine->config.logger, "error", LOG_STR("error", error->message));
}

static int open_workers(struct engine *engine, struct baton_error *reterr)
{
    const struct engine_config *config = &engine->config;
    const struct owners_config owners = {.state = engine->state,
                                         .process = config->node,
                                         .token = config->worker_token,
                                         .tls = engine->tls,
                                         .grace = config->grace,
                                         .silence = config->silence,
                                         .callbacks = {.on_detection = on_detection,
                                                       .on_patch_session = on_patch_session,
                                                       .model_url = on_model_url,
                                                       .on_event = on_own_event,
                                                       .userdata = engine}};
    struct master_config master = {.state = engine->state,
                                   .table = engine->table,
                                   .plan = {.hysteresis_permille = config->hysteresis_permille,
                                            .subscriptions_max = config->subscriptions_max},
                                   .worker_urls = config->workers,
                                   .resolve_every = config->resolve_every,
                                   .on_event = on_event,
                                   .on_error = on_error,
                                   .userdata = engine};
    int code;

    while (config->workers[master.worker_count]) {
        master.worker_count++;
    }
    code = owners_open(&engine->owners, &owners, reterr);
    return code ? code : master_open(&engine->master, &master, reterr);
}

/* Before the state is loaded, which may take long: the process can be asked how it is. */
static int open_http(struct engine *engine, struct baton_error *reterr)
{
    const struct engine_config *config = &engine->config;
    const struct fleet_http_config http = {
        .loop = config->loop,
        .host = config->http_host,
        .port = config->http_port,
        .tls_cert = config->tls_cert,
        .tls_key = config->tls_key,
        .read_token = config->read_token,
        .change_token = config->change_token,
        .hosts = config->http_hosts,
        .is_insecure = config->is_insecure,
        .requests_per_s = REQUESTS_PER_S,
        .worker_token = config->worker_token,
        .worker_tls = engine->tls,
        .logger = config->logger,
        .parts = {.state = engine->state, .process = config->node, .version = BATON_VERSION_TEXT}};

    return fleet_http_open(&engine->http, &http, reterr);
}

static void begin_http(struct engine *engine)
{
    const struct fleet_http_parts parts = {.state = engine->state,
                                           .process = engine->config.node,
                                           .version = BATON_VERSION_TEXT,
                                           .table = engine->table,
                                           .owners = engine->owners,
                                           .master = engine->master,
                                           .displays = engine->displays,
                                           .detections = engine->detections,
                                           .commands = engine->commands,
                                           .outlets = engine->outlets};

    fleet_http_begin(engine->http, &parts);
}

static bool leads(void *userdata)
{
    const struct engine *engine = userdata;

    return engine->master && master_leads(engine->master, NULL);
}

static void on_command_refused(void *userdata, const struct baton_error *error)
{
    const struct engine *engine = userdata;

    log_info(engine->config.logger, "command-refused", LOG_STR("error", error->message));
}

static void on_names_failed(void *userdata, const struct baton_error *error)
{
    const struct engine *engine = userdata;

    log_warning(engine->config.logger, "names-not-written", LOG_STR("error", error->message));
}

/* For programs that are none of the fleet. It goes on without the names: they are for others. */
static int open_outlets(struct engine *engine, struct baton_error *reterr)
{
    const struct commands_config commands = {.member = engine->member,
                                             .displays = engine->displays,
                                             .on_refused = on_command_refused,
                                             .leads = leads,
                                             .userdata = engine};
    const struct seed_names_config names = {.state = engine->state,
                                            .table = engine->table,
                                            .url = engine->config.provider,
                                            .logger = engine->config.logger,
                                            .leads = leads,
                                            .on_failed = on_names_failed,
                                            .userdata = engine};
    struct baton_error error;

    if (strcmp(member_scheme(engine->member), "redis") == 0 &&
        seed_names_open(&engine->names, &names, &error) != BATON_OK) {
        on_names_failed(engine, &error);
    }
    return commands_open(&engine->commands, &commands, reterr);
}

/* The state is loaded: everything that acts on it begins. */
static void on_turn(uv_idle_t *idle)
{
    struct engine *engine = idle->data;
    struct baton_error error;
    int code;

    (void)uv_idle_stop(idle);
    if (engine->is_closing) {
        return;
    }
    code = open_displays(engine, &error);
    code = code ? code : open_workers(engine, &error);
    code = code ? code : open_outlets(engine, &error);
    if (code != BATON_OK) {
        engine->config.on_failed(engine->config.userdata, &error);
        return;
    }
    begin_http(engine);
    engine->is_ready = true;
    log_notice(engine->config.logger, "ready", LOG_STR("node", engine->config.node),
               LOG_I64("http", fleet_http_port(engine->http)));
}

static void on_patience(uv_timer_t *timer)
{
    struct engine *engine = timer->data;

    log_warning(engine->config.logger, "provider-silent",
                LOG_STR("hint", "the fleet's state could not be read yet: does the provider of "
                                "--provider run, and have its nodes a majority?"));
}

static void on_loaded(void *userdata)
{
    struct engine *engine = userdata;

    (void)uv_timer_stop(&engine->patience);
    (void)uv_idle_start(&engine->turn, on_turn);
}

static int open_state(struct engine *engine, struct baton_error *reterr)
{
    const struct provider_config provider = {.loop = engine->config.loop,
                                             .logger = engine->config.logger,
                                             .url = engine->config.provider,
                                             .node = engine->config.node,
                                             .on_failed = on_provider_failed,
                                             .userdata = engine};
    struct worker_table_config table = {.logger = engine->config.logger};
    int code = member_open(&engine->member, &provider, reterr);

    if (code != BATON_OK) {
        return code;
    }
    code =
        member_need(engine->member,
                    PROVIDER_MANY_ELECTIONS | PROVIDER_STATE | PROVIDER_CHANNELS | PROVIDER_MEMBERS,
                    "part of what a fleet needs (raft: needs group=NAME)", reterr);
    code = code ? code : member_begin(engine->member, reterr);
    code = code ? code
                : fleet_state_open(&engine->state, engine->member, engine->config.name, on_loaded,
                                   engine, reterr);
    table.member = engine->member;
    code = code ? code : worker_table_open(&engine->table, &table, reterr);
    if (code == BATON_OK) {
        engine->observer.on_change = on_workers_change;
        engine->observer.on_event = on_workers_event;
        worker_table_observe(engine->table, &engine->observer);
    }
    return code;
}

static void on_outlet_failed(void *userdata, const char *outlet, const struct baton_error *error)
{
    struct engine *engine = userdata;

    log_warning(engine->config.logger, "outlet-failed", LOG_STR("outlet", outlet),
                LOG_STR("error", error->message));
}

static int open_event_outlets(struct engine *engine, struct baton_error *reterr)
{
    const struct engine_config *config = &engine->config;
    const struct outlets_config outlets = {.loop = config->loop,
                                           .fleet = config->name,
                                           .process = config->node,
                                           .webhooks = config->webhooks,
                                           .webhook_secret = config->webhook_secret,
                                           .webhook_events = config->webhook_events,
                                           .mqtt = config->mqtt,
                                           .mqtt_topic = config->mqtt_topic,
                                           .mqtt_events = config->mqtt_events,
                                           .on_failed = on_outlet_failed,
                                           .userdata = engine};

    return outlets_open(&engine->outlets, &outlets, reterr);
}

int engine_open(struct engine **ret, const struct engine_config *config, struct baton_error *reterr)
{
    const struct tls_client_options tls = {.ca_file = config->worker_ca};
    struct engine *engine = calloc(1, sizeof(*engine));
    int code;

    *ret = engine;
    if (!engine) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    engine->config = *config;
    (void)uv_idle_init(config->loop, &engine->turn);
    engine->turn.data = engine;
    (void)uv_timer_init(config->loop, &engine->patience);
    engine->patience.data = engine;
    (void)uv_timer_start(&engine->patience, on_patience, PATIENCE_MS, REMINDER_MS);
    code = s3_credentials_read(&engine->credentials, config->s3_credentials, config->s3_endpoint,
                               config->s3_region, reterr);
    code = code ? code : tls_new_client(&engine->tls, &tls, reterr);
    code = code ? code : open_event_outlets(engine, reterr);
    code = code ? code : open_state(engine, reterr);
    return code ? code : open_http(engine, reterr);
}

struct fleet_state *engine_state(const struct engine *engine)
{
    return engine->state;
}

bool engine_is_ready(const struct engine *engine)
{
    return engine->is_ready && !engine->is_closing;
}

/* ---- The end --------------------------------------------------------------------------------- */

static void on_turn_closed(uv_handle_t *handle)
{
    struct engine *engine = handle->data;

    fleet_http_free(engine->http);
    member_free(engine->member);
    tls_free(engine->tls);
    engine->closed(engine->closed_userdata);
    explicit_bzero(engine, sizeof(*engine));
    free(engine);
}

static void on_patience_closed(uv_handle_t *handle)
{
    struct engine *engine = handle->data;

    uv_close((uv_handle_t *)&engine->turn, on_turn_closed);
}

static void on_member_closed(void *userdata)
{
    struct engine *engine = userdata;

    uv_close((uv_handle_t *)&engine->patience, on_patience_closed);
}

/* One of the two parts that hold elections has left them; in the end, everything below. */
static void count_off(struct engine *engine)
{
    if (--engine->waiting > 0) {
        return;
    }
    seed_names_close(engine->names);
    commands_close(engine->commands);
    detections_close(engine->detections);
    outlets_close(engine->outlets);
    engine->outlets = NULL;
    displays_close(engine->displays);
    fleet_state_close(engine->state);
    worker_table_close(engine->table);
    if (engine->member) {
        member_close(engine->member, on_member_closed, engine);
    } else {
        on_member_closed(engine);
    }
}

static void on_master_left(void *userdata)
{
    struct engine *engine = userdata;

    engine->master = NULL; /* the owners may take longer, and their events ask for the master */
    count_off(engine);
}

static void on_owners_left(void *userdata)
{
    struct engine *engine = userdata;

    engine->owners = NULL;
    count_off(engine);
}

void engine_close(struct engine *engine, void (*closed)(void *userdata), void *userdata)
{
    engine->is_closing = true;
    (void)uv_timer_stop(&engine->patience);
    engine->closed = closed;
    engine->closed_userdata = userdata;
    fleet_http_close(engine->http);
    engine->waiting = 1;
    if (engine->master) {
        engine->waiting++;
        master_close(engine->master, on_master_left, engine);
    }
    if (engine->owners) {
        engine->waiting++;
        owners_close(engine->owners, on_owners_left, engine);
    }
    count_off(engine);
}
