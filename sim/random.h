/* The random numbers of a run: the same seed gives the same numbers, on every machine. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random)
{
    uint64_t x = (random->state += 0x9e3779b97f4a7c15u);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* 0 .. below - 1; 0 if below is 0. */
static inline uint64_t random_below(struct random *random, uint64_t below)
{
    return (uint64_t)(((unsigned __int128)random_next(random) * below) >> 64);
}

/* from .. to, both included. */
static inline int64_t random_between(struct random *random, int64_t from, int64_t to)
{
    return from + (int64_t)random_below(random, (uint64_t)(to - from) + 1);
}

/* True in `ppm` of a million cases. */
static inline bool random_chance(struct random *random, uint32_t ppm)
{
    return random_below(random, 1000000) < ppm;
}

#endif
