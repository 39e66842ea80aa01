#include "softbody/scene.h"

enum { COLUMNS = 5 };

/* Of 53 bits, so that the division is exact: the same on every machine. */
static double random_between(uint64_t *state, double from, double to)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15u);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return from + (to - from) * ((double)(x >> 11) / 9007199254740992.0);
}

void scene_make(uint32_t number, struct batch *ret)
{
    uint64_t state = number;

    *ret = (struct batch){
        .scene = number, .scene_bodies = SCENE_BODIES, .count = SCENE_BODIES, .frame = 0};
    for (uint32_t id = 0; id < SCENE_BODIES; id++) {
        uint32_t row = id / COLUMNS;
        double gap = (double)WORLD_WIDTH / COLUMNS;
        double size = random_between(&state, 0.6, 0.95);
        double stretch = random_between(&state, 1, 1.2);
        double x = gap * (id % COLUMNS + 0.5) + random_between(&state, -0.4, 0.4);
        double y = 7.3 + 2.4 * row + random_between(&state, -0.3, 0.3);
        uint32_t turn = (uint32_t)random_between(&state, 0, BODY_SPOKES);
        body_place(&ret->bodies[id], id, (struct vec){x, y}, size * stretch, size / stretch, turn);
    }
}
