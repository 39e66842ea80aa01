/* The queue of events, by true time, and the connections between processes and server. A connection
 * keeps its order. A message in flight when the process hangs up may still reach the server, long
 * after. */
#include "sim/lease/wire.h"

#include "sim/lease/trace.h"

/* Few events are scheduled at once, so a search through all of them is quick enough. */
struct contest_event *contest_push(struct contest *contest, enum contest_event_kind kind,
                                   int64_t at)
{
    struct contest_event *event;

    if (contest->queued == CONTEST_EVENTS_MAX) {
        contest_violated(contest, "storm", "%d events are to come at once", CONTEST_EVENTS_MAX);
    }
    event = &contest->queue[contest->queued++];
    *event = (struct contest_event){
        .at = at > contest->now ? at : contest->now, .order = contest->order++, .kind = kind};
    return event;
}

bool contest_pop(struct contest *contest, struct contest_event *ret)
{
    size_t first = 0;

    if (contest->queued == 0) {
        return false;
    }
    for (size_t i = 1; i < contest->queued; i++) {
        const struct contest_event *a = &contest->queue[i];
        const struct contest_event *b = &contest->queue[first];
        if (a->at < b->at || (a->at == b->at && a->order < b->order)) {
            first = i;
        }
    }
    *ret = contest->queue[first];
    contest->queue[first] = contest->queue[--contest->queued];
    return true;
}

int64_t contest_way(struct contest *contest)
{
    const struct contest_profile *p = &contest->profile;
    int64_t way = p->delay + random_between(&contest->random, 0, p->jitter);

    if (!contest->is_calm && random_chance(&contest->random, p->tail_ppm)) {
        way += random_between(&contest->random, 0, p->tail);
    }
    return way;
}

/* A cut loses messages, or holds them until it is healed. */
static int64_t arrival(struct contest *contest, const struct contender *who, bool is_cut,
                       int64_t *last)
{
    int64_t at = contest->now + contest_way(contest);

    if (!contest->is_calm && random_chance(&contest->random, contest->profile.loss_ppm)) {
        return INT64_MAX;
    }
    if (is_cut && contest->now < who->cut_until) {
        if (random_chance(&contest->random, 500000)) {
            return INT64_MAX;
        }
        at = who->cut_until + contest_way(contest);
    }
    at = at > *last ? at : *last;
    *last = at;
    return at;
}

int64_t contest_out(struct contest *contest, struct contender *who)
{
    return arrival(contest, who, who->is_mute, &who->last_out);
}

int64_t contest_in(struct contest *contest, struct contender *who)
{
    return arrival(contest, who, who->is_deaf, &who->last_in);
}

/* PUBLISH: each process gets the notice on a connection of its own, at most once. */
void contest_notify(struct contest *contest, enum contest_event_kind kind, uint64_t number,
                    uint64_t heir)
{
    for (size_t i = 0; i < contest->profile.contenders; i++) {
        struct contender *who = &contest->contenders[i];
        bool is_lost =
            !contest->is_calm && random_chance(&contest->random, contest->profile.notice_loss_ppm);
        if (who->is_up && who->is_connected && !is_lost && contest->now >= who->cut_until) {
            struct contest_event *event =
                contest_push(contest, kind, contest->now + contest_way(contest));
            event->who = who;
            event->id = who->id;
            event->number = number;
            event->heir = heir;
        }
    }
}
