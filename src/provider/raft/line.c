/* The group's view of an election, as this node knows it: its leader, its members, who may follow;
 * and the list of all elections. */
#include "provider/raft/named_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct session_election *line_of(const struct node *node, const char *election)
{
    return sessions_election(session_host_sessions(node->host), election);
}

const char *line_name(const struct node *node, const struct session_contender *contender)
{
    const struct raft_member *member =
        contender->session->incarnation != 0
            ? raft_configuration_find(raft_get_configuration(node->raft), contender->session->node)
            : NULL;

    return member ? member->name : contender->session->name;
}

/* ---- Members --------------------------------------------------------------------------------- */

/* An attached process is at the address of its agent. */
static void describe(const struct named *named, const struct session_contender *contender,
                     struct baton_member *ret)
{
    const struct node *node = named->node;
    const struct session *session = contender->session;
    bool is_attached = session->incarnation == 0;

    event_member_of(node, session->node, ret);
    if (is_attached || ret->id[0] == '\0') {
        (void)snprintf(ret->id, sizeof(ret->id), "%s", session->name);
        (void)snprintf(ret->name, sizeof(ret->name), "%s", session->name);
    }
    if (is_attached) {
        ret->kind = BATON_MEMBER_VOTER;
        ret->weight = 1;
        ret->priority = contender->priority;
    }
    ret->is_self = session->id == named->session ||
                   (!is_attached && named->is_own && session->node == node->id);
    ret->role = contender->election->holder == contender ? BATON_ROLE_LEADER : BATON_ROLE_FOLLOWER;
    ret->is_cordoned = !contender->is_eligible;
}

void line_leader(const struct named *named, const char *election, struct baton_member *ret,
                 uint64_t *ret_epoch)
{
    const struct session_election *line = line_of(named->node, election);

    *ret = (struct baton_member){.id = ""};
    *ret_epoch = 0;
    if (line && line->holder) {
        describe(named, line->holder, ret);
        *ret_epoch = line->epoch;
    }
}

/* The contender that is this node's own process; NULL: none. */
static const struct session_contender *contender_of(const struct session_election *line, raft_id id)
{
    const struct session_contender *at = line ? line->first : NULL;

    while (at && (at->session->node != id || at->session->incarnation == 0)) {
        at = at->next;
    }
    return at;
}

/* A node is listed whether it contends or not. */
static void describe_node(const struct named *named, const struct session_election *line,
                          raft_id id, struct baton_member *ret)
{
    const struct session_contender *contender = contender_of(line, id);

    if (contender) {
        describe(named, contender, ret);
        ret->metadata = contender->session->metadata;
    } else {
        event_member_of(named->node, id, ret);
        ret->role = BATON_ROLE_FOLLOWER;
        ret->is_cordoned = true;
    }
}

/* A node's own process lists the nodes too; an attached one those that contend. */
int named_members(struct provider_election *base, provider_members_cb done, void *userdata,
                  struct baton_error *reterr)
{
    const struct named_election *election = (struct named_election *)base;
    const struct named *named = election->named;
    const struct raft_configuration *now = raft_get_configuration(named->node->raft);
    const struct session_election *line = line_of(named->node, election->name);
    struct baton_member *members =
        calloc(now->count + (line ? line->count : 0) + 1, sizeof(*members));
    size_t count = 0;

    if (!members) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the members");
    }
    for (size_t i = 0; named->is_own && i < now->count; i++) {
        describe_node(named, line, now->members[i].id, &members[count++]);
    }
    for (const struct session_contender *at = line ? line->first : NULL; at; at = at->next) {
        if (!named->is_own || at->session->incarnation == 0) {
            describe(named, at, &members[count]);
            members[count++].metadata = at->session->metadata;
        }
    }
    done(userdata, BATON_OK, members, count);
    free(members);
    return BATON_OK;
}

/* ---- Heirs ----------------------------------------------------------------------------------- */

static bool answers(const struct node *node, const struct session_contender *contender)
{
    return contender->session->node == node->id || connection_is_up(node, contender->session->node);
}

/* Of two of one name the later session is meant: the other one's process has ended, or it will. */
static bool is_better(const struct session_contender *one, const struct session_contender *other,
                      bool has_name)
{
    return !other ||
           (has_name ? one->session->id > other->session->id : one->priority > other->priority);
}

const struct session_contender *line_heir(const struct node *node,
                                          const struct session_election *line, const char *to,
                                          struct heirs *heirs)
{
    const struct session_contender *best = NULL;

    for (const struct session_contender *at = line ? line->first : NULL; at; at = at->next) {
        bool is_meant = to ? strcmp(line_name(node, at), to) == 0 : answers(node, at);
        if (!at->is_eligible || at == line->holder) {
            continue;
        }
        heirs_add(heirs, line_name(node, at));
        if (is_meant && is_better(at, best, to != NULL)) {
            best = at;
        }
    }
    return best;
}

/* ---- All elections --------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    return strcmp(((const struct provider_election_state *)one)->name,
                  ((const struct provider_election_state *)other)->name);
}

static void describe_election(const struct node *node, const struct session_election *line,
                              struct provider_election_state *ret)
{
    *ret = (struct provider_election_state){.name = line->name, .leader = "", .left = {-1}};
    if (line->holder) {
        ret->leader = line_name(node, line->holder);
        ret->epoch = line->epoch;
        ret->left = session_host_left(node->host, line->holder->session);
    }
    for (const struct session_contender *at = line->first; at; at = at->next) {
        ret->waiting += at->is_eligible && at != line->holder;
    }
}

int named_elections(struct provider *provider, provider_elections_cb done, void *userdata,
                    struct baton_error *reterr)
{
    struct node *node = named_node(provider);
    const struct session_election *line = NULL;
    struct provider_election_state *states;
    size_t count = 0, filled = 0;
    int r = named_ensure_begun(node, reterr);

    if (r != BATON_OK) {
        return r;
    }
    while ((line = sessions_next_election(session_host_sessions(node->host), line))) {
        count++;
    }
    states = calloc(count + 1, sizeof(*states));
    if (!states) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the list of elections");
    }
    while ((line = sessions_next_election(session_host_sessions(node->host), line))) {
        describe_election(node, line, &states[filled++]);
    }
    qsort(states, count, sizeof(*states), compare);
    done(userdata, BATON_OK, states, count);
    free(states);
    return BATON_OK;
}
