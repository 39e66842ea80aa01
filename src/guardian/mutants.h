/* Planted bugs in the pure rule of hang.h, to show that its test finds them. Only
 * tests/unit/guardian/test_hang.c compiles them in (BATON_MUTANTS); elsewhere HANG_MUTANT() is the
 * constant false and leaves no code. */
#ifndef GUARDIAN_MUTANTS_H
#define GUARDIAN_MUTANTS_H

enum hang_mutant {
    HANG_MUTANT_NONE,
    HANG_MUTANT_CERTIFIES_UNPROVEN, /* certifies once it has killed */
    HANG_MUTANT_KILLS_STARVED,      /* also one that wants to run and gets no processor */
    HANG_MUTANT_COUNTS_ASLEEP,      /* counts on after it was stopped itself */
};

#ifdef BATON_MUTANTS
extern enum hang_mutant hang_mutant;
#define HANG_MUTANT(name) (hang_mutant == HANG_MUTANT_##name)
#else
#define HANG_MUTANT(name) false
#endif

#endif
