#include "sessions/mutants.h"
#include "sessions/sessions_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* What counts for SESSIONS_BYTES_MAX. Not the size of a struct, which differs between builds: all
 * nodes must refuse the same orders. */
enum { WEIGHT_SESSION = 320, WEIGHT_ELECTION = 96, WEIGHT_CONTENDER = 64 };

struct sessions *sessions_new(session_change_cb on_change, void *userdata)
{
    struct sessions *sessions = calloc(1, sizeof(*sessions));

    if (sessions) {
        names_init(&sessions->names, offsetof(struct session_election, name));
        sessions->on_change = on_change;
        sessions->userdata = userdata;
    }
    return sessions;
}

static size_t weight_of_election(const struct session_election *election)
{
    return WEIGHT_ELECTION + strlen(election->name) + 1;
}

static void free_election(struct sessions *sessions, struct session_election *election)
{
    sessions->bytes -= weight_of_election(election);
    names_remove(&sessions->names, election);
    DL_DELETE(sessions->elections, election);
    free(election);
}

static size_t weight_of_session(const struct session *session)
{
    return WEIGHT_SESSION + (session->metadata ? strlen(session->metadata) : 0);
}

/* The analyzer does not see that a table links the neighbours of what is taken out anew. */
static void free_session(struct sessions *sessions, struct session *session)
{
    sessions->bytes -= weight_of_session(session);
    deadlines_remove(&sessions->deadlines, &session->expiry);
    HASH_DEL(sessions->all, session); /* NOLINT(clang-analyzer-unix.Malloc) */
    free(session->metadata);
    free(session);
}

void sessions_free(struct sessions *sessions)
{
    if (!sessions) {
        return;
    }
    sessions->on_change = NULL;
    for (struct session *at = sessions->all, *next; at; at = next) {
        next = at->hh.next;
        session_end(sessions, at, 0, SESSION_END_LEFT);
    }
    for (struct session_election *at = sessions->elections, *next; at; at = next) {
        next = at->next; /* restored in part: its line is empty */
        free_election(sessions, at);
    }
    names_fini(&sessions->names);
    deadlines_fini(&sessions->deadlines);
    free(sessions);
}

void sessions_report(const struct sessions *sessions, const struct session_change *change)
{
    if (sessions->on_change) {
        sessions->on_change(sessions->userdata, change);
    }
}

/* ---- Finding --------------------------------------------------------------------------------- */

struct session *sessions_find(const struct sessions *sessions, uint64_t id)
{
    struct session *session;

    HASH_FIND(hh, sessions->all, &id, sizeof(id), session);
    return session;
}

static struct session_election *find_election(const struct sessions *sessions, const char *name)
{
    return names_find(&sessions->names, name);
}

const struct session_election *sessions_election(const struct sessions *sessions, const char *name)
{
    return find_election(sessions, name);
}

/* Looks through the shorter of both lists. */
struct session_contender *sessions_contender(const struct session_election *election,
                                             const struct session *session)
{
    struct session_contender *at = election && session ? election->first : NULL;

    if (at && election->count <= session->count) {
        while (at && at->session != session) {
            at = at->next;
        }
    } else if (at) {
        for (at = session->first; at && at->election != election;) {
            at = at->younger;
        }
    }
    return at;
}

struct session *sessions_next(const struct sessions *sessions, const struct session *prev)
{
    return prev ? prev->hh.next : sessions->all;
}

const struct session_election *sessions_next_election(const struct sessions *sessions,
                                                      const struct session_election *prev)
{
    return prev ? prev->next : sessions->elections;
}

/* ---- The line of an election ----------------------------------------------------------------- */

static void report_election(const struct sessions *sessions, enum session_change_type type,
                            const struct session_election *election, uint64_t session)
{
    const struct session_change change = {
        .type = type, .session = session, .election = election->name, .epoch = election->epoch};
    sessions_report(sessions, &change);
}

static void line_append(struct session_election *election, struct session_contender *contender)
{
    DL_APPEND(election->first, contender);
    election->count++;
}

static void line_remove(struct session_election *election, struct session_contender *contender)
{
    DL_DELETE(election->first, contender);
    election->count--;
}

static struct session_contender *next_in_line(const struct session_election *election)
{
    struct session_contender *best = NULL;

    for (struct session_contender *at = election->first; at; at = at->next) {
        if ((at->is_eligible || SESSION_MUTANT(OBSERVER_HOLDS)) &&
            (!best || at->priority > best->priority)) {
            best = at;
        }
    }
    return best;
}

/* The one that a PASS named, or the first of the highest priority. */
static struct session_contender *next_of(const struct sessions *sessions,
                                         const struct session_election *election)
{
    struct session_contender *wanted =
        election->wanted ? sessions_contender(election, sessions_find(sessions, election->wanted))
                         : NULL;

    return wanted && wanted->is_eligible ? wanted : next_in_line(election);
}

/* To `heir`, or with NULL to the next, if there is one. `before` was the holder before; 0: none. */
static void grant(const struct sessions *sessions, struct session_election *election,
                  struct session_contender *heir, uint64_t index, uint64_t before)
{
    heir = heir ? heir : next_of(sessions, election);
    election->holder = heir;
    election->wanted = 0;
    if (heir) {
        election->epoch = SESSION_MUTANT(EPOCH_KEPT) && election->epoch ? election->epoch : index;
        report_election(sessions, SESSION_HELD, election, heir->session->id);
    } else if (before != 0) {
        report_election(sessions, SESSION_FREED, election, before);
    }
}

static void grant_if_free(const struct sessions *sessions, struct session_election *election,
                          uint64_t index)
{
    if (!election->holder) {
        grant(sessions, election, NULL, index, 0);
    }
}

static void free_election_if_empty(struct sessions *sessions, struct session_election *election)
{
    if (!election->first) {
        free_election(sessions, election);
    }
}

/* Takes a contender out of its election and its session, and frees it. */
static void leave(struct sessions *sessions, struct session_contender *contender, uint64_t index)
{
    struct session_election *election = contender->election;
    struct session *session = contender->session;
    bool has_held = election->holder == contender;

    line_remove(election, contender);
    *(contender->older ? &contender->older->younger : &session->first) = contender->younger;
    *(contender->younger ? &contender->younger->older : &session->last) = contender->older;
    session->count--;
    sessions->bytes -= WEIGHT_CONTENDER;
    free(contender);
    report_election(sessions, SESSION_LEFT, election, session->id);
    if (election->wanted == session->id) {
        election->wanted = 0;
    }
    if (has_held && SESSION_MUTANT(END_GRANTS_NOTHING)) {
        election->holder = NULL;
    } else if (has_held) {
        grant(sessions, election, NULL, index, session->id);
    }
    free_election_if_empty(sessions, election);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

void session_end(struct sessions *sessions, struct session *session, uint64_t index,
                 enum session_end end)
{
    const struct session_change change = {
        .type = SESSION_ENDED, .session = session->id, .end = end};

    for (struct session_contender *at = session->first, *next; at; at = next) {
        next = at->younger;
        leave(sessions, at, index);
    }
    free_session(sessions, session);
    sessions_report(sessions, &change);
}

/* A copy of the order's metadata; NULL with BATON_OK: it has none. */
static int copy_metadata(const struct session_order *order, char **ret)
{
    *ret = order->metadata ? strndup(order->metadata, order->metadata_bytes) : NULL;
    return order->metadata && !*ret ? BATON_ENOMEM : BATON_OK;
}

int session_open(struct sessions *sessions, const struct session_order *order, uint64_t id)
{
    struct session *session = calloc(1, sizeof(*session));
    const struct session_change change = {.type = SESSION_OPENED, .session = id};

    if (!session || copy_metadata(order, &session->metadata) != BATON_OK) {
        free(session);
        return BATON_ENOMEM;
    }
    session->id = session->attached = id;
    session->node = order->node;
    session->incarnation = order->incarnation;
    session->lifetime = order->lifetime;
    session->expires = INSTANT_NEVER;
    memcpy(session->secret, order->secret, sizeof(session->secret));
    memcpy(session->name, order->name, sizeof(session->name));
    HASH_ADD(hh, sessions->all, id, sizeof(session->id), session);
    if (!session->hh.tbl) {
        free(session->metadata);
        free(session);
        return BATON_ENOMEM;
    }
    sessions->bytes += weight_of_session(session);
    if (deadlines_add(&sessions->deadlines, &session->expiry, session->expires) != BATON_OK) {
        free_session(sessions, session);
        return BATON_ENOMEM;
    }
    sessions_report(sessions, &change);
    return BATON_OK;
}

/* In a time that does not depend on where they differ. */
static bool is_secret_of(const struct session *session, const uint8_t *secret)
{
    unsigned differs = 0;

    for (size_t i = 0; i < sizeof(session->secret); i++) {
        differs |= (unsigned)(session->secret[i] ^ secret[i]);
    }
    return differs == 0;
}

/* By the process that knows the secret: its agent may be another one now, or has forgotten it. */
static int resume(struct session *session, const struct session_order *order, uint64_t index)
{
    if ((session->incarnation != 0 || !is_secret_of(session, order->secret)) &&
        !SESSION_MUTANT(RESUMES_WITHOUT_SECRET)) {
        return BATON_EAUTH;
    }
    session->node = order->node;
    session->attached = index;
    return BATON_OK;
}

/* Its process takes part through this node. An order of the one before a resumption is void: the
 * process may act by a later grant, or by the same one still. */
static bool is_of_this_node(const struct session *session, const struct session_order *order)
{
    return order->node == session->node || order->type == SESSION_END ||
           order->type == SESSION_RESUME || order->type == SESSION_ELIGIBLE;
}

/* An end that was ordered before the session was resumed is void. That of a proof never is. */
static bool is_of_this_attachment(const struct session *session, const struct session_order *order)
{
    return order->end == SESSION_END_CERTIFIED || order->epoch == session->attached ||
           SESSION_MUTANT(END_OF_ANY_ATTACHMENT);
}

static int describe(struct sessions *sessions, struct session *session,
                    const struct session_order *order)
{
    char *metadata;

    if (copy_metadata(order, &metadata) != BATON_OK) {
        return BATON_ENOMEM;
    }
    sessions->bytes -= weight_of_session(session);
    free(session->metadata);
    session->metadata = metadata;
    sessions->bytes += weight_of_session(session);
    return BATON_OK;
}

/* ---- Elections ------------------------------------------------------------------------------- */

struct session_election *session_election_add(struct sessions *sessions, const char *name)
{
    struct session_election *election = find_election(sessions, name);
    size_t bytes = strlen(name) + 1;

    if (election || !(election = calloc(1, offsetof(struct session_election, name) + bytes))) {
        return election;
    }
    memcpy(election->name, name, bytes);
    if (names_add(&sessions->names, election) != BATON_OK) {
        free(election);
        return NULL;
    }
    DL_APPEND(sessions->elections, election);
    sessions->bytes += weight_of_election(election);
    return election;
}

struct session_contender *session_contender_add(struct sessions *sessions,
                                                struct session_election *election,
                                                struct session *session)
{
    struct session_contender *contender = calloc(1, sizeof(*contender));

    if (!contender) {
        return NULL;
    }
    contender->session = session;
    contender->election = election;
    contender->older = session->last;
    *(session->last ? &session->last->younger : &session->first) = contender;
    session->last = contender;
    session->count++;
    line_append(election, contender);
    sessions->bytes += WEIGHT_CONTENDER;
    return contender;
}

static int enter(struct sessions *sessions, struct session *session,
                 const struct session_order *order, uint64_t index)
{
    struct session_election *election = session_election_add(sessions, order->name);
    struct session_contender *contender = sessions_contender(election, session);
    bool is_new = !contender;

    if (election && is_new) {
        contender = session_contender_add(sessions, election, session);
    }
    if (!contender) {
        if (election) {
            free_election_if_empty(sessions, election);
        }
        return BATON_ENOMEM;
    }
    contender->priority = order->priority;
    contender->is_eligible = order->is_eligible;
    if (is_new) {
        report_election(sessions, SESSION_ENTERED, election, session->id);
    }
    if (SESSION_MUTANT(PRIORITY_TAKES) && order->is_eligible && election->holder &&
        order->priority > election->holder->priority) {
        grant(sessions, election, contender, index, 0);
    }
    grant_if_free(sessions, election, index);
    return BATON_OK;
}

/* Orders of a holder name what they give up: one that comes late, or twice, takes no later grant.
 */
static bool is_of_this_grant(const struct session_contender *contender,
                             const struct session_order *order)
{
    return contender->election->epoch == order->epoch;
}

static int withdraw(struct sessions *sessions, struct session_contender *contender,
                    const struct session_order *order, uint64_t index)
{
    if (contender->election->holder == contender && !is_of_this_grant(contender, order) &&
        !SESSION_MUTANT(WITHDRAW_ANY_EPOCH)) {
        return BATON_ECONFLICT;
    }
    leave(sessions, contender, index);
    return BATON_OK;
}

static int resign(struct sessions *sessions, struct session_contender *contender,
                  const struct session_order *order, uint64_t index)
{
    struct session_election *election = contender->election;
    struct session_contender *heir =
        sessions_contender(election, sessions_find(sessions, order->to));

    if (election->holder != contender ||
        !(is_of_this_grant(contender, order) || SESSION_MUTANT(RESIGN_ANY_EPOCH))) {
        return BATON_ECONFLICT;
    }
    line_remove(election, contender);
    line_append(election, contender);
    grant(sessions, election, heir && heir->is_eligible ? heir : NULL, index,
          contender->session->id);
    return BATON_OK;
}

static int pass(struct sessions *sessions, const struct session_order *order, uint64_t index)
{
    struct session_election *election = find_election(sessions, order->name);
    struct session_contender *heir =
        sessions_contender(election, sessions_find(sessions, order->to));

    if (!heir) {
        return BATON_ENOENT;
    }
    if (!heir->is_eligible || heir == election->holder) {
        return BATON_EINVAL;
    }
    if (SESSION_MUTANT(PASS_TAKES)) {
        grant(sessions, election, heir, index, 0);
        return BATON_OK;
    }
    election->wanted = order->to;
    report_election(sessions, SESSION_ASKED, election, election->holder->session->id);
    return BATON_OK;
}

static void set_eligible(struct sessions *sessions, struct session_contender *contender,
                         bool is_eligible, uint64_t index)
{
    struct session_election *election = contender->election;

    contender->is_eligible = is_eligible;
    if (!is_eligible && election->wanted == contender->session->id) {
        election->wanted = 0;
    }
    if (!is_eligible && election->holder == contender) {
        report_election(sessions, SESSION_ASKED, election, contender->session->id);
        election->holder = SESSION_MUTANT(CORDON_TAKES) ? NULL : contender;
    }
    grant_if_free(sessions, election, index);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

/* Upper bound of what the order adds. */
static size_t growth_of(const struct session_order *order)
{
    switch (order->type) {
    case SESSION_OPEN:
        return WEIGHT_SESSION + order->metadata_bytes;
    case SESSION_DESCRIBE:
        return order->metadata_bytes;
    case SESSION_ENTER:
        return WEIGHT_ELECTION + WEIGHT_CONTENDER + SESSION_NAME_MAX;
    default:
        return 0;
    }
}

static int carry_out_in_line(struct sessions *sessions, struct session_contender *contender,
                             const struct session_order *order, uint64_t index)
{
    if (!contender) {
        return BATON_ENOENT;
    }
    switch (order->type) {
    case SESSION_WITHDRAW:
        return withdraw(sessions, contender, order, index);
    case SESSION_RESIGN:
        return resign(sessions, contender, order, index);
    default:
        set_eligible(sessions, contender, order->is_eligible, index);
        return BATON_OK;
    }
}

int sessions_carry_out(struct sessions *sessions, const struct session_order *order, uint64_t index)
{
    struct session *session = sessions_find(sessions, order->session);

    if (growth_of(order) > SESSIONS_BYTES_MAX - sessions->bytes) {
        return BATON_EFULL;
    }
    if (order->type == SESSION_OPEN) {
        return session_open(sessions, order, index);
    }
    if (order->type == SESSION_PASS) {
        return pass(sessions, order, index);
    }
    if (!session || !is_of_this_node(session, order)) {
        return BATON_ENOENT;
    }
    switch (order->type) {
    case SESSION_END:
        if (!is_of_this_attachment(session, order)) {
            return BATON_ECONFLICT;
        }
        session_end(sessions, session, index, order->end);
        return BATON_OK;
    case SESSION_RESUME:
        return resume(session, order, index);
    case SESSION_ENTER:
        return enter(sessions, session, order, index);
    case SESSION_DESCRIBE:
        return describe(sessions, session, order);
    default:
        return carry_out_in_line(sessions,
                                 sessions_contender(find_election(sessions, order->name), session),
                                 order, index);
    }
}
