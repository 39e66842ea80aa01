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

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* `type`: "counter", "gauge", "summary" or "histogram". `help`: one line, no backslash. */
void exposition_family(struct buffer *body, const char *name, const char *type, const char *help);

/* `labels`: NULL, or without its braces; see exposition_label(). */
void exposition_sample(struct buffer *body, const char *name, const char *labels, double value);

/* A family of one sample. */
void exposition_single(struct buffer *body, const char *name, const char *type, const char *help,
                       double value);

/* Appends name="value" to a list of labels, with its comma and its escapes. */
void exposition_label(struct buffer *labels, const char *name, const char *value);

#endif
