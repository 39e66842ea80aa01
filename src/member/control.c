#include "member/control.h"

#include "member/addition.h"
#include "member/handover.h"
#include "member/members.h"
#include "member/store.h"
#include "net/control.h"
#ifdef BATON_PROVIDER_RAFT
#include "provider/raft/raft_provider.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 30000, TIMEOUT_MAX_MS = 3600000 };

struct member_control {
    struct member_control_config config;
    struct control_server *server; /* NULL once closed */
    struct observer observer;
    uint64_t passing;                /* the client that waits for another leader; 0: none does */
    char passing_to[BATON_NAME_MAX]; /* the one that it wants; "": any */
    bool has_passed;                 /* this process has let leadership go for it */
    uv_timer_t timer;                /* of that client */
};

/* A request that is answered later. */
struct question {
    struct member_control *control;
    uint64_t client;
    bool wants_members; /* only */
};

typedef int (*act_fn)(struct member_control *control, uint64_t client, const json_t *request,
                      struct baton_error *reterr);

/* ---- Answers --------------------------------------------------------------------------------- */

static struct question *question_new(struct member_control *control, uint64_t client,
                                     struct baton_error *reterr)
{
    struct question *question = calloc(1, sizeof(*question));

    if (question) {
        question->control = control;
        question->client = client;
    } else {
        (void)error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    return question;
}

static void answer(struct member_control *control, uint64_t client, json_t *json)
{
    control_server_answer(control->server, client, json);
}

static json_t *error_json(int code, const char *text)
{
    return json_pack("{s:b,s:i,s:s}", "ok", 0, "code", code, "error", text);
}

static void answer_code(struct member_control *control, uint64_t client, int code,
                        const struct baton_error *error)
{
    const char *text = error && error->code ? error->message : baton_strerror(code);

    answer(control, client, code ? error_json(code, text) : json_pack("{s:b}", "ok", 1));
}

static void on_done(void *userdata, int code, const struct baton_error *error)
{
    struct question *question = userdata;

    answer_code(question->control, question->client, code, error);
    free(question);
}

/* ---- What it knows --------------------------------------------------------------------------- */

static void on_refreshed(void *userdata, int code)
{
    struct question *question = userdata;
    struct member_control *control = question->control;
    struct status *status = control->config.status;

    if (code) {
        answer_code(control, question->client, code, NULL);
    } else if (question->wants_members) {
        answer(control, question->client,
               json_pack("{s:b,s:O}", "ok", 1, "members", status_members(status)));
    } else {
        answer(control, question->client, status_json(status));
    }
    free(question);
}

static int ask(struct member_control *control, uint64_t client, bool wants_members,
               struct baton_error *reterr)
{
    struct question *question = question_new(control, client, reterr);
    int code;

    if (!question) {
        return BATON_ENOMEM;
    }
    question->wants_members = wants_members;
    code = status_refresh(control->config.status, on_refreshed, question, reterr);
    if (code) {
        free(question);
    }
    return code;
}

static int do_status(struct member_control *control, uint64_t client, const json_t *request,
                     struct baton_error *reterr)
{
    (void)request;
    return ask(control, client, false, reterr);
}

static int do_members(struct member_control *control, uint64_t client, const json_t *request,
                      struct baton_error *reterr)
{
    (void)request;
    return ask(control, client, true, reterr);
}

static int do_watch(struct member_control *control, uint64_t client, const json_t *request,
                    struct baton_error *reterr)
{
    (void)request;
    (void)reterr;
    control_server_subscribe(control->server, client);
    return 0;
}

static json_t *value_json(const struct provider_value *value)
{
    return json_pack("{s:s, s:s%, s:I}", "key", value->key, "text", (const char *)value->data,
                     value->bytes, "revision", (json_int_t)value->revision);
}

static void on_list(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct question *question = userdata;
    json_t *list = json_array();

    for (size_t i = 0; i < count && code == BATON_OK; i++) {
        json_t *value = values[i].data ? value_json(&values[i]) : NULL; /* NULL: it is no text */
        (void)(value && json_array_append_new(list, value));
    }
    if (code) {
        json_decref(list);
        answer_code(question->control, question->client, code, NULL);
    } else {
        answer(question->control, question->client,
               json_pack("{s:b, s:o}", "ok", 1, "values", list));
    }
    free(question);
}

static int do_list(struct member_control *control, uint64_t client, const json_t *request,
                   struct baton_error *reterr)
{
    const char *prefix = json_string_value(json_object_get(request, "prefix"));
    struct question *question = question_new(control, client, reterr);
    int code;

    if (!question) {
        return BATON_ENOMEM;
    }
    code = prefix ? store_list(control->config.member, prefix, on_list, question, reterr)
                  : error_set(reterr, BATON_EINVAL, "list: needs a prefix");
    if (code) {
        free(question);
    }
    return code; /* NOLINT(clang-analyzer-unix.Malloc): on_list() frees the question */
}

/* ---- Giving leadership away ------------------------------------------------------------------ */

static int64_t timeout_of(const json_t *request)
{
    json_int_t timeout_ms = json_integer_value(json_object_get(request, "timeout_ms"));

    return timeout_ms < 1 || timeout_ms > TIMEOUT_MAX_MS ? TIMEOUT_MS : timeout_ms;
}

static instant deadline_of(const json_t *request)
{
    return instant_add(clock_now(), SPAN_MS(timeout_of(request)));
}

static void end_pass(struct member_control *control, json_t *json)
{
    uint64_t client = control->passing;

    control->passing = 0;
    (void)uv_timer_stop(&control->timer);
    answer(control, client, json);
}

/* The lease is gone; the client waits for the next leader. */
static void on_passed(void *userdata, int code, const struct baton_error *error)
{
    struct member_control *control = userdata;

    control->has_passed = code == BATON_OK;
    if (code && control->passing) {
        end_pass(control, error_json(code, error ? error->message : baton_strerror(code)));
    }
}

static void on_pass_timeout(uv_timer_t *timer)
{
    end_pass(timer->data, error_json(BATON_ETIMEDOUT, "no other node has taken over in time"));
}

static bool is_wanted(const struct member_control *control, const struct baton_member *leader)
{
    const char *to = control->passing_to;

    return to[0] == '\0' || strcmp(leader->name, to) == 0 || strcmp(leader->id, to) == 0;
}

static void watch_pass(struct member_control *control, const struct baton_event *event)
{
    struct baton_error error;
    const char *node = status_node(control->config.status);
    bool is_taken =
        (event->type == BATON_EVENT_LEADER || event->type == BATON_EVENT_ELECTION_COMPLETED) &&
        event->member.id[0] && strcmp(event->member.name, node) != 0;

    if (control->passing && is_taken && !is_wanted(control, &event->member)) {
        (void)error_set(&error, BATON_ECONFLICT, "%s leads now, and not %s", event->member.name,
                        control->passing_to);
        end_pass(control, error_json(error.code, error.message));
    } else if (control->passing && is_taken) {
        end_pass(control, json_pack("{s:b,s:s,s:s,s:I}", "ok", 1, "leader", event->member.id,
                                    "name", event->member.name, "epoch", (json_int_t)event->epoch));
    } else if (control->passing && control->has_passed && event->type == BATON_EVENT_ACQUIRED) {
        end_pass(control,
                 error_json(BATON_ECONFLICT, "no other node took over: this node leads again"));
    }
}

static int refuse_pass(const struct member_control *control, struct baton_error *reterr)
{
    struct baton_member leader;
    uint64_t epoch;

    if (control->passing) {
        return error_set(reterr, BATON_EBUSY, "leadership is being given away already");
    }
    election_leader(control->config.election, &leader, &epoch);
    return leader.id[0]
               ? error_set(reterr, BATON_ENOTLEADER, "%s does not lead, %s does; ask there",
                           status_node(control->config.status), leader.name)
               : error_set(reterr, BATON_ENOTLEADER,
                           "%s does not lead, and knows no leader; `baton members` shows which "
                           "members answer",
                           status_node(control->config.status));
}

static int do_pass(struct member_control *control, uint64_t client, const json_t *request,
                   struct baton_error *reterr)
{
    const struct handover_request handover = {
        .kind = HANDOVER_RESIGN,
        .needs_heir = true,
        .to = json_string_value(json_object_get(request, "to")),
        .deadline = deadline_of(request),
        .done = on_passed,
        .userdata = control,
    };
    int code;

    if (control->passing || !election_is_leader(control->config.election, NULL)) {
        return refuse_pass(control, reterr);
    }
    control->passing = client;
    control->has_passed = false;
    (void)snprintf(control->passing_to, sizeof(control->passing_to), "%s",
                   handover.to ? handover.to : "");
    /* Later than the hand-over's own deadline, which says why it came to nothing. */
    (void)uv_timer_start(&control->timer, on_pass_timeout,
                         (uint64_t)(timeout_of(request) + timeout_of(request) / 20 + 1), 0);
    code = handover_begin(control->config.election, &handover, reterr);
    if (code) {
        control->passing = 0;
        (void)uv_timer_stop(&control->timer);
    }
    return code;
}

/* The program has until the lease's end to stop. */
static int do_cordon(struct member_control *control, uint64_t client, const json_t *request,
                     struct baton_error *reterr)
{
    struct election *election = control->config.election;
    struct question *question = question_new(control, client, reterr);
    const struct handover_request handover = {
        .kind = HANDOVER_CORDON,
        .deadline = instant_add(clock_now(), election_lease_left(election)),
        .done = on_done,
        .userdata = question,
    };
    int code = question ? handover_begin(election, &handover, reterr) : BATON_ENOMEM;
    (void)request;

    if (code) {
        free(question);
    }
    return code;
}

static int do_uncordon(struct member_control *control, uint64_t client, const json_t *request,
                       struct baton_error *reterr)
{
    int code = handover_uncordon(control->config.election, reterr);
    (void)request;

    if (!code) {
        answer_code(control, client, 0, NULL);
    }
    return code;
}

/* ---- Changing the group ---------------------------------------------------------------------- */

static int do_join(struct member_control *control, uint64_t client, const json_t *request,
                   struct baton_error *reterr)
{
    const char *text = json_string_value(json_object_get(request, "member"));
    bool replaces = json_is_true(json_object_get(request, "replace"));
    struct election *election = control->config.election;
    struct question *question;
    struct addition added;
    int code = members_check_change(election, reterr);

    code = code ? code : addition_parse(text ? text : "", &added, reterr);
    question = code ? NULL : question_new(control, client, reterr);
    if (!question) {
        return code ? code : BATON_ENOMEM;
    }
    /* A provider whose members can change lists them at once. */
    (void)members_list(election, addition_keep, &added, NULL);
    code = members_add(election, &added.member, replaces, deadline_of(request), on_done, question,
                       reterr);
    if (code) {
        free(question);
    }
    return code;
}

static int do_leave(struct member_control *control, uint64_t client, const json_t *request,
                    struct baton_error *reterr)
{
    const char *text = json_string_value(json_object_get(request, "member"));
    struct question *question;
    int code;

    if (!text) {
        return error_set(reterr, BATON_EINVAL, "the member's name is missing");
    }
    question = question_new(control, client, reterr);
    code = question ? members_remove(control->config.election, text, deadline_of(request), on_done,
                                     question, reterr)
                    : BATON_ENOMEM;
    if (code) {
        free(question);
    }
    return code;
}

/* ---- For tests ------------------------------------------------------------------------------- */

static int do_isolate(struct member_control *control, uint64_t client, const json_t *request,
                      struct baton_error *reterr)
{
    if (!control->config.has_test_switches) {
        return error_set(reterr, BATON_EAUTH, "this node was not started for tests");
    }
#ifdef BATON_PROVIDER_RAFT
    if (strcmp(member_scheme(control->config.member), "raft") == 0) {
        raft_provider_isolate(member_provider(control->config.member),
                              json_is_true(json_object_get(request, "on")));
        answer_code(control, client, 0, NULL);
        return 0;
    }
#endif
    (void)client;
    (void)request;
    return error_set(reterr, BATON_ENOTSUP, "only nodes of the raft provider can be cut off");
}

/* ---- The socket ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    act_fn act;
} requests[] = {
    {"status", do_status}, {"members", do_members}, {"list", do_list},         {"watch", do_watch},
    {"pass", do_pass},     {"cordon", do_cordon},   {"uncordon", do_uncordon}, {"join", do_join},
    {"leave", do_leave},   {"isolate", do_isolate},
};

static void on_request(void *userdata, uint64_t client, const json_t *request)
{
    struct member_control *control = userdata;
    struct baton_error error = {0};
    const char *what = json_string_value(json_object_get(request, "do"));

    for (size_t i = 0; what && i < sizeof(requests) / sizeof(requests[0]); i++) {
        if (strcmp(requests[i].name, what) == 0) {
            int code = requests[i].act(control, client, request, &error);
            if (code) {
                answer_code(control, client, code, &error);
            }
            return;
        }
    }
    (void)error_set(&error, BATON_EINVAL, "'%s': no such request", what ? what : "");
    answer_code(control, client, BATON_EINVAL, &error);
}

static void on_event(struct observer *observer, const struct baton_event *event)
{
    struct member_control *control = OBSERVER_OF(struct member_control, observer);
    json_t *line = status_event_json(event);

    watch_pass(control, event);
    if (line) {
        control_server_publish(control->server, line);
    }
    json_decref(line);
}

int member_control_open(struct member_control **ret, const struct member_control_config *config,
                        struct baton_error *reterr)
{
    struct member_control *control = calloc(1, sizeof(*control));
    int code = control ? control_server_open(&control->server, config->loop, config->path,
                                             config->logger, on_request, control, reterr)
                       : error_set(reterr, BATON_ENOMEM, "out of memory");

    if (code) {
        free(control);
        return code;
    }
    control->config = *config;
    (void)uv_timer_init(config->loop, &control->timer);
    control->timer.data = control;
    control->observer.on_event = on_event;
    election_observe(config->election, &control->observer);
    *ret = control;
    return 0;
}

static void on_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void member_control_close(struct member_control *control)
{
    if (control) {
        control_server_close(control->server);
        uv_close((uv_handle_t *)&control->timer, on_closed);
    }
}
