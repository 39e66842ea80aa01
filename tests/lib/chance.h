/* How many random problems a test plays. AddressSanitizer makes each of them five to ten times as
 * long, and sees a fault of memory in one of the first: it has a tenth. Such a test has the label
 * "chance", so that scripts/check plays all of its problems without a sanitizer as well. */
#ifndef TESTS_LIB_CHANCE_H
#define TESTS_LIB_CHANCE_H

#if defined(__SANITIZE_ADDRESS__)
#define OF_CHANCE(problems) ((problems) / 10)
#else
#define OF_CHANCE(problems) (problems)
#endif

#endif
