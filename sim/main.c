/* baton-sim: the command line. */
#include "sim/lease/play.h"
#include "sim/play.h"
#include "sim/run.h"
#include "sim/sessions/play.h"
#include "sim/work/play.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: baton-sim [--lease|--sessions|--work] --seed S [--nodes N] [--events M] [--trace]\n"
    "       baton-sim [--lease|--sessions|--work] --seeds FROM..TO [--jobs N] [--json]\n"
    "       baton-sim [--lease|--sessions|--work] --mutants [--max-seeds N] [--quick] [--json]\n"
    "\n"
    "Plays the Raft core of Baton in a world of its own: virtual time, drifting clocks, lost and\n"
    "late messages, crashing processes, failing disks. The same seed plays the same run.\n"
    "\n"
    "  --lease           play the lease core in place of it: contenders for a lock in a model of\n"
    "                    Redis, which restarts, forgets and fails over\n"
    "  --sessions        play sessions: processes that hold elections on a replicated log\n"
    "  --work            play a pool of workers: its leaders, its workers, and the items of work\n"
    "  --seed S          play one seed; a violation is shown with the end of its trace\n"
    "  --nodes N         members at the start, 1 to 9 (drawn from the seed)\n"
    "  --events M        events of the phase with faults (drawn from the seed)\n"
    "  --trace           print everything that happens\n"
    "  --seeds FROM..TO  play a range (or N: 1..N); the first violation ends it\n"
    "  --jobs N          processes that play (as many as there are processors)\n"
    "  --break-drift     let clocks drift beyond the declared bound: must find two leaders\n"
    "  --mutants         play every planted bug until it is caught\n"
    "  --max-seeds N     how many seeds a planted bug may survive (20000)\n"
    "  --quick           play first a seed that is known to catch a planted bug that few catch\n"
    "  --mutant NAME     play with one planted bug in force\n"
    "  --json            results as JSON, one object a line\n"
    "  --help            this\n"
    "\n"
    "Exit codes: 0 everything held, or every planted bug was caught; 1 a violation was found, or "
    "a\n"
    "planted bug survived; 2 wrong usage; 3 out of memory or processes.\n";

enum {
    OPT_LEASE = 1,
    OPT_SESSIONS,
    OPT_WORK,
    OPT_SEED,
    OPT_SEEDS,
    OPT_NODES,
    OPT_EVENTS,
    OPT_TRACE,
    OPT_JOBS,
    OPT_JSON,
    OPT_MUTANTS,
    OPT_MUTANT,
    OPT_MAX_SEEDS,
    OPT_QUICK,
    OPT_BREAK_DRIFT,
    OPT_HELP
};

static const struct option long_options[] = {
    {"lease", no_argument, NULL, OPT_LEASE},
    {"sessions", no_argument, NULL, OPT_SESSIONS},
    {"work", no_argument, NULL, OPT_WORK},
    {"seed", required_argument, NULL, OPT_SEED},
    {"seeds", required_argument, NULL, OPT_SEEDS},
    {"nodes", required_argument, NULL, OPT_NODES},
    {"events", required_argument, NULL, OPT_EVENTS},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"jobs", required_argument, NULL, OPT_JOBS},
    {"json", no_argument, NULL, OPT_JSON},
    {"mutants", no_argument, NULL, OPT_MUTANTS},
    {"mutant", required_argument, NULL, OPT_MUTANT},
    {"max-seeds", required_argument, NULL, OPT_MAX_SEEDS},
    {"quick", no_argument, NULL, OPT_QUICK},
    {"break-drift", no_argument, NULL, OPT_BREAK_DRIFT},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static void refuse(const char *option, const char *value, const char *wanted)
{
    (void)fprintf(stderr, "baton-sim: --%s %s: must be %s; see --help\n", option, value, wanted);
    exit(EXIT_USAGE);
}

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char wanted[80];
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || value < least || value > most) {
        (void)snprintf(wanted, sizeof(wanted), "a number from %llu to %llu",
                       (unsigned long long)least, (unsigned long long)most);
        refuse(option, text, wanted);
    }
    return value;
}

static void range(struct run *run, const char *text)
{
    char first[32];
    const char *dots = strstr(text, "..");

    if (!dots) { /* a number of seeds */
        run->from = 1;
        run->to = number("seeds", text, 1, UINT64_MAX - 1);
        return;
    }
    if ((size_t)(dots - text) >= sizeof(first)) {
        refuse("seeds", text, "FROM..TO, as 1..1000");
        return;
    }
    (void)snprintf(first, sizeof(first), "%.*s", (int)(dots - text), text);
    run->from = number("seeds", first, 0, UINT64_MAX - 1);
    run->to = number("seeds", dots + 2, run->from, UINT64_MAX - 1);
}

typedef int (*command_fn)(const struct run *run);

static void choose(command_fn *command, command_fn chosen)
{
    if (*command && *command != chosen) {
        (void)fputs("baton-sim: only one of --seed, --seeds and --mutants; see --help\n", stderr);
        exit(EXIT_USAGE);
    }
    *command = chosen;
}

static void choose_mutant(const struct game *game, const char *name)
{
    for (size_t i = 0; i < game->mutant_count; i++) {
        if (strcmp(game->mutants[i].name, name) == 0) {
            game->set_mutant(game->mutants[i].number);
            return;
        }
    }
    refuse("mutant", name, "a name that --mutants lists");
}

struct order {
    struct run run;
    command_fn command; /* NULL: not chosen yet */
};

/* Takes one option of getopt_long(); `words` names an option that is not known. */
static void take(struct order *order, int option, char **words)
{
    struct run *run = &order->run;

    switch (option) {
    case OPT_LEASE:
        run->game = &lease_game;
        break;
    case OPT_SESSIONS:
        run->game = &sessions_game;
        break;
    case OPT_WORK:
        run->game = &work_game;
        break;
    case OPT_SEED:
        run->options.seed = number("seed", optarg, 0, UINT64_MAX - 1);
        choose(&order->command, run_seed);
        break;
    case OPT_SEEDS:
        range(run, optarg);
        choose(&order->command, run_range);
        break;
    case OPT_MUTANTS:
        choose(&order->command, run_mutants);
        break;
    case OPT_NODES:
        run->options.nodes = number("nodes", optarg, 1, SIM_NODES_MAX);
        break;
    case OPT_EVENTS:
        run->options.events = (uint32_t)number("events", optarg, 1, 1000000);
        break;
    case OPT_JOBS:
        run->jobs = (unsigned)number("jobs", optarg, 1, 256);
        break;
    case OPT_MAX_SEEDS:
        run->mutant_seeds = number("max-seeds", optarg, 1, UINT32_MAX);
        break;
    case OPT_QUICK:
        run->uses_clues = true;
        break;
    case OPT_TRACE:
        run->options.prints_trace = true;
        break;
    case OPT_JSON:
        run->is_json = true;
        break;
    case OPT_MUTANT:
        run->mutant = optarg;
        break;
    case OPT_BREAK_DRIFT:
        run->options.breaks_drift = true;
        break;
    case OPT_HELP:
        (void)fputs(help, stdout);
        exit(EXIT_HELD);
    default:
        (void)fprintf(stderr,
                      "baton-sim: '%s': no such option, or its value is missing, or it takes "
                      "none; see --help\n",
                      words[optind - 1]);
        exit(EXIT_USAGE);
    }
}

int main(int argc, char **argv)
{
    struct order order = {.run = {.game = &raft_game,
                                  .jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
                                  .mutant_seeds = 20000}};
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        take(&order, option, argv);
    }
    if (optind < argc) {
        (void)fprintf(stderr, "baton-sim: '%s': takes no such word; see --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    if (!order.command) {
        (void)fputs("baton-sim: one of --seed, --seeds and --mutants is needed; see --help\n",
                    stderr);
        return EXIT_USAGE;
    }
    if (order.run.options.nodes > order.run.game->nodes_max) {
        (void)fprintf(stderr, "baton-sim: --nodes %zu: %zu at most\n", order.run.options.nodes,
                      order.run.game->nodes_max);
        return EXIT_USAGE;
    }
    if (order.run.mutant) {
        choose_mutant(order.run.game, order.run.mutant);
    }
    return order.command(&order.run);
}
