/* Settings: the presets, and the checks of how the times must relate. */
#include "raft/raft.h"

#include <inttypes.h>
#include <string.h>

enum { PPM = 1000000 };

static const struct {
    const char *name;
    int64_t interval_ms, timeout_ms, election_min_ms, election_max_ms;
} presets[] = {
    {"default", 1000, 5000, 150, 300},
    {"lan", 400, 2000, 100, 200},
    {"wan", 2000, 10000, 500, 1000},
    {"fast", 15, 75, 75, 150},
};

int raft_settings_preset(struct raft_settings *ret, const char *preset, struct baton_error *reterr)
{
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        if (strcmp(presets[i].name, preset) != 0) {
            continue;
        }
        *ret = (struct raft_settings){
            .heartbeat_interval = SPAN_MS(presets[i].interval_ms),
            .heartbeat_timeout = SPAN_MS(presets[i].timeout_ms),
            .lease = SPAN_MS(presets[i].timeout_ms),
            .election_timeout_min = SPAN_MS(presets[i].election_min_ms),
            .election_timeout_max = SPAN_MS(presets[i].election_max_ms),
            .clock_drift_ppm = 10000,
            .preferred_stable = SPAN_MS(6 * presets[i].timeout_ms),
            .elections_per_hour_max = 10,
            .message_bytes_max = 256 * 1024,
            .inflight_max = 64,
            .log_bytes_max = 16 * 1024 * 1024,
        };
        return BATON_OK;
    }
    return error_set(reterr, BATON_ENOENT,
                     "preset \"%s\": no such preset; there are default, lan, wan and fast", preset);
}

span raft_settings_shorten(const struct raft_settings *settings, span granted)
{
    int64_t rho = settings->clock_drift_ppm;
    /* Quotient and rest apart, so that no product overflows. Rounding down is safe. */
    int64_t whole = granted.ns / (PPM + rho);
    int64_t rest = granted.ns % (PPM + rho);
    if (granted.ns <= 0) {
        return SPAN_NS(0);
    }
    return SPAN_NS(whole * (PPM - rho) + rest * (PPM - rho) / (PPM + rho));
}

#define MS(value) ((double)(value).ns / 1e6)

static int check_safety(const struct raft_settings *s, struct baton_error *reterr)
{
    if (s->clock_drift_ppm >= PPM) {
        return error_set(reterr, BATON_EUNSAFE,
                         "clock drift %" PRIu32
                         " ppm: must be below 1000000 (a clock that may stand "
                         "still bounds nothing)",
                         s->clock_drift_ppm);
    }
    if (s->lease.ns > s->heartbeat_timeout.ns) {
        return error_set(
            reterr, BATON_EUNSAFE,
            "lease <= heartbeat timeout fails: %g ms > %g ms; voters promise no longer "
            "than the heartbeat timeout, so a longer lease would allow two leaders; "
            "shorten the lease or raise the heartbeat timeout",
            MS(s->lease), MS(s->heartbeat_timeout));
    }
    return BATON_OK;
}

static int check_sense(const struct raft_settings *s, struct baton_error *reterr)
{
    span effective = raft_settings_shorten(s, s->lease);

    if (s->heartbeat_interval.ns <= 0 || s->lease.ns <= 0 || s->election_timeout_min.ns <= 0) {
        return error_set(reterr, BATON_EINVAL,
                         "heartbeat interval %g ms, lease %g ms, election timeout %g ms: each must "
                         "be above 0",
                         MS(s->heartbeat_interval), MS(s->lease), MS(s->election_timeout_min));
    }
    if (s->heartbeat_timeout.ns > SPAN_S(3600).ns) {
        return error_set(reterr, BATON_EINVAL, "heartbeat timeout %g ms: at most one hour",
                         MS(s->heartbeat_timeout));
    }
    if (s->election_timeout_max.ns < s->election_timeout_min.ns ||
        s->election_timeout_max.ns > SPAN_S(3600).ns) {
        return error_set(
            reterr, BATON_EINVAL,
            "election timeout %g-%g ms: the maximum must not be below the minimum, nor "
            "above one hour",
            MS(s->election_timeout_min), MS(s->election_timeout_max));
    }
    if (2 * s->heartbeat_interval.ns > effective.ns) {
        span longest = SPAN_US(effective.ns / 2 / 1000); /* microseconds, to be read */
        return error_set(
            reterr, BATON_EINVAL,
            "heartbeat interval %g ms: at most %g ms, half of the lease of %g ms less the clocks' "
            "drift, or one lost heartbeat would end every leadership; shorten the heartbeat "
            "interval, or lengthen the lease",
            MS(s->heartbeat_interval), MS(longest), MS(s->lease));
    }
    return BATON_OK;
}

int raft_settings_check(const struct raft_settings *settings, struct baton_error *reterr)
{
    int r = check_safety(settings, reterr);
    if (r == BATON_OK) {
        r = check_sense(settings, reterr);
    }
    if (r == BATON_OK && (settings->message_bytes_max == 0 || settings->inflight_max == 0 ||
                          settings->log_bytes_max < settings->message_bytes_max)) {
        r = error_set(reterr, BATON_EINVAL,
                      "message bytes %" PRIu32 ", in flight %" PRIu32 ", log bytes %" PRIu32
                      ": each must be above 0, and the log must hold a message",
                      settings->message_bytes_max, settings->inflight_max, settings->log_bytes_max);
    }
    return r;
}

int raft_settings_check_spread(const struct raft_settings *s, struct baton_error *reterr)
{
    int64_t spread = s->election_timeout_max.ns - s->election_timeout_min.ns;

    if (spread * 4 < s->election_timeout_min.ns) {
        return error_set(
            reterr, BATON_EINVAL,
            "election timeout %g-%g ms: the maximum must be at least %g ms, 1.25 times the "
            "minimum, or candidates that wait almost equally long would split every vote; raise "
            "the maximum, or lower the minimum",
            MS(s->election_timeout_min), MS(s->election_timeout_max),
            1.25 * MS(s->election_timeout_min));
    }
    return BATON_OK;
}

struct raft_bounds raft_settings_bounds(const struct raft_settings *s)
{
    int64_t spread = s->election_timeout_max.ns - s->election_timeout_min.ns;
    struct raft_bounds bounds = {
        .lease = raft_settings_shorten(s, s->lease),
        .hang = SPAN_NS(s->heartbeat_timeout.ns + spread),
        .restart_silence = s->heartbeat_timeout,
        .round = s->election_timeout_max,
    };
    bounds.crash_without_proof = bounds.hang;
    return bounds;
}
