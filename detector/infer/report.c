#include "detector/infer/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fields --------------------------------------------------------------------------------- */

enum { NUMBER_TEXT = 40 };

static const double scale = 10000; /* four digits */

static double rounded(double number)
{
    return fabs(number) < 1e11 ? round(number * scale) / scale : number;
}

static bool is_whole(double number)
{
    return number == floor(number) && fabs(number) < 1e15;
}

/* NULL: there is no text, or it is not of the field's type. */
static json_t *text_json(const struct pipeline_field *field, const char *text)
{
    char *end;
    long long number;

    text = text ? field_mapped(field, text) : NULL;
    if (!text || field->type != TYPE_INTEGER) {
        return text ? json_string(text) : NULL;
    }
    errno = 0;
    number = strtoll(text, &end, 10);
    return errno || end == text || *end ? NULL : json_integer(number);
}

/* NULL: it is none, or an integer is asked for, and it is too large for one. */
static json_t *number_json(const struct pipeline_field *field, double number)
{
    char text[NUMBER_TEXT];
    bool is_integer = field->type == TYPE_INTEGER;

    if (!isfinite(number)) {
        return NULL;
    }
    if (field->type == TYPE_STRING) {
        (void)snprintf(text, sizeof(text), "%.15g", number);
        return json_string(text);
    }
    number = is_integer ? round(number) : number;
    if (is_whole(number) && (is_integer || field->value != VALUE_CONFIDENCE)) {
        return json_integer((json_int_t)number);
    }
    return is_integer ? NULL : json_real(number);
}

/* NULL: the answer has no such value, or none of the field's type. */
static json_t *value_of(const struct pipeline_field *field, const struct pipeline_model *model,
                        const struct answer *answer, const struct box *box, uint64_t track)
{
    const char *text = answer->reading.text;

    switch (field->value) {
    case VALUE_CLASS:
        return text_json(field, class_name(model, box->label));
    case VALUE_TEXT:
        return text_json(field, text[0] != '\0' ? text : NULL);
    case VALUE_CONFIDENCE:
        return number_json(field, rounded((double)box->score));
    case VALUE_NUMBER:
        return (size_t)field->index < answer->number_count
                   ? number_json(field, rounded((double)answer->numbers[field->index]))
                   : NULL;
    case VALUE_TRACK:
        return track != 0 ? number_json(field, (double)track) : NULL;
    case VALUE_X:
        return number_json(field, round((double)box->x));
    case VALUE_Y:
        return number_json(field, round((double)box->y));
    case VALUE_WIDTH:
        return number_json(field, round((double)box->width));
    case VALUE_HEIGHT:
        return number_json(field, round((double)box->height));
    case VALUE_COUNT:
        break;
    }
    return NULL;
}

int report_fill(json_t *attributes, const struct pipeline_stage *stage,
                const struct pipeline_model *model, const struct answer *answer,
                const struct box *box, uint64_t track)
{
    for (size_t i = 0; i < stage->field_count; i++) {
        const struct pipeline_field *field = &stage->fields[i];
        json_t *value = json_object_get(attributes, field->name)
                            ? NULL
                            : value_of(field, model, answer, box, track);

        if (value && json_object_set_new(attributes, field->name, value) != 0) {
            return BATON_ENOMEM;
        }
    }
    return 0;
}

/* ---- When ----------------------------------------------------------------------------------- */

bool report_is_due(const struct pipeline_track *rules, const struct track *track, instant now)
{
    const struct report *report = &track->report;

    if (!track->is_confirmed) {
        return false;
    }
    switch (rules->report) {
    case REPORT_EVERY:
        return !report->is_reported ||
               instant_since(now, report->at).ns >= SPAN_MS(rules->every_ms).ns;
    case REPORT_CHANGE:
        return true;
    default:
        return !report->is_reported;
    }
}

/* True if its class, or a class or text among its fields, is another one than in the last report.
 */
static bool has_changed(const struct pipeline *pipeline, const struct track *track,
                        const json_t *attributes)
{
    const struct report *report = &track->report;
    bool has_changed = !report->is_reported || report->label != track->label;

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        for (size_t k = 0; k < pipeline->stages[i].field_count; k++) {
            const struct pipeline_field *field = &pipeline->stages[i].fields[k];
            const json_t *now = json_object_get(attributes, field->name);
            const json_t *then = json_object_get(report->last, field->name);
            if (field->value == VALUE_CLASS || field->value == VALUE_TEXT) {
                has_changed = has_changed || (now != then && !json_equal(now, then));
            }
        }
    }
    return has_changed;
}

bool report_take(const struct pipeline *pipeline, struct track *track, json_t *attributes,
                 bool is_complete, instant now)
{
    struct report *report = &track->report;

    if (pipeline->track.report == REPORT_CHANGE && !has_changed(pipeline, track, attributes)) {
        return false;
    }
    json_decref(report->waiting);
    report->waiting = NULL;
    if (pipeline->track.report == REPORT_ONCE && !is_complete && report->tries < REPORT_TRIES) {
        report->tries++;
        report->waiting = json_incref(attributes);
        return false;
    }
    if (pipeline->track.report == REPORT_CHANGE) {
        json_decref(report->last);
        report->last = json_deep_copy(attributes); /* those go to another thread */
    }
    report->is_reported = true;
    report->at = now;
    report->label = track->label;
    return true;
}

json_t *report_lost(struct track *track)
{
    json_t *attributes = track->report.waiting;

    if (!attributes || track->unseen < REPORT_UNSEEN) {
        return NULL;
    }
    track->report.waiting = NULL;
    track->report.is_reported = true;
    return attributes;
}
