#include "detector/infer/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool read_box(struct raw *ret, enum pipeline_value value, const struct box *box)
{
    if (!box) {
        return false;
    }
    ret->number = round((double)(value == VALUE_X       ? box->x
                                 : value == VALUE_Y     ? box->y
                                 : value == VALUE_WIDTH ? box->width
                                                        : box->height));
    return true;
}

/* False: the finding has no such value. */
static bool read_raw(struct raw *ret, const struct pipeline_field *field,
                     const struct finding *finding)
{
    *ret = (struct raw){0};
    switch (field->value) {
    case VALUE_CLASS:
        ret->text = finding->class_name;
        return ret->text != NULL;
    case VALUE_TEXT:
        ret->text = finding->reading ? finding->reading->text : "";
        return ret->text[0] != '\0';
    case VALUE_CONFIDENCE:
        ret->number = rounded((double)finding->confidence);
        return true;
    case VALUE_NUMBER:
        if (!finding->numbers || (size_t)field->index >= finding->number_count) {
            return false;
        }
        ret->number = rounded((double)finding->numbers[field->index]);
        return isfinite(ret->number);
    case VALUE_TRACK:
        ret->number = (double)finding->track;
        return finding->track != 0;
    case VALUE_X:
    case VALUE_Y:
    case VALUE_WIDTH:
    case VALUE_HEIGHT:
        return read_box(ret, field->value, finding->box);
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

int fields_fill(json_t *attributes, const struct pipeline_stage *stage,
                const struct finding *finding)
{
    for (size_t i = 0; i < stage->field_count; i++) {
        const struct pipeline_field *field = &stage->fields[i];
        struct raw raw;
        json_t *value;

        if (json_object_get(attributes, field->name) || !read_raw(&raw, field, finding)) {
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

void fields_names(json_t *names, const json_t *attributes, const struct pipeline_stage *stage)
{
    for (size_t i = 0; i < stage->field_count; i++) {
        const struct pipeline_field *field = &stage->fields[i];

        if (field->value == VALUE_CLASS || field->value == VALUE_TEXT) {
            (void)json_object_set(names, field->name, json_object_get(attributes, field->name));
        }
    }
}
