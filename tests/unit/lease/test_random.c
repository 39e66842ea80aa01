/* Random lives of several contenders on one store. */
#include "cmocka_all.h"
#include "lease/lease.h"

#include <stdlib.h>

enum { CONTENDERS = 4, WIRE_MAX = 64, STEPS = 3000 };

static uint64_t dice_state;

static uint64_t dice(uint64_t below)
{
    uint64_t z = dice_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

/* A store with a lock, and messages that take their time, or never come. */
struct wire {
    bool is_used;
    bool to_store;
    int who;
    instant at;
    struct lease_command command;
    struct lease_input reply;
};

struct world {
    instant now;
    struct lease_settings settings;
    struct lease leases[CONTENDERS];
    struct lease_update updates[CONTENDERS];
    struct wire wires[WIRE_MAX];
    int holder; /* -1: nobody */
    uint64_t epoch;
    instant expires;
    uint64_t led; /* highest epoch that anybody led in */
};

static void put_wire(struct world *world, struct wire wire)
{
    for (int i = 0; i < WIRE_MAX && dice(20) > 0; i++) { /* one in twenty is lost */
        if (!world->wires[i].is_used) {
            wire.is_used = true;
            wire.at = instant_add(world->now, SPAN_MS(dice(dice(10) ? 20 : 8000)));
            world->wires[i] = wire;
            return;
        }
    }
}

static void check_one_leader(const struct world *world)
{
    int leaders = 0;

    for (int i = 0; i < CONTENDERS; i++) {
        leaders += world->updates[i].held && instant_before(world->now, world->updates[i].end);
    }
    assert_true(leaders <= 1);
}

static void live(struct world *world, int who, struct lease_input input)
{
    struct lease_update *out = &world->updates[who];

    lease_step(&world->leases[who], &world->settings, &input, world->now, dice(UINT64_MAX), out);
    for (uint32_t i = 0; i < out->event_count; i++) {
        if (out->events[i].type == LEASE_EV_ACQUIRED) {
            assert_true(out->events[i].epoch > world->led);
            world->led = out->events[i].epoch;
        }
    }
    for (uint32_t i = 0; i < out->command_count; i++) {
        put_wire(world, (struct wire){.to_store = true, .who = who, .command = out->commands[i]});
    }
    check_one_leader(world);
}

static void serve(struct world *world, const struct wire *wire)
{
    struct lease_input answer = {.type = LEASE_IN_REPLY,
                                 .reply = {.request = wire->command.request}};
    bool is_own;

    if (world->holder >= 0 && !instant_before(world->now, world->expires)) {
        world->holder = -1;
    }
    is_own = world->holder == wire->who;
    if (wire->command.type == LEASE_RELEASE) {
        if (is_own && world->epoch == wire->command.epoch) {
            world->holder = -1;
            for (int i = 0; i < CONTENDERS; i++) {
                live(world, i, (struct lease_input){.type = LEASE_IN_RELEASED});
            }
        }
        return;
    }
    if (wire->command.type == LEASE_TAKE &&
        (world->holder < 0 || (is_own && world->epoch <= wire->command.epoch))) {
        world->holder = wire->who;
        world->epoch++;
        is_own = true;
    }
    answer.reply.epoch = world->epoch;
    if (is_own && wire->command.type != LEASE_LOOK) {
        world->expires = instant_add(world->now, world->settings.lease);
        answer.reply.outcome = LEASE_GRANTED;
    } else if (world->holder < 0) {
        answer.reply.outcome = LEASE_FREE;
    } else {
        answer.reply.outcome = LEASE_HELD;
        answer.reply.left = instant_since(world->expires, world->now);
    }
    put_wire(world, (struct wire){.who = wire->who, .reply = answer});
}

static void deliver(struct world *world)
{
    for (int i = 0; i < WIRE_MAX; i++) {
        struct wire wire = world->wires[i];
        if (wire.is_used && !instant_before(world->now, wire.at)) {
            world->wires[i].is_used = false;
            if (wire.to_store) {
                serve(world, &wire);
            } else {
                live(world, wire.who, wire.reply);
            }
        }
    }
}

static void tick(struct world *world)
{
    for (int who = 0; who < CONTENDERS; who++) {
        if (!instant_before(world->now, world->updates[who].deadline) && dice(8) > 0) {
            live(world, who, (struct lease_input){.type = LEASE_IN_TICK});
        }
    }
}

static void disturb(struct world *world)
{
    int who = (int)dice(CONTENDERS);

    switch (dice(12)) {
    case 0:
        live(world, who, (struct lease_input){.type = LEASE_IN_DOWN});
        break;
    case 1:
        live(world, who, (struct lease_input){.type = LEASE_IN_RESIGN});
        break;
    case 2:
        live(world, who, (struct lease_input){.type = LEASE_IN_ELIGIBLE, .eligible = dice(3) > 0});
        break;
    default:
        if (!world->leases[who].is_up) {
            live(world, who, (struct lease_input){.type = LEASE_IN_UP});
        }
        break;
    }
}

static void one_life(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    dice_state = seed;
    world->now = (instant){SPAN_S(1).ns};
    world->holder = -1;
    lease_settings_default(&world->settings);
    world->settings.lease = SPAN_MS(500 + dice(5000));
    world->settings.renew_interval = SPAN_NS(world->settings.lease.ns / 4);
    world->settings.answer_timeout = SPAN_MS(50 + dice(4000));
    for (int i = 0; i < CONTENDERS; i++) {
        lease_init(&world->leases[i], true, 0);
        live(world, i, (struct lease_input){.type = LEASE_IN_UP});
    }
    for (int i = 0; i < STEPS; i++) {
        world->now = instant_add(world->now, SPAN_MS(dice(50)));
        check_one_leader(world);
        deliver(world);
        tick(world);
        if (dice(30) == 0) {
            disturb(world);
        }
    }
    assert_true(world->led > 0);
    free(world);
}

static void random_lives_have_one_leader_at_a_time(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        one_life(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lives_have_one_leader_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
