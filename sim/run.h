/* Plays seeds: one, a range over several processes, or until each planted bug is caught. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/game.h"

struct run {
    const struct game *game;
    uint64_t from, to; /* seeds, both included */
    unsigned jobs;
    bool is_json;
    const char *mutant;    /* the planted bug in force, or NULL */
    uint64_t mutant_seeds; /* how many a planted bug may survive */
    bool uses_clues;       /* for planted bugs */
    struct options options;
};

enum { EXIT_HELD = 0, EXIT_FOUND = 1, EXIT_USAGE = 2, EXIT_TROUBLE = 3 };

int run_seed(const struct run *run);    /* one, with its trace */
int run_range(const struct run *run);   /* the first violation ends it */
int run_mutants(const struct run *run); /* each must be caught */

#endif
