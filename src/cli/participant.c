#include "cli/participant.h"

#include "cli/footprint.h"
#include "cli/http_options.h"
#include "cli/reload.h"
#include "cli/settings.h"
#include "guardian/fatal.h"
#include "member/control.h"
#include "member/http.h"
#include "member/join.h"
#include "options/exit_code.h"
#include "options/notify.h"
#include "options/serve.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    QUIET_MS = 500,
    QUIET_AGAIN_MS = 2000,
};

struct participant {
    struct participant_config config;
    struct member *member;
    struct election *election;
    struct observer observer;
    struct status *status;
    struct member_control *control;
    struct http_server *http;
    uv_timer_t watchdog;
    uv_timer_t quiet; /* when it fires, the leader unmaps pages */
    bool has_timers;
    bool is_closing;
    bool is_heard;         /* the provider has reported an event that is not an error */
    bool has_many_servers; /* a quorum of independent servers: one that refuses us is not fatal */
    struct reload reload;
    char node[BATON_NAME_MAX];
    char obstacle[BATON_ERROR_MESSAGE_MAX];
    void (*closed)(void *userdata);
    void *closed_userdata;
};

struct member *participant_member(const struct participant *part)
{
    return part->member;
}

struct election *participant_election(const struct participant *part)
{
    return part->election;
}

bool participant_is_leader(const struct participant *part, uint64_t *ret_epoch)
{
    return election_is_leader(part->election, ret_epoch);
}

span participant_lease_left(const struct participant *part)
{
    return election_lease_left(part->election);
}

const char *participant_node(const struct participant *part)
{
    return part->node;
}

const char *participant_obstacle(struct participant *part)
{
    json_t *status = member_provider_status(part->member);
    const char *absent = json_string_value(json_object_get(status, "no_quorum"));

    if (absent) {
        (void)snprintf(part->obstacle, sizeof(part->obstacle), "%s", absent);
    }
    json_decref(status);
    return part->obstacle[0] ? part->obstacle : "nobody is known to lead";
}

/* ---- The end -----------------------------------------------------------------------------------
 */

bool participant_is_fatal(const struct participant *part, const struct baton_event *event,
                          struct baton_error *ret)
{
    int code = event->type == BATON_EVENT_ERROR ? event->error.code : 0;
    if (!code || !part || part->is_closing) {
        return false;
    }
    *ret = event->error;
    if (code == BATON_EUNSAFE) {
        return true;
    }
    if (code == BATON_EAUTH) {
        return !part->is_heard && !part->has_many_servers;
    }
    if (!member_has_failed(part->member)) {
        return false;
    }
    ret->code = code == BATON_EFULL ? code : BATON_EIO;
    return true;
}

/* ---- Reloading ------------------------------------------------------------------------------- */

void participant_reload(struct participant *part)
{
    if (!part->is_closing) {
        reload_begin(&part->reload, true);
    }
}

void participant_release_reload(struct participant *part)
{
    if (reload_was_held()) {
        participant_reload(part);
    }
}

/* A server refuses the password: it may have been changed on the server and in the file. */
static void look_for_password(struct participant *part, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_ERROR && event->error.code == BATON_EAUTH && part->member &&
        !part->is_closing && options_source(part->config.options, "provider") == OPTION_CONFIG) {
        reload_begin(&part->reload, false);
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void note_leader(struct participant *part, const char *name)
{
    (void)snprintf(part->obstacle, sizeof(part->obstacle), "%s leads", name);
}

/* A leader may be known by its id before the registry gives its name. */
static void note_name(struct participant *part, const struct baton_member *joined)
{
    char known[sizeof(part->obstacle)];
    (void)snprintf(known, sizeof(known), "%s leads", joined->id);
    if (strcmp(part->obstacle, known) == 0) {
        note_leader(part, joined->name);
    }
}

static void note_obstacle(struct participant *part, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_LEADER) {
        note_leader(part, event->member.id[0] ? event->member.name : "nobody");
    } else if (event->type == BATON_EVENT_MEMBER_JOINED) {
        note_name(part, &event->member);
    } else if (event->error.code) {
        (void)snprintf(part->obstacle, sizeof(part->obstacle), "%s", event->error.message);
    }
}

static enum log_level level_of(const struct baton_event *event)
{
    switch (event->type) {
    case BATON_EVENT_ELECTION_FAILED: /* repeats while the node waits for a lease */
        return event->lease_left_ns > 0 ? LOG_NOTICE : LOG_INFO;
    case BATON_EVENT_ERROR:
    case BATON_EVENT_JEOPARDY:
    case BATON_EVENT_INSTABILITY:
        return LOG_WARNING;
    case BATON_EVENT_ACQUIRED:
    case BATON_EVENT_LOST:
    case BATON_EVENT_LEADER:
    case BATON_EVENT_DRAIN:
        return LOG_NOTICE;
    default:
        return LOG_INFO;
    }
}

static void log_event(struct participant *part, const struct baton_event *event)
{
    const char *loss = event->type == BATON_EVENT_LOST ? baton_loss_name(event->loss) : NULL;
    const char *text = event->error.code ? event->error.message : event->text;
    bool has_member = event->member.id[0] || event->type == BATON_EVENT_LEADER;
    LOG_EVENT(part->config.logger, level_of(event), baton_event_name(event->type),
              LOG_U64("epoch", event->epoch),
              LOG_STR("member", has_member ? event->member.name : NULL), LOG_STR("loss", loss),
              LOG_STR("text", text));
}

static void tell_systemd(const struct baton_event *event)
{
    char text[BATON_NAME_MAX + 64];
    if (event->type == BATON_EVENT_ACQUIRED) {
        (void)snprintf(text, sizeof(text), "leads in epoch %llu", (unsigned long long)event->epoch);
        notify_status(text);
    } else if (event->type == BATON_EVENT_LEADER) {
        (void)snprintf(text, sizeof(text), "%s leads",
                       event->member.id[0] ? event->member.name : "nobody");
        notify_status(text);
    }
}

/* Followers keep their pages: they need them at once when the leader dies. */
static void on_quiet(uv_timer_t *timer)
{
    (void)timer;
    footprint_shed();
}

static void watch_role(struct participant *part, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_ACQUIRED && part->has_timers) {
        (void)uv_timer_start(&part->quiet, on_quiet, QUIET_MS, QUIET_AGAIN_MS);
    } else if (event->type == BATON_EVENT_LOST && part->has_timers) {
        (void)uv_timer_stop(&part->quiet);
    }
}

/* The command's handler comes first: a failover lasts until the command acts. */
static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct participant *part = OBSERVER_OF(struct participant, observer);
    part->is_heard |= event->type != BATON_EVENT_ERROR;
    part->config.on_event(part->config.userdata, event);
    note_obstacle(part, event);
    watch_role(part, event);
    log_event(part, event);
    tell_systemd(event);
    look_for_password(part, event);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* Through an agent, several processes of a host take part in one election. */
static int name_node(struct participant *part, bool has_agent, struct baton_error *reterr)
{
    char space[BATON_NAME_MAX];
    const char *name = settings_node(space, part->config.options);
    char host[256] = "";
    if (!name) {
        size_t used;
        (void)gethostname(host, has_agent ? BATON_NAME_MAX - 16 : sizeof(host) - 1);
        used = strlen(host);
        if (has_agent) {
            (void)snprintf(host + used, sizeof(host) - used, ".%d", (int)getpid());
        }
        name = host;
    }
    if (strlen(name) >= sizeof(part->node) || !*name) {
        return error_set(reterr, BATON_EINVAL, "--node '%s': must have 1 to %d bytes", name,
                         BATON_NAME_MAX - 1);
    }
    (void)snprintf(part->node, sizeof(part->node), "%s", name);
    return 0;
}

static int make_election(struct participant *part, struct baton_error *reterr)
{
    const char *name = options_text(part->config.options, "election");
    part->election = calloc(1, election_bytes(name));
    if (part->election && election_init(part->election, name, part->config.lease) == 0) {
        part->observer.on_event = on_event;
        election_observe(part->election, &part->observer);
        part->status = status_new(part->member, part->election, part->node);
    }
    return part->status ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");
}

/* Opens the control socket, if there is a data directory. */
static int open_control(struct participant *part, const char *data, struct baton_error *reterr)
{
    const struct options *options = part->config.options;
    struct member_control_config config = {.loop = part->config.loop,
                                           .logger = part->config.logger,
                                           .member = part->member,
                                           .election = part->election,
                                           .status = part->status,
                                           .has_test_switches =
                                               options_find(options, "test-switches") &&
                                               options_flag(options, "test-switches")};
    char *path = NULL;
    if (!data) {
        return 0;
    }
    if (asprintf(&path, "%s/control.sock", data) < 0) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    config.path = path;
    int code = member_control_open(&part->control, &config, reterr);
    free(path);
    return code;
}

static int open_http(struct participant *part, struct baton_error *reterr)
{
    struct http_config config = {.loop = part->config.loop, .logger = part->config.logger};
    struct http_options space;
    int code = http_options_read(&config, &space, part->config.options, reterr);

    code =
        code || !config.host ? code : member_http_open(&part->http, &config, part->status, reterr);
    explicit_bzero(space.token, sizeof(space.token));
    return code;
}

/* Opens the endpoints first: a node that cannot open them must not lead. */
static int open_parts(struct participant *part, struct settings *settings,
                      struct baton_error *reterr)
{
    int code = settings_read(settings, part->config.options, reterr);
    code = code ? code : name_node(part, strncmp(settings->config.url, "agent:", 6) == 0, reterr);
    if (code) {
        return code;
    }
    if (part->config.proofs && !options_is_set(part->config.options, "proofs")) {
        settings_add(settings, "proofs", part->config.proofs);
    }
    if (part->config.kills_outliving) {
        settings_add(settings, "kill-outliving", "yes");
    }
    part->has_many_servers = strstr(settings->config.url, "quorum=") != NULL;
    settings->config.loop = part->config.loop;
    settings->config.logger = part->config.logger;
    settings->config.node = part->node;
    settings->config.alive_ns = part->config.alive_ns;
    code = member_open(&part->member, &settings->config, reterr);
    code = code ? code : make_election(part, reterr);
    if (!code && part->config.has_endpoints) {
        code = open_control(part, settings->data, reterr);
        code = code ? code : open_http(part, reterr);
    }
    part->reload = (struct reload){.options = part->config.options,
                                   .logger = part->config.logger,
                                   .member = part->member,
                                   .http = part->http};
    return code ? code : election_join(part->election, part->member, false, NULL, reterr);
}

static void start_timers(struct participant *part)
{
    serve_alive(&part->watchdog, part->config.loop);
    (void)uv_timer_init(part->config.loop, &part->quiet);
    part->has_timers = true;
}

/* A container decides which of the two costs apply, and the operator cannot see it otherwise. */
static void log_deaths(const struct participant *part)
{
    json_t *status = status_json(part->status);
    const json_t *deaths = json_object_get(status, "deaths");

    log_notice(part->config.logger, "deaths",
               LOG_STR("at_once", json_string_value(json_object_get(deaths, "at_once"))),
               LOG_STR("by_lease", json_string_value(json_object_get(deaths, "by_lease"))));
    json_decref(status);
}

static void discard(void *userdata)
{
    (void)userdata;
}

int participant_open(struct participant **ret, const struct participant_config *config,
                     struct baton_error *reterr)
{
    struct participant *part = calloc(1, sizeof(*part));
    struct settings settings = {.data = NULL};
    if (!part) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    part->config = *config;
    (void)prctl(PR_SET_DUMPABLE, 0); /* CMD has the same user, and must not read our keys */
    start_timers(part);
    int code = open_parts(part, &settings, reterr);
    settings_fini(&settings);
    if (code) {
        participant_close(part, discard, NULL);
        (void)uv_run(config->loop, UV_RUN_DEFAULT);
        participant_free(part);
        return reterr->code = exit_code_local_error(code);
    }
    if (fatal_install(reterr)) { /* a crash is announced before the process ends */
        log_warning(config->logger, "no-fatal-handlers");
    }
    log_deaths(part);
    notify_ready();
    *ret = part;
    return 0;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void on_member_closed(void *userdata)
{
    struct participant *part = userdata;
    member_control_close(part->control);
    http_server_close(part->http);
    if (part->has_timers) {
        uv_close((uv_handle_t *)&part->watchdog, NULL);
        uv_close((uv_handle_t *)&part->quiet, NULL);
        part->has_timers = false;
    }
    part->closed(part->closed_userdata);
}

void participant_close(struct participant *part, void (*closed)(void *userdata), void *userdata)
{
    if (part->is_closing) {
        return;
    }
    part->is_closing = true;
    part->closed = closed;
    part->closed_userdata = userdata;
    notify_stopping();
    if (part->member) {
        member_close(part->member, on_member_closed, part);
    } else {
        on_member_closed(part);
    }
}

void participant_free(struct participant *part)
{
    if (part) {
        http_server_free(part->http);
        status_free(part->status);
        if (part->election) {
            election_fini(part->election);
        }
        free(part->election);
        member_free(part->member);
        free(part);
    }
}
