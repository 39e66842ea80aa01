/* Links: the connection to each member, which this node dials and dials again.
 *
 *   dial ──▶ greeted ──▶ ended: dialed again at once, since a refusal now may be a proof
 *     └────▶ ended, or no answer in time: dialed again, ever less often
 *
 * TCP retransmits a lost packet after 200 ms and then ever later, and later data waits behind it.
 * An election has no such time. So the node dials a second connection beside one that stands still;
 * the second replaces the first once the peer has greeted there, and until then the first goes on
 * trying. A dial has a time limit as well: a new dial sends its first packet at once. A look-up has
 * none here, as a new one would take as long; meanwhile the node dials where the peer was last.
 *
 * None of this proves anything about the peer: only a refusal counts, after the earlier connection
 * has ended (proof.c). A peer that is cut off refuses nothing.
 */
#include "provider/raft/fencing.h"
#include "provider/raft/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIAL_MS_MIN = 500, PROSPECT_MS = 5000 };

struct link *link_to(const struct node *node, raft_id id)
{
    for (struct link *link = node->links; link; link = link->next) {
        if (link->id == id && id != RAFT_NOBODY) {
            return link;
        }
    }
    return NULL;
}

/* ---- Dialing --------------------------------------------------------------------------------- */

/* Two rounds of votes: with a longer round trip no election could succeed. */
static uint64_t dial_ms(const struct node *node)
{
    uint64_t ms = (uint64_t)(2 * node->options.settings.election_timeout_max.ns / 1000000);
    return ms > DIAL_MS_MIN ? ms : DIAL_MS_MIN;
}

static bool is_resolving(const struct link *link)
{
    return link->connection && stream_is_resolving(link->connection->stream);
}

/* In turn: where the peer was last, for which nobody needs a name service; the address that the
 * group has agreed on; the one in this node's settings. */
const char *link_where(const struct link *link)
{
    const struct raft_member *configured =
        link->is_prospect ? NULL : identity_member(&link->node->options.members, link->name);
    const char *places[LINK_PLACES_MAX];
    size_t count = 0;

    if (link->last_address[0] && is_resolving(link)) {
        return link->last_address;
    }
    if (link->last_address[0]) {
        places[count++] = link->last_address;
    }
    places[count++] = link->address;
    if (configured) {
        places[count++] = configured->address;
    }
    return places[link->misses % count];
}

static void redial_later(struct link *link)
{
    int64_t wait = link->backoff_ms;

    /* The clock's low digits are jitter enough to keep peers apart. */
    wait += clock_now().ns / 1000 % (wait / 2 + 1);
    link->backoff_ms *= 2;
    if (link->backoff_ms > NODE_RECONNECT_MAX_MS) {
        link->backoff_ms = NODE_RECONNECT_MAX_MS;
    }
    (void)uv_timer_start(&link->retry, link->retry.timer_cb, (uint64_t)wait, 0);
}

static struct connection *begin_dial(struct link *link)
{
    link->dialed_ms = uv_now(link->node->loop);
    (void)uv_timer_start(&link->retry, link->retry.timer_cb, dial_ms(link->node), 0);
    return connection_dial(link);
}

static void dial(struct link *link)
{
    link->connection = begin_dial(link);
    if (!link->connection) {
        redial_later(link);
    }
}

void link_dial_beside(struct link *link)
{
    struct node *node = link->node;

    if (link->connection && !link->beside && !node->is_closing &&
        uv_now(node->loop) - link->dialed_ms >= dial_ms(node)) {
        link->beside = begin_dial(link);
    }
}

static void link_drop(struct link *link);

static bool is_unwanted(const struct link *link)
{
    return instant_since(clock_now(), link->wanted).ns > SPAN_MS(PROSPECT_MS).ns;
}

static void on_retry(uv_timer_t *timer)
{
    struct link *link = timer->data;
    struct connection *latest = link->beside ? link->beside : link->connection;

    if (link->is_leaving || link->node->is_closing) {
        return;
    }
    if (link->is_prospect && is_unwanted(link)) {
        link_drop(link);
    } else if (!latest) {
        dial(link);
    } else if (latest->id != RAFT_NOBODY) {
        if (link->is_prospect) {
            (void)uv_timer_start(timer, timer->timer_cb, PROSPECT_MS, 0);
        }
    } else if (latest == link->connection && is_resolving(link) && link->last_address[0]) {
        link->beside = begin_dial(link);
    } else if (stream_is_connecting(latest->stream) || stream_is_stuck(latest->stream)) {
        (void)uv_timer_start(timer, timer->timer_cb, dial_ms(link->node), 0);
        stream_close(latest->stream);
    } else { /* the peer is slow, or waits for an earlier process's reply */
        meeting_look_again(link->node);
        (void)uv_timer_start(timer, timer->timer_cb, dial_ms(link->node), 0);
    }
}

void link_hurry(struct node *node, raft_id id)
{
    struct link *link = link_to(node, id);

    if (link && !link->connection && !link->is_leaving) {
        link->backoff_ms = NODE_RECONNECT_MIN_MS;
        (void)uv_timer_start(&link->retry, link->retry.timer_cb, 0, 0);
    }
}

/* ---- Life of a link -------------------------------------------------------------------------- */

void link_greeted(struct connection *connection)
{
    struct link *link = connection->link;

    if (connection == link->beside) {
        link->beside = NULL;
        connection_give_up(
            link->connection); /* the kernel goes on sending the data that it holds */
        link->connection = connection;
    }
    link->id = connection->id; /* new, if it is a prospect */
    link->refusal[0] = '\0';
    link->was_greeted = true;
    link->last_incarnation = connection->incarnation;
    link->last_was_loopback = stream_is_loopback(connection->stream);
    (void)snprintf(link->last_address, sizeof(link->last_address), "%s",
                   stream_peer_address(connection->stream));
    link->backoff_ms = NODE_RECONNECT_MIN_MS;
    link->misses = 0;
}

void link_ended(struct connection *connection, bool was_refused)
{
    struct link *link = connection->link;
    struct node *node = link->node;
    bool was_greeted = connection->id != RAFT_NOBODY && !connection->is_turned_away;

    if (connection == link->beside) {
        link->beside = NULL;
        return; /* the earlier connection still stands: this proves nothing */
    }
    link->connection = link->beside; /* may be NULL */
    link->beside = NULL;
    if (node->is_closing || link->is_leaving) {
        return;
    }
    if (was_greeted) {
        node->counters.disconnects++;
        if (!link->connection) {
            dial(link); /* at once: a refusal now would be a proof */
        }
        return;
    }
    if (was_refused) {
        fencing_heard(node, link->id); /* by its host, which is not dead then */
        proof_on_refused(link);
    }
    link->was_greeted = false;
    link->misses++;
    if (connection->is_turned_away) {
        link->backoff_ms = NODE_RECONNECT_MAX_MS; /* a quick retry would not help */
    }
    if (!link->connection) {
        redial_later(link);
    }
}

/* ---- Links follow the membership ------------------------------------------------------------- */

static void link_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    struct node *node = link->node;

    free(link);
    node_release(node);
}

static void link_end(struct link *link)
{
    link->is_leaving = true;
    proof_drop_pidfd(link);
    if (link->connection) {
        connection_give_up(link->connection);
    }
    if (link->beside) {
        connection_give_up(link->beside);
    }
    uv_close((uv_handle_t *)&link->retry, link_closed);
}

static void link_drop(struct link *link)
{
    struct link **at = &link->node->links;

    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    link_end(link);
}

static struct link *link_begin(struct node *node, const struct raft_member *member)
{
    struct link *link = calloc(1, sizeof(*link));

    if (!link) {
        return NULL; /* retried at the next change of membership */
    }
    link->node = node;
    link->id = member->id;
    link->pidfd = -1;
    link->backoff_ms = NODE_RECONNECT_MIN_MS;
    memcpy(link->name, member->name, sizeof(link->name));
    memcpy(link->address, member->address, sizeof(link->address));
    (void)uv_timer_init(node->loop, &link->retry);
    link->retry.data = link;
    node->open_handles++;
    link->next = node->links;
    node->links = link;
    (void)uv_timer_start(&link->retry, on_retry, 0, 0);
    return link;
}

struct link *link_prospect(struct node *node, const struct raft_member *member)
{
    struct raft_member unknown = *member;
    struct link *link = node->links;

    while (link && !(link->is_prospect && strcmp(link->name, member->name) == 0 &&
                     strcmp(link->address, member->address) == 0)) {
        link = link->next;
    }
    unknown.id = RAFT_NOBODY;
    link = link ? link : link_begin(node, &unknown);
    if (link) {
        link->is_prospect = true;
        link->wanted = clock_now();
    }
    return link;
}

/* A prospect whose member was added is a link like any other. */
static bool is_to_a_member(struct link *link, const struct raft_configuration *members)
{
    const struct raft_member *member = raft_configuration_find(members, link->id);

    if (!member || strcmp(member->address, link->address) != 0) {
        return link->is_prospect;
    }
    link->is_prospect = false;
    return true;
}

void link_follow_membership(struct node *node)
{
    const struct raft_configuration *members = raft_get_configuration(node->raft);
    struct link **at = &node->links;

    while (*at) {
        struct link *link = *at;
        if (is_to_a_member(link, members)) {
            at = &link->next;
        } else {
            *at = link->next;
            link_end(link);
        }
    }
    for (size_t i = 0; i < members->count && !node->is_closing; i++) {
        const struct raft_member *member = &members->members[i];
        if (member->id != node->id && member->address[0] && !link_to(node, member->id)) {
            (void)link_begin(node, member);
        }
    }
}

void link_end_all(struct node *node)
{
    while (node->links) {
        struct link *link = node->links;
        node->links = link->next;
        link_end(link);
    }
}
