#include "detector/camera/pace.h"

enum {
    EARLY_DIVISOR = 8, /* networks jitter: a frame may be early by this part of the interval */
    STEADY_MS = 2000,  /* after so long online the next failure counts as the first */
    BRIEF_FAILURES_MAX = 3,
    REFUSAL_PAUSES = 30, /* half an hour, as long as cameras lock a user out */
    START_MS_MIN = 1,
    START_MS_MAX = 100,
    RATE_WINDOW_S = 5,
};

bool pace_is_due(struct pace *pace, instant at, span interval)
{
    span early = {interval.ns / EARLY_DIVISOR};
    instant next;

    if (interval.ns <= 0) {
        return true;
    }
    if (instant_before(instant_add(at, early), pace->due)) {
        return false;
    }
    /* The next frame is due one interval after this one was due, not after it came; a missed frame
     * is not made up for. */
    next = instant_add(pace->due, interval);
    pace->due = instant_before(at, next) ? next : instant_add(at, interval);
    return true;
}

unsigned failures_after(unsigned failures, span online)
{
    if (online.ns >= SPAN_MS(STEADY_MS).ns) {
        return 1;
    }
    return online.ns > 0 && failures >= BRIEF_FAILURES_MAX ? BRIEF_FAILURES_MAX : failures + 1;
}

span refusal_pause_after(unsigned refusals, span max, uint32_t random)
{
    span pause = {refusals > 1 ? max.ns * REFUSAL_PAUSES : max.ns};

    return backoff_after(1, pause, pause, random);
}

instant start_after(instant began, instant ended)
{
    span took = instant_since(ended, began);

    took.ns = took.ns > SPAN_MS(START_MS_MAX).ns ? SPAN_MS(START_MS_MAX).ns : took.ns;
    took.ns = took.ns < SPAN_MS(START_MS_MIN).ns ? SPAN_MS(START_MS_MIN).ns : took.ns;
    return instant_add(ended, took);
}

double rate_count(struct rate *rate, uint64_t count, instant now)
{
    bool begins = rate->begin.ns == 0;
    double seconds = (double)instant_since(now, rate->begin).ns / 1e9;
    bool ends = seconds >= RATE_WINDOW_S;

    if (!begins && seconds > 0 && (ends || !rate->is_whole)) {
        rate->last = (double)(count - rate->first) / seconds;
    }
    if (begins || ends) {
        *rate = (struct rate){now, count, !begins, rate->last};
    }
    return rate->last;
}
