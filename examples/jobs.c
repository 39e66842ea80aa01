/* A bag of jobs: any number of processes take them out, and a job of one that dies is done by
 * another. A job counts the primes among 10,000 numbers.
 *
 *   jobs URL NAME           works until it is interrupted (SIGINT, SIGTERM)
 *   jobs URL NAME COUNT     the same, puts COUNT jobs in, and prints what they found
 *
 * URL: agent:, redis://…, raft://…?group=…; alone with memory:.
 */
#include <baton/work.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE = 10000, LEAVE_MS = 30000, WAIT_MS = 600000 };

static bool is_prime(long number)
{
    for (long i = 2; i * i <= number; i++) {
        if (number % i == 0) {
            return false;
        }
    }
    return number > 1;
}

static void *count(void *argument)
{
    struct baton_work_run *run = argument;
    long first = strtol(run->body, NULL, 10) * RANGE, found = 0;
    char output[32];

    printf("from %ld, attempt %u\n", first, run->attempt);
    fflush(stdout);
    for (long i = first; i < first + RANGE && !baton_work_is_halted(run); i++) {
        found += is_prime(i);
    }
    snprintf(output, sizeof(output), "%ld", found); /* of a run that was halted, it is dropped */
    (void)baton_work_ended(run, true, 0, output, strlen(output), NULL);
    return NULL;
}

/* On the library's thread: the work has one of its own. */
static void start(struct baton_work *work, struct baton_work_run *run, void *userdata)
{
    pthread_t thread;
    (void)work;
    (void)userdata;

    if (pthread_create(&thread, NULL, count, run) == 0) {
        (void)pthread_detach(thread);
    } else {
        (void)baton_work_ended(run, false, 1, NULL, 0, NULL); /* "retries" say what follows */
    }
}

/* NULL when out of memory. */
static char *make_items(long count)
{
    char *text = NULL;
    size_t bytes;
    FILE *items = open_memstream(&text, &bytes);

    for (long i = 0; items && i < count; i++) {
        fprintf(items, "%c{\"body\":\"%ld\",\"retries\":3}", i == 0 ? '[' : ',', i);
    }
    return items && fputs("]", items) >= 0 && fclose(items) == 0 ? text : NULL;
}

static void print_total(const struct baton_work_result *results, size_t count)
{
    long total = 0;

    for (size_t i = 0; i < count; i++) {
        total += results[i].output ? strtol(results[i].output, NULL, 10) : 0;
    }
    printf("%ld primes below %zu\n", total, count * RANGE);
}

static int ask(struct baton *baton, long count, struct baton_error *reterr)
{
    struct baton_work_submission *given;
    struct baton_work_result *results;
    char *items = make_items(count);
    int code = baton_work_submit(baton, "primes", NULL, items ? items : "", &given, reterr);

    free(items);
    if (code != 0) {
        return code;
    }
    code = baton_work_wait(baton, "primes", (const char *const *)given->ids, given->count, WAIT_MS,
                           &results, reterr);
    if (code == 0) {
        print_total(results, given->count);
        baton_work_results_free(results, given->count);
    }
    baton_work_submission_free(given);
    return code;
}

int main(int argc, char **argv)
{
    struct baton_options options = {.size = sizeof(options)};
    struct baton_work_options part = {.size = sizeof(part), .slots = 2, .on_start = start};
    struct baton_error error = {0};
    struct baton *baton = NULL;
    struct baton_work *work;
    sigset_t ends;
    int code, left, number;

    if (argc < 3) {
        fprintf(stderr, "usage: %s URL NAME [COUNT]\n", argv[0]);
        return 2;
    }
    options.node = part.worker = argv[2];
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads */
    if ((code = baton_open(&baton, argv[1], &options, &error)) == 0 &&
        (code = baton_work_open(&work, baton, "primes", &part, &error)) == 0) {
        if (argc > 3) {
            code = ask(baton, strtol(argv[3], NULL, 10), &error);
        } else {
            sigwait(&ends, &number);
        }
        left = baton_work_leave(work, LEAVE_MS, code ? NULL : &error); /* what it began it ends */
        code = code ? code : left;
    }
    if (code != 0) {
        fprintf(stderr, "%s\n", error.message);
    }
    baton_close(baton);
    return code != 0;
}
