#include "provider/raft/fencing.h"

#include "guardian/chore.h"
#include "provider/raft/fence_frame.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fencing {
    struct node *node;
    struct fence fence;
    span granted_max; /* as the data directory has it; 0: no grant stands */
    uv_timer_t timer;
    uv_poll_t *poll; /* of `report`; NULL: no command runs */
    int report;
    instant begun;
};

/* ---- Grants that outlive this process --------------------------------------------------------
 *
 * The file is there while a grant to another member may stand. A grant to itself needs none: the
 * command ends with this process. */

static void granted_path(const struct node *node, char ret[OPTIONS_PATH_MAX + 16])
{
    (void)snprintf(ret, OPTIONS_PATH_MAX + 16, "%s/fence-granted", node->options.data);
}

static int open_granted(const struct node *node, int flags)
{
    char path[OPTIONS_PATH_MAX + 16];

    granted_path(node, path);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* A file that cannot be read may stand for any grant. */
static span load_granted(const struct node *node)
{
    int fd = open_granted(node, O_RDONLY);
    char text[24] = "";
    long long ms;

    if (fd < 0) {
        return SPAN_NS(0);
    }
    (void)!read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    ms = strtoll(text, NULL, 10);
    return ms > 0 && ms <= SPAN_S(FENCE_HOLD_S_MAX).ns / 1000000 ? SPAN_MS(ms)
                                                                 : SPAN_S(FENCE_HOLD_S_MAX);
}

static bool store_granted(struct fencing *fencing, span hold)
{
    int fd = open_granted(fencing->node, O_WRONLY | O_CREAT);
    char text[24];
    int bytes = snprintf(text, sizeof(text), "%-16lld\n", (long long)(hold.ns / 1000000 + 1));
    bool is_stored = fd >= 0 && pwrite(fd, text, (size_t)bytes, 0) == bytes && fsync(fd) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (is_stored) {
        fencing->granted_max = hold;
    } else {
        log_warning(fencing->node->logger, "fence-not-granted",
                    LOG_STR("text", "the grant cannot be stored in the data directory"));
    }
    return is_stored;
}

static void forget_granted(struct fencing *fencing)
{
    const struct fence *fence = &fencing->fence;
    instant now = clock_now();
    char path[OPTIONS_PATH_MAX + 16];

    if (fencing->granted_max.ns > 0 && !instant_before(now, fence->silent_until) &&
        !instant_before(now, fence->granted_until)) {
        granted_path(fencing->node, path);
        (void)unlink(path); /* if that fails, the next start is silent in vain */
        fencing->granted_max = SPAN_NS(0);
    }
}

/* ---- Members --------------------------------------------------------------------------------- */

static uint64_t host_number(const struct node *node, const struct raft_member *member)
{
    char host[RAFT_ADDRESS_MAX];

    raft_options_host(&node->options, member, host);
    return raft_id_of(host);
}

static const char *host_name(const struct node *node, uint64_t host, char ret[RAFT_ADDRESS_MAX])
{
    const struct raft_configuration *now = raft_get_configuration(node->raft);

    for (size_t i = 0; i < now->count; i++) {
        raft_options_host(&node->options, &now->members[i], ret);
        if (raft_id_of(ret) == host) {
            return ret;
        }
    }
    return "?"; /* its last member has left the group */
}

void fencing_follow_membership(struct node *node)
{
    const struct raft_configuration *now = raft_get_configuration(node->raft);
    struct fence_member *members;

    if (!node->fencing || !(members = calloc(now->count + 1, sizeof(*members)))) {
        return; /* the members stay as they were: those that are not known refuse, or are refused */
    }
    for (size_t i = 0; i < now->count; i++) {
        const struct raft_member *member = &now->members[i];
        members[i].id = member->id;
        members[i].host = host_number(node, member);
        members[i].weight = member->is_leaving ? 0 : member->weight;
        members[i].old_weight = member->old_weight;
        members[i].may_lead =
            member->kind == RAFT_VOTER && member->weight > 0 && !member->is_leaving;
    }
    (void)fence_set_members(&node->fencing->fence, members, now->count, now->is_joint, clock_now());
    free(members);
}

void fencing_heard(struct node *node, raft_id id)
{
    if (node->fencing) {
        fence_heard(&node->fencing->fence, id, clock_now());
    }
}

void fencing_widen_drift(struct node *node, uint32_t drift_ppm)
{
    if (node->fencing && drift_ppm > node->fencing->fence.settings.drift_ppm) {
        node->fencing->fence.settings.drift_ppm = drift_ppm;
    }
}

/* A proof frees the promise to a leader, or the elections of the process's session. */
static void judge(struct fencing *fencing)
{
    const struct node *node = fencing->node;
    struct raft_status status;

    raft_get_status(node->raft, &status);
    for (size_t i = 0; i < fencing->fence.count; i++) {
        struct fence_member *member = &fencing->fence.members[i];
        member->worth = FENCE_NOTHING;
        if (status.promised_to == member->id) {
            member->worth = FENCE_LEADER;
        } else if (node->host && session_host_has(node->host, member->id)) {
            member->worth = FENCE_SESSION;
        }
    }
}

static struct fence_situation situation_of(const struct node *node)
{
    const struct fence_member *self = fence_find(&node->fencing->fence, node->id);
    struct raft_status status;

    raft_get_status(node->raft, &status);
    return (struct fence_situation){
        .may_run = node->eligible && self && self->may_lead && !status.storage_failed,
        .leads = node->published.held && instant_before(clock_now(), node->published.end),
        .leader = status.leader,
        .heir = status.heir,
        .incarnation = node->incarnation,
    };
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static void send_frame(struct node *node, raft_id to, uint64_t round,
                       const struct fence_frame *frame)
{
    struct buffer bytes;

    buffer_init(&bytes, FENCE_FRAME_MAX);
    fence_frame_put(&bytes, frame);
    if (!bytes.failed) {
        connection_send_bytes(node, to, FRAME_FENCE, round, bytes.data, bytes.bytes);
    }
    buffer_fini(&bytes);
}

static void send_kind(struct node *node, raft_id to, uint64_t round, enum fence_kind kind)
{
    struct fence_frame frame;

    frame.kind = kind;
    send_frame(node, to, round, &frame);
}

static void send_to_all(struct fencing *fencing, const struct fence_frame *frame)
{
    const struct fence *fence = &fencing->fence;

    for (size_t i = 0; i < fence->count; i++) {
        if (fence->members[i].id != fence->self) {
            send_frame(fencing->node, fence->members[i].id, fence->round, frame);
        }
    }
}

static void send_asks(struct fencing *fencing)
{
    const struct fence *fence = &fencing->fence;
    struct fence_frame frame;

    frame.kind = FENCE_ASKS;
    frame.hold = fence_hold(fence);
    frame.count = 0;
    for (size_t i = 0; i < fence->count && frame.count < RAFT_MEMBERS_MAX; i++) {
        if (fence->members[i].host == fence->host) {
            frame.ids[frame.count++] = fence->members[i].id;
        }
    }
    send_to_all(fencing, &frame);
}

static void send_releases(struct fencing *fencing)
{
    struct fence_frame frame;

    frame.kind = FENCE_RELEASED;
    send_to_all(fencing, &frame);
}

static void send_probes(struct fencing *fencing)
{
    const struct fence *fence = &fencing->fence;
    instant now = clock_now();

    for (size_t i = 0; i < fence->count; i++) {
        if (fence_wants_probe(fence, &fence->members[i], now)) {
            send_kind(fencing->node, fence->members[i].id, 0, FENCE_PROBE);
        }
    }
}

/* ---- The command ----------------------------------------------------------------------------- */

static void poll_closed(uv_handle_t *handle)
{
    struct node *node = handle->data;

    free(handle);
    node_release(node);
}

static void close_report(struct fencing *fencing)
{
    if (fencing->poll) {
        (void)uv_poll_stop(fencing->poll);
        fencing->poll->data = fencing->node;
        uv_close((uv_handle_t *)fencing->poll, poll_closed);
        fencing->poll = NULL;
        (void)close(fencing->report);
    }
}

/* Proofs of all processes on the host that existed when the command began. */
static void prove(struct fencing *fencing, uint64_t host)
{
    struct node *node = fencing->node;

    for (size_t i = 0; i < fencing->fence.count; i++) {
        struct acquaintance *known = acquaintance_of(node, fencing->fence.members[i].id);
        if (fencing->fence.members[i].host == host && known) {
            proof_on_fenced(node, known);
        }
    }
}

static void finish(struct fencing *fencing, const struct chore_report *report)
{
    struct node *node = fencing->node;
    uint64_t host = fencing->fence.host;
    instant now = clock_now();
    char name[RAFT_ADDRESS_MAX];
    bool is_proof = fence_take_exit(&fencing->fence, report->exit_code, report->was_in_time, now);

    node->counters.fences_failed += !is_proof;
    LOG_EVENT(node->logger, is_proof ? LOG_NOTICE : LOG_ERROR, "fence-ended",
              LOG_STR("host", host_name(node, host, name)), LOG_I64("exit", report->exit_code),
              LOG_STR("outcome", is_proof ? "the host is off"
                                 : report->was_in_time
                                     ? "failed: this proves nothing"
                                     : "killed at its time limit: this proves nothing"),
              LOG_F64("duration_ms", (double)instant_since(now, fencing->begun).ns / 1e6));
    send_releases(fencing);
    if (is_proof) {
        prove(fencing, host);
        event_deliver(node);
    }
}

static void on_report(uv_poll_t *poll, int status, int events)
{
    struct fencing *fencing = poll->data;
    struct chore_report report = {.exit_code = -1};
    (void)events;

    if (status == 0 && !chore_read(fencing->report, &report)) {
        return;
    }
    close_report(fencing);
    finish(fencing, &report);
}

static bool watch_report(struct fencing *fencing)
{
    fencing->poll = calloc(1, sizeof(*fencing->poll));
    if (!fencing->poll || uv_poll_init(fencing->node->loop, fencing->poll, fencing->report) != 0) {
        free(fencing->poll);
        fencing->poll = NULL;
        (void)close(fencing->report);
        return false;
    }
    fencing->node->open_handles++;
    fencing->poll->data = fencing;
    (void)uv_poll_start(fencing->poll, UV_READABLE | UV_DISCONNECT, on_report); /* cannot fail */
    return true;
}

/* What is known to be on the host now: later incarnations may outlive the fence. */
static void note_incarnations(struct fencing *fencing)
{
    for (size_t i = 0; i < fencing->fence.count; i++) {
        struct acquaintance *known = acquaintance_of(fencing->node, fencing->fence.members[i].id);
        if (fencing->fence.members[i].host == fencing->fence.host && known) {
            known->at_fence = known->incarnation;
            known->uncertified_at_fence = known->uncertified;
            known->index_at_fence = fencing->node->applied;
        }
    }
}

static void run(struct fencing *fencing)
{
    struct node *node = fencing->node;
    char name[RAFT_ADDRESS_MAX], input[CHORE_INPUT_MAX];
    const char *host = host_name(node, fencing->fence.host, name);
    const struct chore chore = {.command = node->options.fence,
                                .input = input,
                                .variable = "BATON_FENCE_HOST",
                                .value = host,
                                .limit = fencing->fence.settings.timeout};
    const struct chore_report failed = {.exit_code = -1, .was_in_time = true};
    struct baton_error error;

    (void)snprintf(input, sizeof(input), "action=off\nplug=%s\nnodename=%s\n", host, host);
    note_incarnations(fencing);
    fencing->begun = clock_now();
    node->counters.fences++;
    LOG_EVENT(node->logger, LOG_NOTICE, "fence-begins", LOG_STR("host", host),
              LOG_STR("command", node->options.fence),
              LOG_F64("silence_ms", (double)node->options.fence_after.ns / 1e6));
    if (chore_start(&fencing->report, &chore, &error) != BATON_OK) {
        log_error(node->logger, "fence-not-run", LOG_STR("error", error.message));
        finish(fencing, &failed);
    } else if (!watch_report(fencing)) {
        finish(fencing, &failed);
    }
}

/* ---- Looks ----------------------------------------------------------------------------------- */

static void look(struct fencing *fencing)
{
    struct fence *fence = &fencing->fence;
    struct fence_situation situation;
    char name[RAFT_ADDRESS_MAX];

    judge(fencing);
    situation = situation_of(fencing->node);
    switch (fence_look(fence, &situation, clock_now())) {
    case FENCE_ASK:
        send_asks(fencing);
        break;
    case FENCE_RUN:
        run(fencing);
        break;
    case FENCE_RELEASE:
        LOG_EVENT(fencing->node->logger, LOG_NOTICE, "fence-not-run",
                  LOG_STR("host", host_name(fencing->node, fence->host, name)),
                  LOG_STR("reason", fence->refusal == FENCE_GRANTED
                                        ? "it answers again, or a fence would free nothing, or no "
                                          "quorum answers"
                                        : fence_refusal_name(fence->refusal)));
        send_releases(fencing);
        break;
    case FENCE_NONE:
        break;
    }
}

static void on_look(uv_timer_t *timer)
{
    struct fencing *fencing = timer->data;

    look(fencing);
    send_probes(fencing);
    forget_granted(fencing);
}

/* A longer hold than any before is stored before the reply leaves. */
static enum fence_refusal consider(struct fencing *fencing, const struct fence_ask *ask)
{
    if (ask->hold.ns > fencing->granted_max.ns && !store_granted(fencing, ask->hold)) {
        return FENCE_STARTED;
    }
    return fence_take_ask(&fencing->fence, ask, clock_now());
}

static void answer(struct node *node, raft_id from, uint64_t incarnation, uint64_t round,
                   const struct fence_frame *asked)
{
    const struct fence_ask ask = {.from = from,
                                  .incarnation = incarnation,
                                  .round = round,
                                  .ids = asked->ids,
                                  .count = asked->count,
                                  .hold = asked->hold};
    struct fence_frame frame;

    frame.kind = FENCE_ANSWERED;
    frame.refusal = node->fencing ? consider(node->fencing, &ask) : FENCE_OFF;
    send_frame(node, from, round, &frame);
}

void fencing_take(struct node *node, raft_id from, uint64_t incarnation, const struct frame *frame)
{
    struct fencing *fencing = node->fencing;
    struct fence_frame taken;

    if (!fence_frame_take(&taken, frame->text, frame->text_bytes)) {
        return;
    }
    switch (taken.kind) {
    case FENCE_PROBE:
        send_kind(node, from, 0, FENCE_ALIVE);
        break;
    case FENCE_ALIVE: /* has been noted, as any frame is */
        break;
    case FENCE_ASKS:
        answer(node, from, incarnation, frame->request_id, &taken);
        break;
    case FENCE_ANSWERED:
        if (fencing) {
            fence_take_reply(&fencing->fence, from, frame->request_id, taken.refusal);
            look(fencing);
        }
        break;
    case FENCE_RELEASED:
        if (fencing) {
            fence_take_release(&fencing->fence, from, incarnation, frame->request_id);
        }
        break;
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

void fencing_begin(struct node *node)
{
    const struct fence_settings settings = {
        .after = node->options.fence_after,
        .timeout = node->options.fence_timeout,
        .drift_ppm = node->options.settings.clock_drift_ppm,
        .has_command = node->options.fence[0] != '\0',
    };
    struct fencing *fencing;
    uint64_t every_ms;

    if (settings.after.ns <= 0 || !(fencing = calloc(1, sizeof(*fencing)))) {
        return;
    }
    fencing->node = node;
    fencing->granted_max = load_granted(node);
    fence_init(&fencing->fence, &settings, node->id, fencing->granted_max, clock_now());
    node->fencing = fencing;
    fencing_follow_membership(node);
    every_ms = (uint64_t)(fence_look_every(&fencing->fence).ns / 1000000);
    (void)uv_timer_init(node->loop, &fencing->timer);
    fencing->timer.data = fencing;
    node->open_handles++;
    (void)uv_timer_start(&fencing->timer, on_look, every_ms, every_ms);
}

static void on_closed(uv_handle_t *timer)
{
    struct fencing *fencing = timer->data;
    struct node *node = fencing->node;

    fence_fini(&fencing->fence);
    free(fencing);
    node_release(node);
}

void fencing_end(struct node *node)
{
    struct fencing *fencing = node->fencing;

    if (fencing) {
        node->fencing = NULL;
        close_report(fencing);
        uv_close((uv_handle_t *)&fencing->timer, on_closed);
    }
}

json_t *fencing_status(const struct node *node)
{
    static const char *const states[] = {"watching", "asking", "running"};
    const struct fencing *fencing = node->fencing;
    char name[RAFT_ADDRESS_MAX];
    const char *host;

    if (!fencing) {
        return json_null();
    }
    host = fencing->fence.state == FENCE_WATCHING ? "" : host_name(node, fencing->fence.host, name);
    return json_pack("{s:f,s:b,s:s,s:s}", "after_ms", (double)node->options.fence_after.ns / 1e6,
                     "has_command", (int)fencing->fence.settings.has_command, "state",
                     states[fencing->fence.state], "host", host);
}
