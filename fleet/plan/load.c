#include "fleet/plan/load.h"

static uint32_t permille_of(double percent)
{
    return percent > 0 ? (uint32_t)(percent < 100 ? percent * 10 : 1000) : 0;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t reported(const struct load_report *report)
{
    uint32_t memory = greater(permille_of(report->memory), permille_of(report->gpu_memory));
    uint32_t load = greater(permille_of(report->cpu), permille_of(report->gpu));

    return memory > LOAD_MEMORY_PERMILLE ? greater(load, memory) : load;
}

void load_hear(struct load *load, const struct load_report *report, size_t count, size_t room,
               instant now)
{
    uint32_t all = reported(report);
    uint32_t share = room == 0 || count >= room ? 1000 : (uint32_t)(count * 1000 / room);
    uint32_t other = all > share ? all - share : 0;

    if (!load->is_known) {
        *load = (struct load){other, true, count, now, now};
        return;
    }
    if (count != load->count) {
        load->count = count;
        load->since = now;
    }
    if (instant_since(now, load->since).ns < LOAD_SKIPPED.ns ||
        instant_since(now, load->heard).ns < LOAD_INTERVAL.ns) {
        return;
    }
    load->heard = now;
    load->other_permille =
        (load->other_permille * (LOAD_AVERAGED - 1) + other + LOAD_AVERAGED / 2) / LOAD_AVERAGED;
}

bool load_is_settled(const struct load *load, size_t count, instant now)
{
    return load->is_known && load->count == count &&
           instant_since(now, load->since).ns >= LOAD_SETTLED.ns;
}
