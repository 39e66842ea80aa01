#include "web/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void exposition_family(struct buffer *body, const char *name, const char *type, const char *help)
{
    buffer_printf(body, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void exposition_sample(struct buffer *body, const char *name, const char *labels, double value)
{
    bool has_labels = labels != NULL;

    buffer_printf(body, "%s%s%s%s ", name, has_labels ? "{" : "", has_labels ? labels : "",
                  has_labels ? "}" : "");
    buffer_printf(body, isinf(value) ? "+Inf\n" : "%.15g\n", value);
}

void exposition_single(struct buffer *body, const char *name, const char *type, const char *help,
                       double value)
{
    exposition_family(body, name, type, help);
    exposition_sample(body, name, NULL, value);
}

void histogram_add(struct histogram *histogram, const double *bounds, span duration)
{
    double seconds = duration.ns > 0 ? (double)duration.ns / 1e9 : 0;
    int i = 0;

    while (seconds > bounds[i]) {
        i++;
    }
    histogram->counts[i]++;
    histogram->seconds += seconds;
}

void exposition_histogram(struct buffer *body, const char *name, const char *labels,
                          const double *bounds, const struct histogram *histogram)
{
    char full[128], bound[32] = "";
    uint64_t total = 0;

    for (int i = 0; strcmp(bound, "+Inf") != 0; i++) {
        (void)snprintf(bound, sizeof(bound), isinf(bounds[i]) ? "+Inf" : "%g", bounds[i]);
        total += histogram->counts[i];
        buffer_printf(body, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, labels ? labels : "",
                      labels ? "," : "", bound, total);
    }
    (void)snprintf(full, sizeof(full), "%s_sum", name);
    exposition_sample(body, full, labels, histogram->seconds);
    (void)snprintf(full, sizeof(full), "%s_count", name);
    exposition_sample(body, full, labels, (double)total);
}

void exposition_label(struct buffer *labels, const char *name, const char *value)
{
    buffer_printf(labels, "%s%s=\"", labels->bytes > 0 ? "," : "", name);
    for (; *value != '\0'; value++) {
        if (*value == '\n') {
            buffer_put_text(labels, "\\n");
        } else {
            if (*value == '\\' || *value == '"') {
                buffer_put_u8(labels, '\\');
            }
            buffer_put(labels, value, 1);
        }
    }
    buffer_put_u8(labels, '"');
}
