#include "detector/infer/report.h"

#include "detector/infer/fields.h"

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

/* True if its class or one of its texts is another one than in the last report. */
static bool has_changed(const struct pipeline *pipeline, struct track *track,
                        const json_t *attributes)
{
    struct report *report = &track->report;
    json_t *names = json_object();
    bool has_changed;

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        fields_names(names, attributes, &pipeline->stages[i]);
    }
    has_changed =
        !report->is_reported || report->label != track->label || !json_equal(names, report->names);
    json_decref(report->names);
    report->names = names;
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
