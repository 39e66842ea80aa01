/* The counters of each model, by its number, for /metrics.
 *
 * Counters outlive the subscriptions that they count: they never go back. Models beyond
 * FIGURES_MODELS_MAX are counted together, as model_id="other", so a backend cannot make the page
 * grow without end.
 */
#ifndef DETECTOR_PROGRAM_FIGURES_H
#define DETECTOR_PROGRAM_FIGURES_H

#include "protocol/protocol.h"
#include "web/exposition.h"

enum { FIGURES_MODELS_MAX = 64 };

extern const double figures_bounds_s[]; /* of the histograms below */

/* The last durations, for percentiles. */
struct latency {
    float ms[256];
    unsigned count;
};

void latency_add(struct latency *latency, span duration);
/* Returns the duration that `percent` of them did not exceed; 0 without any. */
double latency_of(const struct latency *latency, unsigned percent);

struct figure {
    int64_t model_id;
    char name[PROTOCOL_NAME_MAX + 1]; /* of its last opening, as `engine`; "" none */
    char engine[128];
    uint64_t frames, dropped;   /* run; replaced by a newer one */
    uint64_t opened, refused;   /* for a subscription */
    uint64_t failures;          /* its child was lost, or a frame could not be run */
    struct histogram run, late; /* duration of a frame's turn; from its arrival to its results */
    uint64_t subscriptions;     /* at work; set before figures_write() */
};

struct figures {
    struct figure of[FIGURES_MODELS_MAX + 1]; /* the last: of all others */
    unsigned count;                           /* with the last, once it was used */
};

/* Never returns NULL; the address stays valid. */
struct figure *figures_find(struct figures *figures, int64_t model_id);
void figures_write(const struct figures *figures, struct buffer *body);

#endif
