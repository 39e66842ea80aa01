#include "cli/by_agent.h"

#include "cli/agent_link.h"
#include "cli/ask.h"
#include "cli/settings.h"
#include "net/local.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 10, RENEWALS = 3 }; /* of a command that has no --timeout; in a lifetime */

/* ---- Which of them is asked ------------------------------------------------------------------ */

static enum option_source source_of(const struct options *options, const char *name)
{
    return options_find(options, name) ? options_source(options, name) : OPTION_DEFAULT;
}

static enum option_source later(enum option_source one, enum option_source other)
{
    return one > other ? one : other;
}

bool by_agent(const struct options *options)
{
    enum option_source of_agent =
        later(source_of(options, "election"), source_of(options, "socket"));
    enum option_source of_data = source_of(options, "data");
    enum option_source of_node;
    char path[LOCAL_PATH_MAX];

    if (of_data == OPTION_DEFAULT && settings_data(options)) {
        of_data = OPTION_ENVIRONMENT;
    }
    of_node = later(of_data, source_of(options, "http"));
    if (!options_find(options, "election") || of_node != OPTION_DEFAULT ||
        of_agent != OPTION_DEFAULT) {
        return of_agent > of_node;
    }
    return agent_link_path(path, options, NULL) == BATON_OK && access(path, F_OK) == 0;
}

/* NULL: it is missing. */
static const char *election_of(const struct options *options, struct baton_error *reterr)
{
    const char *name = options_text(options, "election");

    if (!name) {
        (void)error_set(reterr, BATON_EINVAL,
                        "--election is missing: name one of the agent's (`baton elections` lists "
                        "them), or with --data a node on this machine");
    }
    return name;
}

/* ---- Taking part without leading ------------------------------------------------------------- */

/* *ret_lifetime_ms: how long the agent waits for a word of this process. */
static int observe(struct agent_link *link, const char *election, double *ret_lifetime_ms,
                   struct baton_error *reterr)
{
    json_t *hello = NULL;
    int code =
        agent_link_ask(&hello, link, json_pack("{s:s, s:i}", "do", "hello", "version", 1), reterr);

    *ret_lifetime_ms = json_number_value(json_object_get(hello, "lifetime_ms"));
    json_decref(hello);
    return code ? code
                : agent_link_ask(NULL, link,
                                 json_pack("{s:s, s:s, s:b}", "do", "campaign", "election",
                                           election, "eligible", 0),
                                 reterr);
}

static void say_goodbye(struct agent_link *link)
{
    struct baton_error ignored;

    (void)agent_link_ask(NULL, link, json_pack("{s:s}", "do", "bye"), &ignored);
}

/* The agent connects to Redis for each client anew. */
static int ask_when_connected(json_t **ret, struct agent_link *link, const char *election,
                              span patience, struct baton_error *reterr)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    instant limit = instant_add(clock_now(), patience);
    int code;

    while ((code = agent_link_ask(ret, link,
                                  json_pack("{s:s, s:s}", "do", "members", "election", election),
                                  reterr)) == BATON_EUNAVAILABLE &&
           instant_before(clock_now(), limit)) {
        (void)nanosleep(&pause, NULL);
    }
    return code;
}

/* As an observer, which is not in the list. */
static int list_members(json_t **ret, struct agent_link *link, const char *election,
                        struct baton_error *reterr)
{
    json_t *reply = NULL, *others = json_array(), *one;
    double lifetime_ms;
    size_t index;
    int code = observe(link, election, &lifetime_ms, reterr);

    code = code ? code
                : ask_when_connected(&reply, link, election, SPAN_MS((int64_t)(lifetime_ms / 2)),
                                     reterr);
    json_array_foreach(json_object_get(reply, "members"), index, one)
    {
        if (!json_is_true(json_object_get(one, "self"))) {
            (void)json_array_append(others, one);
        }
    }
    json_decref(reply);
    if (code) {
        json_decref(others);
        return code;
    }
    *ret = others;
    return BATON_OK;
}

/* ---- status ---------------------------------------------------------------------------------- */

static void set_leader(json_t *status, const char *name, json_int_t epoch)
{
    (void)json_object_set_new(status, "leader",
                              name ? json_pack("{s:s}", "name", name) : json_null());
    (void)json_object_set_new(status, "epoch", json_integer(epoch));
}

static int take_listed(json_t *status, const json_t *elections, const char *name,
                       struct baton_error *reterr)
{
    const json_t *left, *leader;
    size_t index;
    json_t *one;

    json_array_foreach(elections, index, one)
    {
        const char *listed = json_string_value(json_object_get(one, "election"));
        if (!listed || strcmp(listed, name) != 0) {
            continue;
        }
        left = json_object_get(one, "left_ms");
        leader = json_object_get(one, "leader");
        set_leader(status, json_string_value(leader),
                   json_integer_value(json_object_get(one, "epoch")));
        (void)json_object_set(status, "waiting", json_object_get(one, "waiting"));
        if (left) {
            (void)json_object_set_new(status, "lease_left_ms", json_incref((json_t *)left));
        }
        return BATON_OK;
    }
    return error_set(reterr, BATON_ENOENT,
                     "election \"%s\": nobody takes part in it; `baton elections` lists those that "
                     "there are",
                     name);
}

/* Where the provider lists no elections: what an observer hears. */
static int take_heard(json_t *status, struct agent_link *link, const char *name,
                      struct baton_error *reterr)
{
    json_t *members = NULL, *reply = NULL, *one;
    size_t index, waiting = 0;
    int code = list_members(&members, link, name, reterr);

    code = code ? code
                : agent_link_ask(&reply, link,
                                 json_pack("{s:s, s:s}", "do", "leader", "election", name), reterr);
    if (code == BATON_OK) {
        json_array_foreach(members, index, one)
        {
            const char *role = json_string_value(json_object_get(one, "role"));
            waiting += json_is_false(json_object_get(one, "cordoned")) &&
                       (!role || strcmp(role, "leader") != 0);
        }
        set_leader(status, json_string_value(json_object_get(reply, "leader")),
                   json_integer_value(json_object_get(reply, "epoch")));
        (void)json_object_set_new(status, "waiting", json_integer((json_int_t)waiting));
        say_goodbye(link);
    }
    json_decref(members);
    json_decref(reply);
    return code;
}

static int describe_election(json_t *status, struct agent_link *link, const char *name,
                             struct baton_error *reterr)
{
    json_t *reply = NULL;
    int code = agent_link_ask(&reply, link, json_pack("{s:s}", "do", "elections"), reterr);

    if (code == BATON_ENOTSUP) {
        return take_heard(status, link, name, reterr);
    }
    code = code ? code : take_listed(status, json_object_get(reply, "elections"), name, reterr);
    json_decref(reply);
    return code;
}

/* The agent's own reply has what a node calls "node", and its provider's status. */
static json_t *begin_status(const json_t *reply, const char *election)
{
    const char *scheme = json_string_value(json_object_get(reply, "provider"));
    json_t *status = json_pack("{s:O?, s:s*, s:s?}", "node", json_object_get(reply, "agent"),
                               "election", election, "provider", scheme);
    json_t *more = json_object_get(reply, "provider_status");

    if (status && scheme && more) {
        (void)json_object_set(status, scheme, more);
    }
    if (status && !election) {
        (void)json_object_set(status, "clients", json_object_get(reply, "clients"));
        (void)json_object_set(status, "processes", json_object_get(reply, "processes"));
        (void)json_object_set(status, "messages_dropped",
                              json_object_get(reply, "messages_dropped"));
    }
    return status;
}

int by_agent_status(json_t **ret, const struct options *options, struct baton_error *reterr)
{
    const char *election = options_text(options, "election");
    json_t *reply = NULL, *status = NULL;
    struct agent_link *link;
    int code = agent_link_open(&link, options, options_duration(options, "timeout"), reterr);

    if (code) {
        return code;
    }
    code = agent_link_ask(&reply, link, json_pack("{s:s}", "do", "status"), reterr);
    if (!code && !(status = begin_status(reply, election))) {
        code = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    code = code || !election ? code : describe_election(status, link, election, reterr);
    agent_link_close(link);
    json_decref(reply);
    if (code) {
        json_decref(status);
        return code;
    }
    *ret = status;
    return BATON_OK;
}

/* ---- members --------------------------------------------------------------------------------- */

int by_agent_members(json_t **ret, const struct options *options, struct baton_error *reterr)
{
    const char *election = election_of(options, reterr);
    json_t *members = NULL;
    struct agent_link *link;
    int code = election
                   ? agent_link_open(&link, options, options_duration(options, "timeout"), reterr)
                   : reterr->code;

    if (code) {
        return code;
    }
    code = list_members(&members, link, election, reterr);
    if (!code) {
        say_goodbye(link);
        *ret = json_pack("{s:o}", "members", members);
    }
    agent_link_close(link);
    return code;
}

/* ---- watch ----------------------------------------------------------------------------------- */

struct watching {
    const char *election;
    bool (*each)(void *userdata, const json_t *event);
    void *userdata;
};

/* As the control socket has it. False: the reader wants no more. */
static bool tell(const struct watching *watching, const json_t *event)
{
    const char *name = json_string_value(json_object_get(event, "event"));
    const char *election = json_string_value(json_object_get(event, "election"));
    const char *reason = json_string_value(json_object_get(event, "reason"));
    const char *text = json_string_value(json_object_get(event, "error"));
    json_t *line;
    bool goes_on;

    if (!name || !election || strcmp(election, watching->election) != 0) {
        return true; /* of the session */
    }
    line =
        json_pack("{s:s, s:s, s:s, s:I, s:s*, s:s*}", "event", name, "election", election, "member",
                  "", "epoch", (json_int_t)json_integer_value(json_object_get(event, "epoch")),
                  "loss", reason, "text", text);
    if (json_is_string(json_object_get(event, "leader"))) {
        (void)json_object_set(line, "member", json_object_get(event, "leader"));
    }
    goes_on = line && watching->each(watching->userdata, line);
    json_decref(line);
    return goes_on;
}

static instant earlier(instant one, instant other)
{
    return instant_before(one, other) ? one : other;
}

static int follow(struct agent_link *link, const struct watching *watching, double lifetime_ms,
                  instant end, struct baton_error *reterr)
{
    span pause = SPAN_NS(lifetime_ms * 1e6 / RENEWALS);
    instant renewal = instant_add(clock_now(), pause);
    bool goes_on = true;
    int code = BATON_OK;

    while (!code && goes_on) {
        json_t *event = NULL;
        code = agent_link_event(&event, link, earlier(renewal, end), reterr);
        if (code == BATON_OK) {
            goes_on = tell(watching, event);
        } else if (code == BATON_ETIMEDOUT && instant_before(clock_now(), end)) {
            code = BATON_OK;
        }
        json_decref(event);
        if (!code && !instant_before(clock_now(), renewal)) {
            code = agent_link_ask(NULL, link, json_pack("{s:s}", "do", "renew"), reterr);
            renewal = instant_add(clock_now(), pause);
        }
    }
    return code;
}

int by_agent_watch(const struct options *options, bool (*each)(void *userdata, const json_t *event),
                   void *userdata, struct baton_error *reterr)
{
    struct watching watching = {election_of(options, reterr), each, userdata};
    span timeout = options_duration(options, "timeout"); /* 0, the default, means for ever */
    instant end = timeout.ns > 0 ? instant_add(clock_now(), timeout) : INSTANT_NEVER;
    struct agent_link *link;
    double lifetime_ms;
    int code = watching.election ? agent_link_open(&link, options, SPAN_S(PATIENCE_S), reterr)
                                 : reterr->code;

    if (code) {
        return code;
    }
    code = observe(link, watching.election, &lifetime_ms, reterr);
    code = code ? code : follow(link, &watching, lifetime_ms, end, reterr);
    if (code == BATON_OK || code == BATON_ETIMEDOUT) {
        say_goodbye(link);
    }
    agent_link_close(link);
    return code;
}

/* ---- pass, cordon, uncordon ------------------------------------------------------------------ */

/* NULL if it cannot be written whole: without "to", any process could take over. */
static json_t *request_of(const struct invocation *invocation, const char *election)
{
    const struct options *options = invocation->options;
    const char *name = invocation->command->name;
    json_int_t wait_ms = ask_wait_ms(options);

    if (strcmp(name, "pass") == 0) {
        return options_text(options, "to")
                   ? json_pack("{s:s, s:s, s:I, s:s}", "do", "pass", "election", election,
                               "timeout_ms", wait_ms, "to", options_text(options, "to"))
                   : json_pack("{s:s, s:s, s:I}", "do", "pass", "election", election, "timeout_ms",
                               wait_ms);
    }
    return json_pack("{s:s, s:s, s:I, s:s, s:b}", "do", "cordon", "election", election,
                     "timeout_ms", wait_ms, "process", invocation->argv[0], "eligible",
                     (int)(strcmp(name, "uncordon") == 0));
}

/* *ret as a node answers: "name" and "epoch" of the leader. */
static int name_leader(json_t **ret, struct agent_link *link, const char *election,
                       struct baton_error *reterr)
{
    json_t *status = json_object();
    int code = describe_election(status, link, election, reterr);

    *ret = code ? NULL
                : json_pack(
                      "{s:b, s:s?, s:O}", "ok", 1, "name",
                      json_string_value(json_object_get(json_object_get(status, "leader"), "name")),
                      "epoch", json_object_get(status, "epoch"));
    json_decref(status);
    return code;
}

int by_agent_operate(json_t **ret, const struct invocation *invocation, struct baton_error *reterr)
{
    const struct options *options = invocation->options;
    const char *election = election_of(options, reterr);
    bool passes = strcmp(invocation->command->name, "pass") == 0;
    struct agent_link *link;
    int code = election ? BATON_OK : reterr->code;

    if (!code && !passes && invocation->argc == 0) {
        code = error_set(reterr, BATON_EINVAL,
                         "the process is missing: `baton members --election %s` names those that "
                         "take part",
                         election);
    }
    code =
        code ? code : agent_link_open(&link, options, options_duration(options, "timeout"), reterr);
    if (code) {
        return code;
    }
    code = agent_link_ask(ret, link, request_of(invocation, election), reterr);
    if (!code && passes) {
        json_decref(*ret);
        code = name_leader(ret, link, election, reterr);
    }
    agent_link_close(link);
    return code;
}
