/* A kind of world that run.c can play. */
#ifndef SIM_GAME_H
#define SIM_GAME_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_COUNTS_MAX = 4, SIM_NO_MUTANT = 0 };

struct options {
    uint64_t seed;
    size_t nodes;    /* 0: drawn */
    uint32_t events; /* 0: drawn */
    bool prints_trace;
    bool keeps_trace;
    bool breaks_drift;
};

enum outcome { OUTCOME_HELD, OUTCOME_VIOLATED };

struct result {
    enum outcome outcome;
    char check[48];   /* name of the failed check, "two-leaders" … */
    char detail[256]; /* in words */
    uint64_t hash;
    uint64_t events;
    uint64_t counts[SIM_COUNTS_MAX]; /* the game's count_names say of what */
    int64_t virtual_ns;
};

/* A rule was broken. */
void result_violate(struct result *result, const char *check, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* A planted bug; .number is above SIM_NO_MUTANT. */
struct game_mutant {
    int number;
    const char *name;
    const char *text;
};

/* A seed that catches a mutant which few seeds catch. */
struct game_clue {
    const char *mutant; /* NULL: the end of the list */
    uint64_t seed;
};

struct game {
    const char *flag; /* that chooses it on the command line, with a space ahead, or "" */
    size_t nodes_max;
    void *(*new_world)(void); /* NULL: out of memory */
    void (*free_world)(void *world);
    /* Plays one seed. The world's memory is kept for the next one. */
    void (*play)(void *world, const struct options *options, struct result *ret);
    const char *(*theme)(const void *world); /* of the world last played */
    void (*print_tail)(const void *world);   /* the last lines of its trace */
    struct {
        const char *key; /* in JSON */
        const char *noun;
    } count_names[SIM_COUNTS_MAX];
    const struct game_mutant *mutants;
    size_t mutant_count;
    const struct game_clue *clues; /* or NULL */
    void (*set_mutant)(int number);
};

#endif
