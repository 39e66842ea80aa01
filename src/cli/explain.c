/* `baton explain`: what the settings guarantee, before they are used. */
#include "base/value.h"
#include "cli/command.h"
#include "cli/print.h"
#include "raft/raft.h"

#include <jansson.h>
#include <stdlib.h>

static void override_span(const struct options *options, const char *name, span *value)
{
    if (options_is_set(options, name)) {
        *value = options_duration(options, name);
    }
}

static int settings_of(const struct options *options, struct raft_settings *ret,
                       struct baton_error *reterr)
{
    int code = raft_settings_preset(ret, options_text(options, "preset"), reterr);
    if (code) {
        return code;
    }
    override_span(options, "heartbeat-interval", &ret->heartbeat_interval);
    override_span(options, "heartbeat-timeout", &ret->heartbeat_timeout);
    override_span(options, "lease", &ret->lease);
    override_span(options, "preferred-stable", &ret->preferred_stable);
    if (options_is_set(options, "election-timeout")) {
        options_range(options, "election-timeout", &ret->election_timeout_min,
                      &ret->election_timeout_max);
    }
    if (options_is_set(options, "clock-drift-ppm")) {
        ret->clock_drift_ppm = (uint32_t)options_number(options, "clock-drift-ppm");
    }
    if (options_is_set(options, "elections-per-hour-max")) {
        ret->elections_per_hour_max = (uint32_t)options_number(options, "elections-per-hour-max");
    }
    code = raft_settings_check(ret, reterr);
    return code ? code : raft_settings_check_spread(ret, reterr);
}

struct row {
    const char *key;
    const char *name;
    span length;
    const char *why;
};

enum { ROWS = 11 };

static void fill_rows(const struct raft_settings *s, struct row ret[static ROWS])
{
    struct raft_bounds bounds = raft_settings_bounds(s);
    const struct row rows[ROWS] = {
        {"heartbeat_interval_ms", "heartbeat interval", s->heartbeat_interval,
         "a leader asks for its lease again this often"},
        {"heartbeat_timeout_ms", "heartbeat timeout", s->heartbeat_timeout,
         "voters promise at most this long, and doubt a leader after it"},
        {"lease_ms", "lease", s->lease, "asked for with every heartbeat"},
        {"lease_effective_ms", "lease, effective", bounds.lease,
         "counted from the sending, times (1 - rho) / (1 + rho)"},
        {"election_round_ms", "one round of votes", bounds.round, "then it is given up, at worst"},
        {"restart_silence_ms", "silence after a start", bounds.restart_silence,
         "a voter may have promised this long before"},
        {"failover_resign_ms", "clean resign", SPAN_NS(0),
         "no time is waited out: one message and one round of votes"},
        {"failover_crash_guardian_ms", "crash, with guardian", SPAN_NS(0),
         "no time is waited out: one certificate and one round of votes"},
        {"failover_crash_ms", "crash, without guardian", bounds.crash_without_proof,
         "the promise must run out, as for a hang"},
        {"failover_hang_ms", "hang", bounds.hang,
         "promise, random wait, one round; each split vote costs a round more"},
        {"failover_partition_ms", "partition", bounds.hang,
         "the same; the side without a quorum stops leading by its own clock"},
    };
    for (size_t i = 0; i < ROWS; i++) {
        ret[i] = rows[i];
    }
}

static void explain_json(const struct raft_settings *settings, const struct row rows[static ROWS])
{
    json_t *json = json_object();
    for (size_t i = 0; i < ROWS; i++) {
        (void)json_object_set_new(json, rows[i].key, json_real((double)rows[i].length.ns / 1e6));
    }
    (void)json_object_set_new(json, "clock_drift_ppm", json_integer(settings->clock_drift_ppm));
    print_json(stdout, json);
    json_decref(json);
}

static void explain_table(const struct raft_settings *settings, const struct row rows[static ROWS])
{
    char texts[ROWS][VALUE_TEXT_MAX];
    const char *cells[ROWS * 4 + 1];
    size_t used = 0;
    for (size_t i = 0; i < ROWS; i++) {
        cells[used++] = rows[i].name;
        cells[used++] = value_format_span(rows[i].length, texts[i]);
        cells[used++] = rows[i].why;
        cells[used++] = NULL;
    }
    cells[used] = NULL;
    print_table(stdout, cells);
    printf("\nA clock may be wrong by %.2f %% in its rate; a jump of the wall clock does nothing.\n"
           "Delays of network, disk and scheduling come on top of each bound.\n",
           settings->clock_drift_ppm / 1e4);
}

int explain_main(const struct invocation *invocation)
{
    struct raft_settings settings;
    struct row rows[ROWS];
    struct baton_error error;
    if (settings_of(invocation->options, &settings, &error)) {
        return command_fail(invocation, &error);
    }
    fill_rows(&settings, rows);
    if (options_flag(invocation->options, "json")) {
        explain_json(&settings, rows);
    } else {
        explain_table(&settings, rows);
    }
    return EXIT_OK;
}
