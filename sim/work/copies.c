#include "sim/work/copies.h"

#include "sim/work/checks.h"
#include "sim/work/lookup.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

#include <string.h>

enum { CODE_HALTED = 143, CODE_KILLED = 137, MS = 1000000 };

static struct yard_copy *new_copy(struct yard *yard)
{
    for (size_t i = 0; i < YARD_COPIES_MAX; i++) {
        if (!yard->copies[i].is_used) {
            yard->copies[i] = (struct yard_copy){.is_used = true, .number = ++yard->copy_number};
            return &yard->copies[i];
        }
    }
    yard_violated(yard, "storm", "%d copies at once", YARD_COPIES_MAX);
}

static void push(struct yard *yard, const struct yard_copy *copy, enum yard_event_kind kind,
                 int64_t at)
{
    struct yard_event *event = yard_push(yard, kind, at);

    event->process = copy->process;
    event->life = copy->life;
    event->copy = (int)(copy - yard->copies);
    event->number = copy->number;
}

/* How it ends by itself, and when. Without faults services do not end, and no attempt fails but by
 * its timeout. */
static void draw_end(struct yard *yard, struct yard_copy *copy)
{
    const struct yard_profile *p = &yard->profile;
    int64_t most = copy->item->kind == WORK_SERVICE ? 8 * p->job_time : p->job_time;
    int64_t time = random_between(&yard->random, most / 50, most);

    copy->is_success = yard->is_calm || !random_chance(&yard->random, p->fail_ppm);
    copy->code = copy->is_success ? 0 : 1;
    if (copy->item->is_late) {
        time = 20 * p->job_time;
    }
    if (copy->item->kind == WORK_JOB || !yard->is_calm) {
        push(yard, copy, YARD_COPY_END, yard->now + time);
    }
}

void copies_start(struct yard *yard, struct yard_process *process, const struct work_order *order)
{
    struct yard_item *item = yard_item_find(yard, order->id);
    struct yard_copy *copy;

    yard_check_start(yard, process, item, order);
    copy = new_copy(yard);
    copy->is_running = true;
    copy->process = process->number;
    copy->life = process->life;
    copy->session = process->working.session;
    copy->item = item;
    copy->epoch = item->epoch = order->epoch;
    item->session = copy->session;
    item->process = copy->process;
    copy->began_at = yard->now;
    copy->began_unix_ms = yard_unix_ms(yard, process);
    yard->result.counts[YARD_COUNT_COPIES]++;
    yard_say(yard, process->number, "starts %s, epoch %llu", item->id,
             (unsigned long long)order->epoch);
    draw_end(yard, copy);
}

static void end(struct yard *yard, struct yard_copy *copy)
{
    int64_t most = random_chance(&yard->random, 200000) ? yard->profile.halt_time : MS;

    copy->is_running = false;
    yard_say(yard, copy->process, "%s ends, epoch %llu, code %d", copy->item->id,
             (unsigned long long)copy->epoch, copy->code);
    push(yard, copy, YARD_COPY_TOLD, yard->now + random_between(&yard->random, 0, most));
}

void copies_halt(struct yard *yard, const struct yard_process *process,
                 const struct work_order *order)
{
    for (size_t i = 0; i < YARD_COPIES_MAX; i++) {
        const struct yard_copy *copy = &yard->copies[i];
        if (copy->is_running && copy->process == process->number && copy->epoch == order->epoch &&
            strcmp(copy->item->id, order->id) == 0) {
            push(yard, copy, YARD_COPY_HALTED,
                 yard->now + random_between(&yard->random, 0, yard->profile.halt_time));
        }
    }
}

void copies_kill(struct yard *yard, const struct yard_process *process)
{
    struct yard_copy *copy;

    while ((copy = copy_of_process(yard, process))) {
        copy->is_success = false;
        copy->code = CODE_KILLED;
        end(yard, copy);
    }
}

void copies_forget(struct yard *yard, const struct yard_process *process)
{
    for (size_t i = 0; i < YARD_COPIES_MAX; i++) {
        if (yard->copies[i].process == process->number) {
            yard->copies[i].is_used = yard->copies[i].is_running = false;
        }
    }
}

static void fill_result(const struct yard *yard, const struct yard_copy *copy,
                        struct work_result *ret)
{
    *ret = (struct work_result){
        .id = copy->item->id,
        .epoch = copy->epoch,
        .is_success = copy->is_success,
        .code = copy->code,
        .began_unix_ms = copy->began_unix_ms,
        .ended_unix_ms = yard_unix_ms(yard, &yard->processes[copy->process]),
        .output = (uint8_t *)copy->item->id,
        .output_bytes = strlen(copy->item->id),
    };
}

bool copies_happen(struct yard *yard, const struct yard_event *event, struct work_result *ret)
{
    struct yard_copy *copy = &yard->copies[event->copy];

    if (!copy->is_used || copy->number != event->number) {
        return false;
    }
    if (event->kind == YARD_COPY_TOLD) {
        fill_result(yard, copy, ret);
        copy->is_used = false;
        return true;
    }
    if (!copy->is_running ||
        (yard->is_calm && event->kind == YARD_COPY_END && copy->item->kind == WORK_SERVICE)) {
        return false;
    }
    if (event->kind == YARD_COPY_HALTED) {
        copy->is_success = false;
        copy->code = CODE_HALTED;
    } else {
        yard_note_end(yard, copy);
    }
    end(yard, copy);
    return false;
}
