/* Who a node is: a name, the data directory that it was born with, and the group it belongs to.
 *
 *   birth     random, drawn when the data directory is made. A directory that was emptied is
 *             another member: it has forgotten the votes and promises of the one before
 *   id        what the core counts. A founder's (a member of the first configuration): the hash of
 *             its name. One that joins: the hash of its name and its birth
 *   group     random, drawn by the first leader, in the configuration, and so are the births
 *   founders  hash of the first configuration: keeps groups apart that have no identity yet
 *
 * All of it is in every greeting. What does not fit is refused, and the peer learns why.
 */
#ifndef PROVIDER_RAFT_IDENTITY_H
#define PROVIDER_RAFT_IDENTITY_H

#include "provider/raft/frame.h"
#include "provider/raft/storage.h"

enum { IDENTITY_WHY_MAX = 400 };

/* What a new data directory is given. `founders`: the first configuration; NULL: it joins. */
struct storage_birth identity_born(const char *name, const struct raft_configuration *founders);

uint64_t identity_draw(void); /* random, never 0 */

/* By name; one that stays before one that leaves. NULL: none. */
const struct raft_member *identity_member(const struct raft_configuration *members,
                                          const char *name);

/* Whether that member is a quorum by itself. */
bool identity_is_quorum(const struct raft_configuration *members, raft_id id);

/* Why a greeting is refused. On the wire. */
enum refusal {
    REFUSAL_NONE,
    REFUSAL_GROUP, /* another group, or other founders */
    REFUSAL_BIRTH, /* another data directory than the group knows by this name */
    REFUSAL_OLDER, /* an older copy of the data directory */
    REFUSAL_TWIN,  /* another process has this data directory, or a copy of it */
    REFUSAL_DRIFT, /* a bound on the clocks' drift that leaves no lease */
    REFUSAL_LOST,  /* another group, and a member of ours that had another data directory */
    /* Another group. Ours is formed, and has it as a member or us as a quorum by ourselves. */
    REFUSAL_FORMED,
};

/* What a node knows when it is greeted. */
struct identity_view {
    const struct greeting *ours;
    const struct raft_configuration *members;
    raft_index commit;                /* what this node knows to be committed */
    const struct storage_peer *known; /* of earlier greetings and messages; NULL: never met */
    const uint8_t *commitment;        /* of the known incarnation; NULL: met in an earlier life */
    bool is_candidate;                /* an operator wants it to join: it is no member yet */
};

/* The id fits the name and the birth. */
bool identity_is_sound(const struct greeting *theirs);

/* A sentence for both sides goes to `ret_why`. */
enum refusal identity_judge(const struct identity_view *view, const struct greeting *theirs,
                            char ret_why[IDENTITY_WHY_MAX]);

enum refusal identity_refuse_twin(const char *name, char ret_why[IDENTITY_WHY_MAX]);

/* What does not go together although it is safe, from our side: a sentence that names the values;
 * "" if all is well. */
void identity_compare(const struct raft_settings *ours, const struct greeting *theirs,
                      char ret_text[IDENTITY_WHY_MAX]);

/* Whether a node that is refused for this reason must stop: it is not who the group knows. `index`
 * is that of the configuration that makes this node a member, `commit` what the refusing peer has
 * committed: a peer that lags behind does not know us yet. */
bool identity_is_final(enum refusal refusal, raft_index index, raft_index commit);

#endif
