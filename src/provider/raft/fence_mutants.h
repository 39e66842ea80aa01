/* Planted bugs in the pure rule of fence.h, to show that its test and the simulator find them. Only
 * those two compile them in (BATON_MUTANTS); elsewhere FENCE_MUTANT() is the constant false and
 * leaves no code. */
#ifndef PROVIDER_RAFT_FENCE_MUTANTS_H
#define PROVIDER_RAFT_FENCE_MUTANTS_H

enum fence_mutant {
    FENCE_MUTANT_NONE,
    FENCE_MUTANT_WITHOUT_QUORUM, /* runs as soon as it wants to */
    FENCE_MUTANT_GRANTS_TWICE,   /* a voter grants while another member has its grant */
    FENCE_MUTANT_FORGETS_GRANTS, /* a voter grants right after its start */
    FENCE_MUTANT_BELIEVES_ANY,   /* any exit code is a proof */
    FENCE_MUTANT_ANSWER_IGNORED, /* runs for a host that has answered meanwhile */
    FENCE_MUTANT_COUNTS_ASLEEP,  /* counts silence while it did not run itself */
};

#ifdef BATON_MUTANTS
extern enum fence_mutant fence_mutant;
#define FENCE_MUTANT(name) (fence_mutant == FENCE_MUTANT_##name)
#else
#define FENCE_MUTANT(name) false
#endif

#endif
