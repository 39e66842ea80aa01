/* A node's identity: its name, the birth of its data directory, and its group.
 *
 *   birth     random, drawn when the data directory is made. A directory that was emptied is
 *             another member: it has forgotten the votes and promises of the one before
 *   id        the core's name of the node. Of a founder (a member of the first configuration): the
 *             hash of its name. Of a node that joins: the hash of its name and its birth
 *   group     random, drawn by the first leader, in the configuration, and so are the births
 *   founders  hash of the first configuration: keeps groups apart that have no identity yet
 *
 * Every greeting has all of it. A greeting that does not fit is refused, with the reason.
 */
#ifndef PROVIDER_RAFT_IDENTITY_H
#define PROVIDER_RAFT_IDENTITY_H

#include "provider/raft/frame.h"
#include "provider/raft/storage.h"

enum { IDENTITY_WHY_MAX = 400 };

/* The identity of a new data directory. `founders`: the first configuration; NULL: it joins. */
struct storage_birth identity_born(const char *name, const struct raft_configuration *founders);

uint64_t identity_draw(void); /* random, never 0 */

/* Finds a member by name, preferring one that stays over one that leaves. NULL: none. */
const struct raft_member *identity_member(const struct raft_configuration *members,
                                          const char *name);

/* Whether that member alone is a quorum. */
bool identity_is_quorum(const struct raft_configuration *members, raft_id id);

/* The reason why a greeting is refused. These numbers are on the wire. */
enum refusal {
    REFUSAL_NONE,
    REFUSAL_GROUP, /* another group, or other founders */
    REFUSAL_BIRTH, /* the group knows another data directory by this name */
    REFUSAL_OLDER, /* an older copy of the data directory */
    REFUSAL_TWIN,  /* another process has this data directory, or a copy of it */
    REFUSAL_DRIFT, /* the bound on clock drift leaves no lease */
    REFUSAL_LOST,  /* another group, and a member of ours that had another data directory */
    /* Another group. Ours is formed, and has it as a member or us as a quorum by ourselves. */
    REFUSAL_FORMED,
};

/* The knowledge by which a node checks a greeting. */
struct identity_view {
    const struct greeting *ours;
    const struct raft_configuration *members;
    raft_index commit;                /* the last index that this node knows to be committed */
    const struct storage_peer *known; /* from earlier greetings and messages; NULL: none */
    const uint8_t *commitment;        /* of the known incarnation; NULL: none since our start */
    bool is_candidate;                /* an operator is adding it: it is not a member yet */
};

/* Whether the id matches the name and the birth. */
bool identity_is_sound(const struct greeting *theirs);

/* Checks a greeting; writes the reason to `ret_why`, as a sentence for both sides. */
enum refusal identity_check(const struct identity_view *view, const struct greeting *theirs,
                            char ret_why[IDENTITY_WHY_MAX]);

enum refusal identity_refuse_twin(const char *name, char ret_why[IDENTITY_WHY_MAX]);

/* Settings that conflict although they are safe: a sentence with the values; "" if none do. */
void identity_compare(const struct raft_settings *ours, const struct greeting *theirs,
                      char ret_text[IDENTITY_WHY_MAX]);

/* Whether a node that is refused for this reason must stop, because the group does not know it.
 * `index` is the index of the configuration that makes this node a member, `commit` the refusing
 * peer's commit index: a peer that lags behind does not know us yet. */
bool identity_is_final(enum refusal refusal, raft_index index, raft_index commit);

#endif
