#include "web/exposition.h"

#include <math.h>

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
