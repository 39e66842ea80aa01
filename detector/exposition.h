/* Prometheus' text format, version 0.0.4: what /metrics answers.
 *
 *   exposition_family(body, "models_total", "counter", "Help.");
 *   exposition_sample(body, "models_total", "model_id=\"7\"", 3);
 *
 * Every name begins with baton_detector_, which is put in front here. The samples of a family
 * follow it, none of another between them.
 */
#ifndef DETECTOR_EXPOSITION_H
#define DETECTOR_EXPOSITION_H

#include "base/buffer.h"

/* `type`: "counter", "gauge" or "histogram". `help`: one line, no backslash. */
void exposition_family(struct buffer *body, const char *name, const char *type, const char *help);

/* `labels`: NULL, or without its braces; see exposition_label(). */
void exposition_sample(struct buffer *body, const char *name, const char *labels, double value);

/* A family of one sample. */
void exposition_single(struct buffer *body, const char *name, const char *type, const char *help,
                       double value);

/* Appends name="value" to a list of labels, with its comma and its escapes. */
void exposition_label(struct buffer *labels, const char *name, const char *value);

#endif
