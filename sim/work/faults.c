#include "sim/work/faults.h"

#include "sim/work/clients.h"
#include "sim/work/elections.h"
#include "sim/work/process.h"
#include "sim/work/profile.h"
#include "sim/work/store.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"
#include "sim/work/working.h"

enum { WALL_JUMP_MS = 20000 };

static struct yard_process *any_process(struct yard *yard)
{
    return &yard->processes[random_below(&yard->random, yard->process_count)];
}

static struct yard_process *any_worker(struct yard *yard)
{
    size_t number = random_below(&yard->random, yard->profile.workers);

    return &yard->processes[yard->process_count - 1 - number];
}

/* One that leads, as it believes; or any candidate. */
static struct yard_process *any_leader(struct yard *yard)
{
    size_t candidates = yard->profile.candidates;
    struct yard_process *found = &yard->processes[random_below(&yard->random, candidates)];
    uint64_t seen = 0;

    for (size_t i = 0; i < candidates; i++) {
        if (yard->processes[i].leading.core && random_below(&yard->random, ++seen) == 0) {
            found = &yard->processes[i];
        }
    }
    return found;
}

static int64_t some_time(struct yard *yard)
{
    return yard->now + random_between(&yard->random, 0, 2 * yard->profile.lease.ns);
}

static void crash_all(struct yard *yard)
{
    for (size_t i = 0; i < yard->process_count; i++) {
        if (random_chance(&yard->random, 900000)) {
            yard_crash(yard, &yard->processes[i]);
        }
    }
}

static void change_wall_clock(struct yard *yard, struct yard_process *process)
{
    if (yard->profile.walls_differ) {
        process->wall_offset_ms += random_between(&yard->random, -WALL_JUMP_MS, WALL_JUMP_MS);
    }
}

/* A server's host is lost together with a part of the network: a copy runs on unheard, and the
 * client that submitted its item notices the loss. */
static void lose_data(struct yard *yard)
{
    const struct yard_copy *copy = &yard->copies[random_below(&yard->random, YARD_COPIES_MAX)];

    for (size_t i = 0; i < YARD_COPIES_MAX && !copy->is_running; i++) {
        copy = &yard->copies[i];
    }
    store_lose_all(yard);
    if (copy->is_running && random_chance(&yard->random, 500000)) {
        yard_cut(yard, &yard->processes[copy->process], some_time(yard));
        clients_submit_lost(yard, copy->item);
    }
}

static void strike_store(struct yard *yard, enum yard_fault fault)
{
    if (fault == YARD_FAULT_STALL) {
        yard->store.stalled_until =
            yard->now + random_between(&yard->random, 0, 2 * yard->profile.timeout);
    } else if (!yard->profile.may_forget) {
        return;
    } else if (fault == YARD_FAULT_LOSE_DATA) {
        lose_data(yard);
    } else {
        store_roll_back(yard);
    }
}

static void strike(struct yard *yard, enum yard_fault fault)
{
    switch (fault) {
    case YARD_FAULT_CRASH_WORKER:
        yard_crash(yard, any_worker(yard));
        break;
    case YARD_FAULT_CRASH_LEADER:
        yard_crash(yard, any_leader(yard));
        break;
    case YARD_FAULT_CRASH_ALL:
        crash_all(yard);
        break;
    case YARD_FAULT_STOP_WORKER:
        yard_stop(yard, any_worker(yard), some_time(yard));
        break;
    case YARD_FAULT_STOP_LEADER:
        yard_stop(yard, any_leader(yard), some_time(yard));
        break;
    case YARD_FAULT_CUT_WORKER:
        yard_cut(yard, any_worker(yard), some_time(yard));
        break;
    case YARD_FAULT_CUT_LEADER:
        yard_cut(yard, any_leader(yard), some_time(yard));
        break;
    case YARD_FAULT_DEPOSE:
        election_depose(yard);
        break;
    case YARD_FAULT_LEAVE:
        working_leave(yard, any_worker(yard));
        break;
    case YARD_FAULT_CLOCK_RATE:
        yard_set_rate(yard, any_process(yard), yard_draw_rate(yard));
        break;
    case YARD_FAULT_WALL_CLOCK:
        change_wall_clock(yard, any_process(yard));
        break;
    default:
        strike_store(yard, fault);
        break;
    }
}

void yard_fault_next(struct yard *yard)
{
    const struct yard_profile *p = &yard->profile;
    uint64_t drawn = random_below(&yard->random, p->fault_weight_sum);
    int fault = 0;

    while (drawn >= p->fault_weight[fault]) {
        drawn -= p->fault_weight[fault++];
    }
    strike(yard, (enum yard_fault)fault);
    yard_push(yard, YARD_FAULT, yard->now + random_between(&yard->random, 0, 2 * p->fault_every));
}

void yard_faults_stop(struct yard *yard)
{
    yard->store.stalled_until = 0;
    if (yard->has_lost) { /* a leader may not notice that the store has taken writes back */
        election_depose(yard);
    }
    for (size_t i = 0; i < yard->process_count; i++) {
        yard_heal(yard, &yard->processes[i]);
    }
    clients_calm(yard);
}
