/* Whether this node may campaign, and when.
 *
 * A node that doubts the leader waits by priority and by chance. Some nodes may never lead for the
 * outside, yet must campaign: see candidacy_is_caretaker.
 */
#include "raft/candidacy.h"

#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/pledge.h"
#include "raft/state.h"

uint64_t candidacy_random(struct raft *raft, uint64_t below)
{
    /* splitmix64: small, and good enough to keep nodes apart */
    uint64_t z = raft->random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return below > 0 ? z % below : 0;
}

static int64_t spread_ns(const struct raft *raft)
{
    return raft->settings.election_timeout_max.ns - raft->settings.election_timeout_min.ns;
}

/* By how much `usual` grows: after some terms in which nothing was committed it doubles with each
 * further round, up to the heartbeat timeout. */
static int64_t growth(const struct raft *raft, int64_t usual)
{
    enum { ROUNDS_OF_USUAL_LENGTH = 3 };
    int64_t longest = raft->settings.heartbeat_timeout.ns;
    int64_t factor = 1;

    for (uint32_t i = ROUNDS_OF_USUAL_LENGTH; usual > 0 && i < raft->lost_rounds; i++) {
        if (2 * factor * usual > longest || RAFT_MUTANT(ROUNDS_NEVER_GROW)) {
            break;
        }
        factor *= 2;
    }
    return factor;
}

/* A disk or a network that needs longer than a round makes each round end before its votes arrive,
 * and the next one too: so rounds get longer. A group whose votes take as long as the heartbeat
 * timeout could not keep a lease either. And where votes take as long as the random part of a
 * round, the nodes split each vote: so that part grows by itself. */
span candidacy_round_time(struct raft *raft)
{
    int64_t length = growth(raft, raft->settings.election_timeout_max.ns);
    int64_t width = growth(raft, spread_ns(raft));
    int64_t more = (int64_t)candidacy_random(raft, (uint64_t)spread_ns(raft) + 1);
    return SPAN_NS(length * raft->settings.election_timeout_min.ns + width * more);
}

/* The rank of this node among the distinct priorities of members that may lead: 0 is the highest.
 */
static uint32_t priority_level(const struct raft *raft, uint32_t *levels)
{
    const struct raft_configuration *configuration = &raft->configuration;
    const struct raft_member *self = raft_configuration_find(configuration, raft->id);
    uint32_t level = 0;

    *levels = 0;
    for (size_t i = 0; i < configuration->count; i++) {
        const struct raft_member *member = &configuration->members[i];
        bool is_first = member_may_lead(member);
        for (size_t j = 0; j < i && is_first; j++) {
            const struct raft_member *other = &configuration->members[j];
            is_first = !member_may_lead(other) || other->priority != member->priority;
        }
        if (is_first) {
            (*levels)++;
            level += self && member->priority > self->priority;
        }
    }
    return level;
}

instant candidacy_after(struct raft *raft, instant from)
{
    uint32_t levels;
    uint32_t level = priority_level(raft, &levels);
    int64_t window = spread_ns(raft) / (levels > 0 ? levels : 1);
    int64_t wait = level * window + (int64_t)candidacy_random(raft, (uint64_t)window + 1);
    return instant_add(from, SPAN_NS(wait));
}

static bool may_lead_in(const struct raft_configuration *configuration, raft_id id)
{
    const struct raft_member *member = raft_configuration_find(configuration, id);
    return member && member_may_lead(member);
}

static bool votes_in(const struct raft_configuration *configuration, raft_id id)
{
    const struct raft_member *member = raft_configuration_find(configuration, id);
    return member && member_votes(member);
}

/* A node that may not lead under the last configuration of its log may still have to: its log can
 * be the only one that is long enough, and the others may need its vote, which it must refuse them
 * (Raft thesis, 4.2.2). */
static bool must_finish_change(const struct raft *raft)
{
    return membership_before_holds(raft, raft->id, may_lead_in);
}

static bool is_candidate_by_right(const struct raft *raft)
{
    return (raft->eligible || RAFT_MUTANT(CORDON_IGNORED)) &&
           (may_lead_in(&raft->configuration, raft->id) || must_finish_change(raft));
}

/* A witness or a cordoned node can be the voter without which there is no quorum, and have a longer
 * log than every node that may lead: no node could ever be elected. Such a node campaigns after
 * all, asks for no lease, and hands over as soon as another node has its log. */
bool candidacy_is_caretaker(const struct raft *raft)
{
    return raft->must_help && !is_candidate_by_right(raft) &&
           (votes_in(&raft->configuration, raft->id) ||
            membership_before_holds(raft, raft->id, votes_in));
}

bool candidacy_may_run(const struct raft *raft)
{
    return !raft->storage_failed && pledge_next_term(raft) < RAFT_SANE_MAX &&
           (is_candidate_by_right(raft) || candidacy_is_caretaker(raft));
}
