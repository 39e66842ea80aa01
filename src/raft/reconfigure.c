/* Changes of members and of weights, always through a joint configuration:
 *
 *   old ──append──▶ joint (both halves must agree) ──committed, and
 *                   the new half covers the lease──▶ new ──committed──▶ done
 *
 * A leader that may not lead in the new half has its program stopped before it leaves the joint
 * configuration.
 *
 * Every change of a vote takes this path. A change of one weight by one would be safe without it,
 * but a second path would need a second proof. A change that touches no vote is a single entry. A
 * change begins only when the last configuration and an entry of this term are committed.
 */
#include "raft/reconfigure.h"

#include "raft/candidacy.h"
#include "raft/drain.h"
#include "raft/heartbeat.h"
#include "raft/leader_lease.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/promise.h"
#include "raft/quorum.h"
#include "raft/replicate.h"
#include "raft/state.h"
#include "raft/transfer.h"

#include <stdlib.h>
#include <string.h>

static int append_configuration(struct raft *raft, struct raft_configuration *configuration)
{
    void *data = NULL;
    size_t bytes = 0;
    raft_index index = log_last_index(&raft->log) + 1;
    struct raft_entry entry = {.term = raft->hard.term, .kind = RAFT_ENTRY_CONFIGURATION};
    int r = raft_configuration_encode(configuration, &data, &bytes);

    entry.data = data;
    entry.bytes = bytes;
    if (r == BATON_OK) {
        r = replicate_append(raft, &entry);
        if (r == BATON_OK && membership_enter(raft, configuration, index) != BATON_OK) {
            log_truncate(&raft->log, index);
            if (raft->out.append_from == index) {
                raft->out.append_from = 0;
            }
            r = BATON_ENOMEM;
        }
    }
    free(data);
    if (r == BATON_OK) {
        if (!quorum_is_self(raft)) {
            promise_own_lease(raft);
        }
        leader_lease_cap(raft);
        heartbeat_send(raft); /* asks new members for their promises */
        replicate_to_all(raft);
    }
    return r;
}

static void add_leaving(struct raft_configuration *joint, const struct raft_member *member)
{
    struct raft_member *leaving = &joint->members[joint->count++];
    *leaving = *member;
    leaving->old_weight = member->weight;
    leaving->weight = 0;
    leaving->is_leaving = true;
}

static int make_joint(struct raft_configuration *ret, const struct raft_configuration *now,
                      const struct raft_configuration *wanted)
{
    struct raft_configuration joint = {.group = wanted->group, .is_joint = true};

    joint.members = calloc(now->count + wanted->count + 1, sizeof(*joint.members));
    if (!joint.members) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < wanted->count; i++) {
        const struct raft_member *before = raft_configuration_find(now, wanted->members[i].id);
        struct raft_member *member = &joint.members[joint.count++];
        *member = wanted->members[i];
        member->old_weight = before ? before->weight : 0;
        member->is_leaving = false;
    }
    for (size_t i = 0; i < now->count; i++) {
        if (!raft_configuration_find(wanted, now->members[i].id)) {
            add_leaving(&joint, &now->members[i]);
        }
    }
    *ret = joint;
    return BATON_OK;
}

/* Whether the member replies and, if it does not vote yet, has caught up. */
static bool is_ready(const struct raft *raft, raft_id id)
{
    const struct peer *peer = peer_find(raft, id);

    if (!peer) {
        return false;
    }
    return peer_member(raft, peer)->weight > 0 ? peer_answers(raft, peer)
                                               : peer_is_caught_up(raft, peer);
}

static void add_text(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);
    size_t more = strnlen(text, size - used - 1);

    memcpy(to + used, text, more);
    to[used + more] = '\0';
}

/* Writes "a", "b", … as far as there is room. */
static void name_silent(const struct raft *raft, const struct raft_configuration *wanted, char *ret,
                        size_t size)
{
    ret[0] = '\0';
    for (size_t i = 0; i < wanted->count; i++) {
        const struct raft_member *member = &wanted->members[i];
        if (member->weight > 0 && !is_ready(raft, member->id)) {
            add_text(ret, size, ret[0] ? ", \"" : "\"");
            add_text(ret, size, member->name);
            add_text(ret, size, "\"");
        }
    }
}

int raft_check_change(const struct raft *raft, const struct raft_configuration *wanted,
                      struct baton_error *reterr)
{
    bool is_new =
        instant_since(raft->now, raft->leader_since).ns < raft->settings.heartbeat_timeout.ns;
    uint64_t weight = 0;
    uint64_t ready = 0;
    bool may_lead = false;
    char silent[256];

    if (raft->role != RAFT_LEADER) {
        return error_set(reterr, BATON_ENOTLEADER, "change of members: this node does not lead");
    }
    for (size_t i = 0; i < wanted->count; i++) {
        const struct raft_member *member = &wanted->members[i];
        weight += member->weight;
        if (member->weight > 0 && is_ready(raft, member->id)) {
            ready += member->weight;
            may_lead |= member->kind == RAFT_VOTER;
        }
    }
    if ((2 * ready > weight && may_lead) || RAFT_MUTANT(CHANGE_UNCHECKED)) {
        return BATON_OK;
    }
    name_silent(raft, wanted, silent, sizeof(silent));
    return error_set(reterr, is_new ? BATON_EBUSY : BATON_EUNSAFE,
                     "change of members: would leave the group without a quorum, or with none who "
                     "may lead: weight %llu of %llu answers and is up to date, but not %s; start "
                     "them, remove them in an earlier change, or add them as learners first",
                     (unsigned long long)ready, (unsigned long long)weight, silent);
}

/* Whether the members and their votes are the same. Other fields (the group's identity, births,
 * addresses, priorities) count in no quorum, so changing them needs no joint configuration. */
static bool votes_alike(const struct raft_configuration *now,
                        const struct raft_configuration *wanted)
{
    bool alike = now->count == wanted->count;

    for (size_t i = 0; alike && i < now->count; i++) {
        const struct raft_member *before = &now->members[i];
        const struct raft_member *after = &wanted->members[i];
        alike = before->id == after->id && before->kind == after->kind &&
                before->weight == after->weight;
    }
    return alike;
}

static int append_joint(struct raft *raft, const struct raft_configuration *wanted)
{
    struct raft_configuration joint = {0};
    int r = make_joint(&joint, &raft->configuration, wanted);

    if (r == BATON_OK) {
        r = raft_configuration_normalise(&joint, NULL);
    }
    if (r == BATON_OK) {
        r = append_configuration(raft, &joint);
    }
    raft_configuration_fini(&joint);
    return r;
}

int reconfigure_begin(struct raft *raft, const struct raft_configuration *wanted, bool is_forced)
{
    struct raft_configuration checked = {0};
    int r;

    if (raft->role != RAFT_LEADER) {
        return BATON_ENOTLEADER;
    }
    if (raft->configuration.is_joint || raft->configuration_index > raft->commit ||
        raft->commit < raft->term_start || raft->transfer.is_wanted) {
        return BATON_EBUSY;
    }
    r = raft_configuration_copy(&checked, wanted);
    if (r == BATON_OK) {
        r = wanted->is_joint ? BATON_EINVAL : raft_configuration_normalise(&checked, NULL);
    }
    if (r == BATON_OK && votes_alike(&raft->configuration, &checked)) {
        r = append_configuration(raft, &checked);
    } else if (r == BATON_OK) {
        r = is_forced ? BATON_OK : raft_check_change(raft, &checked, NULL);
        r = r == BATON_OK ? append_joint(raft, &checked) : r;
    }
    raft_configuration_fini(&checked);
    return r;
}

/* Remembers the members that leave, to send them the change once it is committed. Without memory
 * for that, they learn of it when they ask for votes. */
static void note_departed(struct raft *raft)
{
    free(raft->departed);
    raft->departed_count = 0;
    raft->departed = calloc(raft->peer_count + 1, sizeof(*raft->departed));
    for (size_t i = 0; i < raft->peer_count && raft->departed; i++) {
        const struct peer *peer = &raft->peers[i];
        if (peer_member(raft, peer)->is_leaving && peer->id != raft->id) {
            raft->departed[raft->departed_count++] =
                (struct departed){.id = peer->id, .match = peer->match};
        }
    }
}

static int make_final(struct raft_configuration *ret, const struct raft_configuration *joint)
{
    size_t kept = 0;
    int r = raft_configuration_copy(ret, joint);

    if (r != BATON_OK) {
        return r;
    }
    for (size_t i = 0; i < ret->count; i++) {
        if (!ret->members[i].is_leaving) {
            ret->members[kept] = ret->members[i];
            ret->members[kept++].old_weight = 0;
        }
    }
    ret->count = kept;
    ret->is_joint = false;
    return BATON_OK;
}

/* Whether this node may lead after the change under way. */
static bool leads_on(const struct raft *raft)
{
    const struct raft_member *self = raft_configuration_find(&raft->configuration, raft->id);

    return self && !self->is_leaving && self->kind == RAFT_VOTER && self->weight > 0;
}

void reconfigure_advance(struct raft *raft)
{
    const struct raft_member *self;

    if (raft->role != RAFT_LEADER || raft->commit < raft->configuration_index ||
        raft->commit < raft->term_start) {
        return;
    }
    if (raft->configuration.is_joint) {
        struct raft_configuration final = {0};
        if (!leader_lease_is_covered(raft) ||
            (!leads_on(raft) && !drain_is_over(raft, RAFT_NOBODY))) {
            return;
        }
        note_departed(raft);
        if (make_final(&final, &raft->configuration) != BATON_OK ||
            append_configuration(raft, &final) != BATON_OK) {
            raft->out.out_of_memory = true; /* tried again at the next commit or heartbeat */
        }
        raft_configuration_fini(&final);
        return;
    }
    replicate_farewell(raft);
    self = raft_configuration_find(&raft->configuration, raft->id);
    if ((!self || !member_may_lead(self)) && !candidacy_is_caretaker(raft)) {
        transfer_now(raft, raft->heir, RAFT_LOSS_REMOVED);
    }
}
