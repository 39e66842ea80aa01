/* The whole state as bytes, and back: sessions first, then elections with their lines. */
#include "sessions/mutants.h"
#include "sessions/sessions_int.h"

#include <string.h>

/* ---- Encoding -------------------------------------------------------------------------------- */

static void put_name(struct buffer *buffer, const char *name)
{
    size_t bytes = strlen(name);

    buffer_put_u8(buffer, (uint8_t)bytes);
    buffer_put(buffer, name, bytes);
}

static void put_session(struct buffer *buffer, const struct session *session)
{
    size_t bytes = session->metadata ? strlen(session->metadata) : 0;

    buffer_put_u64(buffer, session->id);
    buffer_put_u64(buffer, session->attached);
    buffer_put_u64(buffer, session->node);
    buffer_put_u64(buffer, session->incarnation);
    buffer_put_u64(buffer, (uint64_t)session->lifetime.ns);
    buffer_put(buffer, session->secret, sizeof(session->secret));
    put_name(buffer, session->name);
    buffer_put_u8(buffer, session->metadata != NULL);
    buffer_put_u16(buffer, (uint16_t)bytes);
    buffer_put(buffer, session->metadata, bytes);
}

static void put_election(struct buffer *buffer, const struct session_election *election)
{
    put_name(buffer, election->name);
    buffer_put_u64(buffer, election->holder ? election->holder->session->id : 0);
    buffer_put_u64(buffer, election->epoch);
    buffer_put_u64(buffer, election->wanted);
    buffer_put_u32(buffer, election->count);
    for (const struct session_contender *at = election->first; at; at = at->next) {
        buffer_put_u64(buffer, at->session->id);
        buffer_put_u32(buffer, (uint32_t)at->priority);
        buffer_put_u8(buffer, at->is_eligible);
    }
}

void sessions_snapshot(const struct sessions *sessions, struct buffer *buffer)
{
    buffer_put_u8(buffer, SESSIONS_FORMAT);
    buffer_put_u32(buffer, HASH_COUNT(sessions->all));
    for (const struct session *at = sessions->all; at; at = at->hh.next) {
        put_session(buffer, at);
    }
    buffer_put_u32(buffer, (uint32_t)sessions->names.count);
    for (const struct session_election *at = sessions->elections; at; at = at->next) {
        put_election(buffer, at);
    }
}

/* ---- Decoding -------------------------------------------------------------------------------- */

static void take_name(struct reader *reader, char ret[static SESSION_NAME_MAX])
{
    uint8_t bytes = reader_u8(reader);
    const uint8_t *name = reader_take(reader, bytes);

    if (!name || bytes == 0 || bytes >= SESSION_NAME_MAX || memchr(name, '\0', bytes)) {
        reader->failed = true;
        return;
    }
    memcpy(ret, name, bytes);
}

static int restore_session(struct sessions *sessions, struct reader *reader)
{
    struct session_order order = {.type = SESSION_OPEN};
    uint64_t id = reader_u64(reader);
    uint64_t attached = reader_u64(reader);
    const uint8_t *secret;
    uint8_t has_metadata;
    int code;

    order.node = reader_u64(reader);
    order.incarnation = reader_u64(reader);
    order.lifetime = SPAN_NS(reader_u64(reader));
    secret = reader_take(reader, SESSION_SECRET_BYTES);
    take_name(reader, order.name);
    has_metadata = reader_u8(reader);
    order.metadata_bytes = reader_u16(reader);
    order.metadata = reader_take(reader, order.metadata_bytes);
    if (reader->failed || id == 0 || attached < id || order.lifetime.ns <= 0 ||
        order.lifetime.ns > SPAN_S(SESSION_LIFETIME_MAX_S).ns || has_metadata > 1 ||
        (!has_metadata && order.metadata_bytes) || !session_order_has_text(&order) ||
        sessions_find(sessions, id)) {
        return BATON_ECORRUPT;
    }
    memcpy(order.secret, secret, sizeof(order.secret));
    order.metadata = has_metadata ? order.metadata_bytes ? order.metadata : "" : NULL;
    code = session_open(sessions, &order, id);
    if (code == BATON_OK) {
        sessions_find(sessions, id)->attached = attached;
    }
    return code;
}

static int restore_contender(struct sessions *sessions, struct session_election *election,
                             struct reader *reader, uint64_t holder)
{
    struct session *session = sessions_find(sessions, reader_u64(reader));
    int32_t priority = (int32_t)reader_u32(reader);
    uint8_t is_eligible = reader_u8(reader);
    struct session_contender *contender;

    if (reader->failed || !session || is_eligible > 1 || sessions_contender(election, session)) {
        return BATON_ECORRUPT;
    }
    contender = session_contender_add(sessions, election, session);
    if (!contender) {
        return BATON_ENOMEM;
    }
    contender->priority = SESSION_MUTANT(PRIORITY_NOT_RESTORED) ? 0 : priority;
    contender->is_eligible = is_eligible || SESSION_MUTANT(CORDON_NOT_RESTORED);
    if (session->id == holder) {
        election->holder = contender;
    }
    return BATON_OK;
}

static int restore_election(struct sessions *sessions, struct reader *reader)
{
    char name[SESSION_NAME_MAX] = "";
    struct session_election *election;
    uint64_t holder;
    uint32_t count;
    int code = BATON_OK;

    take_name(reader, name);
    if (reader->failed || sessions_election(sessions, name)) {
        return BATON_ECORRUPT;
    }
    if (!(election = session_election_add(sessions, name))) {
        return BATON_ENOMEM;
    }
    holder = reader_u64(reader);
    election->epoch = reader_u64(reader);
    election->wanted = reader_u64(reader);
    count = reader_u32(reader);
    for (uint32_t i = 0; code == BATON_OK && i < count; i++) {
        code = restore_contender(sessions, election, reader, holder);
    }
    if (code == BATON_OK && (reader->failed || count == 0 || (holder != 0) != !!election->holder ||
                             (holder != 0 && election->epoch == 0))) {
        code = BATON_ECORRUPT;
    }
    return code;
}

static int restore(struct sessions *sessions, struct reader *reader)
{
    uint32_t count = reader_u32(reader);
    int code = BATON_OK;

    for (uint32_t i = 0; code == BATON_OK && i < count; i++) {
        code = restore_session(sessions, reader);
    }
    count = reader_u32(reader);
    for (uint32_t i = 0; code == BATON_OK && i < count; i++) {
        code = restore_election(sessions, reader);
    }
    return code == BATON_OK && (reader->failed || reader->bytes > 0) ? BATON_ECORRUPT : code;
}

int sessions_restore(struct sessions **ret, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    struct sessions *sessions = sessions_new(NULL, NULL);
    uint8_t format = reader_u8(&reader);
    int code = !sessions                                    ? BATON_ENOMEM
               : !reader.failed && format > SESSIONS_FORMAT ? BATON_ENOTSUP
               : reader.failed || format != SESSIONS_FORMAT ? BATON_ECORRUPT
                                                            : restore(sessions, &reader);

    if (code != BATON_OK) {
        sessions_free(sessions);
        return code;
    }
    *ret = sessions;
    return BATON_OK;
}

/* ---- Installing ------------------------------------------------------------------------------ */

/* For each contender of `present` that is not in the same line of the state `other`. */
static void report_line(const struct sessions *sessions, enum session_change_type type,
                        const struct session_election *present, const struct sessions *other)
{
    const struct session_election *there = sessions_election(other, present->name);

    for (const struct session_contender *at = present->first; at; at = at->next) {
        if (!sessions_contender(there, sessions_find(other, at->session->id))) {
            const struct session_change change = {.type = type,
                                                  .session = at->session->id,
                                                  .election = present->name,
                                                  .epoch = present->epoch};
            sessions_report(sessions, &change);
        }
    }
}

static void report_holder(const struct sessions *sessions, const struct session_election *before,
                          const struct session_election *after, const char *name)
{
    uint64_t had = before && before->holder ? before->holder->session->id : 0;
    uint64_t has = after && after->holder ? after->holder->session->id : 0;
    uint64_t epoch_before = before ? before->epoch : 0;
    struct session_change change = {.election = name};

    if (has && (!had || epoch_before != after->epoch)) {
        change.type = SESSION_HELD;
        change.session = has;
        change.epoch = after->epoch;
        sessions_report(sessions, &change);
    } else if (had && !has) {
        change.type = SESSION_FREED;
        change.session = had;
        change.epoch = epoch_before;
        sessions_report(sessions, &change);
    }
}

/* For each session of `present` that `other` does not have. */
static void report_sessions(const struct sessions *sessions, enum session_change_type type,
                            const struct session *present, const struct sessions *other)
{
    for (const struct session *at = present; at; at = at->hh.next) {
        if (!sessions_find(other, at->id)) {
            const struct session_change change = {
                .type = type,
                .session = at->id,
                .end = type == SESSION_ENDED ? SESSION_END_EXPIRED : (enum session_end)0};
            sessions_report(sessions, &change);
        }
    }
}

void sessions_install(struct sessions *sessions, struct sessions *restored)
{
    struct sessions before = *sessions;
    const struct session_election *at;

    sessions->all = restored->all;
    sessions->elections = restored->elections;
    sessions->names = restored->names;
    sessions->deadlines = restored->deadlines;
    sessions->bytes = restored->bytes;
    restored->all = before.all;
    restored->elections = before.elections;
    restored->names = before.names;
    restored->deadlines = before.deadlines;
    restored->bytes = before.bytes;
    report_sessions(sessions, SESSION_OPENED, sessions->all, restored);
    for (at = restored->elections; at; at = at->next) {
        const struct session_election *after = sessions_election(sessions, at->name);
        report_line(sessions, SESSION_LEFT, at, sessions);
        if (after) {
            report_line(sessions, SESSION_ENTERED, after, restored);
        }
        report_holder(sessions, at, after, at->name);
    }
    for (at = sessions->elections; at; at = at->next) {
        if (!sessions_election(restored, at->name)) {
            report_line(sessions, SESSION_ENTERED, at, restored);
            report_holder(sessions, NULL, at, at->name);
        }
    }
    report_sessions(sessions, SESSION_ENDED, restored->all, sessions);
    sessions_free(restored);
}
