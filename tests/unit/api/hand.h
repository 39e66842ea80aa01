/* Workers of a pool over memory:, for the tests of <baton/work.h>. What a run does is its body:
 *
 *   quick …   ends at once, with the output "done quick …"
 *   toil      has a thread that ends it once it is halted
 *   wait      runs until the test ends it
 */
#ifndef TESTS_UNIT_API_HAND_H
#define TESTS_UNIT_API_HAND_H

#include "cmocka_all.h"
#include "fixture.h"
#include "lib/assert_ok.h"

#include <baton/work.h>

/* A process, as far as the pool can see. */
struct hand {
    struct baton *baton;
    struct baton_work *work;
    atomic_int started, halted, ended, ready;
    _Atomic(struct baton_work_run *) latest;
    char checkpoint[16]; /* that the latest run was given */
};

/* Before each test: it has a memory of its own. */
int next_memory(void **state);
struct baton *open_node(const char *node);

struct baton_work_options options_of(struct hand *hand, const char *worker);
/* Opens the provider, and the pool "pool"; without a `worker` it only leads. */
void begin(struct hand *hand, const char *node, const char *worker);
/* Once no thread of a run is left. */
void end(struct hand *hand);

void end_run(struct hand *hand, struct baton_work_run *run, bool is_success);
struct baton_work_submission *submit(struct baton *baton, const char *items);
void submit_as(struct baton *baton, const char *name, const char *items);
enum baton_work_end await_end(struct baton *baton, const char *id);

#endif
