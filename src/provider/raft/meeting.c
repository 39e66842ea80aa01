/* Greetings: checks them, refuses some, and remembers what they show about the peers.
 *
 *   greeting ─▶ checked (identity.c) ─refused─▶ TURNED_AWAY: the peer learns why, and closes
 *                  │
 *                  ├─ a connection of an earlier process of that member is open: does it answer?
 *                  │     no answer yet ─▶ the greeting waits
 *                  │     it answers ────▶ refused: a copy of its data directory, or a forgery
 *                  │     it has ended, or is silent for as long as any promise lasts ─▶ accepted
 *                  ▼
 *               accepted: the earlier process is dead (proof.c), and the greeting is remembered
 */
#include "provider/raft/fencing.h"
#include "provider/raft/metadata.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is remembered ---------------------------------------------------------------------- */

void meeting_begin(struct node *node, const struct storage_loaded *loaded)
{
    for (size_t i = 0; i < loaded->peer_count; i++) {
        struct acquaintance *known = calloc(1, sizeof(*known));
        if (!known) {
            return; /* an unknown peer is treated as new */
        }
        known->id = loaded->peers[i].id;
        known->incarnation = loaded->peers[i].incarnation;
        known->seen = loaded->peers[i];
        HASH_ADD(hh, node->acquaintances, id, sizeof(known->id), known);
        if (!known->hh.tbl) {
            free(known);
            return;
        }
    }
}

static void remember(struct node *node, struct acquaintance *known)
{
    struct baton_error error = {0};
    int r = storage_remember(node->storage, &known->seen, &error);

    known->is_unsaved = r == BATON_EFULL; /* until its next greeting or the next snapshot */
    if (r == BATON_EFULL) {
        log_warning(node->logger, "not-remembered", LOG_STR("error", error.message));
        event_error(node, r, &error);
    } else if (r != BATON_OK) {
        node_fail_storage(node, r, &error);
    }
}

void meeting_remember(struct node *node)
{
    for (struct acquaintance *known = node->acquaintances; known; known = known->hh.next) {
        meeting_note_progress(node, known->id);
        if (known->is_unsaved) {
            remember(node, known);
        }
    }
}

static void note(struct acquaintance *known, raft_term term, raft_index index)
{
    if (term > known->seen.term) {
        known->seen.term = term;
        known->is_unsaved = true;
    }
    if (index > known->seen.index) {
        known->seen.index = index;
        known->is_unsaved = true;
    }
}

/* Kinds of message that are sent only after their term, or the pledge to it, is stored. */
static bool has_stored_its_term(const struct raft_message *message)
{
    switch (message->type) {
    case RAFT_MSG_HEARTBEAT:
    case RAFT_MSG_APPEND:
    case RAFT_MSG_APPEND_REPLY:
        return true;
    case RAFT_MSG_VOTE_REPLY:
        return message->vote_reply.granted;
    default:
        return false;
    }
}

void meeting_note_message(struct connection *connection, const struct raft_message *message)
{
    struct acquaintance *known = acquaintance_of(connection->node, connection->id);

    if (known && connection->incarnation == known->incarnation && has_stored_its_term(message)) {
        note(known, message->term, 0);
    }
}

void meeting_note_progress(struct node *node, raft_id id)
{
    struct acquaintance *known = acquaintance_of(node, id);
    struct raft_progress progress;
    struct raft_status status;

    if (known && raft_get_progress(node->raft, id, &progress)) {
        raft_get_status(node->raft, &status);
        note(known, 0,
             progress.match_index < status.commit_index ? progress.match_index
                                                        : status.commit_index);
    }
}

/* ---- An earlier process of the same member --------------------------------------------------- */

static bool is_earlier(const struct connection *connection, const struct greeting *greeting)
{
    return connection && connection->is_open && connection->id == greeting->id &&
           connection->incarnation < greeting->incarnation;
}

static struct connection *earlier_than(const struct node *node, const struct greeting *greeting)
{
    const struct link *link = link_to(node, greeting->id);

    if (link && is_earlier(link->connection, greeting)) {
        return link->connection;
    }
    if (link && is_earlier(link->beside, greeting)) {
        return link->beside;
    }
    for (struct connection *one = node->accepted; one; one = one->next) {
        if (is_earlier(one, greeting)) {
            return one;
        }
    }
    return NULL;
}

enum presence { PRESENCE_UNKNOWN, PRESENCE_THERE, PRESENCE_GONE };

static enum presence presence_of(struct connection *connection, struct connection *earlier)
{
    span patience = connection->node->options.settings.heartbeat_timeout;

    if (earlier->pins_sent > earlier->pins_answered &&
        instant_since(clock_now(), earlier->pin_sent).ns > patience.ns) {
        return PRESENCE_GONE;
    }
    if (connection->awaited != earlier || earlier->pins_sent < connection->awaits_pins) {
        connection_ask(earlier);
        connection->awaited = earlier;
        connection->awaits_pins = earlier->pins_sent;
        return PRESENCE_UNKNOWN;
    }
    return earlier->pins_answered >= connection->awaits_pins ? PRESENCE_THERE : PRESENCE_UNKNOWN;
}

/* Whether any connection of an earlier process has its peer behind it. */
static enum presence earlier_presence(struct connection *connection,
                                      const struct greeting *greeting)
{
    struct connection *earlier;

    while ((earlier = earlier_than(connection->node, greeting))) {
        enum presence presence = presence_of(connection, earlier);
        if (presence != PRESENCE_GONE) {
            return presence;
        }
        earlier->is_open = false;
        stream_close(earlier->stream);
    }
    return PRESENCE_GONE;
}

static bool waits_for(const struct connection *connection)
{
    return connection && connection->is_open && connection->awaits_pins > 0 &&
           connection->id == RAFT_NOBODY;
}

static struct connection *waiting_one(const struct node *node, uint64_t round)
{
    for (struct connection *one = node->accepted; one; one = one->next) {
        if (waits_for(one) && one->looked_round != round) {
            return one;
        }
    }
    for (struct link *link = node->links; link; link = link->next) {
        if (waits_for(link->connection) && link->connection->looked_round != round) {
            return link->connection;
        }
    }
    return NULL;
}

void meeting_look_again(struct node *node)
{
    uint64_t round = ++node->look_round;
    struct connection *one;

    while ((one = waiting_one(node, round))) { /* an accepted greeting may end other connections */
        one->looked_round = round;
        connection_look_again(one);
    }
}

/* ---- Greetings ------------------------------------------------------------------------------- */

void meeting_greet(struct connection *connection)
{
    struct node *node = connection->node;
    struct greeting greeting = node->greeting;
    struct raft_status status;

    raft_get_status(node->raft, &status);
    greeting.term = node->stored_term;
    greeting.last_index = status.stored_index;
    greeting.commit_index = status.commit_index;
    if (connection->link) {
        memcpy(greeting.expected, connection->link->name, sizeof(greeting.expected));
    }
    connection_send_greeting(connection, &greeting);
}

__attribute__((format(printf, 2, 3))) static int refuse_greeting(struct connection *connection,
                                                                 const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(connection->wrong, sizeof(connection->wrong), format, arguments);
    va_end(arguments);
    return BATON_EEXIST;
}

static int check_names(struct connection *connection, const struct greeting *greeting)
{
    const char *own = connection->node->greeting.name;
    const char *dialed = connection->link ? connection->link->name : NULL;

    if (strcmp(greeting->name, own) == 0) {
        return refuse_greeting(connection, "another process calls itself \"%s\", as this node does",
                               own);
    }
    if (dialed && strcmp(greeting->name, dialed) != 0) {
        return refuse_greeting(connection, "\"%s\" answers at the address of \"%s\"",
                               greeting->name, dialed);
    }
    if (!dialed && strcmp(greeting->expected, own) != 0) {
        return refuse_greeting(connection, "\"%s\" looks for \"%s\" at this node's address",
                               greeting->name, greeting->expected);
    }
    return BATON_OK;
}

static int check_greeting(struct connection *connection, const struct greeting *greeting)
{
    const struct node *node = connection->node;

    if (strcmp(greeting->cluster, node->greeting.cluster) != 0) {
        return BATON_EAUTH;
    }
    if (!identity_is_sound(greeting)) {
        return refuse_greeting(connection, "\"%s\": its id is not of its name and birth",
                               greeting->name);
    }
    if (tls_proves_names(node->tls) && !stream_proves(connection->stream, greeting->name)) {
        return refuse_greeting(connection, "\"%s\": its certificate is not for this name",
                               greeting->name);
    }
    return check_names(connection, greeting);
}

static enum refusal check(struct connection *connection, const struct greeting *greeting, char *why)
{
    struct node *node = connection->node;
    const struct acquaintance *known;
    struct identity_view view = {.ours = &node->greeting,
                                 .members = raft_get_configuration(node->raft)};
    struct raft_status status;

    raft_get_status(node->raft, &status);
    view.commit = status.commit_index;
    meeting_note_progress(node, greeting->id);
    known = acquaintance_of(node, greeting->id);
    view.known = known ? &known->seen : NULL;
    view.commitment = known && known->has_greeted ? known->commitment : NULL;
    view.is_candidate = connection->link && connection->link->is_prospect;
    return identity_check(&view, greeting, why);
}

static void log_refusal(struct connection *connection, const char *peer, const char *why)
{
    struct node *node = connection->node;
    struct link *link = connection->link;

    if (link && strcmp(link->refusal, why) != 0) { /* logged once, however often we dial */
        (void)snprintf(link->refusal, sizeof(link->refusal), "%s", why);
        log_error(node->logger, "peer-not-recognised", LOG_STR("peer", peer), LOG_STR("text", why));
    } else if (!link) {
        pending_log(connection, "peer-refused", why);
    }
}

/* The node after our own start that we knew by its data directory alone, or a later one. */
static bool get_acquainted(struct connection *connection, const struct greeting *greeting)
{
    struct node *node = connection->node;
    struct acquaintance *known = acquaintance_of(node, greeting->id);

    if (known && known->seen.birth != greeting->birth) {
        HASH_DEL(node->acquaintances, known); /* of a directory that the group no longer knows */
        free(known->metadata);
        free(known);
    }
    if (!proof_on_greeting(connection, greeting)) {
        return false;
    }
    known = acquaintance_of(node, greeting->id);
    known->has_greeted = true;
    known->is_unsaved |= known->seen.incarnation != greeting->incarnation;
    known->seen.id = greeting->id;
    known->seen.birth = greeting->birth;
    known->seen.incarnation = greeting->incarnation;
    note(known, greeting->term, 0);
    if (known->is_unsaved) {
        remember(node, known);
    }
    return true;
}

/* Different settings are safe if they are accepted at all; but the log should say so. */
static bool fits_settings(struct connection *connection, const struct greeting *greeting,
                          char ret_why[IDENTITY_WHY_MAX])
{
    struct node *node = connection->node;
    struct raft_input input = {.type = RAFT_IN_DRIFT, .drift_ppm = greeting->clock_drift_ppm};

    if (node_step(node, &input) == BATON_OK) {
        if (node->host) {
            session_host_widen_drift(node->host, greeting->clock_drift_ppm);
        }
        fencing_widen_drift(node, greeting->clock_drift_ppm);
        return true;
    }
    (void)snprintf(ret_why, IDENTITY_WHY_MAX,
                   "clock-drift-ppm of %s: %u; it leaves %s no lease of its %g ms; give all nodes "
                   "the same",
                   greeting->name, greeting->clock_drift_ppm, node->options.node,
                   (double)node->options.settings.lease.ns / 1e6);
    return false;
}

static void compare_settings(struct node *node, const struct greeting *greeting)
{
    struct acquaintance *known = acquaintance_of(node, greeting->id);
    char text[IDENTITY_WHY_MAX];

    identity_compare(&node->options.settings, greeting, text);
    if (strcmp(known->settings, text) != 0 && text[0]) {
        log_warning(node->logger, "settings-differ", LOG_STR("peer", greeting->name),
                    LOG_STR("text", text));
    }
    memcpy(known->settings, text, sizeof(text));
}

static int take_in(struct connection *connection, const struct greeting *greeting)
{
    struct node *node = connection->node;

    pending_end(connection);
    connection->id = greeting->id;
    connection->incarnation = greeting->incarnation;
    if (!get_acquainted(connection, greeting)) {
        return refuse_greeting(connection, "another process calls itself \"%s\"", greeting->name);
    }
    if (connection->link) {
        link_greeted(connection);
        node->counters.connects++;
        log_info(node->logger, "peer-connected", LOG_STR("peer", greeting->name),
                 LOG_STR("address", stream_peer_address(connection->stream)));
    } else {
        link_hurry(node, greeting->id);
    }
    compare_settings(node, greeting);
    metadata_send(connection);
    node->is_pinning = true;
    connection_report_peer(node, greeting->id, true);
    return BATON_OK;
}

int meeting_take_greeting(struct connection *connection, const struct greeting *greeting)
{
    char why[IDENTITY_WHY_MAX];
    enum refusal refusal;
    int code;

    if (connection->id != RAFT_NOBODY) {
        return refuse_greeting(connection, "\"%s\": a second greeting", greeting->name);
    }
    code = check_greeting(connection, greeting);
    if (code != BATON_OK) {
        return code;
    }
    connection->peer_commit = greeting->commit_index;
    connection->peer_group = greeting->group;
    if (!connection->has_greeted) {
        meeting_greet(connection);
    }
    refusal = check(connection, greeting, why);
    if (refusal == REFUSAL_NONE && !fits_settings(connection, greeting, why)) {
        refusal = REFUSAL_DRIFT;
    }
    if (refusal == REFUSAL_NONE) {
        switch (earlier_presence(connection, greeting)) {
        case PRESENCE_UNKNOWN:
            return MEETING_LATER;
        case PRESENCE_THERE:
            refusal = identity_refuse_twin(greeting->name, why);
            break;
        case PRESENCE_GONE:
            return take_in(connection, greeting);
        }
    }
    log_refusal(connection, greeting->name, why);
    connection_turn_away(connection, refusal, why);
    return BATON_OK;
}

/* Whether this node believes a refusal. It does if it dialed a member's address: any process may
 * dial this node, and any may be at the address of a future member, or of one that was added a
 * moment ago and has learnt of no group yet. There are two exceptions, which believe every peer
 * that has the key: a node that is a quorum by itself, since it may dial no other; and a founder
 * with a new directory, since the members in its file may be gone. If two groups meet, the node
 * that leads by itself gives way, and so does one whose group has never had a leader. */
static bool is_believed(const struct connection *connection, enum refusal refusal)
{
    const struct node *node = connection->node;
    const struct link *link = connection->link;
    bool leads_alone = identity_is_quorum(raft_get_configuration(node->raft), node->id);

    if ((link ? link->is_prospect : !connection->is_tls) ||
        (connection->peer_group == 0 && node->greeting.group != 0)) {
        return false;
    }
    switch (refusal) {
    case REFUSAL_FORMED:
        return leads_alone || (link && node->greeting.group == 0);
    case REFUSAL_LOST:
        return leads_alone || node->is_new_founder;
    default:
        return link || leads_alone || node->is_new_founder;
    }
}

/* Returns the index of the configuration that made this node a member. A change under way may be
 * lost, and then no member knows this node. */
static raft_index membership_index(const struct node *node)
{
    struct raft_status status;

    raft_get_status(node->raft, &status);
    return raft_get_configuration(node->raft)->is_joint ? UINT64_MAX : status.configuration_index;
}

void meeting_take_refusal(struct connection *connection, const struct frame *frame)
{
    struct node *node = connection->node;
    char why[IDENTITY_WHY_MAX];
    enum refusal refusal = (enum refusal)frame->request_id;
    int bytes = (int)(frame->text_bytes < sizeof(why) ? frame->text_bytes : sizeof(why) - 1);

    (void)snprintf(why, sizeof(why), "%.*s", bytes, (const char *)frame->text);
    for (char *c = why; *c; c++) {
        *c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
    }
    connection->is_turned_away = true;
    log_refusal(connection, connection->link ? connection->link->name : "", why);
    if (is_believed(connection, refusal) &&
        identity_is_final(refusal, membership_index(node), connection->peer_commit)) {
        group_cast_out(node, why, refusal != REFUSAL_FORMED);
    }
    stream_close(connection->stream);
}
