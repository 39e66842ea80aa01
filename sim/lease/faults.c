/* The faults, one at a time, as often as the profile says; and the end of them. */
#include "sim/lease/faults.h"

#include "sim/lease/contender.h"
#include "sim/lease/leading.h"
#include "sim/lease/server.h"
#include "sim/lease/trace.h"
#include "sim/lease/wire.h"

static int64_t some(struct contest *contest, int64_t most)
{
    return random_between(&contest->random, 0, most);
}

static bool can_act(const struct contest *contest, const struct contender *who)
{
    return who->is_up && contest->now >= who->paused_until;
}

static struct contender *any(struct contest *contest)
{
    size_t at = random_below(&contest->random, contest->profile.contenders);
    struct contender *who = &contest->contenders[at];
    return can_act(contest, who) ? who : NULL;
}

static struct contender *leader_or_any(struct contest *contest)
{
    struct contender *leader = contest_leader(contest);
    return leader && can_act(contest, leader) ? leader : any(contest);
}

static void stop(struct contest *contest, struct contender *who)
{
    int64_t lease = contest->profile.pace.ns;
    int64_t most = random_chance(&contest->random, 500000) ? lease / 2 : 3 * lease;

    who->paused_until = contest->now + some(contest, most);
    contest_say(contest, who, "is stopped for %.3f ms",
                (double)(who->paused_until - contest->now) / 1e6);
    if (CONTEST_MUTANT(GUARDIAN_TOO_EARLY)) {
        contender_speak_for(contest, who);
    }
}

static void cut(struct contest *contest, struct contender *who)
{
    int64_t lease = contest->profile.pace.ns;

    who->cut_until = contest->now + lease / 20 + some(contest, 3 * lease);
    who->is_mute = random_chance(&contest->random, 800000);
    who->is_deaf = !who->is_mute || random_chance(&contest->random, 700000);
    contest_say(contest, who, "is cut off%s for %.3f ms",
                who->is_mute && who->is_deaf ? ""
                : who->is_mute               ? " (mute)"
                                             : " (deaf)",
                (double)(who->cut_until - contest->now) / 1e6);
}

static void disconnect(struct contest *contest, struct contender *who)
{
    struct contest_event *event = contest_push(contest, CONTEST_DOWN, contest->now);

    event->who = who;
    event->id = who->id;
    event->connection = who->connection;
}

static void resign(struct contest *contest, struct contender *who)
{
    struct lease_input input = {.type = LEASE_IN_RESIGN};
    const struct contender *heir = any(contest);

    contest_say(contest, who, "is asked to resign");
    who->heir = heir && heir != who && random_chance(&contest->random, 300000) ? heir->id : NOBODY;
    contender_step(contest, who, &input);
    who->heir = NOBODY;
}

static void cordon(struct contest *contest, struct contender *who, bool eligible)
{
    struct lease_input input = {.type = LEASE_IN_ELIGIBLE, .eligible = eligible};

    contest_say(contest, who, eligible ? "may lead" : "may not lead");
    contender_step(contest, who, &input);
}

static void stall(struct contest *contest)
{
    int64_t lease = contest->profile.pace.ns;

    contest->server.stalled_until =
        contest->now + some(contest, random_chance(&contest->random, 500000) ? lease / 5 : lease);
    contest_say(contest, NULL, "the server stalls for %.3f ms",
                (double)(contest->server.stalled_until - contest->now) / 1e6);
}

static void with_contender(struct contest *contest, enum contest_fault fault, struct contender *who)
{
    switch (fault) {
    case CONTEST_FAULT_CRASH:
    case CONTEST_FAULT_CRASH_LEADER:
        contender_crash(contest, who,
                        random_chance(&contest->random, contest->profile.guardian_ppm));
        break;
    case CONTEST_FAULT_PAUSE:
    case CONTEST_FAULT_PAUSE_LEADER:
        stop(contest, who);
        break;
    case CONTEST_FAULT_CUT:
    case CONTEST_FAULT_CUT_LEADER:
        cut(contest, who);
        break;
    case CONTEST_FAULT_DISCONNECT:
        disconnect(contest, who);
        break;
    case CONTEST_FAULT_RESIGN:
        resign(contest, who);
        break;
    case CONTEST_FAULT_LEAVE:
        contender_leave(contest, who);
        break;
    case CONTEST_FAULT_CORDON:
        cordon(contest, who, !who->lease.eligible);
        break;
    case CONTEST_FAULT_CLOCK_RATE:
        contender_set_rate(contest, who);
        break;
    default:
        break;
    }
}

static enum contest_fault draw(struct contest *contest)
{
    const struct contest_profile *p = &contest->profile;
    uint64_t at = random_below(&contest->random, p->fault_weight_sum);
    int fault = 0;

    while (at >= p->fault_weight[fault]) {
        at -= p->fault_weight[fault++];
    }
    return (enum contest_fault)fault;
}

static bool of_server(struct contest *contest, enum contest_fault fault)
{
    switch (fault) {
    case CONTEST_FAULT_STALL:
        stall(contest);
        return true;
    case CONTEST_FAULT_RESTART:
        server_fail(contest, SERVER_HAS_ALL);
        return true;
    case CONTEST_FAULT_FORGET:
        server_fail(contest, SERVER_HAS_NOTHING);
        return true;
    case CONTEST_FAULT_OLD_COPY:
        server_fail(contest, SERVER_HAS_OLD_COPY);
        return true;
    case CONTEST_FAULT_FAILOVER:
        server_fail(contest, SERVER_WAS_REPLICA);
        return true;
    case CONTEST_FAULT_FOREIGN:
        server_visit(contest);
        return true;
    case CONTEST_FAULT_REPLICA:
        server_copied(contest);
        return true;
    case CONTEST_FAULT_CLOCK_BACK:
        server_clock_back(contest);
        return true;
    case CONTEST_FAULT_CLOCK_RATE:
        if (random_chance(&contest->random, 300000)) {
            server_set_rate(contest);
            return true;
        }
        return false;
    default:
        return false;
    }
}

void contest_fault_next(struct contest *contest)
{
    enum contest_fault fault = draw(contest);
    bool wants_leader = fault == CONTEST_FAULT_CRASH_LEADER ||
                        fault == CONTEST_FAULT_PAUSE_LEADER || fault == CONTEST_FAULT_CUT_LEADER ||
                        fault == CONTEST_FAULT_RESIGN;

    if (!of_server(contest, fault)) {
        struct contender *who = wants_leader ? leader_or_any(contest) : any(contest);
        if (who) {
            with_contender(contest, fault, who);
        }
    }
    contest_push(contest, CONTEST_FAULT,
                 contest->now + 1 + some(contest, 2 * contest->profile.fault_every));
}

/* Events that waited for it happen now. */
static void wake(struct contest *contest, struct contender *who)
{
    for (size_t i = 0; i < contest->queued && contest->now < who->paused_until; i++) {
        struct contest_event *event = &contest->queue[i];
        if (event->who == who && event->at == who->paused_until) {
            event->at = contest->now;
        }
    }
    who->paused_until = contest->now;
}

/* Processes and the server start or wake, and the network works again. Messages in flight still
 * arrive. */
void contest_faults_stop(struct contest *contest)
{
    contest->server.stalled_until = 0;
    server_visitor_leaves(contest);
    for (size_t i = 0; i < contest->profile.contenders; i++) {
        struct contender *who = &contest->contenders[i];
        wake(contest, who);
        who->cut_until = contest->now;
        if (!who->is_up) {
            contender_start(contest, who);
        } else if (!who->lease.eligible) {
            cordon(contest, who, true);
        }
    }
}
