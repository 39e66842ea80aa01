/* Prometheus' text format, version 0.0.4: what /metrics answers.
 *
 *   exposition_family(body, "baton_models_total", "counter", "Help.");
 *   exposition_sample(body, "baton_models_total", "model_id=\"7\"", 3);
 *
 * The samples of a family follow it, none of another between them.
 */
#ifndef WEB_EXPOSITION_H
#define WEB_EXPOSITION_H

#include "base/buffer.h"
#include "base/clock.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* `type`: "counter", "gauge", "summary" or "histogram". `help`: one line, no backslash. */
void exposition_family(struct buffer *body, const char *name, const char *type, const char *help);

/* `labels`: NULL, or without its braces; see exposition_label(). */
void exposition_sample(struct buffer *body, const char *name, const char *labels, double value);

/* A family of one sample. */
void exposition_single(struct buffer *body, const char *name, const char *type, const char *help,
                       double value);

enum { HISTOGRAM_MAX = 12 };

struct histogram {
    uint64_t counts[HISTOGRAM_MAX]; /* of each bucket, without those of smaller ones */
    double seconds;                 /* all together */
};

/* `bounds`: at most HISTOGRAM_MAX, in seconds, ascending; the last is INFINITY. A duration below 0
 * counts as 0. */
void histogram_add(struct histogram *histogram, const double *bounds, span duration);
/* The samples of a family of type "histogram". */
void exposition_histogram(struct buffer *body, const char *name, const char *labels,
                          const double *bounds, const struct histogram *histogram);

/* Appends name="value" to a list of labels, with its comma and its escapes. */
void exposition_label(struct buffer *labels, const char *name, const char *value);

#endif
