#include "detector/infer/tracker.h"

#include <stdlib.h>
#include <string.h>

/* The weight of a new measurement beside the known velocity; the first one counts fully. */
static const float VELOCITY_SHARE = 0.4F;
static const float OVERLAP_RELABEL = 0.6F; /* with a box of another class */
static const double NS_PER_S = 1e9;
static const int64_t RARE_NS_MAX = 600000000000; /* frames further apart show different scenes */

enum {
    STEP_NS_MIN = 1000000, /* frames closer together say nothing about velocity */
    GAPS_MAX = 5,
};

struct pair {
    float overlap;
    int16_t track, box;
};

struct tracker {
    struct tracker_rules rules;
    uint64_t newest_id;
    instant now;
    int64_t gaps_ns[GAPS_MAX]; /* between the last frames */
    int gap_count, gap_next;
    span age; /* that of the rules, or more where frames are rare */
    int count;
    struct track tracks[TRACKS_MAX];
    struct pair pairs[TRACKS_MAX * TRACK_BOXES_MAX];
};

struct tracker *tracker_new(struct tracker_rules rules)
{
    struct tracker *tracker = calloc(1, sizeof(*tracker));

    if (tracker) {
        tracker->rules = rules;
        tracker->now = INSTANT_PAST;
    }
    return tracker;
}

static void drop(struct track *track)
{
    json_decref(track->report.last);
    json_decref(track->report.waiting);
}

void tracker_free(struct tracker *tracker)
{
    for (int i = 0; tracker && i < tracker->count; i++) {
        drop(&tracker->tracks[i]);
    }
    free(tracker);
}

struct track *tracker_at(struct tracker *tracker, int index)
{
    return index < tracker->count ? &tracker->tracks[index] : NULL;
}

static float seconds_since(const struct track *track, instant now)
{
    return (float)((double)instant_since(now, track->last_seen).ns / NS_PER_S);
}

static void expect(struct tracker *tracker)
{
    for (int i = 0; i < tracker->count; i++) {
        struct track *track = &tracker->tracks[i];
        float seconds = seconds_since(track, tracker->now);
        track->matched = -1;
        track->unseen++; /* until it is matched */
        track->expected = track->box;
        track->expected.x += track->velocity_x * seconds;
        track->expected.y += track->velocity_y * seconds;
    }
}

static int by_overlap(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;

    if (a->overlap != b->overlap) {
        return a->overlap < b->overlap ? 1 : -1;
    }
    /* Ties go to the older object and the better box, so the order never depends on the sort. */
    return a->track != b->track ? a->track - b->track : a->box - b->box;
}

/* Finds the pairs of an object and a box that may be the same, best first. */
static size_t find_pairs(struct tracker *tracker, const struct box *boxes, int count,
                         const bool *is_candidate, bool confirmed_only)
{
    size_t found = 0;

    for (int i = 0; i < tracker->count; i++) {
        const struct track *track = &tracker->tracks[i];
        if (track->matched >= 0 || (confirmed_only && !track->is_confirmed)) {
            continue;
        }
        for (int j = 0; j < count; j++) {
            bool is_same = boxes[j].label == track->label;
            float wanted = is_same ? tracker->rules.overlap_min : OVERLAP_RELABEL;
            float overlap = is_candidate[j] ? box_overlap(&track->expected, &boxes[j]) : 0;
            if (overlap > 0 && overlap >= wanted) {
                /* A box of the object's own class wins over a box of another class. */
                overlap += is_same;
                tracker->pairs[found++] = (struct pair){overlap, (int16_t)i, (int16_t)j};
            }
        }
    }
    qsort(tracker->pairs, found, sizeof(*tracker->pairs), by_overlap);
    return found;
}

static void relabel(struct track *track, int label)
{
    track->label_hits = label == track->label_next ? track->label_hits + 1 : 1;
    track->label_next = label;
    if (track->label_hits >= TRACK_HITS) {
        track->label_hits = TRACK_HITS;
        track->label = label;
    }
}

static void see(struct track *track, instant now, const struct box *box)
{
    float seconds = seconds_since(track, now);

    if (instant_since(now, track->last_seen).ns >= STEP_NS_MIN) {
        float share = track->seen > 1 ? VELOCITY_SHARE : 1;
        float off_x = box->x + box->width / 2 - track->expected.x - track->expected.width / 2;
        float off_y = box->y + box->height / 2 - track->expected.y - track->expected.height / 2;
        track->velocity_x += share * off_x / seconds;
        track->velocity_y += share * off_y / seconds;
    }
    track->box = *box;
    track->last_seen = now;
    track->seen++;
    track->unseen = 0;
    track->is_confirmed = track->is_confirmed || track->seen >= TRACK_HITS;
    relabel(track, box->label);
}

static void match(struct tracker *tracker, const struct box *boxes, int count, bool *is_candidate,
                  bool confirmed_only)
{
    size_t found = find_pairs(tracker, boxes, count, is_candidate, confirmed_only);

    for (size_t i = 0; i < found; i++) {
        const struct pair *pair = &tracker->pairs[i];
        struct track *track = &tracker->tracks[pair->track];
        if (track->matched < 0 && is_candidate[pair->box]) {
            see(track, tracker->now, &boxes[pair->box]);
            track->matched = pair->box;
            is_candidate[pair->box] = false;
        }
    }
}

/* If there is no room, the box is no object. */
static void begin(struct tracker *tracker, const struct box *boxes, int box)
{
    if (tracker->count < TRACKS_MAX) {
        tracker->tracks[tracker->count++] = (struct track){.id = ++tracker->newest_id,
                                                           .label = boxes[box].label,
                                                           .box = boxes[box],
                                                           .seen = 1,
                                                           .last_seen = tracker->now,
                                                           .label_next = boxes[box].label,
                                                           .label_hits = 1,
                                                           .matched = box};
    }
}

/* Before the match it removes confirmed objects that are old, after it tentative ones without a
 * box. */
static void forget(struct tracker *tracker, bool is_after_match)
{
    int kept = 0;

    for (int i = 0; i < tracker->count; i++) {
        struct track *track = &tracker->tracks[i];
        bool is_old = instant_since(tracker->now, track->last_seen).ns > tracker->age.ns &&
                      !track->report.waiting;
        bool is_gone = is_after_match ? !track->is_confirmed && track->matched < 0
                                      : track->is_confirmed && is_old;
        if (is_gone) {
            drop(track);
        } else {
            tracker->tracks[kept++] = *track;
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
    float high = tracker->rules.confidence, low = high * TRACK_LOW;
    bool is_sure[TRACK_BOXES_MAX], is_unsure[TRACK_BOXES_MAX];

    pass_time(tracker, now);
    forget(tracker, false);
    expect(tracker);
    for (int i = 0; i < count; i++) {
        ret[i] = NULL;
        is_sure[i] = boxes[i].score >= high;
        is_unsure[i] = !is_sure[i] && boxes[i].score >= low;
    }
    match(tracker, boxes, count, is_sure, false);
    match(tracker, boxes, count, is_unsure, true);
    for (int i = 0; i < count; i++) {
        if (is_sure[i]) {
            begin(tracker, boxes, i);
        }
    }
    forget(tracker, true);
    for (int i = 0; i < tracker->count; i++) {
        if (tracker->tracks[i].matched >= 0) {
            ret[tracker->tracks[i].matched] = &tracker->tracks[i];
        }
    }
}
