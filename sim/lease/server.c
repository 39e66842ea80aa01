/* The server: the keys of one election, and the scripts of src/provider/redis/scripts.c, line by
 * line. It dies and comes back with its data, without it, or with the data of some writes ago; or a
 * replica takes its place that lacks the last writes.
 *
 * Its wall clock drifts like any other and stays within the profile's skew of the other clocks;
 * the clock of the next server may differ within that. Sometimes the clock is set back. */
#include "sim/lease/server.h"

#include "sim/lease/leading.h"
#include "sim/lease/profile.h"
#include "sim/lease/trace.h"
#include "sim/lease/wire.h"

enum { MS = 1000000 };

static int64_t skew_of(const struct contest *contest)
{
    return drift_local(&contest->server.clock, contest->now).ns -
           (contest->wall_base + contest->now);
}

/* The clock is kept within bounds: it runs the other way when it has gone too far. */
int64_t server_ms(struct contest *contest)
{
    struct drift_clock *clock = &contest->server.clock;
    int64_t skew = skew_of(contest);
    int64_t most = contest->profile.skew;

    if ((skew > most && clock->ppm > 0) || (skew < -most && clock->ppm < 0)) {
        drift_set_rate(clock, contest->now, -clock->ppm);
    }
    return drift_local(clock, contest->now).ns / MS;
}

void server_set_rate(struct contest *contest)
{
    drift_set_rate(&contest->server.clock, contest->now, contest_draw_rate(contest));
    contest_say(contest, NULL, "the server's clock runs at %+lld ppm",
                (long long)contest->server.clock.ppm);
}

/* By less than a server without data waits, so its next epochs are above all before. */
void server_clock_back(struct contest *contest)
{
    int64_t room =
        skew_of(contest) + contest->profile.skew + contest->profile.settings.lease.ns / 2;

    if (room > 0) {
        int64_t by = random_between(&contest->random, 0, room);
        contest->server.clock.local_base -= by;
        contest_say(contest, NULL, "the server's clock is set back by %.3f ms", (double)by / 1e6);
    }
}

/* ---- Starts, failures, takeovers ------------------------------------------------------------- */

static void write_down(struct contest *contest)
{
    struct contest_server *server = &contest->server;

    server->written[server->writes++ % CONTEST_WRITES_KEPT] = server->keys;
}

static struct contest_keys some_writes_ago(struct contest *contest)
{
    const struct contest_server *server = &contest->server;
    uint64_t kept = server->writes < CONTEST_WRITES_KEPT ? server->writes : CONTEST_WRITES_KEPT;
    uint64_t missed = random_below(&contest->random, kept + 1);

    if (random_chance(&contest->random, 600000) && missed > 3) {
        missed = random_below(&contest->random, 4);
    }
    contest_say(contest, NULL, "it has missed %llu writes", (unsigned long long)missed);
    return missed == kept && kept < CONTEST_WRITES_KEPT
               ? (struct contest_keys){0}
               : server->written[(server->writes - missed + CONTEST_WRITES_KEPT - 1) %
                                 CONTEST_WRITES_KEPT];
}

static void new_history(struct contest *contest)
{
    contest->server.history = ++contest->histories;
    contest_say(contest, NULL, "the server's history is %llu",
                (unsigned long long)contest->server.history);
}

/* The first replica is there. */
void server_copied(struct contest *contest)
{
    if (contest->server.is_up) {
        new_history(contest);
    }
}

static void new_process(struct contest *contest)
{
    contest->server.process += 2; /* never the number of the other machine */
    new_history(contest);
    contest->server.started_s = server_ms(contest) / 1000;
    contest->server.was_promoted = false;
}

void server_begin(struct contest *contest)
{
    struct contest_server *server = &contest->server;
    int64_t most = contest->profile.skew;

    *server = (struct contest_server){.is_up = true, .boot = 1, .other_process = 1};
    contest->wall_base = random_between(&contest->random, 1000000, 2000000) * 1000 * MS;
    server->clock = (struct drift_clock){
        .local_base = contest->wall_base + random_between(&contest->random, -most, most),
        .ppm = contest_draw_rate(contest)};
    new_process(contest);
    if (random_chance(&contest->random, 800000)) { /* the server has run for long */
        server->started_s -= 1000000;
    }
}

/* The other of two machines takes over; its process may have been the master before. */
static void replace(struct contest *contest)
{
    struct contest_server *server = &contest->server;
    int64_t most = contest->profile.skew;
    uint64_t process = server->other_process;

    server->clock =
        (struct drift_clock){.true_base = contest->now,
                             .local_base = contest->wall_base + contest->now +
                                           random_between(&contest->random, -most, most),
                             .ppm = contest_draw_rate(contest)};
    server->other_process = server->process;
    server->process = process;
    new_history(contest);
    server->started_s = server_ms(contest) / 1000 - random_between(&contest->random, 0, 100000);
    server->was_promoted = true;
}

/* A starting process needs some milliseconds. */
static int64_t down_time(struct contest *contest)
{
    int64_t most = contest->profile.down_time;

    return 5 * (int64_t)MS +
           random_between(&contest->random, 0,
                          random_chance(&contest->random, 500000) ? most / 20 : most);
}

void server_fail(struct contest *contest, enum server_memory memory)
{
    static const char *const texts[] = {
        [SERVER_HAS_ALL] = "the server restarts with its data",
        [SERVER_HAS_NOTHING] = "the server restarts without data",
        [SERVER_HAS_OLD_COPY] = "the server restarts with an old copy of its data",
        [SERVER_WAS_REPLICA] = "the server dies, a replica takes its place"};
    struct contest_server *server = &contest->server;

    if (!server->is_up) {
        return;
    }
    contest_say(contest, NULL, "%s", texts[memory]);
    if (memory == SERVER_HAS_NOTHING) {
        server->keys = (struct contest_keys){0};
    } else if (memory != SERVER_HAS_ALL) {
        struct contest_keys copy = some_writes_ago(contest);
        for (int i = 0; contest->profile.max_leases_differ && copy.epoch != server->keys.epoch;) {
            copy = i++ < 8 ? some_writes_ago(contest) : server->keys; /* the copy has the record */
        }
        server->keys = copy;
    }
    server->writes = 0;
    write_down(contest);
    server->is_up = false;
    server->boot++;
    server->stalled_until = 0;
    contest_push(contest, CONTEST_SERVER_UP, contest->now + down_time(contest))->number =
        memory == SERVER_WAS_REPLICA;
    for (size_t i = 0; i < contest->profile.contenders; i++) {
        struct contender *who = &contest->contenders[i];
        /* A process that gets no notice notices when a reply is overdue, if it gives up at all. */
        if (!contest->profile.hangs_up || contest->is_calm ||
            random_chance(&contest->random, 700000)) {
            struct contest_event *event =
                contest_push(contest, CONTEST_DOWN, contest->now + contest_way(contest));
            event->who = who;
            event->id = who->id;
            event->connection = who->connection;
        }
    }
}

/* ---- Visitors -------------------------------------------------------------------------------- */

/* An id that no contender gets. */
static const uint64_t visitor = (uint64_t)1 << 32;

void server_visitor_leaves(struct contest *contest)
{
    struct contest_keys *keys = &contest->server.keys;

    if (keys->master == visitor) {
        keys->master = NOBODY;
        write_down(contest);
        contest_say(contest, NULL, "the visitor deletes its lock");
    }
}

/* The visitor reads with GET; its EXPIRE follows within its interval. It does so only for a lock
 * whose end a contender has seen since the last renewal: a new contender does not know that lock.
 */
static void visitor_reads(struct contest *contest)
{
    const struct contest_keys *keys = &contest->server.keys;
    int64_t late = random_between(&contest->random, 0, contest->profile.visitor_interval / 2);

    if (keys->foreign_ms == keys->until_ms) {
        struct contest_event *event = contest_push(contest, CONTEST_EXPIRE, contest->now + late);
        event->boot = contest->server.boot;
        event->number = (uint64_t)contest->now;
        contest->server.visitor_renews = true;
        contest_say(contest, NULL, "the visitor reads its id");
    }
}

static void visitor_expires(struct contest *contest, const struct contest_event *event)
{
    struct contest_keys *keys = &contest->server.keys;
    int64_t now = server_ms(contest);
    int64_t ttl = contest->profile.settings.lease.ns;
    const struct contender *leader = contest_leader(contest);

    contest->server.visitor_renews = false;
    if (!contest->server.is_up || contest->is_calm || event->boot != contest->server.boot ||
        keys->master == NOBODY || now > keys->until_ms || keys->until_ms == INT64_MAX) {
        return; /* the visitor finds no lock, and leads no more */
    }
    keys->until_ms = now + ttl / MS;
    write_down(contest);
    contest_say(contest, NULL, "the visitor renews a lock");
    if (keys->master != visitor && leader && (int64_t)event->number + ttl > contest->now) {
        contest_violated(
            contest, "two-leaders",
            "a visitor has renewed the lock of c%u in epoch %llu, and takes it for its",
            leader->number, (unsigned long long)leader->update.epoch);
    }
}

void server_visit(struct contest *contest)
{
    struct contest_keys *keys = &contest->server.keys;
    int64_t now = server_ms(contest);

    if (!contest->server.is_up || contest->server.visitor_renews) {
        return;
    }
    if (keys->master == visitor && now <= keys->until_ms && contest->profile.visitor_interval &&
        random_chance(&contest->random, 700000)) {
        visitor_reads(contest);
    } else if (keys->master == visitor) {
        server_visitor_leaves(contest);
    } else if (keys->master == NOBODY || now > keys->until_ms) {
        keys->master = visitor;
        keys->until_ms = random_chance(&contest->random, 500000)
                             ? INT64_MAX
                             : now + contest->profile.settings.lease.ns / MS;
        write_down(contest);
        keys->foreign_ms = 0;
        contest_say(contest, NULL, "a visitor has the lock%s",
                    keys->until_ms == INT64_MAX ? ", without a lifetime" : "");
    }
}

/* ---- The scripts ----------------------------------------------------------------------------- */

struct call {
    struct contest *contest;
    struct contest_keys *keys;
    const struct contest_request *request;
    int64_t now; /* TIME */
    int64_t ttl;
    struct lease_input answer;
};

static void answer(struct call *call, enum lease_outcome outcome, uint64_t epoch, int64_t left)
{
    call->answer.reply.outcome = outcome;
    call->answer.reply.epoch = epoch;
    call->answer.reply.left = SPAN_MS(left);
}

static void held(struct call *call)
{
    const struct contest_keys *keys = call->keys;

    /* PTTL is -1 for a key without a lifetime; the provider reports that nothing is left. */
    answer(call, LEASE_HELD, keys->holder == keys->master ? keys->epoch : 0,
           keys->until_ms == INT64_MAX ? 0 : keys->until_ms - call->now);
}

static void expire_in(struct call *call)
{
    int64_t ttl = CONTEST_MUTANT(LIFETIME_HALVED) ? call->ttl / 2 : call->ttl;

    call->keys->until_ms = call->now + ttl;
    write_down(call->contest);
}

static uint64_t name_of(const struct contest_server *server)
{
    return CONTEST_MUTANT(PROCESS_FOR_HISTORY) ? server->process : server->history;
}

/* Redis reports its uptime as the difference of two times that were cut to whole seconds, so it may
 * be almost a second too long. */
static int64_t forgotten_at(const struct call *call)
{
    const struct contest_server *server = &call->contest->server;
    int64_t uptime_s = call->now / 1000 - server->started_s;
    int64_t surely_s = CONTEST_MUTANT(UPTIME_AT_ITS_WORD) ? uptime_s : uptime_s - 1;

    if (server->was_promoted && !CONTEST_MUTANT(REPLICA_COUNTS_FROM_START)) {
        return call->now;
    }
    return call->now - (surely_s > 0 ? surely_s : 0) * 1000;
}

static int64_t wait_ms(const struct call *call)
{
    int64_t own = call->request->most_ms;
    int64_t known = call->keys->most_ms;

    if (CONTEST_MUTANT(NO_WAIT_AFTER_LOSS)) {
        return 0;
    }
    if (CONTEST_MUTANT(WAITS_ASKERS_LEASE)) {
        return call->ttl;
    }
    return own > known || CONTEST_MUTANT(RECORD_HAS_NO_LONGEST) ? own : known;
}

static bool must_wait(struct call *call)
{
    struct contest_keys *keys = call->keys;
    uint64_t name = name_of(&call->contest->server);
    int64_t interval = call->request->interval_ms;

    if (keys->history != name || keys->since_ms > call->now) {
        keys->since_ms = keys->history ? call->now : forgotten_at(call);
        keys->history = name;
        write_down(call->contest);
    }
    if (keys->since_ms + wait_ms(call) > call->now) {
        answer(call, LEASE_NOT_YET, 0, keys->since_ms + wait_ms(call) - call->now);
        return true;
    }
    if (call->now + 1 >= keys->foreign_ms && call->now < keys->foreign_ms + interval &&
        !CONTEST_MUTANT(PEER_FOLLOWED_AT_ONCE)) {
        answer(call, LEASE_NOT_YET, 0, keys->foreign_ms + interval - call->now);
        return true;
    }
    return false;
}

static uint64_t next_epoch(const struct call *call)
{
    uint64_t epoch = call->keys->epoch + 1;
    uint64_t least = call->request->epoch + 1;
    uint64_t now = (uint64_t)call->now;

    if (CONTEST_MUTANT(EPOCH_NOT_KEPT)) {
        return now;
    }
    if (!CONTEST_MUTANT(EPOCH_WITHOUT_TIME) && epoch < now) {
        epoch = now;
    }
    return epoch < least ? least : epoch;
}

static void take(struct call *call)
{
    struct contest_keys *keys = call->keys;
    const struct contest_request *request = call->request;
    bool is_own = keys->master == request->id;

    if (keys->master != NOBODY && !is_own && !CONTEST_MUTANT(TAKE_NOT_EXCLUSIVE)) {
        held(call);
        if (request->interval_ms > 0 && keys->holder != keys->master &&
            keys->until_ms != INT64_MAX) {
            keys->foreign_ms = keys->until_ms;
        }
        return;
    }
    if (!(is_own && CONTEST_MUTANT(OWN_LOCK_UNQUESTIONED)) && must_wait(call)) {
        return;
    }
    if (is_own && keys->holder == request->id && keys->epoch > request->epoch) {
        expire_in(call); /* the lock is ours already: a reply was lost */
        answer(call, LEASE_GRANTED, keys->epoch, 0);
        return;
    }
    keys->epoch = next_epoch(call);
    keys->master = keys->holder = request->id;
    keys->most_ms = request->most_ms;
    keys->foreign_ms = 0;
    expire_in(call);
    answer(call, LEASE_GRANTED, keys->epoch, 0);
    contest_notify(call->contest, CONTEST_TAKEN, keys->epoch, NOBODY);
}

static void look(struct call *call)
{
    if (call->keys->master != NOBODY) {
        held(call);
    } else {
        answer(call, LEASE_FREE, 0, 0);
    }
}

/* The lock or its record is gone, or older than the leader's grant, and shows neither a later
 * leadership nor a release. So no other process was granted a lease since. */
static bool restore(struct call *call)
{
    struct contest_keys *keys = call->keys;
    const struct contest_request *request = call->request;
    bool is_released = keys->epoch == request->epoch && keys->holder != request->id;

    if (keys->master != NOBODY && keys->master != request->id) {
        return false;
    }
    if (CONTEST_MUTANT(LEADER_NOT_RESTORED) ||
        (keys->epoch > request->epoch && !CONTEST_MUTANT(RESTORED_AFTER_ANOTHER)) ||
        (is_released && !CONTEST_MUTANT(RESTORED_AFTER_RELEASE))) {
        return false;
    }
    keys->master = keys->holder = request->id;
    keys->epoch = request->epoch;
    keys->most_ms = request->most_ms;
    return true;
}

static void renew(struct call *call)
{
    struct contest_keys *keys = call->keys;
    uint64_t name = CONTEST_MUTANT(PROCESS_FOR_HISTORY) ? call->contest->server.process
                                                        : call->request->history;
    bool is_ours = keys->master == call->request->id && keys->epoch == call->request->epoch;
    bool is_restored = !is_ours && !CONTEST_MUTANT(RENEW_ANYBODYS) && restore(call);

    if (!is_ours && !CONTEST_MUTANT(RENEW_ANYBODYS) && !is_restored) {
        look(call);
    } else {
        if ((is_restored || keys->history != name) && !CONTEST_MUTANT(RENEWAL_IGNORES_HISTORY)) {
            keys->history = name;
            keys->since_ms = 0;
        }
        expire_in(call);
        answer(call, LEASE_GRANTED, call->request->epoch, 0);
    }
}

static void release(struct call *call)
{
    struct contest_keys *keys = call->keys;
    const struct contest_request *request = call->request;

    if (keys->master == NOBODY ||
        (keys->master != request->id && !CONTEST_MUTANT(RELEASE_ANYBODYS)) ||
        (request->epoch != LEASE_EPOCH_UNKNOWN && keys->epoch != request->epoch &&
         !CONTEST_MUTANT(RELEASE_ANY_EPOCH) && !CONTEST_MUTANT(RELEASE_ANYBODYS))) {
        return;
    }
    keys->master = keys->holder = NOBODY;
    write_down(call->contest);
    contest_notify(call->contest, CONTEST_RELEASED, request->id, request->heir);
}

struct lease_input server_serve(struct contest *contest, const struct contest_request *request)
{
    static void (*const scripts[])(struct call * call) = {
        [LEASE_TAKE] = take, [LEASE_LOOK] = look, [LEASE_RENEW] = renew, [LEASE_RELEASE] = release};
    static const char *const outcomes[] = {[LEASE_GRANTED] = "granted",
                                           [LEASE_HELD] = "held",
                                           [LEASE_FREE] = "free",
                                           [LEASE_NOT_YET] = "not yet",
                                           [LEASE_NO_ANSWER] = ""};
    struct call call = {.contest = contest,
                        .keys = &contest->server.keys,
                        .request = request,
                        .now = server_ms(contest),
                        .ttl = request->ttl_ms,
                        .answer = {.type = LEASE_IN_REPLY, .reply = {.request = request->request}}};

    contest->result.counts[CONTEST_COUNT_SERVED]++;
    if (call.now > call.keys->until_ms) {
        call.keys->master = NOBODY;
    }
    scripts[request->type](&call);
    contest_say(contest, NULL, "server: %llu's request %u: %s, epoch %llu",
                (unsigned long long)request->id, request->request,
                request->type == LEASE_RELEASE ? "released, or not its own"
                                               : outcomes[call.answer.reply.outcome],
                (unsigned long long)call.answer.reply.epoch);
    story_mix(&contest->story, call.keys->epoch ^ call.keys->master << 48);
    return call.answer;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void greet(struct contest *contest, const struct contest_event *event)
{
    const struct contest_server *server = &contest->server;
    struct contender *who = event->who;
    struct contest_event *up;
    int64_t at;

    if (!who->is_up || who->id != event->id || who->connection != event->connection) {
        return;
    }
    at = server->is_up && contest->now >= who->cut_until ? contest_in(contest, who) : INT64_MAX;
    if (at == INT64_MAX) {
        who->pause = who->pause < contest->profile.reconnect / 2 ? 2 * who->pause
                                                                 : contest->profile.reconnect;
        *contest_push(contest, CONTEST_CONNECT, contest->now) = (struct contest_event){
            .at = contest->now + random_between(&contest->random, who->pause / 2, who->pause),
            .order = contest->order++,
            .kind = CONTEST_CONNECT,
            .who = who,
            .id = event->id,
            .connection = event->connection};
        return;
    }
    up = contest_push(contest, CONTEST_UP, at);
    up->who = who;
    up->id = event->id;
    up->connection = event->connection;
    up->boot = server->boot;
    up->number = server->history;
}

static void take_request(struct contest *contest, const struct contest_event *event)
{
    struct contender *who = event->who;
    struct lease_input input;
    int64_t at;

    if (contest->now < contest->server.stalled_until) {
        struct contest_event *later =
            contest_push(contest, event->kind, contest->server.stalled_until);
        int64_t until = later->at;
        uint64_t order = later->order;
        *later = *event;
        later->at = until;
        later->order = order;
        return;
    }
    if (!contest->server.is_up ||
        (event->kind == CONTEST_REQUEST && event->boot != contest->server.boot)) {
        return;
    }
    input = server_serve(contest, &event->request);
    if (event->request.type == LEASE_RELEASE || who->id != event->id ||
        who->connection != event->connection) {
        return;
    }
    at = contest_in(contest, who);
    if (at != INT64_MAX) {
        struct contest_event *reply = contest_push(contest, CONTEST_REPLY, at);
        reply->who = who;
        reply->id = event->id;
        reply->connection = event->connection;
        reply->input = input;
    }
}

void server_happen(struct contest *contest, const struct contest_event *event)
{
    if (event->kind == CONTEST_CONNECT) {
        greet(contest, event);
    } else if (event->kind == CONTEST_EXPIRE) {
        visitor_expires(contest, event);
    } else if (event->kind == CONTEST_SERVER_UP) {
        if (event->number) {
            replace(contest);
        } else {
            new_process(contest);
        }
        contest->server.is_up = true;
        contest_say(contest, NULL, "the server is up");
    } else {
        take_request(contest, event);
    }
}
