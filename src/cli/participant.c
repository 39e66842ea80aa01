#include "cli/member_internal.h"

#include "base/value.h"
#include "cli/footprint.h"
#include "guardian/fatal.h"
#include "options/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CLOSE_WAIT_MS = 2000, QUIET_MS = 500, QUIET_AGAIN_MS = 2000 };

struct logger *participant_logger(const struct options *options)
{
    int level = log_level_parse(options_text(options, "log-level"));
    enum log_format format = log_format_for(STDERR_FILENO, options_flag(options, "log-json"));
    return logger_new(STDERR_FILENO, format, (enum log_level)level);
}

bool participant_is_leader(const struct participant *member, uint64_t *ret_epoch)
{
    return lease_cell_is_leader(member->cell, ret_epoch);
}

span participant_lease_left(const struct participant *member)
{
    return lease_cell_remaining(member->cell);
}

const char *participant_obstacle(const struct participant *member)
{
    return member->obstacle[0] ? member->obstacle : "nobody is known to lead";
}

const char *participant_node(const struct participant *member)
{
    return member->node;
}

struct provider_election *participant_provider_election(const struct participant *member)
{
    return member->election;
}

const char *participant_election(const struct participant *member)
{
    return options_text(member->config.options, "election");
}

struct provider *participant_provider(const struct participant *member)
{
    return member->provider;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void count_event(struct participant *member, const struct baton_event *event)
{
    member->events++;
    member->elections_won += event->type == BATON_EVENT_ACQUIRED;
    member->leaderships_lost += event->type == BATON_EVENT_LOST;
    member->leader_changes += event->type == BATON_EVENT_LEADER;
}

static void note_leader(struct participant *member, const char *name)
{
    (void)snprintf(member->obstacle, sizeof(member->obstacle), "%s leads", name);
}

/* Who leads may be known by its id before the registry says what people call it. */
static void note_name(struct participant *member, const struct baton_member *joined)
{
    char known[sizeof(member->obstacle)];
    (void)snprintf(known, sizeof(known), "%s leads", joined->id);
    if (strcmp(member->obstacle, known) == 0) {
        note_leader(member, joined->name);
    }
}

static void note_obstacle(struct participant *member, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_LEADER) {
        note_leader(member, event->member.id[0] ? event->member.name : "nobody");
    } else if (event->type == BATON_EVENT_MEMBER_JOINED) {
        note_name(member, &event->member);
    } else if (event->error.code) {
        (void)snprintf(member->obstacle, sizeof(member->obstacle), "%s", event->error.message);
    }
}

static enum log_level level_of(const struct baton_event *event)
{
    switch (event->type) {
    case BATON_EVENT_ELECTION_FAILED: /* a wait is told, and told again while it lasts */
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

static void log_event(struct participant *member, const struct baton_event *event)
{
    const char *loss = event->type == BATON_EVENT_LOST ? baton_loss_name(event->loss) : NULL;
    const char *text = event->error.code ? event->error.message : event->text;
    LOG_EVENT(member->config.logger, level_of(event), baton_event_name(event->type),
              LOG_U64("epoch", event->epoch), LOG_STR("member", event->member.name),
              LOG_STR("loss", loss), LOG_STR("text", text));
}

static void publish_event(struct participant *member, const struct baton_event *event)
{
    json_t *line = member->control ? member_event_json(event) : NULL;
    if (line) {
        control_server_publish(member->control, line);
    }
    json_decref(line);
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

/* Not followers: they need their pages warm for the moment in which the leader dies. */
static void on_quiet(uv_timer_t *timer)
{
    (void)timer;
    footprint_shed();
}

static void watch_role(struct participant *member, const struct baton_event *event)
{
    if (event->type == BATON_EVENT_ACQUIRED && member->has_timers) {
        (void)uv_timer_start(&member->quiet, on_quiet, QUIET_MS, QUIET_AGAIN_MS);
    } else if (event->type == BATON_EVENT_LOST && member->has_timers) {
        (void)uv_timer_stop(&member->quiet);
    }
}

/* The command acts first: it is what the milliseconds are saved for. */
static void on_event(void *userdata, const struct baton_event *event)
{
    struct participant *member = userdata;
    member_drain_watch(member, event);
    member->config.on_event(member->config.userdata, event);
    count_event(member, event);
    note_obstacle(member, event);
    member_pass_watch(member, event);
    watch_role(member, event);
    log_event(member, event);
    publish_event(member, event);
    tell_systemd(event);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int name_node(struct participant *member, struct baton_error *reterr)
{
    const char *name = options_text(member->config.options, "node");
    char host[256] = "";
    if (!name) {
        (void)gethostname(host, sizeof(host) - 1);
        name = host;
    }
    if (strlen(name) >= sizeof(member->node) || !*name) {
        return error_set(reterr, BATON_EINVAL, "--node '%s': must have 1 to %d bytes", name,
                         BATON_NAME_MAX - 1);
    }
    (void)snprintf(member->node, sizeof(member->node), "%s", name);
    return 0;
}

static int campaign(struct participant *member, struct baton_error *reterr)
{
    struct provider_campaign campaign = {.election = participant_election(member),
                                         .eligible = true,
                                         .cell = member->cell,
                                         .on_event = on_event,
                                         .userdata = member};
    return member->provider->ops->campaign(&member->election, member->provider, &campaign, reterr);
}

static int open_control(struct participant *member, struct baton_error *reterr)
{
    if (!member->data) {
        return 0; /* a provider without a data directory: no control socket */
    }
    if (asprintf(&member->control_path, "%s/control.sock", member->data) < 0) {
        member->control_path = NULL;
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    return control_server_open(&member->control, member->config.loop, member->control_path,
                               member_on_control, member, reterr);
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    notify_alive();
}

static void start_timers(struct participant *member)
{
    uint64_t interval_ms = (uint64_t)(notify_interval().ns / 1000000);
    (void)uv_timer_init(member->config.loop, &member->pass.timer);
    (void)uv_timer_init(member->config.loop, &member->watchdog);
    (void)uv_timer_init(member->config.loop, &member->quiet);
    member->pass.timer.data = member;
    member->has_timers = true;
    if (interval_ms) {
        (void)uv_timer_start(&member->watchdog, on_watchdog, interval_ms, interval_ms);
    }
}

static int open_parts(struct participant *member, struct baton_error *reterr)
{
    int code = name_node(member, reterr);
    if (!code) {
        code = member_provider_open(member, reterr);
    }
    if (!code && member->config.has_doors) {
        /* Doors before the campaign: who cannot open them must not lead for a moment. */
        code = open_control(member, reterr);
        code = code ? code : member_http_open(member, reterr);
    }
    return code ? code : campaign(member, reterr);
}

/* Before it has begun it is this machine, or a flag's value, that is in the way: no cluster has
 * refused anything yet. */
static int local_code(int code)
{
    switch (code) {
    case BATON_ENOENT:  /* a file that a flag names */
    case BATON_EEXIST:  /* the data directory of another node */
    case BATON_ETOOBIG: /* its path */
        return BATON_EINVAL;
    case BATON_EBUSY: /* a port or a directory that another process has */
        return BATON_EIO;
    default:
        return code;
    }
}

static void discard(void *userdata)
{
    (void)userdata;
}

int participant_open(struct participant **ret, const struct participant_config *config,
                     struct baton_error *reterr)
{
    struct participant *member = calloc(1, sizeof(*member));
    struct lease_cell *cell = lease_cell_new();
    json_t *members = json_array();
    if (!member || !cell || !members) {
        free(member);
        lease_cell_free(cell);
        json_decref(members);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    member->config = *config;
    lease_cell_watch(cell, config->lease);
    member->cell = cell;
    member->members = members;
    member->started = clock_now();
    (void)prctl(PR_SET_DUMPABLE, 0); /* CMD has our user, and is not to read keys in our memory */
    start_timers(member);
    int code = open_parts(member, reterr);
    if (code) {
        participant_close(member, discard, NULL);
        (void)uv_run(config->loop, UV_RUN_DEFAULT);
        participant_free(member);
        return reterr->code = local_code(code);
    }
    if (fatal_install(reterr)) { /* a crash is announced before the kernel gets to it */
        log_warning(config->logger, "no-fatal-handlers");
    }
    notify_ready();
    *ret = member;
    return 0;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void on_provider_closed(void *userdata)
{
    struct participant *member = userdata;
    control_server_close(member->control);
    member->control = NULL;
    http_server_close(member->http);
    if (member->has_timers) {
        uv_close((uv_handle_t *)&member->pass.timer, NULL);
        uv_close((uv_handle_t *)&member->watchdog, NULL);
        uv_close((uv_handle_t *)&member->quiet, NULL);
        member->has_timers = false;
    }
    member->closed(member->closed_userdata);
}

void participant_close(struct participant *member, void (*closed)(void *userdata), void *userdata)
{
    if (member->is_closing) {
        return;
    }
    member->is_closing = true;
    member->closed = closed;
    member->closed_userdata = userdata;
    notify_stopping();
    if (member->provider) {
        member->provider->ops->close(member->provider, on_provider_closed, member);
    } else {
        on_provider_closed(member);
    }
}

void participant_free(struct participant *member)
{
    if (!member) {
        return;
    }
    http_server_free(member->http);
    lease_cell_free(member->cell);
    json_decref(member->members);
    free(member->data);
    free(member->control_path);
    free(member);
}
