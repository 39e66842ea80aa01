#include "provider/raft/identity.h"

#include "base/clock.h"
#include "net/digest.h"
#include "provider/raft/options.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WAY_OUT                                                                                    \
    "run `baton leave %s` on another member, empty the data directory of %s, start it with join: " \
    "yes, and run `baton join %s=HOST:PORT`"

static uint64_t hash_of(const struct buffer *buffer)
{
    uint8_t digest[32];
    struct reader reader;
    uint64_t hash;

    digest_sha256(digest, buffer->data, buffer->bytes);
    reader = reader_of(digest, sizeof(digest));
    hash = reader_u64(&reader);
    return hash != 0 ? hash : 1;
}

static raft_id id_born(const char *name, uint64_t birth)
{
    struct buffer buffer;
    raft_id id;

    buffer_init(&buffer, RAFT_NAME_MAX + sizeof(birth));
    buffer_put_text(&buffer, name);
    buffer_put_u8(&buffer, '\0'); /* no name contains it, so no other input has this hash */
    buffer_put_u64(&buffer, birth);
    id = hash_of(&buffer);
    buffer_fini(&buffer);
    return id;
}

/* Excludes addresses and priorities, which may differ between the founders' files: no quorum
 * depends on them. */
static uint64_t founders_hash(const struct raft_configuration *founders)
{
    struct buffer buffer;
    uint64_t hash;

    buffer_init(&buffer, 16 * (size_t)RAFT_MEMBERS_MAX);
    for (size_t i = 0; i < founders->count; i++) {
        buffer_put_u64(&buffer, founders->members[i].id);
        buffer_put_u8(&buffer, (uint8_t)founders->members[i].kind);
        buffer_put_u32(&buffer, founders->members[i].weight);
    }
    hash = hash_of(&buffer);
    buffer_fini(&buffer);
    return hash;
}

uint64_t identity_draw(void)
{
    uint64_t number = 0;

    if (RAND_bytes((unsigned char *)&number, sizeof(number)) != 1 || number == 0) {
        number = (uint64_t)clock_now().ns | 1;
    }
    return number;
}

/* Above those of any earlier directory, as long as the clock is right. Nothing rests on it: the
 * birth distinguishes the two. */
static uint64_t first_incarnation(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > 0 ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 : 1;
}

struct storage_birth identity_born(const char *name, const struct raft_configuration *founders)
{
    uint64_t birth = identity_draw();

    return (struct storage_birth){.id = founders ? raft_id_of(name) : id_born(name, birth),
                                  .birth = birth,
                                  .founders = founders ? founders_hash(founders) : 0,
                                  .incarnation = first_incarnation()};
}

const struct raft_member *identity_member(const struct raft_configuration *members,
                                          const char *name)
{
    const struct raft_member *leaving = NULL;

    for (size_t i = 0; i < members->count; i++) {
        const struct raft_member *member = &members->members[i];
        if (strcmp(member->name, name) == 0) {
            if (!member->is_leaving) {
                return member;
            }
            leaving = member;
        }
    }
    return leaving;
}

bool identity_is_quorum(const struct raft_configuration *members, raft_id id)
{
    const struct raft_member *self = raft_configuration_find(members, id);
    uint64_t all = 0;

    for (size_t i = 0; i < members->count; i++) {
        all += members->members[i].weight;
    }
    return self && 2 * (uint64_t)self->weight > all;
}

bool identity_is_sound(const struct greeting *theirs)
{
    return theirs->birth != 0 && (theirs->id == raft_id_of(theirs->name) ||
                                  theirs->id == id_born(theirs->name, theirs->birth));
}

/* ---- What is refused ------------------------------------------------------------------------- */

static enum refusal refuse(enum refusal refusal, char *ret_why, const char *text, const char *name)
{
    int used = snprintf(ret_why, IDENTITY_WHY_MAX, "%s %s", name, text);

    if (used > 0 && used < IDENTITY_WHY_MAX) {
        (void)snprintf(ret_why + used, IDENTITY_WHY_MAX - (size_t)used, WAY_OUT, name, name, name);
    }
    return refusal;
}

static bool is_of_another_group(const struct greeting *ours, const struct greeting *theirs)
{
    if (ours->group != 0 && theirs->group != 0) {
        return ours->group != theirs->group;
    }
    return ours->founders != 0 && theirs->founders != 0 && ours->founders != theirs->founders;
}

/* The peer is of our group and knows more of the group's log: a member may have been replaced. */
static bool is_ahead(const struct identity_view *view, const struct greeting *theirs)
{
    return theirs->group != 0 && (view->ours->group == 0 || view->ours->group == theirs->group) &&
           theirs->commit_index > view->commit;
}

static bool is_another_birth(const struct identity_view *view, const struct greeting *theirs)
{
    const struct raft_member *member = raft_configuration_find(view->members, theirs->id);

    if (member && member->birth != 0) {
        return member->birth != theirs->birth;
    }
    if (!member && identity_member(view->members, theirs->name)) {
        return !is_ahead(view, theirs);
    }
    return view->known && view->known->birth != theirs->birth;
}

/* Whether only one of the two can be right, and this node has a group already. */
static bool stands_against(const struct identity_view *view, const struct greeting *theirs)
{
    return view->ours->group != 0 && !view->is_candidate &&
           (identity_member(view->members, theirs->name) ||
            identity_is_quorum(view->members, view->ours->id));
}

static enum refusal refuse_group(const struct identity_view *view, const struct greeting *theirs,
                                 char *ret_why)
{
    if (!view->is_candidate && is_another_birth(view, theirs)) {
        return refuse(
            REFUSAL_LOST, ret_why,
            "belongs to another group of this name, while ours has it as a member with "
            "another data directory; start it with that one if it is still there, or else ",
            theirs->name);
    }
    (void)snprintf(ret_why, IDENTITY_WHY_MAX,
                   "%s and %s belong to two groups of the name %s, which were first started with "
                   "different peers, weights or kinds; stop one of them, empty its data directory, "
                   "and start it with the other's peers, or with join: yes",
                   theirs->name, view->ours->name, view->ours->cluster);
    return stands_against(view, theirs) ? REFUSAL_FORMED : REFUSAL_GROUP;
}

/* Whether the peer may join: it knows no group yet, or was a member of ours before. */
static bool may_join(const struct greeting *ours, const struct greeting *theirs)
{
    return theirs->group != 0 ? theirs->group == ours->group
                              : theirs->founders == 0 && theirs->id != raft_id_of(theirs->name);
}

enum refusal identity_refuse_twin(const char *name, char ret_why[IDENTITY_WHY_MAX])
{
    return refuse(REFUSAL_TWIN, ret_why,
                  "has a copy of a data directory that another process uses, or has used since; "
                  "remove the copy if that process is to go on, or else ",
                  name);
}

/* Greetings of one life on two connections may arrive in either order. But the first one that this
 * process gets is later than everything that it stored before its own start; and a later life knows
 * everything that an earlier life has sent. */
static bool is_older(const struct identity_view *view, const struct greeting *theirs)
{
    const struct storage_peer *known = view->known;
    bool has_greeted = view->commitment != NULL;

    return theirs->incarnation < known->incarnation ||
           ((theirs->incarnation > known->incarnation || !has_greeted) &&
            (theirs->term < known->term || theirs->last_index < known->index));
}

enum refusal identity_check(const struct identity_view *view, const struct greeting *theirs,
                            char ret_why[IDENTITY_WHY_MAX])
{
    const struct storage_peer *known = view->known;

    if (is_of_another_group(view->ours, theirs)) {
        return refuse_group(view, theirs, ret_why);
    }
    if (view->is_candidate && !may_join(view->ours, theirs)) {
        return refuse(REFUSAL_BIRTH, ret_why,
                      "was not started to join: its data directory is of a group of its own; ",
                      theirs->name);
    }
    if (!view->is_candidate && is_another_birth(view, theirs)) {
        return refuse(REFUSAL_BIRTH, ret_why,
                      "has another data directory than the one that the group knows, and has "
                      "forgotten votes and promises of that one; start it with that one if it is "
                      "still there, or else ",
                      theirs->name);
    }
    if (!known || known->birth != theirs->birth) {
        return REFUSAL_NONE;
    }
    if (is_older(view, theirs)) {
        return refuse(REFUSAL_OLDER, ret_why,
                      "has an older copy of its data directory, which has forgotten votes and "
                      "promises; ",
                      theirs->name);
    }
    if (theirs->incarnation == known->incarnation && view->commitment &&
        memcmp(theirs->commitment, view->commitment, sizeof(theirs->commitment)) != 0) {
        return identity_refuse_twin(theirs->name, ret_why);
    }
    return REFUSAL_NONE;
}

#define MS(value) ((double)(value).ns / 1e6)

void identity_compare(const struct raft_settings *ours, const struct greeting *theirs,
                      char ret_text[IDENTITY_WHY_MAX])
{
    span effective = raft_settings_shorten(ours, theirs->heartbeat_timeout);

    ret_text[0] = '\0';
    if (ours->heartbeat_interval.ns > effective.ns) {
        (void)snprintf(ret_text, IDENTITY_WHY_MAX,
                       "heartbeat-interval here: %g ms; heartbeat-timeout of %s: %g ms; what it "
                       "promises ends before our next heartbeat, so its vote keeps no lease",
                       MS(ours->heartbeat_interval), theirs->name, MS(theirs->heartbeat_timeout));
    } else if (ours->lease.ns > theirs->heartbeat_timeout.ns) {
        (void)snprintf(ret_text, IDENTITY_WHY_MAX,
                       "lease here: %g ms; heartbeat-timeout of %s: %g ms; it promises no longer "
                       "than that, so our lease may be as short",
                       MS(ours->lease), theirs->name, MS(theirs->heartbeat_timeout));
    } else if (ours->clock_drift_ppm != theirs->clock_drift_ppm) {
        (void)snprintf(ret_text, IDENTITY_WHY_MAX,
                       "clock-drift-ppm here: %u; of %s: %u; the larger one counts",
                       ours->clock_drift_ppm, theirs->name, theirs->clock_drift_ppm);
    }
}

bool identity_is_final(enum refusal refusal, raft_index index, raft_index commit)
{
    switch (refusal) {
    case REFUSAL_BIRTH:
        return commit >= index;
    case REFUSAL_OLDER:
    case REFUSAL_TWIN:
    case REFUSAL_LOST:
    case REFUSAL_FORMED:
        return true;
    case REFUSAL_NONE:
    case REFUSAL_GROUP:
    case REFUSAL_DRIFT:
        break;
    }
    return false;
}
