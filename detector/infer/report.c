#include "detector/infer/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Fields --------------------------------------------------------------------------------- */

enum { DIGITS = 4, NUMBER_TEXT = 40 };

static const double scale = 10000; /* of DIGITS digits */

/* A field's value before it is converted to its type: a text or a number. */
struct raw {
    const char *text; /* NULL: a number */
    double number;
};

static double rounded(double number)
{
    return fabs(number) < 1e11 ? round(number * scale) / scale : number;
}

/* False: the answer has no such value. */
static bool read_raw(struct raw *ret, const struct pipeline_field *field,
                     const struct pipeline_model *model, const struct answer *answer,
                     const struct box *box, uint64_t track)
{
    *ret = (struct raw){0};
    switch (field->value) {
    case VALUE_CLASS:
        ret->text = class_name(model, box->label);
        return ret->text != NULL;
    case VALUE_TEXT:
        ret->text = answer->reading.text;
        return ret->text[0] != '\0';
    case VALUE_CONFIDENCE:
        ret->number = rounded((double)box->score);
        return true;
    case VALUE_NUMBER:
        if ((size_t)field->index >= answer->number_count) {
            return false;
        }
        ret->number = rounded((double)answer->numbers[field->index]);
        return isfinite(ret->number);
    case VALUE_TRACK:
        ret->number = (double)track;
        return track != 0;
    case VALUE_X:
        ret->number = round((double)box->x);
        return true;
    case VALUE_Y:
        ret->number = round((double)box->y);
        return true;
    case VALUE_WIDTH:
        ret->number = round((double)box->width);
        return true;
    case VALUE_HEIGHT:
        ret->number = round((double)box->height);
        return true;
    case VALUE_COUNT:
        break;
    }
    return false;
}

static bool is_whole(double number)
{
    return number == floor(number) && fabs(number) < 1e15;
}

static json_t *text_json(const struct pipeline_field *field, const char *text)
{
    char *end;
    long long number;

    if (field->type != TYPE_INTEGER) {
        return json_string(text);
    }
    errno = 0;
    number = strtoll(text, &end, 10);
    return errno || end == text || *end ? NULL : json_integer(number);
}

/* NULL: an integer is asked for, and it is too large for one. */
static json_t *number_json(const struct pipeline_field *field, double number)
{
    char text[NUMBER_TEXT];
    bool is_integer = field->type == TYPE_INTEGER;

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

int report_fill(json_t *attributes, const struct pipeline_stage *stage,
                const struct pipeline_model *model, const struct answer *answer,
                const struct box *box, uint64_t track)
{
    for (size_t i = 0; i < stage->field_count; i++) {
        const struct pipeline_field *field = &stage->fields[i];
        struct raw raw;
        json_t *value;

        if (json_object_get(attributes, field->name) ||
            !read_raw(&raw, field, model, answer, box, track)) {
            continue;
        }
        if (raw.text) {
            raw.text = field_mapped(field, raw.text);
            value = raw.text ? text_json(field, raw.text) : NULL;
        } else {
            value = number_json(field, raw.number);
        }
        /* A value that is no integer is left out, as if nothing was found. */
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
