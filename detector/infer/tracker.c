#include "detector/infer/tracker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The weight of a new measurement beside the known velocity; the first one counts fully. */
static const float VELOCITY_SHARE = 0.4F;
static const double NS_PER_S = 1e9;
static const int64_t RARE_NS_MAX = 600000000000; /* frames further apart show different scenes */

enum {
    STEP_NS_MIN = 1000000, /* frames closer together say nothing about velocity */
    GAPS_MAX = 5,
};

struct object {
    struct track track;
    struct box expected;
    int label_next; /* of the last boxes, */
    int label_hits; /* so many in a row */
    bool is_matched;
};

struct pair {
    float overlap;
    int16_t object, box;
};

struct tracker {
    struct tracker_rules rules;
    uint64_t newest_id;
    instant now;
    int64_t gaps_ns[GAPS_MAX]; /* between the last frames */
    int gap_count, gap_next;
    span age; /* that of the rules, or more where frames are rare */
    int count;
    struct object objects[TRACKS_MAX];
    struct pair pairs[TRACKS_MAX * TRACK_BOXES_MAX];
};

struct tracker_rules tracker_rules_default(void)
{
    return (struct tracker_rules){.score_low = 0.1F,
                                  .score_high = 0.5F,
                                  .overlap_min = 0.2F,
                                  .overlap_relabel = 0.6F,
                                  .age_max = SPAN_S(2),
                                  .hits_min = 3};
}

struct tracker *tracker_new(const struct tracker_rules *rules)
{
    struct tracker *tracker = calloc(1, sizeof(*tracker));

    assert(rules->score_low >= 0 && rules->score_low <= rules->score_high);
    assert(rules->overlap_min > 0 && rules->overlap_relabel > 0);
    assert(rules->hits_min >= 1);
    if (tracker != NULL) {
        tracker->rules = *rules;
        tracker->now = INSTANT_PAST;
    }
    return tracker;
}

static void drop(struct track *track)
{
    json_decref(track->report.names);
    json_decref(track->report.waiting);
}

void tracker_free(struct tracker *tracker)
{
    for (int i = 0; tracker && i < tracker->count; i++) {
        drop(&tracker->objects[i].track);
    }
    free(tracker);
}

struct track *tracker_at(struct tracker *tracker, int index)
{
    return index < tracker->count ? &tracker->objects[index].track : NULL;
}

static float seconds_since(const struct object *object, instant now)
{
    return (float)((double)instant_since(now, object->track.last_seen).ns / NS_PER_S);
}

static void expect(struct tracker *tracker)
{
    for (int i = 0; i < tracker->count; i++) {
        struct object *object = &tracker->objects[i];
        float seconds = seconds_since(object, tracker->now);
        object->is_matched = false;
        object->track.unseen++; /* until it is matched */
        object->expected = object->track.box;
        object->expected.x += object->track.velocity_x * seconds;
        object->expected.y += object->track.velocity_y * seconds;
    }
}

static int by_overlap(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;

    if (a->overlap != b->overlap) {
        return a->overlap < b->overlap ? 1 : -1;
    }
    /* Ties go to the older object and the better box, so the order never depends on the sort. */
    return a->object != b->object ? a->object - b->object : a->box - b->box;
}

/* Finds the pairs of an object and a box that may be the same, best first. */
static size_t find_pairs(struct tracker *tracker, const struct box *boxes, int count,
                         const bool *is_candidate, bool confirmed_only)
{
    size_t found = 0;

    for (int i = 0; i < tracker->count; i++) {
        const struct object *object = &tracker->objects[i];
        if (object->is_matched || (confirmed_only && !object->track.is_confirmed)) {
            continue;
        }
        for (int j = 0; j < count; j++) {
            float wanted = boxes[j].label == object->track.label ? tracker->rules.overlap_min
                                                                 : tracker->rules.overlap_relabel;
            float overlap = is_candidate[j] ? box_overlap(&object->expected, &boxes[j]) : 0;
            if (overlap > 0 && overlap >= wanted) {
                /* A box of the object's own class wins over a box of another class. */
                overlap += boxes[j].label == object->track.label;
                tracker->pairs[found++] = (struct pair){overlap, (int16_t)i, (int16_t)j};
            }
        }
    }
    qsort(tracker->pairs, found, sizeof(*tracker->pairs), by_overlap);
    return found;
}

static void relabel(struct object *object, int label, int hits_min)
{
    object->label_hits = label == object->label_next ? object->label_hits + 1 : 1;
    object->label_next = label;
    if (object->label_hits >= hits_min) {
        object->track.label = label;
    }
    object->label_hits = object->label_hits < hits_min ? object->label_hits : hits_min;
}

static void see(struct tracker *tracker, struct object *object, const struct box *box)
{
    struct track *track = &object->track;
    float seconds = seconds_since(object, tracker->now);

    if (instant_since(tracker->now, track->last_seen).ns >= STEP_NS_MIN) {
        float share = track->seen > 1 ? VELOCITY_SHARE : 1;
        float off_x = box->x + box->width / 2 - object->expected.x - object->expected.width / 2;
        float off_y = box->y + box->height / 2 - object->expected.y - object->expected.height / 2;
        track->velocity_x += share * off_x / seconds;
        track->velocity_y += share * off_y / seconds;
    }
    track->box = *box;
    object->is_matched = true;
    track->last_seen = tracker->now;
    track->seen++;
    track->unseen = 0;
    track->is_confirmed = track->is_confirmed || track->seen >= (unsigned)tracker->rules.hits_min;
    relabel(object, box->label, tracker->rules.hits_min);
}

static void match(struct tracker *tracker, const struct box *boxes, int count, bool *is_candidate,
                  bool confirmed_only, uint64_t *id_of)
{
    size_t found = find_pairs(tracker, boxes, count, is_candidate, confirmed_only);

    for (size_t i = 0; i < found; i++) {
        const struct pair *pair = &tracker->pairs[i];
        struct object *object = &tracker->objects[pair->object];
        if (!object->is_matched && is_candidate[pair->box]) {
            see(tracker, object, &boxes[pair->box]);
            is_candidate[pair->box] = false;
            id_of[pair->box] = object->track.id;
        }
    }
}

/* 0: there is no room. */
static uint64_t begin(struct tracker *tracker, const struct box *box)
{
    struct object *object = &tracker->objects[tracker->count];

    if (tracker->count == TRACKS_MAX) {
        return 0;
    }
    *object = (struct object){.track = {.id = ++tracker->newest_id,
                                        .label = box->label,
                                        .box = *box,
                                        .seen = 1,
                                        .is_confirmed = tracker->rules.hits_min == 1,
                                        .last_seen = tracker->now},
                              .label_next = box->label,
                              .label_hits = 1,
                              .is_matched = true};
    tracker->count++;
    return tracker->newest_id;
}

static struct track *find(struct tracker *tracker, uint64_t id)
{
    for (int i = 0; id != 0 && i < tracker->count; i++) {
        if (tracker->objects[i].track.id == id) {
            return &tracker->objects[i].track;
        }
    }
    return NULL;
}

/* Before the match it removes confirmed objects that are old, after it tentative ones without a
 * box. */
static void forget(struct tracker *tracker, bool is_after_match)
{
    int kept = 0;

    for (int i = 0; i < tracker->count; i++) {
        struct object *object = &tracker->objects[i];
        bool is_old = instant_since(tracker->now, object->track.last_seen).ns > tracker->age.ns &&
                      !object->track.report.waiting;
        bool is_gone = is_after_match ? !object->track.is_confirmed && !object->is_matched
                                      : object->track.is_confirmed && is_old;
        if (is_gone) {
            drop(&object->track);
        } else {
            tracker->objects[kept++] = *object;
        }
    }
    tracker->count = kept;
}

static int by_length(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

/* Returns the median time between frames, so that one long pause does not count. */
static int64_t rhythm_ns(const struct tracker *tracker)
{
    int64_t sorted[GAPS_MAX];

    if (tracker->gap_count == 0) {
        return 0;
    }
    memcpy(sorted, tracker->gaps_ns, sizeof(sorted));
    qsort(sorted, (size_t)tracker->gap_count, sizeof(sorted[0]), by_length);
    return sorted[(tracker->gap_count - 1) / 2];
}

/* The age limit grows with the time between frames: a camera with a picture every few seconds keeps
 * its objects. */
static void pass_time(struct tracker *tracker, instant now)
{
    int64_t gap_ns = instant_since(now, tracker->now).ns;
    int64_t least_ns;

    if (tracker->now.ns != INSTANT_PAST.ns && gap_ns > 0) {
        tracker->gaps_ns[tracker->gap_next] = gap_ns;
        tracker->gap_next = (tracker->gap_next + 1) % GAPS_MAX;
        tracker->gap_count += tracker->gap_count < GAPS_MAX;
    }
    tracker->now = instant_max(tracker->now, now);
    least_ns = rhythm_ns(tracker);
    least_ns = least_ns < RARE_NS_MAX ? least_ns * TRACK_AGE_FRAMES : 0;
    tracker->age.ns = least_ns > tracker->rules.age_max.ns ? least_ns : tracker->rules.age_max.ns;
}

void tracker_step(struct tracker *tracker, instant now, const struct box *boxes, int count,
                  struct track **ret)
{
    int looked_at = count < TRACK_BOXES_MAX ? count : TRACK_BOXES_MAX;
    uint64_t id_of[TRACK_BOXES_MAX];
    bool is_sure[TRACK_BOXES_MAX], is_unsure[TRACK_BOXES_MAX];

    pass_time(tracker, now);
    forget(tracker, false);
    expect(tracker);
    for (int i = 0; i < looked_at; i++) {
        id_of[i] = 0;
        is_sure[i] = boxes[i].score >= tracker->rules.score_high;
        is_unsure[i] = !is_sure[i] && boxes[i].score >= tracker->rules.score_low;
    }
    match(tracker, boxes, looked_at, is_sure, false, id_of);
    match(tracker, boxes, looked_at, is_unsure, true, id_of);
    for (int i = 0; i < looked_at; i++) {
        if (is_sure[i]) {
            id_of[i] = begin(tracker, &boxes[i]);
        }
    }
    forget(tracker, true);
    for (int i = 0; i < count; i++) {
        ret[i] = i < looked_at ? find(tracker, id_of[i]) : NULL;
    }
}
